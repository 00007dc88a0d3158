import Core
import Digests
import Glibc
import Linux
import Media
import TestKit
import Testing

@testable import Shell

/// `sluice demo` as the built program runs it.
@Suite("The demo", .timeLimit(.minutes(Patience.minutes(2))))
struct DemoTests {
    let folder = TemporaryFolder()

    private func start(_ arguments: [String], in parent: FilePath? = nil) throws -> Child {
        let binary = try #require(Files.real("/proc/self/exe")).parent.appending("sluice")
        try Files.makeFolders(folder.path.appending("tmp"))
        // A line of an earlier run must not be taken for one of this run.
        for name: FilePath in ["out", "err"] { try Files.removeIfPresent(folder.path.appending(name)) }
        return try Child(
            binary, ["demo"] + arguments,
            environment: ["TMPDIR": (parent ?? folder.path.appending("tmp")).display],
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
    }

    /// Starts the demo, and ends it when it has printed a line. On a slow machine it may be over before the line is
    /// noticed; then it is started again.
    private func demo(at line: String, end: (Child) async throws -> Void) async throws -> Child {
        for _ in 0..<5 {
            let child = try start([])
            _ = try await child.line(after: line, within: .seconds(60))
            try await end(child)
            if try !child.standardOutput().contains("Verified") { return child }
        }
        throw NotEnded(line: line)
    }

    private struct NotEnded: Error, CustomStringConvertible {
        let line: String
        var description: String { "five demos were not ended at “\(line)”: each has compared the file" }
    }

    /// What the demo has left in `$TMPDIR`.
    private var left: [FilePath] { get throws { try Files.names(in: folder.path.appending("tmp")) } }

    /// Whether a process still has a path of the demo in its words.
    private var isRunning: Bool {
        get throws {
            let mark = folder.path.appending("tmp").display
            return try Files.names(in: "/proc").contains { name in
                guard name.bytes.allSatisfy({ (0x30...0x39).contains($0) }) else { return false }
                // A process that has ended meanwhile has no words.
                let words = try? Files.read(FilePath("/proc").appending(name).appending("cmdline"))
                return String(decoding: words ?? [], as: UTF8.self).contains(mark)
            }
        }
    }

    @Test("a killed daemon continues the upload, the digests are equal, and nothing is left")
    func whole() async throws {
        let child = try start([])
        let ending = try await child.end(within: .seconds(60))
        let output = try child.standardOutput()
        let errors = try child.standardError()
        #expect(ending == .status(0), "\(output)\(errors)")
        #expect(output.contains("The daemon is killed now (SIGKILL)"))
        #expect(output.contains("Verified: the received file has the same SHA-256"))
        let digest = hexadecimal(Hasher.digest(.sha256, of: DemoVideo.content()))
        #expect(output.contains(digest))
        // 23 MB, of which at least 40% had arrived before.
        let line = try #require(output.split(separator: "\n").first { $0.hasPrefix("  sent ") })
        let sent = try #require(line.split(separator: " ").dropFirst().first.flatMap { Double($0) })
        #expect(line.contains(" MB after the cut") && sent > 1 && sent < 16)
        #expect(try left == [])
        #expect(try !isRunning)
    }

    @Test("--keep leaves the receiver and the daemon running until Ctrl-C, and then the folder")
    func keep() async throws {
        let child = try start(["--keep"])
        _ = try await child.line(after: "Now you.", within: .seconds(60))
        let name = try #require(try left.first)
        let place = folder.path.appending("tmp").appending(name)
        try Files.publish(place.appending("drop/own.txt"), Array("mine".utf8), mode: 0o600)
        let own = place.appending("received/camera/own.txt")
        try await eventually("the own file has arrived") { try FileStatus.ifPresent(at: own) != nil }
        child.send(SIGINT)
        #expect(try await child.end(within: .seconds(20)) == .status(0))
        #expect(try child.standardOutput().contains("rm -r \(place.display)"))
        #expect(try left == [name])
        #expect(try !isRunning)
    }

    @Test(
        "Ctrl-C in the middle ends the processes, removes the folder, and fails", arguments: [SIGINT, SIGTERM, SIGHUP])
    func interrupted(_ signal: Int32) async throws {
        let child = try await demo(at: signal == SIGHUP ? "receiver" : "A camera has written") { child in
            child.send(signal)
            _ = try await child.end(within: .seconds(20))
        }
        #expect(child.ended == .status(1))
        #expect(try child.standardError().contains("the demo was ended before the file was compared"))
        #expect(try left == [])
        #expect(try !isRunning)
    }

    @Test("the kernel ends the receiver and the daemon of a demo that is killed")
    func killed() async throws {
        var wasRunning = false
        _ = try await demo(at: "A camera has written") { child in
            wasRunning = try isRunning
            child.end(with: SIGKILL)
        }
        #expect(wasRunning)
        try await eventually("both have ended") { try !isRunning }
    }

    @Test("a folder that cannot be written to is named, with a remedy")
    func unwritable() async throws {
        let child = try start([], in: try folder.write("file", []))
        #expect(try await child.end(within: .seconds(20)) == .status(1))
        #expect(try child.standardError().contains("Set TMPDIR to a folder that you may write to."))
    }

    @Test("the demo's video is a complete QuickTime movie of four seconds")
    func video() throws {
        let path = try folder.write("clip.mov", DemoVideo.content())
        let reader = try HeaderReader(path: path)
        #expect(try Container.verdict(of: reader, named: path.name) == .complete(.mp4))
        let facts = try MediaFactsReader.of(reader, named: path.name)
        #expect(facts.width == 320 && facts.height == 240 && facts.duration == 4000)
    }
}
