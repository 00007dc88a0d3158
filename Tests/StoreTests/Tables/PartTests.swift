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
        try await scene.store.record(Checkpoint(["id": "x"]), for: id)
        return (scene, id)
    }

    private static let three = (0..<3).map { AcknowledgedPart(index: $0, size: 10, tag: "\"tag \($0)\"") }

    @Test("parts survive a restart, in order, with their tags")
    func durable() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        var store: Store? = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        _ = try await store?.record([Scene.arrival(Scene.file("a.mp4"))])
        let asset = try await store?.arrived(limit: 1, except: []).first
        _ = try await store?.staged([Store.Copied(asset: try #require(asset).id, sha256: noise(32))])
        let claim = try await store?.claim("nas", passingOver: [])
        let id = try #require(claim).upload.id
        try await store?.record(Checkpoint(["id": "x"]), for: id)
        try await store?.took([Self.three[2], Self.three[0]], of: id, acked: 20)
        try await store?.took([Self.three[1]], of: id, acked: 30)
        store = nil
        let again = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        #expect(try await again.parts(of: id) == Self.three)
        #expect(try await again.upload(id)?.acked == 30)
    }

    @Test("parts stay when the checkpoint is written again, and single parts may be lost or change their tag")
    func kept() async throws {
        let (scene, id) = try await begun()
        try await scene.store.took(Self.three, of: id, acked: 30)
        try await scene.store.record(Checkpoint(["id": "y"]), for: id)
        #expect(try await scene.store.parts(of: id) == Self.three)
        let other = AcknowledgedPart(index: 1, size: 10, tag: "another")
        try await scene.store.took([other], lost: [0], of: id, acked: 20)
        #expect(try await scene.store.parts(of: id) == [other, Self.three[2]])
        #expect(try await scene.store.upload(id)?.acked == 20)
    }

    @Test("acknowledged parts reset the attempts")
    func attempts() async throws {
        let (scene, id) = try await begun()
        let failure = Failure(.transient, code: "x", message: "x", at: WallTime(milliseconds: 1), retryable: true)
        try await scene.store.finish(id, .again(failure, until: MonotonicTime(nanoseconds: 0)))
        let claim = try #require(try await scene.store.claim("nas", passingOver: []))
        #expect(claim.upload.attempt == 1)
        try await scene.store.took([Self.three[0]], of: id, acked: 10)
        #expect(try await scene.store.upload(id)?.attempt == 0)
    }

    enum Loss: CaseIterable, Sendable { case cancelled, copiedAgain }

    @Test(
        "part digests of staging are known while the copy exists",
        arguments: Loss.allCases)
    func digests(_ loss: Loss) async throws {
        let scene = try await Scene()
        guard
            case .recorded(let asset, let uploads)? = try await scene.store.record([Scene.arrival(Scene.file("a"))])
                .first
        else { throw Scene.Unexpected() }
        var digests = PartDigests()
        digests.set(PartDigests.RequestedDigest(partSize: 100, kind: .md5), noise(32))
        try await scene.store.staged([Store.Copied(asset: asset, sha256: noise(32), parts: digests)])
        #expect(try await scene.store.partDigests(of: asset) == digests)
        #expect(try await scene.store.partDigests(of: asset + 1).isEmpty)
        switch loss {
        case .cancelled: _ = try await scene.store.cancel(uploads)
        case .copiedAgain:
            let claim = try #require(try await scene.store.claim("nas", passingOver: []))
            let failure = Failure(.local, code: "x", message: "x", at: WallTime(milliseconds: 1), retryable: true)
            try await scene.store.finish(claim.upload.id, .copyLost(failure))
            #expect(try await scene.store.asset(asset)?.state == .arrived)
        }
        if loss == .cancelled { try await scene.store.finishReleases([(asset, .kept)]) }
        #expect(try await scene.store.partDigests(of: asset).isEmpty)
    }

    enum End: CaseIterable, Sendable { case completed, cancelled, renewed, emptied }

    @Test("parts are deleted with their upload", arguments: End.allCases)
    func gone(_ end: End) async throws {
        let (scene, id) = try await begun()
        try await scene.store.took(Self.three, of: id, acked: 30)
        switch end {
        case .completed:
            try await scene.store.finish(id, .verified(RemoteObject(id: nil, url: nil, verifiedBy: "offset")))
        case .cancelled:
            _ = try await scene.store.cancel([id])
            let leftovers = try await scene.store.remoteDeletions()
            #expect(leftovers.map(\.checkpoint) == [Checkpoint(["id": "x"])])
        case .renewed:
            try await scene.store.renew(Checkpoint(["restarts": "1"]), for: id, leaving: nil)
            #expect(try await scene.store.checkpoint(id) == Checkpoint(["restarts": "1"]))
            #expect(try await scene.store.upload(id)?.acked == 0)
        case .emptied: try await scene.store.record(Checkpoint(), for: id)
        }
        #expect(try await scene.store.parts(of: id).isEmpty)
    }

    @Test("parts of a cancelled upload are not recorded")
    func cancelled() async throws {
        let (scene, id) = try await begun()
        _ = try await scene.store.cancel([id])
        await #expect(throws: Store.LeaseLost.self) { try await scene.store.took(Self.three, of: id, acked: 30) }
        #expect(try await scene.store.parts(of: id).isEmpty)
    }
}
