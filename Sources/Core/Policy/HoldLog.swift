/// Decides which changes of holds are logged: when a hold begins for a class of uploads, and when nothing holds the
/// class any more. Holds that come and go all the time are logged the first, second, fourth, eighth … time.
package struct HoldLog<Class: Hashable & Sendable>: Sendable {
    package enum Change: Hashable, Sendable {
        /// - Parameter times: How often it has begun lately, including this time.
        case held(Hold, times: Int)
        /// The kind of the hold that ended.
        case free(Hold.Kind)
    }

    private struct Key: Hashable {
        let one: Class
        let kind: Hold.Kind
    }

    private var current: [Class: (kind: Hold.Kind, isLogged: Bool)] = [:]
    private var begun: [Key: (times: Int, last: MonotonicTime)] = [:]

    /// After this time without it, a hold counts as new again.
    private static var forgetAfter: Duration { .seconds(3600) }

    package init() {}

    /// - Parameters:
    ///   - holds: The hold of each class with waiting uploads; `nil` for none. The caller leaves out the first hold of
    ///     a kind that is reported elsewhere.
    package mutating func update(_ holds: [Class: Hold?], at now: MonotonicTime) -> [Class: Change] {
        var changes: [Class: Change] = [:]
        // A class without waiting uploads has nothing to report.
        current = current.filter { holds.keys.contains($0.key) }
        begun = begun.filter { now.since($0.value.last) < Self.forgetAfter || current[$0.key.one]?.kind == $0.key.kind }
        for (one, hold) in holds {
            let before = current[one]
            guard let hold else {
                current[one] = nil
                if let before, before.isLogged { changes[one] = .free(before.kind) }
                continue
            }
            if before?.kind == hold.kind { continue }
            let times = (begun[Key(one: one, kind: hold.kind)]?.times ?? 0) + 1
            begun[Key(one: one, kind: hold.kind)] = (times, now)
            let isLogged = times & (times - 1) == 0
            current[one] = (hold.kind, isLogged)
            if isLogged { changes[one] = .held(hold, times: times) }
        }
        return changes
    }
}
