import Core
import Glibc
import Linux
import TestKit
import Testing

/// The program itself: what only a process can show.
@Suite("Process", .timeLimit(.minutes(1)))
struct ProcessTests {
    let folder = TemporaryFolder()

    /// The program that was built beside this test.
    private func start(_ arguments: [String]) throws -> Child {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = buffer.withUnsafeMutableBytes { buffer in
            buffer.baseAddress.map { readlink("/proc/self/exe", $0, buffer.count) } ?? -1
        }
        let binary = FilePath(bytes: buffer.prefix(max(0, count))).parent.appending("sluice")
        let name = hexadecimal(Chance.bytes(4))
        return try Child(
            binary, arguments, output: folder.path.appending(FilePath(name + ".out")),
            errors: folder.path.appending(FilePath(name + ".err")))
    }

    @Test("ends with the status of its verb")
    func status() async throws {
        #expect(try await start(["version"]).end(within: .seconds(20)) == .status(0))
        #expect(try await start(["lsit"]).end(within: .seconds(20)) == .status(64))
        let none = folder.path.appending("none.yaml").display
        #expect(try await start(["run", "--config", none]).end(within: .seconds(20)) == .status(78))
        #expect(try await start(["list", "--socket", none]).end(within: .seconds(20)) == .status(69))
    }

    @Test("a receiver says where it listens, and a signal ends it well", arguments: [SIGTERM, SIGINT])
    func receiver(_ signal: Int32) async throws {
        let into = folder.path.appending("in")
        let child = try start(["receive", "--listen", "127.0.0.1:0", "--into", into.display])
        let url = try await child.line(after: "listening on ")
        #expect(url.hasPrefix("http://127.0.0.1:"))
        #expect(url.hasSuffix("/files/"))
        child.send(SIGHUP)
        child.send(SIGPIPE)
        child.send(SIGIO)
        child.send(signal)
        #expect(try await child.end(within: .seconds(20)) == .status(0))
    }

    @Test("a configuration's mistake stands at the beginning of its line, as editors read it")
    func configuration() async throws {
        let file = try folder.write("bad.yaml", Array("bogus: 1\n".utf8))
        let child = try start(["check", "--config", file.display])
        #expect(try await child.end(within: .seconds(20)) == .status(78))
        #expect(try child.complained().hasPrefix("\(file):1:1: bogus:"))
    }

    @Test("a check names what is wrong and ends with the status of the worst")
    func check() async throws {
        try Files.makeFolders(folder.path.appending("drop"))
        let root = folder.path.display
        let text = """
            version: 1
            state: \(root)/state
            staging: {path: \(root)/staging, keep_free: 1 GB}
            folders:
              - {name: cam, path: \(root)/drop, upload_to: [nas]}
            destinations:
              nas: {type: tus, url: "http://127.0.0.1:1/files/"}
            control: {socket: \(root)/c.sock}

            """
        let file = try folder.write("s.yaml", Array(text.utf8))
        let child = try start(["check", "--config", file.display])
        #expect(try await child.end(within: .seconds(30)) == .status(76))
        let lines = try child.printed().split(separator: "\n").map(String.init)
        #expect(lines.contains { $0.hasPrefix("ok       folder       cam") })
        #expect(lines.contains { $0.hasPrefix("failed   destination  nas") })
        #expect(try FileLook.ifPresent(at: folder.path.appending("state")) == nil)

        let refused = try start(["check", "--config", file.display, "--json"])
        #expect(try await refused.end(within: .seconds(30)) == .status(76))
        #expect(try refused.printed().contains(#""ok":false"#))
    }
}
