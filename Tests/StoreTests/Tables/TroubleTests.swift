import Core
import Store
import TestKit
import Testing

@Suite("Attempts after a failure, and recovery")
struct TroubleTests {
    private static let failure = Failure(
        .transient, code: .http(503), message: "x", at: WallTime(milliseconds: 1), retryable: true)
    private static let now = MonotonicTime(nanoseconds: 0)

    /// An upload whose first attempt is under way.
    private func begun() async throws -> (scene: Scene, id: String) {
        let scene = try await Scene()
        let id = try #require(try await scene.stage(Scene.arrival(Scene.file("a.mp4"))).uploads.first)
        try await attempt(scene, id)
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id) }
        return (scene, id)
    }

    /// The next attempt begins, as in the daemon.
    private func attempt(_ scene: Scene, _ id: String) async throws {
        let claim = try #require(try await scene.store.claim("nas", passingOver: []))
        #expect(claim.upload.id == id)
        try await scene.store.write { try $0.failures.beginAttempts([id]) }
    }

    /// The events about failures: type and detail, in words.
    private func told(_ scene: Scene) async throws -> [String] {
        try await scene.store.read { try $0.events.list(after: 0, limit: 1000) }.filter {
            [.attempt, .recovered].contains($0.type)
        }.map {
            ([$0.type.rawValue] + $0.detail.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }).joined(
                separator: " ")
        }
    }

    @Test("a first attempt causes no event, nor does one after a pause")
    func plain() async throws {
        let (scene, id) = try await begun()
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id, acked: 10) }
        try await scene.store.write { try $0.attempts.finish(id, .yielded) }
        try await attempt(scene, id)
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id, acked: 20) }
        try await scene.store.write {
            try $0.attempts.finish(id, .verified(RemoteObject(id: nil, url: nil, verifiedBy: "offset")))
        }
        #expect(try await told(scene).isEmpty)
    }

    enum Fault: CaseIterable, Sendable { case again, held, refused }

    @Test(
        "after any failure, the next attempt is reported once, and the recovery once",
        arguments: Fault.allCases)
    func behind(_ fault: Fault) async throws {
        let (scene, id) = try await begun()
        switch fault {
        case .again: try await scene.store.write { try $0.attempts.finish(id, .retry(Self.failure, until: Self.now)) }
        case .held: try await scene.store.write { try $0.attempts.finish(id, .held(Self.failure, until: Self.now)) }
        case .refused:
            try await scene.store.write { try $0.attempts.finish(id, .refused(Self.failure)) }
            _ = try await scene.store.write { try $0.transitions.retry(id, fromCopy: true) }
        }
        let number = fault == .again ? 2 : 1
        scene.clocks.advance(by: .seconds(7))
        try await attempt(scene, id)
        #expect(try await told(scene) == ["attempt attempt=\(number) code=http_503"])
        // A position alone is not an accepted byte.
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id, acked: 0) }
        #expect(try await told(scene).count == 1)
        for acked: Int64 in [10, 20, 30] {
            try await scene.store.writeHeld {
                try $0.parts.record([AcknowledgedPart(index: Int(acked), size: 10, tag: "")], of: id, acked: acked)
            }
        }
        #expect(
            try await told(scene)
                == ["attempt attempt=\(number) code=http_503", "recovered after=7 attempt=\(number)"])
    }

    @Test("an upload that completes without a progress report has recovered too, which is reported before its end")
    func completes() async throws {
        let (scene, id) = try await begun()
        try await scene.store.write { try $0.attempts.finish(id, .retry(Self.failure, until: Self.now)) }
        try await attempt(scene, id)
        try await scene.store.write {
            try $0.attempts.finish(id, .verified(RemoteObject(id: nil, url: nil, verifiedBy: "offset")))
        }
        let types = try await scene.store.read { try $0.events.list(after: 0, limit: 1000) }.map(\.type)
        #expect(types.suffix(2) == [.recovered, .completed])
    }

    @Test("each of several failures in a row has its attempt event, and all together one recovery")
    func several() async throws {
        let (scene, id) = try await begun()
        for _ in 0..<3 {
            try await scene.store.write { try $0.attempts.finish(id, .retry(Self.failure, until: Self.now)) }
            try await attempt(scene, id)
        }
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id, acked: 10) }
        let attempts = (2...4).map { "attempt attempt=\($0) code=http_503" }
        #expect(try await told(scene) == attempts + ["recovered after=0 attempt=4"])
    }

    @Test("a pause in between causes no second attempt event, and the recovery is still reported, also after a restart")
    func paused() async throws {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        var store: Store? = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        _ = try await store?.write { try $0.arrivals.record([Scene.arrival(Scene.file("a.mp4"))]) }
        let asset = try #require(try await store?.read { try $0.staging.waiting(limit: 1, except: []) }.first)
        _ = try await store?.write { try $0.staging.record([StagedCopy(asset: asset.id, sha256: noise(32))]) }
        let id = try #require(try await store?.claim("nas", passingOver: [])).upload.id
        try await store?.write { try $0.attempts.finish(id, .retry(Self.failure, until: Self.now)) }
        _ = try await store?.claim("nas", passingOver: [])
        try await store?.write { try $0.failures.beginAttempts([id]) }
        try await store?.write { try $0.attempts.finish(id, .yielded) }
        store = nil
        let again = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst)
        let claim = try #require(try await again.claim("nas", passingOver: []))
        #expect(!claim.upload.isTroubled)
        try await again.write { try $0.failures.beginAttempts([id]) }
        try await again.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id, acked: 10) }
        let types = try await again.read { try $0.events.list(after: 0, limit: 1000) }.map(\.type)
        #expect(types.count { $0 == .attempt } == 1 && types.count { $0 == .recovered } == 1)
    }

    @Test("an early attempt is no failure")
    func early() async throws {
        let (scene, id) = try await begun()
        try await scene.store.write { try $0.attempts.finish(id, .held(Self.failure, until: Self.now, isFault: false)) }
        try await attempt(scene, id)
        try await scene.store.writeHeld { try $0.checkpoints.record(Checkpoint(["id": "x"]), for: id, acked: 10) }
        #expect(try await told(scene).isEmpty)
    }
}
