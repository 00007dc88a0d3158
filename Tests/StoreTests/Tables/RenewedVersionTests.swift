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

    @Test("a version that replaces the one at a destination goes there too, though another destination never had that")
    func received() async throws {
        let scene = try await Scene()
        let (asset, uploads) = try await scene.stage(Scene.arrival(Scene.file("a"), to: ["nas", "web"]))
        let remote = RemoteObject(id: nil, url: "u", verifiedBy: "offset")
        _ = try #require(try await scene.store.claim("nas", passingOver: []))
        try await scene.store.write { try $0.attempts.finish(uploads[0], .verified(remote)) }
        _ = try await scene.store.write { try $0.transitions.cancel([uploads[1]]) }
        #expect(try await scene.store.write { try $0.transitions.retry(uploads[1], fromCopy: false) } == .cancelled)
        // The same version is copied for the one that waits.
        #expect(
            try await scene.store.write {
                try $0.arrivals.record([Scene.arrival(Scene.file("a"), to: ["nas", "web"])])
            } == [.known])
        let newer = Scene.arrival(Scene.file("a", size: 200), to: ["nas", "web"])
        guard
            case .newVersion(let second, let ids)? = try await scene.store.write({ try $0.arrivals.record([newer]) })
                .first
        else { throw Scene.Unexpected() }
        #expect(second != asset && ids.count == 2)
        #expect(try await scene.store.read { try $0.assets.find(asset) }?.state == .dropped)
        let states = try await scene.store.read { tx in try uploads.map { try tx.uploads.find($0)?.state } }
        #expect(states == [.completed, .cancelled])
        let attempt = try await scene.store.read { try $0.failures.of(uploads[1]) }.last
        #expect(attempt?.failure.message.hasPrefix("/drop/a has changed since another destination received it") == true)
        #expect(try await scene.store.write { try $0.arrivals.record([newer]) } == [.known])
    }
}
