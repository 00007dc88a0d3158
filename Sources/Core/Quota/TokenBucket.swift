/// A limit in bytes a second, as an account: it fills with time, and what leaves is paid from it.
///
/// Time comes in with each question. What is not used is kept for a tenth of a second, so that somebody who comes late to
/// a full account catches up, and no burst follows a long rest. Over any time T no more leaves than `rate × T` and one
/// ``burst``, which is at most 2 % of a minute at any rate.
package struct TokenBucket: Hashable, Sendable {
    /// Whether so many bytes may go.
    package enum Answer: Hashable, Sendable {
        case now
        /// Not before then; `nil`: not before the rate changes.
        case later(MonotonicTime?)
    }

    /// What one TCP segment carries: less than that at once costs more in headers than it gives in smoothness.
    private static let segment: Int64 = 1460
    private static let second: Int128 = 1_000_000_000

    /// Bytes a second; `nil` for no limit, 0 for nothing at all.
    package private(set) var rate: Int64?
    /// What is there, in bytes × nanoseconds, so that nothing is lost to rounding; below 0 where more was spent than was there.
    private var credit: Int128
    private var filled: MonotonicTime

    /// - Parameter rate: Bytes a second; `nil` for no limit. Less than nothing is nothing.
    package init(rate: Int64?, at now: MonotonicTime) {
        self.rate = rate.map { max(0, $0) }
        credit = 0
        filled = now
        credit = Int128(piece) * Self.second
    }

    /// As many bytes as go at once: 20 ms worth, but at least a segment, unless that is more than a second's worth.
    package var piece: Int {
        guard let rate else { return .max }
        return Int(max(1, rate / 50, min(Self.segment, rate)))
    }

    /// The most that is kept, in bytes.
    package var burst: Int64 { rate.map { $0 == 0 ? 0 : Int64(piece) + $0 / 10 } ?? 0 }

    /// What is there now stays, as far as the new rate keeps so much.
    package mutating func set(rate new: Int64?, at now: MonotonicTime) {
        fill(until: now)
        if rate == nil { credit = 0 }
        rate = new.map { max(0, $0) }
        credit = min(credit, most)
    }

    /// Takes what may go now.
    ///
    /// - Returns: How many bytes, `wanted` at most and one ``piece`` at most, and, when it is none, when to ask again.
    package mutating func take(upTo wanted: Int, at now: MonotonicTime) -> (count: Int, again: MonotonicTime?) {
        let count = min(wanted, piece)
        switch ready(for: count, at: now) {
        case .now:
            spend(count)
            return (count, nil)
        case .later(let again): return (0, again)
        }
    }

    /// The most that may go at once: what is there, and one ``piece`` where that is less.
    package mutating func allowance(at now: MonotonicTime) -> Int {
        guard rate != nil else { return .max }
        fill(until: now)
        return max(piece, Int(clamping: credit / Self.second))
    }

    /// Whether `count` bytes, at most one ``piece``, may go now. Takes nothing.
    package mutating func ready(for count: Int, at now: MonotonicTime) -> Answer {
        guard let rate else { return .now }
        fill(until: now)
        let missing = Int128(min(count, piece)) * Self.second - credit
        if rate == 0 { return .later(nil) }
        if missing <= 0 { return .now }
        let wait = (missing + Int128(rate) - 1) / Int128(rate)
        return .later(now.advanced(by: .nanoseconds(Int64(clamping: wait))))
    }

    /// Pays for bytes that go, whether they are there or not; a number below 0 gives back what did not go.
    package mutating func spend(_ count: Int) {
        if rate != nil { credit = min(most, credit - Int128(count) * Self.second) }
    }

    private var most: Int128 { Int128(burst) * Self.second }

    private mutating func fill(until now: MonotonicTime) {
        guard now > filled else { return }
        if let rate {
            // An hour fills any account; more of it could be too much for the product.
            let passed = min(Int128(now.nanoseconds) - Int128(filled.nanoseconds), 3600 * Self.second)
            credit = min(most, credit + Int128(rate) * passed)
        }
        filled = now
    }
}
