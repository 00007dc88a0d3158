import Core
import Store
import TestKit
import Testing

@Suite("Uploads that start again")
struct RenewalTests {
    @Test("the old remote object is queued for removal, and the new upload is not affected by it")
    func renewal() async throws {
        let scene = try await Scene()
        let (_, uploads) = try await scene.stage(Scene.arrival(Scene.file("a.mp4")))
        let id = try #require(uploads.first)
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["video": "1"]), for: id, acked: 50) }
        try await scene.store.writeHeld {
            try $0.checkpoints.renew(Checkpoint(["orphans": "1"]), for: id, leaving: Checkpoint(["video": "1"]))
        }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.acked == 0)
        #expect(try await scene.store.read { try $0.checkpoints.find(id) } == Checkpoint(["orphans": "1"]))
        let deletion = try #require(try await scene.store.read { try $0.remoteDeletions.all() }.first)
        #expect(deletion.isEarlier && deletion.checkpoint == Checkpoint(["video": "1"]))
        // After a cancel there are two removals; a late checkpoint changes the upload's own.
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["video": "2"]), for: id) }
        _ = try await scene.store.write { try $0.transitions.cancel([id]) }
        await #expect(throws: LeaseLostError.self) {
            try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["video": "3"]), for: id) }
        }
        #expect(
            try await scene.store.read { try $0.remoteDeletions.all() }.map { $0.checkpoint["video"] } == ["1", "3"])
        try await scene.store.write { try $0.remoteDeletions.finish(deletion, .done) }
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.remoteDelete == "pending")
        await #expect(throws: LeaseLostError.self) {
            try await scene.store.writeHeld {
                try $0.checkpoints.renew(Checkpoint(), for: id, leaving: Checkpoint(["video": "4"]))
            }
        }
        #expect(try await scene.store.read { try $0.remoteDeletions.all() }.count == 1)
    }
}
