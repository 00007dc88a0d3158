import Core
import Store
import TestKit
import Testing

@Suite("Parts in the store")
struct PartTests {
    private func begun() async throws -> (scene: Scene, id: String) {
        let scene = try await Scene()
        let id = try #require(try await scene.stage(Scene.arrival(Scene.file("a.mp4"))).uploads.first)
        _ = try await scene.store.claim("nas", passingOver: [])
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id) }
        return (scene, id)
    }

    private static let three = (0..<3).map { AcknowledgedPart(index: $0, size: 10, tag: "\"tag \($0)\"") }

    @Test("parts survive a restart, in order, with their tags")
    func durable() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        var store: Store? = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        _ = try await store?.write { try $0.arrivals.record([Scene.arrival(Scene.file("a.mp4"))]) }
        let asset = try await store?.read { try $0.staging.waiting(limit: 1, except: []) }.first
        _ = try await store?.write {
            try $0.staging.record([StagedCopy(asset: try #require(asset).id, sha256: noise(32))])
        }
        let claim = try await store?.claim("nas", passingOver: [])
        let id = try #require(claim).upload.id
        try await store?.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id) }
        try await store?.writeHeld { try $0.parts.record([Self.three[2], Self.three[0]], of: id, acked: 20) }
        try await store?.writeHeld { try $0.parts.record([Self.three[1]], of: id, acked: 30) }
        store = nil
        let again = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        #expect(try await again.read { try $0.parts.of(id) } == Self.three)
        #expect(try await again.read { try $0.uploads.find(id) }?.acked == 30)
    }

    @Test("parts stay when the checkpoint is written again, and single parts may be lost or change their tag")
    func kept() async throws {
        let (scene, id) = try await begun()
        try await scene.store.writeHeld { try $0.parts.record(Self.three, of: id, acked: 30) }
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "y"]), for: id) }
        #expect(try await scene.store.read { try $0.parts.of(id) } == Self.three)
        let other = AcknowledgedPart(index: 1, size: 10, tag: "another")
        try await scene.store.writeHeld { try $0.parts.record([other], lost: [0], of: id, acked: 20) }
        #expect(try await scene.store.read { try $0.parts.of(id) } == [other, Self.three[2]])
        #expect(try await scene.store.read { try $0.uploads.find(id) }?.acked == 20)
    }

    @Test("acknowledged parts reset the attempts")
    func attempts() async throws {
        let (scene, id) = try await begun()
        let failure = Failure(.transient, code: .noReply, message: "x", at: WallTime(milliseconds: 1), retryable: true)
        try await scene.store.write {
            try $0.attempts.finish(id, .retry(failure, until: MonotonicTime(nanoseconds: 0)))
        }
        let claim = try #require(try await scene.store.claim("nas", passingOver: []))
        #expect(claim.upload.attempt == 1)
        try await scene.store.writeHeld { try $0.parts.record([Self.three[0]], of: id, acked: 10) }
        #expect(try await scene.store.read { tx in try tx.uploads.find(id) }?.attempt == 0)
    }

    enum Loss: CaseIterable, Sendable { case cancelled, copiedAgain }

    @Test(
        "part digests of staging are known while the copy exists",
        arguments: Loss.allCases)
    func digests(_ loss: Loss) async throws {
        let scene = try await Scene()
        guard
            case .recorded(let asset, let uploads)? = try await scene.store.write({
                try $0.arrivals.record([Scene.arrival(Scene.file("a"))])
            })
            .first
        else { throw Scene.Unexpected() }
        var digests = PartDigests()
        digests.set(PartDigests.RequestedDigest(partSize: 100, kind: .md5), noise(32))
        try await scene.store.write { [digests] tx in
            try tx.staging.record([StagedCopy(asset: asset, sha256: noise(32), parts: digests)])
        }
        #expect(try await scene.store.read { try $0.partDigests.of(asset) } == digests)
        #expect(try await scene.store.read { try $0.partDigests.of(asset + 1) }.isEmpty)
        switch loss {
        case .cancelled: _ = try await scene.store.write { try $0.transitions.cancel(uploads) }
        case .copiedAgain:
            let claim = try #require(try await scene.store.claim("nas", passingOver: []))
            let failure = Failure(.local, code: .noReply, message: "x", at: WallTime(milliseconds: 1), retryable: true)
            try await scene.store.write { try $0.attempts.finish(claim.upload.id, .copyLost(failure, .missing)) }
            #expect(try await scene.store.read { try $0.assets.find(asset) }?.state == .arrived)
        }
        if loss == .cancelled { try await scene.store.write { try $0.releases.finish([(asset, .kept)]) } }
        #expect(try await scene.store.read { try $0.partDigests.of(asset) }.isEmpty)
    }

    enum End: CaseIterable, Sendable { case completed, cancelled, renewed, emptied }

    @Test("parts are deleted with their upload", arguments: End.allCases)
    func gone(_ end: End) async throws {
        let (scene, id) = try await begun()
        try await scene.store.writeHeld { try $0.parts.record(Self.three, of: id, acked: 30) }
        switch end {
        case .completed:
            try await scene.store.write {
                try $0.attempts.finish(id, .verified(RemoteObject(id: nil, url: nil, verifiedBy: "offset")))
            }
        case .cancelled:
            _ = try await scene.store.write { try $0.transitions.cancel([id]) }
            let leftovers = try await scene.store.read { try $0.remoteDeletions.all() }
            #expect(leftovers.map(\.checkpoint) == [Checkpoint(["id": "x"])])
        case .renewed:
            try await scene.store.writeHeld {
                try $0.checkpoints.renew(Checkpoint(["restarts": "1"]), for: id, leaving: nil)
            }
            #expect(try await scene.store.read { try $0.checkpoints.find(id) } == Checkpoint(["restarts": "1"]))
            #expect(try await scene.store.read { try $0.uploads.find(id) }?.acked == 0)
        case .emptied: try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(), for: id) }
        }
        #expect(try await scene.store.read { try $0.parts.of(id) }.isEmpty)
    }

    @Test("parts of a cancelled upload are not recorded")
    func cancelled() async throws {
        let (scene, id) = try await begun()
        _ = try await scene.store.write { try $0.transitions.cancel([id]) }
        await #expect(throws: LeaseLostError.self) {
            try await scene.store.writeHeld { try $0.parts.record(Self.three, of: id, acked: 30) }
        }
        #expect(try await scene.store.read { try $0.parts.of(id) }.isEmpty)
    }
}
