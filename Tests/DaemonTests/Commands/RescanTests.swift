import API
import Core
import Glibc
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Rescan", .timeLimit(.minutes(Patience.minutes(1))))
struct RescanTests {
    /// A daemon that takes up files in `cam`.
    private func scene() async throws -> DaemonScene {
        try await DaemonScene { settings in
            settings.folders[0].watch.exclude = []
            settings.folders[0].watch.quietFor = .milliseconds(10)
        }
    }

    private func uploads(_ scene: DaemonScene, are count: Int) async throws {
        try await eventually("\(count) uploads are completed") {
            try await scene.daemon.context.store.read { try $0.lists.tallies() }.filter { $0.state == .completed }
                .reduce(
                    0
                ) { $0 + $1.uploads }
                == count
        }
    }

    /// Writes through another of its names, which causes no event.
    private func write(_ path: FilePath, _ bytes: [UInt8]) throws {
        let file = try Descriptor.open(path, for: .updating)
        try file.write(bytes, named: path)
        try file.close(named: path)
    }

    @Test("a caller that waits for a rescan gets its results, including files without an event")
    func counts() async throws {
        let scene = try await scene()
        let other = scene.folder.path.appending("other")
        try scene.folder.write("other", noise(100))
        guard link(other.display, scene.folder.path.appending("cam/a.mp4").display) == 0 else {
            throw SystemError(call: "link", subject: other.display, code: errno)
        }
        try await uploads(scene, are: 1)
        try write(other, noise(50))
        let reply = try await scene.daemon.rescan(RescanRequest(folder: "cam", wait: true))
        #expect(reply.done)
        #expect(reply.folders.map(\.name) == ["cam"])
        #expect(reply.folders.first?.files == 1)
        #expect(reply.folders.first?.new == 1)
        try await uploads(scene, are: 2)
        let again = try await scene.daemon.rescan(RescanRequest(wait: true))
        #expect(again.folders.map(\.name) == ["cam", "solo"])
        #expect(again.folders.map(\.files) == [1, 0])
        #expect(again.folders.map(\.new) == [0, 0])
        #expect(again.folders.allSatisfy { $0.state == .watching })
        try await scene.stop()
    }

    @Test("a caller that does not wait is answered at once, and the folder is scanned anyway")
    func atOnce() async throws {
        let scene = try await scene()
        let other = scene.folder.path.appending("other")
        try scene.folder.write("other", noise(100))
        guard link(other.display, scene.folder.path.appending("cam/a.mp4").display) == 0 else {
            throw SystemError(call: "link", subject: other.display, code: errno)
        }
        try await uploads(scene, are: 1)
        try write(other, noise(50))
        let reply = try await scene.daemon.rescan(RescanRequest())
        #expect(!reply.done)
        #expect(reply.folders.allSatisfy { $0.files == nil && $0.new == nil })
        try await uploads(scene, are: 2)
        try await scene.stop()
    }

    @Test("all callers that wait at the same time are answered; an absent folder is reported as absent")
    func together() async throws {
        let scene = try await scene()
        #expect(rmdir(scene.folder.path.appending("solo").display) == 0)
        let replies = try await withThrowingTaskGroup(of: RescanReply.self) { group in
            for _ in 0..<20 { group.addTask { try await scene.daemon.rescan(RescanRequest(wait: true)) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(replies.count == 20)
        for reply in replies {
            #expect(reply.folders.map(\.name) == ["cam", "solo"])
            #expect(reply.folders.last?.state.rawValue.hasPrefix("absent") == true, "\(reply.folders)")
        }
        try await scene.stop()
    }

    @Test("an unknown folder is refused, with the nearest known name")
    func unknown() async throws {
        let scene = try await scene()
        await #expect(throws: Refusal.self) { try await scene.daemon.rescan(RescanRequest(folder: "camm", wait: true)) }
        try await scene.stop()
    }

    @Test("the wait ends when the caller leaves or the daemon stops")
    func cancelled() async throws {
        let scene = try await scene()
        let waiting = Task { try await scene.daemon.rescan(RescanRequest(wait: true)) }
        waiting.cancel()
        // The wait has ended before, or ends now; it does not hang.
        _ = await waiting.result
        try await scene.stop()
        await #expect(throws: Refusal.self) { try await scene.daemon.rescan(RescanRequest(wait: true)) }
    }
}
