import Core
import Store
import TestKit
import Testing

@Suite("Assets with a new version")
struct RenewedVersionTests {
    @Test("partial remote data of a replaced version is removed")
    func renewedBehindPart() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Scene.arrival(Scene.file("a")))
        let claim = try #require(try await scene.store.claim("nas", passingOver: []))
        try await scene.store.writeHeld {
            try $0.checkpoints.record(Checkpoint(["url": "u/1"]), for: claim.upload.id, acked: 50)
        }
        let failure = Failure(.local, code: .copyLost, message: "x", at: scene.clocks.wall(), retryable: true)
        try await scene.store.write { try $0.attempts.finish(claim.upload.id, .copyLost(failure, .missing)) }
        try await scene.store.write { try $0.staging.unsettle(asset) }
        #expect(
            try await scene.store.write { try $0.arrivals.record([Scene.arrival(Scene.file("a", size: 200))]) } == [
                .renewed(asset: asset)
            ])
        let removals = try await scene.store.read { try $0.remoteDeletions.all() }
        #expect(removals.map(\.checkpoint.fields) == [["url": "u/1"]])
        #expect(removals.map(\.isEarlier) == [true])
        let upload = try #require(try await scene.store.read { try $0.uploads.find(uploads[0]) })
        // Names that are made from the id differ now.
        #expect((upload.generation, upload.acked, upload.isBegun) == (2, 0, false))
        try await scene.store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
        #expect(try await scene.store.claim("nas", passingOver: [])?.checkpoint == nil)
    }
}
