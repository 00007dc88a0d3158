import Core
import Store
import TestKit
import Testing

@Suite("Stored facts of recordings")
struct KeptMediaTests {
    private let facts = MediaFacts(
        recorded: WallTime(milliseconds: -5), duration: 1, width: 2, height: 3, make: "Acme", model: "5")

    private func staged(_ scene: Scene, _ facts: MediaFacts) async throws -> Int64 {
        guard
            case .recorded(let asset, _)? = try await scene.store.write({
                try $0.arrivals.record([Scene.arrival(Scene.file("a"))])
            }).first
        else { throw Scene.Unexpected() }
        try await scene.store.write {
            try $0.staging.record([StagedCopy(asset: asset, sha256: [1])], facts: [asset: facts])
        }
        return asset
    }

    @Test("facts are read back as stored, and absent where none were found")
    func kept() async throws {
        let scene = try await Scene()
        let asset = try await staged(scene, facts)
        #expect(try await scene.store.read { try $0.media.of(asset) } == facts)
        #expect(try await scene.store.read { try $0.media.of(asset + 1) }.isEmpty)
    }

    @Test("the facts are those of the latest copy", arguments: [MediaFacts(width: 7, height: 8), MediaFacts()])
    func replaced(_ later: MediaFacts) async throws {
        let scene = try await Scene()
        let asset = try await staged(scene, facts)
        let claim = try #require(try await scene.store.claim("nas", passingOver: []))
        let failure = Failure(.transient, code: .noReply, message: "x", at: scene.clocks.wall(), retryable: true)
        try await scene.store.write { try $0.attempts.finish(claim.upload.id, .copyLost(failure, .missing)) }
        try await scene.store.write {
            try $0.staging.record([StagedCopy(asset: asset, sha256: [1])], facts: [asset: later])
        }
        #expect(try await scene.store.read { try $0.media.of(asset) } == later)
    }
}
