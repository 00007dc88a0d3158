import Core
import Glibc
import Linux
import TestKit
import Testing

@testable import Config

@Suite("Loading from a disk")
struct DiskTests {
    private let folder = TemporaryFolder()
    private var root: String { folder.path.display }

    private func write(_ name: FilePath, _ text: String, mode: mode_t = 0o600) throws -> FilePath {
        let file = try folder.write(name, Array(text.utf8))
        try #require(file.withCString { chmod($0, mode) } == 0)
        return file
    }

    private func load(_ file: FilePath) throws(ConfigErrors) -> LoadedSettings {
        try Settings.load(file, types: types) { ["SLUICE_TOKEN": "x"][$0] }
    }

    private func problems(_ file: FilePath) -> [String] {
        do throws(ConfigErrors) { return try load(file).warnings.map { "warning: \($0.text)" } } catch {
            return error.problems.map(\.text)
        }
    }

    private func configuration(token: String) -> String {
        """
        version: 1
        destinations:
          nas: {type: tus, url: "https://nas.example/", token: \(token)}
        folders: []
        """
    }

    @Test("an unreadable file is reported with the reason")
    func unreadable() throws {
        let missing = folder.path.appending("none.yaml")
        let error = #expect(throws: ConfigErrors.self) { try load(missing) }
        #expect(
            error?.description
                == "\(root)/none.yaml: does not exist; name another with --config FILE or $SLUICE_CONFIG")
        #expect(problems(folder.path) == ["is not a regular file"])
        #expect(
            problems(try folder.write("latin.yaml", [0x61, 0x0A, 0xE9, 0x0A])) == [
                "is not UTF-8: line 2 has bytes that are not text"
            ])
        let large = try folder.write("large.yaml", Array(repeating: 0x23, count: (1 << 20) + 1))
        #expect(problems(large) == ["is larger than 1 MiB, which no configuration is"])
    }

    @Test("a file is read through a link, and with a byte order mark")
    func linked() throws {
        let file = try folder.write("real.yaml", [0xEF, 0xBB, 0xBF] + Array("version: 1\nfolders: []".utf8))
        let link = folder.path.appending("link.yaml")
        try #require(makeLink(to: file, at: link))
        #expect(try load(link).files == [link])
    }

    @Test("folders and destinations of config.d are added in the order of names")
    func additions() throws {
        try Files.makeFolders(folder.path.appending("a"))
        try Files.makeFolders(folder.path.appending("b"))
        let main = try write("sluice.yaml", configuration(token: "{env: SLUICE_TOKEN}"))
        _ = try write("config.d/20-b.yaml", "folders: [{name: b, path: \(root)/b, upload_to: [nas, two]}]")
        _ = try write("config.d/10-a.yaml", "folders: [{name: a, path: \(root)/a, upload_to: [nas]}]")
        _ = try write("config.d/30.yaml", "destinations: {two: {type: directory, path: \(root)/two}}")
        _ = try write("config.d/.hidden.yaml", "nonsense")
        _ = try write("config.d/40.yml", "nonsense")
        let loaded = try load(main)
        #expect(loaded.settings.folders.map(\.watch.name) == ["a", "b"])
        #expect(loaded.settings.destinations.map(\.name) == ["nas", "two"])
        #expect(
            loaded.warnings.map(\.description) == [
                "\(root)/config.d/40.yml: warning: is not read: only names that end with `.yaml` are"
            ])
        #expect(loaded.files.map(\.name) == ["sluice.yaml", "10-a.yaml", "20-b.yaml", "30.yaml"])
    }

    @Test("settings not allowed in config.d, and duplicate names, are refused")
    func refusedAdditions() throws {
        let main = try write("sluice.yaml", configuration(token: "{env: SLUICE_TOKEN}"))
        _ = try write("config.d/1.yaml", "state: /x\ndestinations: {nas: {type: directory, path: /y}}\nfoldres: []")
        #expect(
            problems(main) == [
                "`state` may only stand in the main file; files in config.d add `folders` and `destinations`",
                "the destination `nas` is already defined at \(root)/sluice.yaml:3:3",
                "no setting is called `foldres` here; did you mean `folders`?",
            ])
    }

    @Test("a missing folder causes a warning with a remedy, and so does one that is no folder")
    func missingFolder() throws {
        _ = try write("file", "")
        let text = configuration(token: "{env: SLUICE_TOKEN}").replacing(
            "folders: []",
            with: """
                folders:
                - {name: a, path: \(root)/none, upload_to: [nas]}
                - {name: c, path: \(root)/nonee/deeper/still, upload_to: [nas]}
                """)
        let here =
            "does not exist now, and is watched when it appears: mount the file system that belongs there, or create it (mkdir -p)"
        let other =
            "warning: `\(root)/nonee/deeper/still` \(here). Of its parent folders only `\(root)` exists: check the spelling"
        #expect(problems(try write("sluice.yaml", text)) == ["warning: `\(root)/none` \(here)", other])
        #expect(
            problems(try write("sluice.yaml", text.replacing("/none,", with: "/file,"))) == [
                "warning: `\(root)/file` is not a folder; it is watched when a folder is there", other,
            ])
    }

    @Test("the loader checks whether a secret is readable, and by which user")
    func secretFiles() throws {
        let text = configuration(token: "{file: \(root)/token}")
        let main = try write("sluice.yaml", text)
        #expect(problems(main).first == "`\(root)/token` cannot be read: No such file or directory")
        _ = try write("token", "hunter2", mode: 0o644)
        #expect(
            problems(main) == [
                "warning: every user of this machine can read `\(root)/token` (mode 0644); chmod it to 0600 or 0640"
            ])
        _ = try write("token", "hunter2", mode: 0o640)
        #expect(problems(main).isEmpty)
        #expect(try load(main).settings.destinations[0].values["token"] == .secret(.file(FilePath("\(root)/token"))))
    }

    @Test(
        "a literal secret is accepted only in a file that is private to its owner",
        arguments: [0o640, 0o604, 0o644] as [mode_t])
    func literals(_ mode: mode_t) throws {
        let text = configuration(token: "{literal: hunter2}")
        let open = problems(try write("sluice.yaml", text, mode: mode))
        #expect(open.count == 1)
        #expect(open[0].hasPrefix("a secret is in a file that others can read (mode 0\(String(mode, radix: 8)))"))
        let closed = try write("sluice.yaml", text, mode: 0o600)
        #expect(problems(closed).map { $0.prefix(50) } == ["warning: a secret is in the configuration; keep it"])
        #expect(try load(closed).settings.destinations[0].values["token"] == .secret(.literal("hunter2")))
    }

    @Test(
        "for a secret that cannot be checked here, the loader says what the daemon will need",
        arguments: [
            ("{env: OTHER}", "warning: the environment variable `OTHER` is not set here; the daemon will need it"),
            (
                "{credential: nas}",
                "warning: cannot be checked here, because `$CREDENTIALS_DIRECTORY` is not set; the daemon's unit needs "
                    + "`LoadCredential=nas:…`"
            ),
            ("{command: [/nonexistent/pass]}", "`/nonexistent/pass` cannot be run: No such file or directory"),
            ("{command: [pass]}", "takes the program by its absolute path; no shell looks for it"),
            ("{command: []}", "takes a program and its arguments, like `[/usr/bin/pass, show, nas]`"),
            ("{env: $X}", "takes the bare name of an environment variable, without `$` and `=`"),
        ])
    func otherSecrets(_ token: String, _ answer: String) throws {
        #expect(problems(try write("sluice.yaml", configuration(token: token))) == [answer])
    }
}
