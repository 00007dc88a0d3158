import Core
import Glibc
import Linux
import TestKit
import Testing

@testable import Shell

@Suite("sluice init", .timeLimit(.minutes(Patience.minutes(3))))
struct InitTests {
    private let folder = TemporaryFolder()
    private var typist: Typist { Typist(folder: folder.path) }
    private var etc: FilePath { folder.path.appending("etc") }
    private var file: FilePath { etc.appending("sluice.yaml") }
    private var videos: FilePath { folder.path.appending("videos") }
    private var nas: FilePath { folder.path.appending("nas") }

    init() throws {
        try Files.makeFolders(videos)
        try Files.makeFolders(nas)
    }

    private func options(_ more: [String] = []) -> [String] {
        ["init", "--config", file.display, "--folder", videos.display] + more
    }

    private func content(_ path: FilePath) throws -> String { String(decoding: try Files.read(path), as: UTF8.self) }

    @Test("with options it asks nothing, and writes a configuration that loads and names its schema")
    func withOptions() async throws {
        let more = ["--to", nas.display, "--after", "delete", "--metered", "pause", "--hours", "22:00-06:00"]
        let result = try await typist.run(options(more))
        #expect(result.status == .status(0), "\(result.errors)\(result.output)")
        let text = try content(file)
        #expect(text.hasPrefix("# yaml-language-server: $schema=/usr/share/sluice/sluice.schema.json\n"))
        #expect(text.contains("after_upload: {source: delete}") && text.contains("metered: pause"))
        #expect(try FileStatus(at: file).mode & 0o007 == 0)
        #expect(try Files.names(in: etc) == ["sluice.yaml"])
        #expect(result.output.contains("undo: rm \(file.display)"))
        let shown = try await typist.run(["config", "--config", file.display])
        #expect(shown.status == .status(0), "\(shown.errors)")
        #expect(shown.output.contains("windows: [\"22:00-06:00\"]"))
    }

    @Test("the same answers again change nothing, and other answers are refused with the remedy")
    func again() async throws {
        let answers = try folder.write(
            "answers.yaml", Array("folder: \(videos.display)\nto: \(nas.display)\nstart: false\n".utf8))
        let words = ["init", "--config", file.display, "--from", answers.display]
        #expect(try await typist.run(words).status == .status(0))
        let before = (try content(file), try FileStatus(at: file))
        let second = try await typist.run(words)
        #expect(second.status == .status(0), "\(second.errors)")
        #expect(second.output.contains("nothing was changed"))
        let third = try await typist.run(words + ["--after", "delete"])
        #expect(third.status == .status(65))
        #expect(third.errors.contains("overwrites nothing") && third.errors.contains("`sluice edit`"))
        #expect(try content(file) == before.0 && FileStatus(at: file) == before.1)
    }

    @Test("without a terminal it names the option that is missing")
    func missing() async throws {
        let none = try await typist.run(["init", "--config", file.display])
        #expect(none.status == .status(64) && none.errors.contains("--folder is missing"))
        let one = try await typist.run(options())
        #expect(one.status == .status(64) && one.errors.contains("--to is missing"))
        #expect(try FileStatus.ifPresent(at: etc) == nil)
    }

    @Test("a wrong answer is reported by its option, or by its place in the file of answers")
    func wrong() async throws {
        let option = try await typist.run(options(["--to", nas.display, "--after", "burn"]))
        #expect(option.status == .status(64))
        #expect(option.errors.contains("--after takes `keep`, `delete`, or `move=/srv/done/{name}`, not `burn`"))
        let answers = try folder.write("answers.yaml", Array("folder: videos\nwhere: /x\n".utf8))
        let file = try await typist.run(["init", "--config", file.display, "--from", answers.display])
        #expect(file.status == .status(78))
        #expect(file.errors.contains("\(answers.display):1:9: folder: "))
        #expect(file.errors.contains("\(answers.display):2:1: where: no setting is called `where` here"))
        #expect(try FileStatus.ifPresent(at: etc) == nil)
    }

    @Test("a file of answers that is empty or absent is reported as one, and not as a configuration")
    func noAnswers() async throws {
        let empty = try folder.write("empty.yaml", [])
        let absent = folder.path.appending("absent.yaml")
        for (answers, words) in [
            (empty, "lines like `folder: /srv/camera`"), (absent, "name another with --from FILE"),
        ] {
            let result = try await typist.run(["init", "--config", file.display, "--from", answers.display])
            #expect(result.status == .status(78) && result.errors.contains(words), "\(result.errors)")
        }
    }

    @Test("a destination that does not answer leaves nothing behind, unless it is not to be asked")
    func unreachable() async throws {
        let token = try folder.write("token", Array("a-token-of-24-characters\n".utf8))
        // Port 1 (tcpmux) of this machine has no listener.
        let words = options(["--to", "http://127.0.0.1:1/files/", "--token-file", token.display])
        let refused = try await typist.run(words)
        #expect(refused.status == .status(76), "\(refused.output)\(refused.errors)")
        #expect(refused.errors.contains("Nothing was written"))
        #expect(try FileStatus.ifPresent(at: etc) == nil)
        let offline = try await typist.run(words + ["--offline"])
        #expect(offline.status == .status(0), "\(offline.errors)")
        let copied = etc.appending("server.token")
        #expect(try content(copied) == "a-token-of-24-characters\n")
        #expect(try FileStatus(at: copied).mode & 0o007 == 0)
        #expect(!(try content(file)).contains("a-token"))
        #expect(!(offline.output + offline.errors + refused.output + refused.errors).contains("a-token"))
    }

    @Test("a test file is sent to a tus server and removed again, with the token")
    func testFile() async throws {
        let token = try folder.write("token", Array("a-token-of-24-characters\n".utf8))
        let received = folder.path.appending("received")
        let receiver = try Child(
            Typist.program,
            ["receive", "--listen", "127.0.0.1:0", "--into", received.display, "--token-file", token.display],
            output: folder.path.appending("receiver.out"), errors: folder.path.appending("receiver.err"))
        let url = try await receiver.line(after: "listening on ")
        let result = try await typist.run(options(["--to", url, "--token-file", token.display]))
        #expect(result.status == .status(0), "\(result.output)\(result.errors)")
        #expect(result.output.contains("a test file arrived, and was removed again"))
        // Its log says that the file was there.
        #expect(try receiver.standardError().contains("received sluice-test-"))
        #expect(try Files.names(in: received).filter { $0 != ".sluice-receive" } == [])
        // A token file in its place is left as it is.
        let again = try await typist.run(
            options(["--to", url, "--token-file", etc.appending("server.token").display]))
        #expect(again.status == .status(0), "\(again.errors)")
    }

    @Test(
        "at a terminal it asks for what is missing, and a typed token is not shown",
        .enabled(if: Typist.isPossible, "python3 is wanted: scripts/install-deps --tests"))
    func dialogue() async throws {
        let result = try await typist.type(
            [
                ("Which folder has the videos?", "\(videos.display)\n"), ("Where do they go?", "nas\n"),
                ("takes an address", "http://nas.invalid:1080/files/\n"),
                ("which is not shown", "a-typed-tokem\u{7F}n\n"),
                ("verified?", "\n"), ("When may it upload?", "unmetered\n"),
            ],
            ["init", "--config", file.display, "--offline"])
        #expect(result.status == .status(0), "\(result.shown)")
        #expect(!result.shown.contains("a-typed"))
        #expect(try content(etc.appending("nas.token")) == "a-typed-token\n")
        let text = try content(file)
        #expect(text.contains("metered: pause") && text.contains("after_upload: {source: keep}"))
        #expect(text.contains("token: {file: \(etc.appending("nas.token").display)}"))
    }

    @Test(
        "an interrupt at the token leaves nothing behind",
        .enabled(if: Typist.isPossible, "python3 is wanted: scripts/install-deps --tests"))
    func interrupted() async throws {
        let result = try await typist.type(
            [("Where do they go?", "http://nas.invalid/\n"), ("which is not shown", "half\u{03}")],
            options(["--offline"]))
        #expect(result.status == .status(1), "\(result.shown)")
        #expect(result.shown.contains("interrupted; nothing was written"))
        #expect(!result.shown.contains("half"))
        #expect(try FileStatus.ifPresent(at: etc) == nil)
    }

    @Test("a token of several lines is refused before anything is written, also without a contact")
    func tokenOfLines() async throws {
        let token = try folder.write("token", Array("first-line\nsecond\n".utf8))
        let result = try await typist.run(
            options(["--to", "http://nas.invalid/", "--token-file", token.display, "--offline"]))
        #expect(result.status == .status(64) && result.errors.contains("several lines"), "\(result.errors)")
        #expect(!result.errors.contains("first-line"))
        #expect(try FileStatus.ifPresent(at: etc) == nil)
    }

    @Test("a folder, or a link to nothing, in the place of the configuration is reported")
    func noFile() async throws {
        try Files.makeFolders(etc)
        try Files.makeLink(file, to: "/nonexistent/sluice.yaml")
        let more = ["--folder", videos.display, "--to", nas.display]
        for place in [file, nas] {
            let result = try await typist.run(["init", "--config", place.display] + more)
            #expect(result.status == .status(65) && result.errors.contains("is no file"), "\(result.errors)")
        }
    }

    @Test("the command that undoes it has a path with a space in quotes")
    func undoInQuotes() async throws {
        let place = folder.path.appending("my etc/sluice.yaml")
        let result = try await typist.run(
            ["init", "--config", place.display, "--folder", videos.display, "--to", nas.display])
        #expect(result.status == .status(0), "\(result.errors)")
        #expect(result.output.contains("undo: rm '\(place.display)'\n"), "\(result.output)")
    }

    @Test("a demo in a folder that does not exist makes none")
    func demoElsewhere() async throws {
        let place = folder.path.appending("none")
        let result = try await typist.run(["demo"], environment: ["TMPDIR": place.display])
        #expect(result.status == .status(1) && result.errors.contains("Set TMPDIR"), "\(result.errors)")
        #expect(try FileStatus.ifPresent(at: place) == nil)
    }

    @Test("a signal while the destination is asked leaves nothing behind", arguments: [SIGINT, SIGTERM, SIGHUP])
    func ended(by signal: Int32) async throws {
        let token = try folder.write("token", Array("a-token-of-24-characters\n".utf8))
        let server = try FakeServer { exchange in exchange.hang() }
        let child = try Child(
            Typist.program, options(["--to", server.url + "/files/", "--token-file", token.display]),
            output: folder.path.appending("init.out"), errors: folder.path.appending("init.err"))
        try await eventually("the server is asked") {
            try child.requireRunning()
            return !server.seen.isEmpty
        }
        #expect(try Files.names(in: etc).count == 2)
        child.send(signal)
        #expect(try await child.end(within: .seconds(20)) == .status(1))
        #expect(try child.standardError().contains("interrupted; nothing was written"))
        #expect(try FileStatus.ifPresent(at: etc) == nil)
    }

    @Test("an output that cannot be written sets nothing up, and is no success", arguments: ["closed", "full"])
    func badOutput(_ kind: String) async throws {
        // The status of the first program of a pipe, without bash.
        let script =
            kind == "full"
            ? "\"$@\" >/dev/full; echo status $? >&2" : "{ sleep 0.2; \"$@\"; echo status $? >&2; } | :"
        let child = try Child(
            "/bin/sh", ["-c", script, "sh", Typist.program.display] + options(["--to", nas.display]),
            output: folder.path.appending("init.out"), errors: folder.path.appending("init.err"))
        _ = try await child.end(within: .seconds(20))
        let errors = try child.standardError()
        #expect(errors.contains("nothing was set up") && errors.contains("status 1\n"), "\(errors)")
        #expect(try FileStatus.ifPresent(at: etc) == nil)
    }

    @Test("folders with a telling name come first, and cards by their DCIM")
    func detection() throws {
        let root = folder.path.appending("root")
        for name in [
            "srv/backup", "srv/camera", "media/CARD/DCIM", "media/anna/EOS/DCIM", "mnt/disk", "home/Videos", "home/x",
            "run/systemd/system",
        ] { try Files.makeFolders(root.appending(FilePath(name))) }
        try Files.makeFolders(root.appending("etc"))
        try Files.makeLink(root.appending("etc/localtime"), to: "/usr/share/zoneinfo/Europe/Berlin")
        let detection = SetupDetection(root: root, home: root.appending("home"))
        #expect(
            detection.folders().map { $0.relative(to: root)?.display } == [
                "srv/camera", "media/CARD/DCIM", "media/anna/EOS/DCIM", "home/Videos", "srv/backup", "mnt/disk",
            ])
        #expect(detection.hasSystemd && detection.zone == "Europe/Berlin")
    }
}
