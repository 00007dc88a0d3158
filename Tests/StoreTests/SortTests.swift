import Core
import TestKit
import Testing

@testable import Store

@Suite("The order of uploads")
struct SortTests {
    @Test("another order counts for all that waits and all that comes, and is brought about a piece at a time")
    func change() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        let files = (0..<4_500).map { Scene.file("f\($0)", size: 10_000 - Int64($0), modified: Int64($0)) }
        let outcomes = try await scene.store.record(files.map { Scene.arrival($0) })
        try await scene.store.staged(
            outcomes.enumerated().compactMap { index, outcome in
                guard case .recorded(let asset, _) = outcome else { return nil }
                return Store.Copied(asset: asset, sha256: noise(32, seed: UInt64(index)))
            })
        #expect(try await scene.store.claim("nas", passingOver: [])?.upload.name == "f0")
        _ = await scene.store.effort(.runs)
        try await scene.store.sort(by: .smallestFirst)
        let updates = await scene.store.effort(.runs).filter { $0.key.hasPrefix("UPDATE upload SET sort") }
        #expect(updates.values.reduce(0, +) == 3)
        try await scene.stage(Scene.arrival(Scene.file("new", size: 5_502, modified: 9_000)))
        var names: [FilePath] = []
        for _ in 0..<4 {
            if let claim = try await scene.store.claim("nas", passingOver: []) { names.append(claim.upload.name) }
        }
        // Two of them have the same size.
        #expect(names == ["f4499", "new", "f4498", "f4497"] || names == ["f4499", "f4498", "new", "f4497"])
        // Nothing is left to do.
        try await scene.store.sort(by: .smallestFirst)
        #expect(
            await scene.store.effort(.runs).allSatisfy { !$0.key.hasPrefix("UPDATE upload SET sort") || $0.value == 0 })
    }
}
