/// What is worth a line in the log of the reasons for which uploads wait: when one begins to hold a class, and when nothing
/// holds it any more. What comes and goes all the time is told the first, second, fourth, eighth … time.
package struct HoldNews<Class: Hashable & Sendable>: Sendable {
    package enum News: Hashable, Sendable {
        /// - Parameter times: How often it has begun lately, this time included.
        case held(Hold, times: Int)
        /// What it was that ended.
        case free(Hold.Kind)
    }

    private struct Key: Hashable {
        let one: Class
        let kind: Hold.Kind
    }

    private var current: [Class: (kind: Hold.Kind, isTold: Bool)] = [:]
    private var begun: [Key: (times: Int, last: MonotonicTime)] = [:]

    /// After so long without it, it is new again.
    private static var calm: Duration { .seconds(3600) }

    package init() {}

    /// - Parameters:
    ///   - holds: What holds each class that has anything that waits; `nil` for nothing. The first hold of a kind that is told
    ///     elsewhere is left out by the caller.
    package mutating func look(_ holds: [Class: Hold?], at now: MonotonicTime) -> [Class: News] {
        var news: [Class: News] = [:]
        // Without anything that waits there is nothing to tell.
        current = current.filter { holds.keys.contains($0.key) }
        begun = begun.filter { now.since($0.value.last) < Self.calm || current[$0.key.one]?.kind == $0.key.kind }
        for (one, hold) in holds {
            let before = current[one]
            guard let hold else {
                current[one] = nil
                if let before, before.isTold { news[one] = .free(before.kind) }
                continue
            }
            if before?.kind == hold.kind { continue }
            let times = (begun[Key(one: one, kind: hold.kind)]?.times ?? 0) + 1
            begun[Key(one: one, kind: hold.kind)] = (times, now)
            let isTold = times & (times - 1) == 0
            current[one] = (hold.kind, isTold)
            if isTold { news[one] = .held(hold, times: times) }
        }
        return news
    }
}
