internal import Core

// Fields of a checkpoint that count.

extension Checkpoint {
    func number(_ field: String) -> Int64 { self[field].flatMap { Int64($0) } ?? 0 }

    /// One more.
    @discardableResult
    mutating func count(_ field: String) -> Int64 {
        // Only a damaged checkpoint holds more than any count ever comes to.
        let next = min(max(number(field), 0), 1 << 40) + 1
        self[field] = "\(next)"
        return next
    }
}
