import Core
import TestKit
import Testing

@testable import Store

@Suite("Counts of ended uploads")
struct UploadEndingTests {
    private struct Taken: Error {}

    private func sums(_ store: Store) async -> [String: Int64] {
        Dictionary(
            await store.endingCounts().map { ("\($0.destination) \($0.end.rawValue)", $0.uploads) }, uniquingKeysWith: +
        )
    }

    @Test("each end counts once, and a reverted one not at all")
    func ends() async throws {
        let scene = try await Scene()
        let store = scene.store
        let staged = try await scene.stage(Scene.arrival(Scene.file("a"), to: ["nas", "cloud"]))
        #expect(await store.endingCounts().isEmpty)
        _ = try await store.claim("nas", passingOver: [])
        let upload = try #require(try await store.read { try $0.uploads.find(staged.uploads[0]) })
        let remote = RemoteObject(id: nil, url: nil, verifiedBy: "x")
        await #expect(throws: Taken.self) {
            try await store.write { tx in
                try tx.transitions.complete(upload, remote)
                throw Taken()
            }
        }
        #expect(await store.endingCounts().isEmpty)
        #expect(try await store.write { try $0.attempts.finish(upload.id, .verified(remote)) } == .completed)
        _ = try await store.write { try $0.transitions.cancel([staged.uploads[1]]) }
        _ = try await store.write { try $0.transitions.cancel([staged.uploads[1]]) }
        #expect(await sums(store) == ["nas completed": 1, "cloud cancelled": 1])
        let sum = try #require(await store.endingCounts().first { $0.end == .completed })
        #expect(sum.bytes == upload.size)
        #expect(sum.lastAt == scene.clocks.wall())
    }

    @Test("the oldest ongoing upload is known for each destination")
    func oldest() async throws {
        let scene = try await Scene()
        #expect(try await scene.store.read { try $0.lists.oldestOngoing() }.isEmpty)
        let first = try await scene.stage(Scene.arrival(Scene.file("a"), to: ["nas", "cloud"]))
        let began = scene.clocks.wall()
        scene.clocks.advance(by: .seconds(60))
        _ = try await scene.stage(Scene.arrival(Scene.file("b"), to: ["nas"]))
        #expect(try await scene.store.read { try $0.lists.oldestOngoing() } == ["nas": began, "cloud": began])
        _ = try await scene.store.write { try $0.transitions.cancel(first.uploads) }
        #expect(
            try await scene.store.read { try $0.lists.oldestOngoing() } == ["nas": began.advanced(by: .seconds(60))])
    }
}
