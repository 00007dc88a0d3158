import Core
import TestKit
import Testing

@Suite("Deadlines")
struct DeadlinesTests {
    @Test("deadlines are sorted, also after removals", arguments: [1, 2, 3, 100, 1000])
    func sorted(count: Int) {
        var dice = Dice(seed: UInt64(count))
        var deadlines = Deadlines<UInt64>()
        var all: [UInt64: Int64] = [:]
        for number in 0..<UInt64(count) {
            let at = Int64.random(in: 0..<500, using: &dice)
            deadlines.add(number, at: MonotonicTime(nanoseconds: at))
            all[number] = at
        }
        deadlines.keep { $0 % 3 != 0 }
        all = all.filter { $0.key % 3 != 0 }
        #expect(deadlines.count == all.count)
        var last = Int64.min, came: Set<UInt64> = []
        while let first = deadlines.first, let removed = deadlines.removeFirst() {
            #expect(first == removed)
            #expect(removed.at.nanoseconds == all[removed.key])
            #expect(removed.at.nanoseconds >= last)
            last = removed.at.nanoseconds
            came.insert(removed.key)
        }
        #expect(came == Set(all.keys))
    }
}
