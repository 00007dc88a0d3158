import Core
import Glibc
import Linux
import TestKit
import TestTraits
import Testing

/// Against a third-party tus server and tus client: two ends by the same author agree even where both are wrong.
@Suite("Other implementations of tus", .needsPackages)
struct ThirdPartyTusTests {
    @Test(
        "files reach another tus server once and complete, even if it and the daemon are killed",
        .timeLimit(.minutes(Patience.minutes(3))))
    func server() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let port = try Loopback.freePort()
        let store = fixture.folder.path.appending("store")
        try Files.makeFolders(store)
        fixture.destination = "http://127.0.0.1:\(port)/files"
        var server = try await startServer(port: port, store: store)
        defer { server.end(with: SIGKILL) }  // before the fixture's folder is removed
        let camera = Camera(fixture, dice: Dice(seed: 1))
        for number in 0..<6 {
            // One is so large that the kills come while it is being sent.
            let size = number == 0 ? 40 << 20 : 300_000 + number
            try camera.drop(Clip(number: number, size: size, relative: FilePath("clip \(number).mp4")))
        }
        try fixture.startDaemon()
        let files = store.appending("up")
        try await eventually("the server has bytes of a file") {
            try fixture.daemon?.requireRunning()
            return try Files.names(in: files).contains { try FileStatus(at: files.appending($0)).size > 0 }
        }
        server.end(with: SIGKILL)
        fixture.killDaemon()
        try fixture.startDaemon()
        server = try await startServer(port: port, store: store)

        do {
            try await eventually("every source is released", within: .seconds(60), every: .milliseconds(50)) {
                try Outcome.files(in: fixture.drop, hidden: true).isEmpty
            }
        } catch let overdue as Overdue {
            Issue.record(overdue, "\(fixture.lastWords())")
        }
        let contents = try Files.names(in: files).map { try Files.read(files.appending($0), limit: 64 << 20) }
        for clip in camera.clips {
            // An upload whose creation was not acknowledged may stay behind empty; a second complete one may not.
            #expect(contents.count { $0 == clip.content } == 1, "\(clip.relative)")
        }
        #expect(try Outcome.files(in: fixture.staging, hidden: true) == [])
    }

    @Test("another tus client resumes where our killed receiver had stopped", .timeLimit(.minutes(Patience.minutes(2))))
    func client() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        let clip = Clip(number: 1, size: 1_000_003, relative: "from elsewhere.mp4")
        let file = try fixture.folder.write("clip", clip.content)
        let begun = try await runClient(fixture, ["begin", "http://\(fixture.address)/files/", file.display])
        let url = try #require(begun.split(separator: "\n").last.map(String.init))
        #expect(
            try Outcome.files(in: fixture.received, hidden: false) == [], "no name appears before its file is complete")
        fixture.killReceiver()
        try await fixture.startReceiver()
        let finished = try await runClient(fixture, ["finish", url, file.display])
        #expect(finished == "from 300000\n", "the acknowledged bytes were kept")
        #expect(try Outcome.files(in: fixture.received, hidden: false) == [clip.relative])
        #expect(try Files.read(fixture.received.appending(clip.relative), limit: 64 << 20) == clip.content)
    }

    private static let client = """
        import sys
        from tusclient import client

        verb, url, path = sys.argv[1:]
        if verb == "begin":
            uploader = client.TusClient(url).uploader(
                path, chunk_size=100_000, metadata={"filename": "from elsewhere.mp4", "filetype": "video/mp4"})
            uploader.upload(stop_at=300_000)
            print(uploader.url)
        else:
            uploader = client.TusClient(url).uploader(path, url=url, chunk_size=100_000)
            print("from", uploader.offset)
            uploader.upload()
        """

    private func runClient(_ fixture: DaemonFixture, _ arguments: [String]) async throws -> String {
        let folder = fixture.folder.path
        try fixture.folder.write("client.py", Array(Self.client.utf8))
        try Files.removeIfPresent(folder.appending("client.out"))
        let child = try Child(
            tool("python3"), [folder.appending("client.py").display] + arguments,
            output: folder.appending("client.out"), errors: folder.appending("client.err"))
        let ending = try await child.end(within: .seconds(60))
        let complaint = try child.standardError()
        try #require(ending == .status(0), "\(complaint)")
        return try child.standardOutput()
    }

    private func startServer(port: Int, store: FilePath) async throws -> Child {
        let child = try Child(
            tool("resumable-upload"),
            [
                "serve", "--host", "127.0.0.1", "--port", "\(port)", "--base-path", "/files", "--log-level", "WARNING",
                "--upload-dir", store.appending("up").display, "--db-path", store.appending("tus.db").display,
            ], output: store.appending("out"), errors: store.appending("err"))
        try await eventually("the tus server accepts connections") {
            try child.requireRunning()
            return Loopback.answers(port)
        }
        return child
    }

    /// Pinned: a test that changes overnight proves nothing. The client is the tus project's own.
    private func tool(_ name: FilePath) throws -> FilePath {
        try Tools.python("tus").appending(name)
    }
}
