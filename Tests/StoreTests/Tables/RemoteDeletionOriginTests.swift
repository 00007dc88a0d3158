import Core
import TestKit
import Testing

@testable import Store

/// Objects that uploads leave at a destination, over cancels and retries.
@Suite("Remains of uploads at a destination")
struct RemoteDeletionOriginTests {
    private static let sent = AttemptOutcome.verified(RemoteObject(id: "v9", url: nil, verifiedBy: "x"))

    /// An upload that was begun and cancelled.
    private func cancelled(_ scene: Scene, _ id: String, _ thing: Checkpoint) async throws {
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld { try $0.checkpoints.record(thing, for: id) }
        _ = try await scene.store.write { try $0.transitions.cancel([id]) }
    }

    private func staged(_ scene: Scene) async throws -> String {
        try #require(try await scene.stage(Scene.arrival(Scene.file("a.mp4"))).uploads.first)
    }

    @Test(
        "a pending removal is not overwritten by a later cancel, and both finish before it is reported")
    func twoCancels() async throws {
        let scene = try await Scene()
        let id = try await staged(scene)
        try await cancelled(scene, id, Checkpoint(["video": "1"]))
        _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: true) }
        try await cancelled(scene, id, Checkpoint(["creating": "1"]))
        // The creation is answered after the cancel.
        await #expect(throws: LeaseLostError.self) {
            try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["video": "2"]), for: id) }
        }
        let removals = try await scene.store.read { try $0.remoteDeletions.all() }
        #expect(removals.map { $0.checkpoint["video"] } == ["1", "2"])
        try await scene.store.write { try $0.remoteDeletions.finish(removals[1], .done) }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteDelete == "pending")
        try await scene.store.write { try $0.remoteDeletions.finish(removals[0], .done) }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteDelete == "done")
    }

    @Test("a failed removal is reported, whatever the result of others", arguments: [true, false])
    func leftUndone(_ isFirst: Bool) async throws {
        let scene = try await Scene()
        let id = try await staged(scene)
        try await cancelled(scene, id, Checkpoint(["video": "1"]))
        _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: true) }
        try await cancelled(scene, id, Checkpoint(["video": "2"]))
        var removals = try await scene.store.read { try $0.remoteDeletions.all() }
        if !isFirst { removals.reverse() }
        try await scene.store.write { [removals] tx in try tx.remoteDeletions.finish(removals[0], .gaveUp) }
        try await scene.store.write { [removals] tx in try tx.remoteDeletions.finish(removals[1], .done) }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteDelete == "gave_up")
        // The failed removal also stays over another attempt.
        _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: true) }
        try await cancelled(scene, id, Checkpoint(["video": "3"]))
        try await scene.store.write { tx in
            try tx.remoteDeletions.finish(try #require(try tx.remoteDeletions.all().first), .done)
        }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteDelete == "unknown")
    }

    @Test("a removal still pending when the upload was sent again is a warning")
    func stillPending() async throws {
        let scene = try await Scene()
        let id = try await staged(scene)
        try await cancelled(scene, id, Checkpoint(["video": "1"]))
        _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: true) }
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.write { try $0.attempts.finish(id, Self.sent) }
        let warnings = try await scene.store.read { try $0.uploads.find(id) }?.remote?.warnings ?? []
        #expect(warnings.contains { $0.contains("still to be removed") }, "\(warnings)")
        #expect(try await scene.store.read { try $0.remoteDeletions.all() }.count == 1)
    }

    @Test("an object with bytes of another writer is never queued for removal")
    func others() async throws {
        let scene = try await Scene()
        let id = try await staged(scene)
        let thing = Checkpoint(["video": "1", Checkpoint.isOfAnother: "1"])
        try await cancelled(scene, id, thing)
        #expect(try await scene.store.read { try $0.remoteDeletions.all() }.isEmpty)
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteDelete == "unknown")
        _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: true) }
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld { try $0.checkpoints.renew(Checkpoint(["x": "1"]), for: id, leaving: thing) }
        #expect(try await scene.store.read { try $0.remoteDeletions.all() }.isEmpty)
    }

    @Test(
        "a name that a remote no longer finds is shown until there is another, and not on a completed upload"
    )
    func former() async throws {
        let scene = try await Scene()
        let id = try await staged(scene)
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.recordRemoteName("v1", for: id)
        try await scene.store.writeHeld {
            try $0.checkpoints.renew(Checkpoint([Checkpoint.perhapsTwice: "v1"]), for: id, leaving: nil)
        }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.named == "v1")
        let unnamed = AttemptOutcome.verified(RemoteObject(id: nil, url: nil, verifiedBy: "x"))
        try await scene.store.write { try $0.attempts.finish(id, unnamed) }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remote?.id == nil)
    }

    @Test("the name of another upload is recognised at every destination")
    func named() async throws {
        let scene = try await Scene()
        let (_, uploads) = try await scene.stage(Scene.arrival(Scene.file("a.mp4"), to: ["nas", "cloud"]))
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld {
            try $0.checkpoints.record(Checkpoint(["video": "/videos/1"]), for: uploads[0])
        }
        #expect(
            try await scene.store.read { try $0.remoteObjects.belongsToAnotherUpload("/videos/1", than: uploads[1]) })
        #expect(
            try await !scene.store.read { try $0.remoteObjects.belongsToAnotherUpload("/videos/1", than: uploads[0]) })
        #expect(
            try await !scene.store.read { try $0.remoteObjects.belongsToAnotherUpload("/videos/2", than: uploads[1]) })
    }
}
