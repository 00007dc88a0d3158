/// Many texts that are searched for at once. The time for a text hardly depends on their number.
struct NamePatterns<Value> {
    /// In the order of their bytes; each has at least one byte, and none is there twice.
    private var sorted: [(bytes: [UInt8], value: Value)] = []
    /// Those that begin with a byte.
    private var starts: [Range<Int>] = []

    init(_ patterns: [[UInt8]: Value]) {
        sorted = patterns.filter { !$0.key.isEmpty }.map { (bytes: $0.key, value: $0.value) }.sorted {
            $0.bytes.lexicographicallyPrecedes($1.bytes)
        }
        var index = 0
        for byte in UInt8.min...UInt8.max {
            let start = index
            while index < sorted.count, sorted[index].bytes[0] == byte { index += 1 }
            starts.append(start..<index)
        }
    }

    /// All that stand at an index of a text, the shortest first.
    func matches(in text: [UInt8], at index: Int) -> [(range: Range<Int>, value: Value)] {
        var found: [(range: Range<Int>, value: Value)] = []
        var candidates = starts[Int(text[index])]
        var depth = 1
        while let first = candidates.first {
            if sorted[first].bytes.count == depth {
                found.append((index..<index + depth, sorted[first].value))
                candidates = candidates.dropFirst()
            }
            guard index + depth < text.count, !candidates.isEmpty else { break }
            let byte = text[index + depth]
            // All candidates are longer than `depth`, agree up to there, and are sorted by the next byte.
            let low = partition(candidates) { $0[depth] >= byte }
            candidates = low..<partition(low..<candidates.upperBound) { $0[depth] > byte }
            depth += 1
        }
        return found
    }

    /// The first one that is beyond, by binary search.
    private func partition(_ range: Range<Int>, isBeyond: ([UInt8]) -> Bool) -> Int {
        var (low, high) = (range.lowerBound, range.upperBound)
        while low < high {
            let middle = (low + high) / 2
            if isBeyond(sorted[middle].bytes) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
