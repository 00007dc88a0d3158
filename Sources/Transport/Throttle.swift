package import Core
internal import Linux
internal import Synchronization

/// A rate limit in bytes a second that any number of requests share.
///
/// A request may draw from several throttles (its destination's, the global one); each byte is charged to all of them,
/// and the strictest decides. Bodies count; header lines, TLS and TCP do not. A new rate applies at once to running
/// requests.
package final class Throttle: Sendable {
    private struct State {
        var bucket: TokenBucket
        /// What requests draw from in its place; `nil` for a limit of its own.
        var members: [Throttle]?
        /// The objects with requests that draw from this, and the number of their requests.
        var listeners: [ObjectIdentifier: (wake: @Sendable () -> Void, count: Int)] = [:]
    }

    private let state: Mutex<State>
    private let clocks: any Clocks

    /// - Parameter rate: Bytes a second; `nil` for no limit, 0 for a stop until it changes.
    package init(rate: Int64? = nil, clocks: any Clocks = SystemClocks()) {
        self.clocks = clocks
        state = Mutex(State(bucket: TokenBucket(rate: rate, at: clocks.monotonic())))
    }

    /// A set of limits, whose members may change while requests draw from it.
    ///
    /// - Parameter members: Limits of their own. Their rates do not change: a change of a member's rate does not wake
    ///   requests that know it only by this set.
    package init(members: [Throttle], clocks: any Clocks = SystemClocks()) {
        self.clocks = clocks
        state = Mutex(State(bucket: TokenBucket(rate: nil, at: clocks.monotonic()), members: members))
    }

    /// Replaces the members of a set of limits; applies at once to running requests.
    package func replaceMembers(_ members: [Throttle]) {
        let wakes = state.withLock { state -> [@Sendable () -> Void] in
            let isSame = state.members.map { $0.elementsEqual(members, by: ===) } ?? false
            if isSame { return [] }
            state.members = members
            return state.listeners.values.map(\.wake)
        }
        for wake in wakes { wake() }
    }

    /// The limits of their own that it stands for.
    var members: [Throttle] { state.withLock { $0.members } ?? [self] }

    /// Bytes a second; `nil` for no limit, 0 for a stop until it changes. Of a set, the lowest.
    package var rate: Int64? {
        get {
            let (own, members) = state.withLock { ($0.bucket.rate, $0.members) }
            return members.map { $0.compactMap(\.rate).min() } ?? own
        }
        set {
            let now = clocks.monotonic()
            let wakes = state.withLock { state in
                state.bucket.set(rate: newValue, at: now)
                return state.listeners.values.map(\.wake)
            }
            for wake in wakes { wake() }
        }
    }

    /// Calls `wake` on any thread when the rate has changed, until ``forget(_:)`` was called as often as this.
    package func listen(_ listener: AnyObject, _ wake: @escaping @Sendable () -> Void) {
        state.withLock { $0.listeners[ObjectIdentifier(listener), default: (wake, 0)].count += 1 }
    }

    package func forget(_ listener: AnyObject) {
        let key = ObjectIdentifier(listener)
        state.withLock { state in
            state.listeners[key]?.count -= 1
            if state.listeners[key]?.count == 0 { state.listeners[key] = nil }
        }
    }

    fileprivate func size(at now: MonotonicTime) -> (piece: Int?, allowance: Int) {
        state.withLock { state in
            (state.bucket.rate == nil ? nil : state.bucket.piece, state.bucket.allowance(at: now))
        }
    }

    fileprivate func ready(for count: Int, at now: MonotonicTime) -> TokenBucket.Answer {
        state.withLock { $0.bucket.ready(for: count, at: now) }
    }

    fileprivate func spend(_ count: Int) { state.withLock { $0.bucket.spend(count) } }
}

extension [Throttle] {
    /// With the members of each set in its place.
    var flattened: [Throttle] { flatMap(\.members) }

    package enum DrawResult {
        case bytes(Int)
        /// Nothing was taken from any. `by` is the one with the longest wait.
        case refused(by: Throttle, again: MonotonicTime?)
    }

    /// Takes the same amount from all of them, or nothing from any.
    ///
    /// Between the check and the payment another thread may take too. Then a bucket is overdrawn, by at most one piece,
    /// and the next request waits correspondingly longer: the total stays exact.
    package func draw(upTo wanted: Int, at now: MonotonicTime) -> DrawResult {
        let throttles = flattened
        // A request that has waited for a shared limit also takes the tokens that accumulated under its own meanwhile,
        // and loses none of them.
        let sizes = throttles.map { $0.size(at: now) }
        let turn = sizes.compactMap(\.piece).max() ?? wanted
        let count = sizes.reduce(Swift.min(wanted, turn)) { Swift.min($0, $1.allowance) }
        var slowest: (throttle: Throttle, again: MonotonicTime?)?
        for throttle in throttles {
            guard case .later(let again) = throttle.ready(for: count, at: now) else { continue }
            // An unknown time is later than any known one.
            if let before = slowest, (before.again ?? .never) >= (again ?? .never) { continue }
            slowest = (throttle, again)
        }
        if let slowest { return .refused(by: slowest.throttle, again: slowest.again) }
        for throttle in throttles { throttle.spend(count) }
        return .bytes(count)
    }

    /// Returns tokens of bytes that were not sent.
    package func returnBytes(_ count: Int) { for throttle in flattened { throttle.spend(-count) } }
}

extension MonotonicTime {
    fileprivate static let never = MonotonicTime(nanoseconds: .max)
}
