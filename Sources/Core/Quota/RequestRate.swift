/// How many requests may begin: at most one in each ``interval``.
///
/// Requests are spread over time, and none is saved up: so no server that counts them in another way, by the second or by
/// the hour, sees more than the limit.
package struct RequestRate: Hashable, Sendable {
    package enum Unit: String, CaseIterable, Sendable {
        case second = "s"
        case minute = "min"
        case hour = "h"

        var duration: Duration {
            switch self {
            case .second: .seconds(1)
            case .minute: .seconds(60)
            case .hour: .seconds(3600)
            }
        }
    }

    /// From 1.
    package let count: Int
    package let unit: Unit

    package init(count: Int, per unit: Unit) {
        self.count = count
        self.unit = unit
    }

    /// The time from the begin of one request to the begin of the next.
    package var interval: Duration { unit.duration / count }
    package var words: String {
        let time =
            switch unit {
            case .second: "a second"
            case .minute: "a minute"
            case .hour: "an hour"
            }
        return "\(count) \(count == 1 ? "request" : "requests") \(time)"
    }
    /// In the form of a configuration: `5/s`.
    package var written: String { "\(count)/\(unit.rawValue)" }
}

/// The requests that wait for their turn under a ``RequestRate``, in the order in which they came.
package struct RequestLine<Key: Hashable & Sendable>: Sendable {
    package var rate: RequestRate?
    /// When the last request began.
    private var last: MonotonicTime?
    private var line: [Key] = []

    package init(rate: RequestRate? = nil) { self.rate = rate }

    /// Asks for the turn of `key`, which waits in line until it is its turn or has left.
    ///
    /// - Returns: `nil` when it may begin now; otherwise how long it has to wait at least.
    package mutating func turn(of key: Key, at now: MonotonicTime) -> Duration? {
        guard let rate else {
            leave(key)
            last = now
            return nil
        }
        if !line.contains(key) { line.append(key) }
        let place = line.firstIndex(of: key) ?? 0
        let next = last.map { max($0.advanced(by: rate.interval), now) } ?? now
        if place == 0, next <= now {
            line.removeFirst()
            last = now
            return nil
        }
        return next.since(now) + rate.interval * place
    }

    package mutating func leave(_ key: Key) { line.removeAll { $0 == key } }
}
