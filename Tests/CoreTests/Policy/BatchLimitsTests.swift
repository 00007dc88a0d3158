import TestKit
import Testing

@testable import Core

@Suite("BatchLimits")
struct BatchLimitsTests {
    private static let bundling = Bundling(largest: 100, files: 4, bytes: 250)

    private struct File: Hashable {
        var number: Int
        var size: Int64
        var isBegun: Bool
    }

    @Test("for any queue: not too many transfers, none too large, and no file passed over", arguments: 0..<300)
    func holds(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        let slots = Int.random(in: 1...5, using: &dice)
        let bundling = Bool.random(using: &dice) ? Self.bundling : nil
        let files = (0..<40).map { number in
            File(
                number: number, size: Int64.random(in: 0...130, using: &dice),
                isBegun: Int.random(in: 0..<6, using: &dice) == 0)
        }
        var limits = BatchLimits(slots: slots, bundling: bundling)
        let taken = Array(files.prefix { limits.accept(size: $0.size, isBegun: $0.isBegun, of: "f") })
        let lists = limits.groupedByTransfer(taken) { limits.isBundled(size: $0.size, isBegun: $0.isBegun, of: "f") }
        #expect(taken.count >= min(slots, files.count), "a free slot stays free")
        #expect(lists.count <= slots)
        #expect(!lists.contains { $0.isEmpty })
        #expect(lists.flatMap { $0 }.count == taken.count && Set(lists.flatMap { $0 }) == Set(taken))
        for list in lists where list.count > 1 {
            #expect(list.count <= Self.bundling.files)
            #expect(list.allSatisfy { $0.size <= Self.bundling.largest && !$0.isBegun })
        }
        #expect(taken.filter { $0.size <= 100 && !$0.isBegun }.map(\.size).reduce(0, +) <= Int64(slots) * 250)
    }

    @Test("a file of a folder with its own limit is taken alone, and only as the first")
    func counted() {
        func taken(_ folders: [String]) -> [Bool] {
            var limits = BatchLimits(slots: 4, bundling: Self.bundling, counted: ["slow"])
            var taken: [Bool] = []
            for folder in folders { taken.append(limits.accept(size: 1, isBegun: false, of: folder)) }
            return taken
        }
        let limits = BatchLimits(slots: 4, bundling: Self.bundling, counted: ["slow"])
        #expect(!limits.isBundled(size: 1, isBegun: false, of: "slow"))
        #expect(taken(["slow", "slow", "f"]) == [true, false, false])
        #expect(taken(["f", "slow"]) == [true, false])
    }

    @Test("a few small files run in parallel, many in equal bundles")
    func even() {
        func lists(_ count: Int) -> [Int] {
            var limits = BatchLimits(slots: 4, bundling: Self.bundling)
            let taken = (0..<count).prefix { _ in limits.accept(size: 10, isBegun: false, of: "f") }
            return limits.groupedByTransfer(Array(taken)) { _ in true }.map(\.count)
        }
        #expect(lists(0) == [])
        #expect(lists(3) == [1, 1, 1])
        #expect(lists(6) == [2, 2, 1, 1])
        #expect(lists(99) == [4, 4, 4, 4])
    }
}
