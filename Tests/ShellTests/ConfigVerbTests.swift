import Core
import Foundation
import Linux
import TestKit
import Testing

@testable import Shell

/// The root of the repository in which this file was compiled.
private let top = Repository.root

/// The output of `config`, with the types of destination that the program has.
@Suite("sluice config")
struct ConfigVerbTests {
    private let folder = TemporaryFolder()

    private func output(_ words: [FilePath]) async -> String {
        let screen = Screen()
        let status = await Shell.run(["config"] + words, console: screen.console(), signals: nil)
        #expect(status == .ok, "\(screen.errors)")
        return screen.output
    }

    /// Keys and values of `--json`, in order.
    private func values(_ json: String) throws -> [[String]] {
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
        let settings = try #require(object["settings"] as? [[String: Any]])
        return try settings.map { setting in
            let value = try JSONSerialization.data(
                withJSONObject: [setting["value"] ?? ""], options: [.sortedKeys, .withoutEscapingSlashes])
            return ["\(setting["key"] ?? "")", String(decoding: value, as: UTF8.self)]
        }
    }

    @Test("the printed configuration of each example loads, and prints the same again")
    func examples() async throws {
        let names = try Files.names(in: top.appending("config")).filter { $0.fileExtension == "yaml" }
        #expect(names.count > 5)
        for name in names {
            let file = top.appending("config").appending(name)
            let written = try folder.write(name, Array(await output(["--config", file]).utf8))
            let first = try values(await output(["--config", file, "--json"]))
            #expect(first == (try values(await output(["--config", written, "--json"]))))
            #expect(first.contains { $0[0] == "version" && $0[1] == "[1]" })
            // The messages of `check`, which also examines the disk: its findings there are no mistakes of the text.
            let screen = Screen()
            _ = await Shell.run(["check", "--config", written], console: screen.console(), signals: nil)
            #expect(
                !screen.errors.contains("no setting is called") && !screen.errors.contains(" takes "),
                "\(screen.errors)")
        }
    }

    @Test(
        "each example and each YAML block of the manual is valid by the schema that the program prints",
        .enabled(
            if: SchemaCheck.isPossible, "python3-jsonschema and python3-yaml are wanted: scripts/install-deps --tests"))
    func schema() async throws {
        let examples = try Files.names(in: top.appending("config")).filter { $0.fileExtension == "yaml" }
            .map { top.appending("config").appending($0) }
        let pages = try ["docs", "docs/destinations"].map { top.appending(FilePath($0)) }.flatMap { folder in
            try Files.names(in: folder).filter { $0.fileExtension == "md" }.map { folder.appending($0) }
        }
        let answers = try SchemaCheck.problems(
            of: examples + pages + [top.appending("README.md")], by: await output(["schema"]))
        #expect(answers.count > 60)
        for (place, problems) in answers {
            // Blocks of other programs are no configuration.
            if let problems { #expect(problems == [], "\(place)") }
        }
        #expect(answers.filter { $0.value == nil }.count < 4, "\(answers.filter { $0.value == nil }.keys)")
    }

    @Test("config schema takes no other word")
    func schemaWord() async throws {
        let screen = Screen()
        #expect(await Shell.run(["config", "schem"], console: screen.console(), signals: nil) == .usage)
        #expect(screen.errors.contains("`schem`"))
    }

    @Test("config needs no daemon and no file it names; a mistake gives status 78 and its place")
    func mistakes() async throws {
        let good = try folder.write("good.yaml", Array("version: 1\nstate: /nowhere/at/all\n".utf8))
        #expect(await output(["--config", good]).contains("state: /nowhere/at/all"))
        let bad = try folder.write("bad.yaml", Array("version: 1\nstat: /x\n".utf8))
        let screen = Screen()
        #expect(await Shell.run(["config", "--config", bad], console: screen.console(), signals: nil) == .config)
        #expect(screen.errors.hasPrefix("\(bad.display):2:1: "))
        #expect(screen.output.isEmpty)
    }

    @Test("config refuses a secret in a file that others can read, as `check` does, once")
    func open() async throws {
        let text = """
            version: 1
            state: \(folder.path.display)/state
            destinations:
              a:
                type: chunked-form
                preset: flow
                url: http://127.0.0.1:9/
                headers: {X-Key: "{secret:s}"}
                secrets: {s: {literal: abcdefgh}}
            """
        let file = try folder.write("open.yaml", Array(text.utf8))
        try #require(file.withCString { chmod($0, 0o644) } == 0)
        for verb in ["config", "check"] {
            let screen = Screen()
            let status = await Shell.run(
                [FilePath(verb), "--config", file], console: screen.console(), signals: nil)
            #expect(status == .config, "\(verb)")
            #expect(screen.output.isEmpty && !screen.errors.contains("abcdefgh"))
            #expect(screen.errors.contains("a secret is in a file that others can read (mode 0644)"))
            #expect(!screen.errors.contains("does not have"), "\(screen.errors)")
        }
        try #require(file.withCString { chmod($0, 0o600) } == 0)
        #expect(await output(["--config", file]).contains("literal: hidden"))
    }

    @Test("`check` takes a destination as its operand, once, and says where a configuration file belongs")
    func checkOperand() async throws {
        let folder = TemporaryFolder()
        let archive = folder.path.appending("archive")
        try Files.makeFolders(archive)
        let file = folder.path.appending("sluice.yaml")
        try Files.replace(
            file,
            with: Array(
                """
                version: 1
                state: \(folder.path.display)/state
                destinations:
                  archive: {type: directory, path: \(archive.display)}
                  spare: {type: directory, path: \(folder.path.display)/missing}
                """.utf8), mode: 0o600)
        func check(_ words: [FilePath]) async -> (status: ExitCode, screen: Screen) {
            let screen = Screen()
            let status = await Shell.run(["check", "--config", file] + words, console: screen.console(), signals: nil)
            return (status, screen)
        }
        let one = await check(["archive"])
        #expect(one.status == .ok && one.screen.output.contains("archive"), "\(one.screen.output)")
        #expect(!one.screen.output.contains("spare") && !one.screen.output.contains("missing"))
        #expect(await check(["spare"]).status == .remote)
        let twice = await check(["archive", "--destination", "archive"])
        #expect(twice.status == .usage && twice.screen.errors.contains("the destination is given twice"))
        let unknown = await check(["archiv"])
        #expect(unknown.status == .notFound && unknown.screen.errors.contains("no destination is called `archiv`"))
        #expect(await check(["sluice.yaml"]).screen.errors.contains("given with --config"))
    }
}

/// Runs the validator of others.
private enum SchemaCheck {
    private static let python: FilePath = "/usr/bin/python3"

    static var isPossible: Bool {
        let folder = TemporaryFolder()
        let out = folder.path.appending("out")
        // Without Python there are no packages for it either.
        let child = try? Child(python, ["-c", "import jsonschema, yaml"], output: out, errors: out)
        return child?.wait() == .status(0)
    }

    /// The problems by file, or by page and line; `nil` for a block that is no part of a configuration.
    static func problems(of files: [FilePath], by schema: String) throws -> [String: [String]?] {
        let folder = TemporaryFolder()
        let file = try folder.write("schema.json", Array(schema.utf8))
        let child = try Child(
            python,
            [top.appending("Tests/Fixtures/schema_check.py").display, file.display, "files"] + files.map(\.display),
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
        let ending = child.wait()
        let errors = try child.standardError()
        #expect(ending == .status(0), "\(errors)")
        return try JSONDecoder().decode([String: [String]?].self, from: Data(child.standardOutput().utf8))
    }
}
