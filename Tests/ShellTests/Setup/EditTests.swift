import Core
import Glibc
import Linux
import TestKit
import Testing

@Suite(
    "sluice edit", .enabled(if: Typist.isPossible, "python3 is wanted: scripts/install-deps --tests"),
    .timeLimit(.minutes(Patience.minutes(3))))
struct EditTests {
    private let folder = TemporaryFolder()
    private var typist: Typist { Typist(folder: folder.path) }
    private var file: FilePath { etc.appending("sluice.yaml") }
    private var etc: FilePath { folder.path.appending("etc") }
    private let text = "# mine\nversion: 1\nstate: /nowhere/state\ncontrol: {socket: /nowhere/control.sock}\n"

    init() throws {
        try Files.makeFolders(etc)
        try write(text)
    }

    private func write(_ text: String) throws { try Files.publish(file, Array(text.utf8), mode: 0o640) }
    private func content() throws -> String { String(decoding: try Files.read(file), as: UTF8.self) }
    /// Copies that are left beside the configuration.
    private func copies() throws -> [FilePath] { try Files.names(in: etc).filter { $0 != "sluice.yaml" } }

    /// A script that stands in for an editor: it gets the copy as its argument.
    private func editor(_ script: String) throws -> [String: String] {
        ["SLUICE_EDITOR": try folder.writeProgram("editor", script).display]
    }

    private func edit(
        _ script: String, _ steps: [(String, String?)] = [], at path: FilePath? = nil
    ) async throws -> (status: Child.Ending, shown: String) {
        try await typist.type(
            steps, ["edit", "--config", (path ?? file).display], environment: try editor(script))
    }

    @Test("a good copy replaces the configuration with its mode and its comments")
    func replaces() async throws {
        let result = try await edit("echo 'policy: {order: oldest-first}' >>\"$1\"")
        #expect(result.status == .status(0), "\(result.shown)")
        #expect(try content() == text + "policy: {order: oldest-first}\n")
        #expect(try FileStatus(at: file).mode & 0o7777 == 0o640)
        #expect(try copies() == [])
        #expect(result.shown.contains("replaced \(file.display)"))
        #expect(result.shown.contains("no daemon answers at /nowhere/control.sock"))
    }

    @Test("a symbolic link stays, and its target is replaced")
    func link() async throws {
        let link = folder.path.appending("link.yaml")
        try Files.makeLink(link, to: file)
        let result = try await edit("echo '# more' >>\"$1\"", at: link)
        #expect(result.status == .status(0), "\(result.shown)")
        #expect(try content() == text + "# more\n")
        #expect(Files.linkTarget(link) == file)
    }

    @Test("an editor that changes nothing leaves everything as it was")
    func unchanged() async throws {
        let result = try await edit("true")
        #expect(result.status == .status(0))
        #expect(result.shown.contains("nothing was changed"))
        #expect(try content() == text && copies() == [])
    }

    @Test("a mistake is shown with the name of the configuration, and the copy is discarded on request")
    func discards() async throws {
        let result = try await edit("echo 'stat: /x' >>\"$1\"", [("aside?", "d\n")])
        #expect(result.status == .status(78), "\(result.shown)")
        #expect(result.shown.contains("\(file.display):5:1: "))
        #expect(try content() == text && copies() == [])
    }

    @Test("a copy with a mistake is kept aside on request, and at the end of the input")
    func keeps() async throws {
        for answer in ["k\n", "\u{04}"] {
            let result = try await edit("echo 'stat: /x' >>\"$1\"", [("aside?", answer)])
            #expect(result.status == .status(78), "\(result.shown)")
            let copy = try #require(try copies().first)
            #expect(result.shown.contains(etc.appending(copy).display))
            #expect(try Files.read(etc.appending(copy)) == Array((text + "stat: /x\n").utf8))
            #expect(try FileStatus(at: etc.appending(copy)).mode & 0o077 == 0)
            #expect(try content() == text)
            try Files.remove(etc.appending(copy))
        }
    }

    @Test("Ctrl-C at the question keeps the text, and names its place")
    func interrupted() async throws {
        let result = try await edit("echo 'stat: /x' >>\"$1\"", [("aside?", "\u{03}")])
        #expect(result.status == .status(1), "\(result.shown)")
        let copy = try #require(try copies().first)
        #expect(result.shown.contains("your text is in \(etc.appending(copy).display)"))
        #expect(try content() == text)
    }

    @Test(
        "an editor that leaves no file to read gets another chance",
        arguments: ["rm \"$1\"", "rm \"$1\"; ln -s \"$0\" \"$1\"", "truncate -s 2M \"$1\""])
    func unreadable(_ script: String) async throws {
        let result = try await edit(script, [("aside?", "d\n")])
        #expect(result.status == .status(78), "\(result.shown)")
        #expect(result.shown.contains("left no file that can be read"))
        #expect(try content() == text && copies() == [])
    }

    @Test("a mistake can be edited again, with the text as it was")
    func again() async throws {
        let script = """
            if grep -q '^stat:' "$1"; then sed -i 's/^stat: {}/# fixed/' "$1"; else echo 'stat: {}' >>"$1"; fi
            """
        let result = try await edit(script, [("aside?", "e\n")])
        #expect(result.status == .status(0), "\(result.shown)")
        #expect(try content() == text + "# fixed\n")
    }

    @Test("a configuration that was changed meanwhile is not replaced, and the text is kept")
    func concurrent() async throws {
        let result = try await edit("echo '# other' >>\(file.display); echo '# mine too' >>\"$1\"")
        #expect(result.status == .status(65), "\(result.shown)")
        #expect(try content() == text + "# other\n")
        #expect(result.shown.contains("was changed by another program"))
        let copy = try #require(try copies().first)
        #expect(try Files.read(etc.appending(copy)) == Array((text + "# mine too\n").utf8))
    }

    @Test("a second editor of the same folder is refused")
    func locked() async throws {
        let other = "\(Typist.program.display) edit --config \(file.display); echo \"second: $?\""
        let result = try await edit(other)
        #expect(result.shown.contains("another `sluice edit` is open"))
        #expect(result.shown.contains("second: 75"))
    }

    @Test("a kill while the editor is open leaves the old configuration")
    func killed() async throws {
        let result = try await edit("echo 'junk: [' >>\"$1\"; echo open; read line", [("open", nil)])
        #expect(result.status == .status(128 + SIGKILL), "\(result.shown)")
        #expect(try content() == text)
    }

    @Test("a running daemon reads the new configuration, and its answer is shown")
    func reloads() async throws {
        let socket = folder.path.appending("control.sock")
        let state = folder.path.appending("state").display
        try write("version: 1\nstate: \(state)\ncontrol: {socket: \(socket.display)}\n")
        let daemon = try Child(
            Typist.program, ["run", "--config", file.display], output: folder.path.appending("daemon.out"),
            errors: folder.path.appending("daemon.err"))
        try await eventually("the daemon answers") {
            try daemon.requireRunning()
            return try await typist.run(["status", "--socket", socket.display]).status == .status(0)
        }
        let good = try await edit("echo 'policy: {order: oldest-first}' >>\"$1\"")
        #expect(good.status == .status(0) && good.shown.contains("policy changed (order)"), "\(good.shown)")
        let refused = try await edit("sed -i 's,^state: .*,state: /elsewhere,' \"$1\"")
        #expect(refused.status == .status(78), "\(refused.shown)")
        #expect(refused.shown.contains("state: cannot change from"))
        daemon.send(SIGTERM)
        #expect(try await daemon.end(within: .seconds(20)) == .status(0))
    }

    @Test("without a terminal it names what to do instead")
    func withoutTerminal() async throws {
        let result = try await typist.run(["edit", "--config", file.display])
        #expect(result.status == .status(64))
        #expect(result.errors.contains("must be a terminal") && result.errors.contains("sluice check --config COPY"))
    }

    @Test("a configuration that does not exist is reported")
    func missing() async throws {
        let result = try await edit("true", at: etc.appending("none.yaml"))
        #expect(result.status == .status(66))
        #expect(result.shown.contains("none.yaml does not exist"))
    }
}
