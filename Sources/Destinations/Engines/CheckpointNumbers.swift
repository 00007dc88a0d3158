internal import Core

// Counters in a checkpoint.

extension Checkpoint {
    func number(_ field: String) -> Int64 { self[field].flatMap { Int64($0) } ?? 0 }

    /// Adds one.
    @discardableResult
    mutating func count(_ field: String) -> Int64 {
        // Only a damaged checkpoint contains a larger number.
        let next = min(max(number(field), 0), 1 << 40) + 1
        self[field] = "\(next)"
        return next
    }
}
