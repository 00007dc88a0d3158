import Core
import TestKit
import Testing

@testable import Store

@Suite("The order of uploads")
struct SortTests {
    @Test("a changed order applies to waiting and new uploads, and is established in pieces")
    func change() async throws {
        let scene = try await Scene(sorting: .oldestFirst)
        let files = (0..<4_500).map { Scene.file("f\($0)", size: 10_000 - Int64($0), modified: Int64($0)) }
        let outcomes = try await scene.store.write { tx in try tx.arrivals.record(files.map { Scene.arrival($0) }) }
        try await scene.store.write { tx in
            try tx.staging.record(
                outcomes.enumerated().compactMap { index, outcome in
                    guard case .recorded(let asset, _) = outcome else { return nil }
                    return StagedCopy(asset: asset, sha256: noise(32, seed: UInt64(index)))
                })
        }
        #expect(try await scene.store.claim("nas", passingOver: [])?.upload.name == "f0")
        _ = await scene.store.statementCosts(.runs)
        try await scene.store.sort(by: .smallestFirst)
        let updates = await scene.store.statementCosts(.runs).filter { $0.key.hasPrefix("UPDATE upload SET sort") }
        #expect(updates.values.reduce(0, +) == 3)
        try await scene.stage(Scene.arrival(Scene.file("new", size: 5_502, modified: 9_000)))
        var names: [FilePath] = []
        for _ in 0..<4 {
            if let claim = try await scene.store.claim("nas", passingOver: []) { names.append(claim.upload.name) }
        }
        // Two of them have the same size.
        #expect(names == ["f4499", "new", "f4498", "f4497"] || names == ["f4499", "f4498", "new", "f4497"])
        // No work is left.
        try await scene.store.sort(by: .smallestFirst)
        #expect(
            await scene.store.statementCosts(.runs).allSatisfy {
                !$0.key.hasPrefix("UPDATE upload SET sort") || $0.value == 0
            })
    }

    @Test("copies are made in the order of the uploads, also after a changed order or a changed file")
    func copies() async throws {
        let scene = try await Scene(sorting: .newestFirst)
        let files = (0..<5).map { Scene.file("f\($0)", size: 1_000 - Int64($0 % 3), modified: Int64($0)) }
        _ = try await scene.store.write { tx in try tx.arrivals.record(files.map { Scene.arrival($0) }) }
        func names(_ limit: Int = 10) async throws -> [FilePath] {
            try await scene.store.read { try $0.staging.waiting(limit: limit, except: []) }.map(\.identity.relative)
        }
        #expect(try await names() == ["f4", "f3", "f2", "f1", "f0"])
        #expect(try await names(2) == ["f4", "f3"])
        try await scene.store.sort(by: .smallestFirst)
        #expect(try await names() == ["f2", "f1", "f4", "f0", "f3"])
        _ = try await scene.store.write {
            try $0.arrivals.record([Scene.arrival(Scene.file("f3", size: 10, modified: 3))])
        }
        #expect(try await names() == ["f3", "f2", "f1", "f4", "f0"])
    }

    @Test("an unfinished upload that its destination drops within the hour goes first in its priority")
    func expiring() async throws {
        let scene = try await Scene(sorting: .newestFirst)
        var uploads: [String] = []
        for number in 0..<6 {
            let file = Scene.file("f\(number)", modified: Int64(number))
            uploads += try await scene.stage(
                Scene.arrival(file, priority: number == 5 ? 1 : 0), sha256: noise(32, seed: UInt64(number))
            ).uploads
        }
        // Begun, and expired long ago, in two hours, in 50 and in 40 minutes.
        let seconds: [Int64] = [-700, 7200, 3000, 2400]
        for (upload, second) in zip(uploads, seconds) {
            let claim = try #require(
                try await scene.store.claim(only: upload, skippingDuplicatesOf: []) { _ in nil })
            var checkpoint = Checkpoint(["url": "u"])
            checkpoint.expires = scene.clocks.wall().advanced(by: .seconds(second))
            let (id, begun) = (claim.upload.id, checkpoint)
            _ = try await scene.store.write { try $0.checkpoints.record(begun, for: id) }
            #expect(try await scene.store.read { try $0.uploads.find(upload) }?.expires == checkpoint.expires)
            _ = try await scene.store.write { try $0.attempts.finish(id, .yielded) }
        }
        var names: [FilePath] = []
        while let claim = try await scene.store.claim("nas", passingOver: []) { names.append(claim.upload.name) }
        #expect(names == ["f5", "f3", "f2", "f4", "f1", "f0"])
    }
}
