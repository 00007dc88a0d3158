internal import Core

// Fields of a checkpoint that count.

extension Checkpoint {
    func number(_ field: String) -> Int64 { self[field].flatMap { Int64($0) } ?? 0 }

    /// One more.
    @discardableResult
    mutating func count(_ field: String) -> Int64 {
        let next = number(field) + 1
        self[field] = "\(next)"
        return next
    }
}
