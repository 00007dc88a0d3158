import API
import Core
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Trouble and recovery events", .timeLimit(.minutes(Patience.minutes(2))))
struct TroubleTests {
    private func told(_ scene: DaemonScene) async throws -> [EventType] {
        try await scene.daemon.context.store.read { try $0.events.list(after: 0, limit: 1000) }.map(\.type).filter {
            [.attempt, .attemptFailed, .recovered, .completed].contains($0)
        }
    }

    @Test("a failing upload starts again, is reported as recovered, and ends")
    func again() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .fail(.refused(after: nil))
        let id = try await scene.add("a.mp4")
        try await eventually("the upload has failed twice") {
            try await told(scene).count { $0 == .attemptFailed } >= 2
        }
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        let types = try await told(scene)
        let failures = types.count { $0 == .attemptFailed }
        // Each failure is followed by its attempt.
        #expect(
            types == Array((0..<failures).map { _ in [.attemptFailed, .attempt] }.joined()) + [
                .recovered, .completed,
            ])
        try await scene.stop()
    }

    @Test("an outage of the destination is no failed attempt of the upload, and its recovery is reported")
    func held() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .fail(.holdDestination(after: nil))
        let id = try await scene.add("a.mp4")
        try await eventually("the upload has been held") { try await !scene.daemon.show(id).attempts.isEmpty }
        scene.remote.letGo()
        _ = try await scene.daemon.resume(Selection())
        try await scene.reach(.completed, [id])
        let types = try await told(scene)
        #expect(types.suffix(3) == [.attempt, .recovered, .completed] && !types.contains(.attemptFailed))
        try await scene.stop()
    }

    @Test("bundled files have trouble and recovery events too, each its own")
    func together() async throws {
        let scene = try await DaemonScene()
        scene.remote.takesTogether(Bundling(largest: 1000, files: 4, bytes: 4000))
        scene.remote.standard = .fail(.refused(after: nil))
        var ids: [String] = []
        for number in 0..<3 { ids.append(try await scene.add("\(number).mp4")) }
        try await eventually("each upload has failed") {
            let events = try await scene.daemon.context.store.read { try $0.events.list(after: 0, limit: 1000) }
            return Set(events.filter { $0.type == .attemptFailed }.compactMap(\.upload)) == Set(ids)
        }
        scene.remote.letGo()
        try await scene.reach(.completed, ids)
        let events = try await scene.daemon.context.store.read { try $0.events.list(after: 0, limit: 1000) }
        for id in ids {
            let types = events.filter { $0.upload == id }.map(\.type)
            #expect(types.count { $0 == .attempt } == types.count { $0 == .attemptFailed })
            #expect(types.count { $0 == .recovered } == 1)
        }
        try await scene.stop()
    }

    @Test("a pause and its end cause no trouble or recovery event")
    func paused() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        _ = try await scene.daemon.pause(Selection(ids: [id]))
        try await scene.reach(.queued, [id])
        scene.remote.letGo()
        _ = try await scene.daemon.resume(Selection(ids: [id]))
        try await scene.reach(.completed, [id])
        #expect(try await told(scene) == [.completed])
        try await scene.stop()
    }
}
