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
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < entries.count {
                if entries[child].at < entries[least].at { least = child }
            }
            if least == parent { return first }
            entries.swapAt(parent, least)
            parent = least
        }
    }
}

extension Deadlines: Sendable where Key: Sendable {}
