/// A rate limit in bytes a second: tokens accumulate with time, and sent bytes consume them.
///
/// Time is passed with each call. Unused tokens are kept for a tenth of a second, so that a late sender catches up, and
/// no burst follows a long rest. In any time T at most `rate × T` and one ``burst`` are sent, and a burst is at most 2
/// % of a minute at any rate.
package struct TokenBucket: Hashable, Sendable {
    /// Whether this many bytes may be sent.
    package enum Answer: Hashable, Sendable {
        case now
        /// Not before then; `nil`: not before the rate changes.
        case later(MonotonicTime?)
    }

    /// The payload of one TCP segment: smaller pieces cost more in headers than they gain in smoothness.
    private static let segment: Int64 = 1460
    private static let second: Int128 = 1_000_000_000

    /// Bytes a second; `nil` for no limit, 0 for nothing at all.
    package private(set) var rate: Int64?
    /// The tokens, in bytes × nanoseconds, so that nothing is lost to rounding; below 0 where more was spent than
    /// available.
    private var credit: Int128
    private var filled: MonotonicTime

    /// - Parameter rate: Bytes a second; `nil` for no limit. A negative rate counts as 0.
    package init(rate: Int64?, at now: MonotonicTime) {
        self.rate = rate.map { max(0, $0) }
        credit = 0
        filled = now
        credit = Int128(piece) * Self.second
    }

    /// Bytes that are sent at once: 20 ms worth, but at least a segment, unless that is more than a second's worth.
    package var piece: Int {
        guard let rate else { return .max }
        return Int(max(1, rate / 50, min(Self.segment, rate)))
    }

    /// The most tokens that are kept, in bytes.
    package var burst: Int64 { rate.map { $0 == 0 ? 0 : Int64(piece) + $0 / 10 } ?? 0 }

    /// Sets the rate. The present tokens stay, up to the limit of the new rate.
    package mutating func set(rate new: Int64?, at now: MonotonicTime) {
        fill(until: now)
        if rate == nil { credit = 0 }
        rate = new.map { max(0, $0) }
        credit = min(credit, most)
    }

    /// Takes tokens for the bytes that may be sent now.
    ///
    /// - Returns: How many bytes, at most `wanted` and at most one ``piece``, and when to ask again if there are none.
    package mutating func acquire(upTo wanted: Int, at now: MonotonicTime) -> (count: Int, again: MonotonicTime?) {
        let count = min(wanted, piece)
        switch ready(for: count, at: now) {
        case .now:
            spend(count)
            return (count, nil)
        case .later(let again): return (0, again)
        }
    }

    /// The most that may be sent at once: the present tokens, or one ``piece`` where that is more.
    package mutating func allowance(at now: MonotonicTime) -> Int {
        guard rate != nil else { return .max }
        fill(until: now)
        return max(piece, Int(clamping: credit / Self.second))
    }

    /// Whether `count` bytes, at most one ``piece``, may be sent now. Takes no tokens.
    package mutating func ready(for count: Int, at now: MonotonicTime) -> Answer {
        guard let rate else { return .now }
        fill(until: now)
        let missing = Int128(min(count, piece)) * Self.second - credit
        if rate == 0 { return .later(nil) }
        if missing <= 0 { return .now }
        let wait = (missing + Int128(rate) - 1) / Int128(rate)
        return .later(now.advanced(by: .nanoseconds(Int64(clamping: wait))))
    }

    /// Pays for sent bytes, even without tokens; a negative number returns tokens of bytes that were not sent.
    package mutating func spend(_ count: Int) {
        if rate != nil { credit = min(most, credit - Int128(count) * Self.second) }
    }

    private var most: Int128 { Int128(burst) * Self.second }

    private mutating func fill(until now: MonotonicTime) {
        guard now > filled else { return }
        if let rate {
            // An hour fills any bucket; a longer time could overflow the product.
            let passed = min(Int128(now.nanoseconds) - Int128(filled.nanoseconds), 3600 * Self.second)
            credit = min(most, credit + Int128(rate) * passed)
        }
        filled = now
    }
}
