import API
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Pauses that take effect after the running part", .timeLimit(.minutes(Patience.minutes(3))))
struct AfterPartTests {
    enum Scope: CaseIterable, Sendable { case one, folder, destination, all }

    private static func selection(_ scope: Scope, _ id: String, afterPart: Bool = false) -> Selection {
        switch scope {
        case .one: Selection(ids: [id], afterPart: afterPart)
        case .folder: Selection(folder: "cam", afterPart: afterPart)
        case .destination: Selection(destination: "nas", afterPart: afterPart)
        case .all: Selection(all: true, afterPart: afterPart)
        }
    }

    /// An upload whose second part of four is being sent.
    private func begun() async throws -> (scene: DaemonScene, id: String) {
        let scene = try await DaemonScene()
        scene.remote.standard = .waitParts
        let id = try await scene.add("a.mp4", size: 400)
        try await eventually("the first part is being sent") { scene.remote.parts == [0] }
        scene.remote.step()
        try await eventually("the second part is being sent") { scene.remote.parts == [0, 1] }
        return (scene, id)
    }

    /// Waits until policy has been evaluated again, more than once.
    private func status(_ scene: DaemonScene) async throws {
        for _ in 0..<2 {
            let before = await scene.daemon.scheduler.cycles.count
            scene.daemon.signals.scheduling.signal()
            try await eventually("the scheduler has run another cycle") {
                await scene.daemon.scheduler.cycles.count > before
            }
        }
    }

    private func holds(_ scene: DaemonScene, _ id: String) async throws -> [String] {
        try await scene.daemon.show(id).upload.holds.map(\.kind.rawValue)
    }

    @Test(
        "the running part is completed, no new part starts, and the upload resumes from there",
        arguments: Scope.allCases)
    func ends(_ scope: Scope) async throws {
        let (scene, id) = try await begun()
        let reply = try await scene.daemon.pause(Self.selection(scope, id, afterPart: true))
        if scope == .one { #expect(reply.uploads.first?.state == .uploading) }
        let other = scope == .one ? nil : try await scene.add("b.mp4")
        try await status(scene)
        #expect(try await scene.state(id) == .uploading)
        #expect(scene.remote.began == ["a.mp4"] && scene.remote.running == ["a.mp4"])
        // The upload is already held, and is shown so.
        #expect(try await holds(scene, id) == [scope == .one ? "operator" : "global"])
        scene.remote.step()
        try await scene.reach(.queued, [id])
        try await status(scene)
        #expect(scene.remote.parts == [0, 1] && scene.remote.began == ["a.mp4"])
        #expect(try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.acked == 200)
        #expect(try await scene.daemon.show(id).upload.state == .waiting)
        _ = try await scene.daemon.resume(Self.selection(scope, id))
        try await eventually("the third part is being sent") { scene.remote.parts.contains(2) }
        scene.remote.letGo()
        try await eventually("the upload has completed") {
            scene.remote.step()
            return try await scene.state(id) == .completed
        }
        #expect(scene.remote.parts.filter { $0 < 2 } == [0, 1] || other != nil)
        try await scene.stop()
    }

    @Test(
        "an attempt resumed before its part is complete continues as if it had not been paused",
        arguments: Tier.sample(Scope.allCases))
    func resumed(_ scope: Scope) async throws {
        let (scene, id) = try await begun()
        _ = try await scene.daemon.pause(Self.selection(scope, id, afterPart: true))
        _ = try await scene.daemon.resume(Self.selection(scope, id))
        try await eventually("the upload has completed") {
            scene.remote.step()
            return try await scene.state(id) == .completed
        }
        #expect(scene.remote.began == ["a.mp4"] && scene.remote.parts == [0, 1, 2, 3])
        try await scene.stop()
    }

    @Test("a second pause of another scope stays when the first is withdrawn")
    func two() async throws {
        let (scene, id) = try await begun()
        _ = try await scene.daemon.pause(Self.selection(.all, id, afterPart: true))
        _ = try await scene.daemon.pause(Self.selection(.one, id, afterPart: true))
        _ = try await scene.daemon.resume(Self.selection(.all, id))
        scene.remote.step()
        try await scene.reach(.queued, [id])
        #expect(scene.remote.parts == [0, 1])
        #expect(try await holds(scene, id) == ["operator"])
        try await scene.stop()
    }

    @Test("a pause without this option stops the running part", arguments: Scope.allCases)
    func cut(_ scope: Scope) async throws {
        let (scene, id) = try await begun()
        _ = try await scene.daemon.pause(Self.selection(scope, id, afterPart: true))
        try await status(scene)
        _ = try await scene.daemon.pause(Self.selection(scope, id))
        try await scene.reach(.queued, [id])
        #expect(try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.acked == 100)
        try await scene.stop()
    }

    @Test("a policy hold during that time stops the part at once")
    func forbidden() async throws {
        let (scene, id) = try await begun()
        _ = try await scene.daemon.pause(Self.selection(.all, id, afterPart: true))
        try await status(scene)
        #expect(try await scene.state(id) == .uploading)
        _ = try await scene.daemon.limit(LimitRequest(rate: 0, duration: 600), by: "test")
        try await scene.reach(.queued, [id])
        #expect(try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.acked == 100)
        try await scene.stop()
    }

    @Test("a pause that ends before the part is complete is withdrawn with its option")
    func elapsed() async throws {
        let (scene, id) = try await begun()
        var selection = Self.selection(.all, id, afterPart: true)
        selection.duration = 1
        _ = try await scene.daemon.pause(selection)
        try await eventually("the pause has ended") { try await scene.daemon.status().paused.isEmpty }
        try await eventually("the upload has completed") {
            scene.remote.step()
            return try await scene.state(id) == .completed
        }
        #expect(scene.remote.began == ["a.mp4"] && scene.remote.parts == [0, 1, 2, 3])
        try await scene.stop()
    }

    @Test("a stop of the daemon in between leaves the upload paused at its position")
    func stopped() async throws {
        let (scene, id) = try await begun()
        _ = try await scene.daemon.pause(Self.selection(.one, id, afterPart: true))
        try await scene.stop()
        let upload = try #require(try await scene.daemon.context.store.read { try $0.uploads.find(id) })
        #expect(upload.pausedAt != nil && upload.acked == 100 && upload.state == .queued)
    }

    @Test("bundled files that are not being sent wait, together and alone")
    func together() async throws {
        let scene = try await DaemonScene()
        scene.remote.takesTogether(Bundling(largest: 1000, files: 4, bytes: 4000))
        scene.remote.standard = .waitUploading
        let long = try await scene.add("long.mp4", size: 2000)
        var ids: [String] = []
        try await scene.isRunning(1)
        for number in 0..<3 { ids.append(try await scene.add("\(number).mp4")) }
        try await eventually("all four files are being sent") {
            scene.remote.bundles.flatMap(\.self).count + scene.remote.began.count >= 4
        }
        let began = scene.remote.began
        _ = try await scene.daemon.pause(Selection(all: true, afterPart: true))
        scene.remote.letGo()
        // The upload is sent in one request, so it completes.
        try await scene.reach(.completed, [long])
        let bundled = Set(scene.remote.bundles.flatMap(\.self).map(\.display))
        let left = try await ids.asyncCompactMap { id in
            try await scene.daemon.context.store.read { try $0.uploads.row(id) }.flatMap {
                bundled.contains($0.asset.path.name.display) ? id : nil
            }
        }
        try await scene.reach(.queued, left)
        #expect(scene.remote.began == began)
        _ = try await scene.daemon.resume(Selection(all: true))
        try await scene.reach(.completed, ids)
        #expect(Set(scene.remote.objects).count == 4 && scene.remote.objects.count == 4)
        try await scene.stop()
    }
}
