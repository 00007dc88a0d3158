/// Keys, each with a time, the earliest first: a binary heap.
///
/// A key may be in it more than once; the caller knows which entry counts.
package struct Deadlines<Key> {
    private var entries: [(at: MonotonicTime, key: Key)] = []

    package init() {}

    package var count: Int { entries.count }
    package var first: (at: MonotonicTime, key: Key)? { entries.first }

    package mutating func add(_ key: Key, at time: MonotonicTime) {
        entries.append((time, key))
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            if entries[parent].at <= entries[child].at { return }
            entries.swapAt(parent, child)
            child = parent
        }
    }

    @discardableResult
    package mutating func removeFirst() -> (at: MonotonicTime, key: Key)? {
        guard let last = entries.popLast() else { return nil }
        guard let first = entries.first else { return last }
        entries[0] = last
        siftDown(from: 0)
        return first
    }

    /// Removes all keys that are not wanted.
    package mutating func keep(_ isWanted: (Key) -> Bool) {
        entries.removeAll { !isWanted($0.key) }
        for index in stride(from: entries.count / 2 - 1, through: 0, by: -1) { siftDown(from: index) }
    }

    private mutating func siftDown(from start: Int) {
        var parent = start
        while true {
            var earliest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < entries.count {
                if entries[child].at < entries[earliest].at { earliest = child }
            }
            if earliest == parent { return }
            entries.swapAt(parent, earliest)
            parent = earliest
        }
    }
}

extension Deadlines: Sendable where Key: Sendable {}
