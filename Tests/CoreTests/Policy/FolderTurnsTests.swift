import TestKit
import Testing

@testable import Core

@Suite("FolderTurns")
struct FolderTurnsTests {
    @Test(
        "for any sequence: the highest priority is first, and no waiting folder sees another of its priority run twice",
        arguments: Tier.sample(0..<300, 40))
    func fair(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        var turns = FolderTurns()
        var queues: [String: [(rank: Int64, id: String)]] = [:]
        var made = 0
        /// How often each of the others had a turn while a folder could have had it.
        var seen: [String: [String: Int]] = [:]
        for _ in 0..<400 {
            if Int.random(in: 0..<3, using: &dice) == 0 {
                let folder = "f\(Int.random(in: 0..<6, using: &dice))"
                for _ in 0..<Int.random(in: 1...20, using: &dice) {
                    made += 1
                    queues[folder, default: []].append((Int64.random(in: -1...1, using: &dice), "\(100_000 + made)"))
                }
                queues[folder]?.sort { $0.rank < $1.rank }
            }
            let offers = queues.compactMap { folder, queue in
                queue.first.map { FolderTurns.Offer(folder: folder, rank: $0.rank, id: $0.id) }
            }
            guard let next = turns.next(offers) else {
                #expect(offers.isEmpty)
                continue
            }
            let rank = offers.map(\.rank).min()
            #expect(next.rank == rank)
            let competing = Set(offers.filter { $0.rank == rank }.map(\.folder))
            seen = seen.filter { competing.contains($0.key) }
            for folder in competing where folder != next.folder {
                seen[folder, default: [:]][next.folder, default: 0] += 1
                #expect(seen[folder]?[next.folder] == 1, "\(folder) waits, and \(next.folder) ran twice")
            }
            seen[next.folder] = [:]
            turns.recordTurn(next.folder)
            #expect(queues[next.folder]?.removeFirst().id == next.id)
        }
    }

    @Test("a turn continues only while no higher priority waits")
    func again() {
        var turns = FolderTurns()
        let (a, b) = (
            FolderTurns.Offer(folder: "a", rank: 0, id: "1"), FolderTurns.Offer(folder: "b", rank: 0, id: "2")
        )
        #expect(turns.nextOfSameFolder([a, b]) == nil, "no folder had a turn")
        turns.recordTurn("a")
        #expect(turns.nextOfSameFolder([a, b]) == a)
        #expect(turns.nextOfSameFolder([b]) == nil)
        #expect(turns.nextOfSameFolder([a, FolderTurns.Offer(folder: "b", rank: -1, id: "2")]) == nil)
        #expect(turns.next([a, b]) == b)
    }

    @Test(
        "numbers from a damaged disk keep their order, and the next turn has a number",
        arguments: [Int.max, Int.min, -1])
    func damaged(_ number: Int) {
        var turns = FolderTurns(last: ["a": 7, "b": number, "c": 9])
        turns.recordTurn("d")
        let offers = ["a", "b", "c", "d"].map { FolderTurns.Offer(folder: $0, rank: 0, id: $0) }
        #expect(turns.next(offers)?.folder == (number > 0 ? "a" : "b"))
        #expect(turns.next(offers.dropFirst(2))?.folder == "c")
    }

    @Test("without earlier turns, the oldest upload is first")
    func beginning() {
        let offers = [("a", "3"), ("b", "1"), ("c", "2")].map { FolderTurns.Offer(folder: $0.0, rank: 0, id: $0.1) }
        #expect(FolderTurns().next(offers)?.folder == "b")
    }
}
