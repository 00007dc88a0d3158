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
        try await scene.store.record(Checkpoint(["video": "1"]), for: id, acked: 50)
        try await scene.store.renew(Checkpoint(["orphans": "1"]), for: id, leaving: Checkpoint(["video": "1"]))
        #expect(try await scene.store.upload(id)?.acked == 0)
        #expect(try await scene.store.checkpoint(id) == Checkpoint(["orphans": "1"]))
        let deletion = try #require(try await scene.store.remoteDeletions().first)
        #expect(deletion.isEarlier && deletion.checkpoint == Checkpoint(["video": "1"]))
        // After a cancel there are two removals; a late checkpoint changes the upload's own.
        try await scene.store.record(Checkpoint(["video": "2"]), for: id)
        _ = try await scene.store.cancel([id])
        await #expect(throws: Store.LeaseLost.self) {
            try await scene.store.record(Checkpoint(["video": "3"]), for: id)
        }
        #expect(try await scene.store.remoteDeletions().map { $0.checkpoint["video"] } == ["1", "3"])
        try await scene.store.remoteDeletion(deletion, "done")
        #expect(try await scene.store.upload(id)?.remoteDelete == "pending")
        await #expect(throws: Store.LeaseLost.self) {
            try await scene.store.renew(Checkpoint(), for: id, leaving: Checkpoint(["video": "4"]))
        }
        #expect(try await scene.store.remoteDeletions().count == 1)
    }
}
