package import Core

/// Decides which transfer sends next under shared limits: they take turns, with one piece each.
///
/// A refused transfer waits in line. No transfer overtakes another that waits for the same limit; one that waits for a
/// different limit delays no other.
package struct ThrottleQueue<Key: Hashable> {
    private struct Waiting {
        let key: Key
        let wanted: Int
        let throttles: [Throttle]
        /// The limit that it waits for.
        var refused: Throttle
    }

    private var line: [Waiting] = []

    package init() {}

    /// - Returns: How many bytes `key` may send now. 0: it waits in line from now on, and ``dequeue(at:)`` will name it.
    package mutating func acquire(_ key: Key, upTo wanted: Int, from throttles: [Throttle], at now: MonotonicTime)
        -> Int
    {
        let refused: Throttle
        let members = line.isEmpty ? [] : throttles.flattened
        if let ahead = line.first(where: { waiting in members.contains { $0 === waiting.refused } }) {
            refused = ahead.refused
        } else {
            switch throttles.draw(upTo: wanted, at: now) {
            case .bytes(let count): return count
            case .refused(let by, _): refused = by
            }
        }
        line.append(Waiting(key: key, wanted: wanted, throttles: throttles, refused: refused))
        return 0
    }

    /// The transfers whose turn it is, with their bytes, which are paid for; and when to call again, `nil` for an
    /// unknown time.
    package mutating func dequeue(at now: MonotonicTime) -> (ready: [(key: Key, count: Int)], again: MonotonicTime?) {
        var ready: [(Key, Int)] = []
        var still: [Waiting] = []
        var next: MonotonicTime?
        for var waiting in line {
            let members = still.isEmpty ? [] : waiting.throttles.flattened
            if let ahead = still.first(where: { ahead in members.contains { $0 === ahead.refused } }) {
                waiting.refused = ahead.refused
                still.append(waiting)
                continue
            }
            switch waiting.throttles.draw(upTo: waiting.wanted, at: now) {
            case .bytes(let count): ready.append((waiting.key, count))
            case .refused(let by, let again):
                waiting.refused = by
                still.append(waiting)
                if let again { next = min(next ?? again, again) }
            }
        }
        line = still
        return (ready, next)
    }

    /// Removes it from the line.
    package mutating func leave(_ key: Key) { line.removeAll { $0.key == key } }

    package var isEmpty: Bool { line.isEmpty }
}
