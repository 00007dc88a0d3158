package import Core
internal import Linux
internal import Synchronization

/// A limit in bytes a second that any number of requests share: all of them together keep it, whichever of them sends.
///
/// A request may draw from several (its destination's, everybody's); each byte is paid to all of them, and the strictest
/// decides. Bodies count; header lines, TLS and TCP do not. A new rate counts at once for what is being sent.
package final class Throttle: Sendable {
    private struct State {
        var bucket: TokenBucket
        /// Who has requests that draw from this, and how many.
        var listeners: [ObjectIdentifier: (wake: @Sendable () -> Void, count: Int)] = [:]
    }

    private let state: Mutex<State>
    private let clocks: any Clocks

    /// - Parameter rate: Bytes a second; `nil` for no limit, 0 for nothing until that changes.
    package init(rate: Int64? = nil, clocks: any Clocks = SystemClocks()) {
        self.clocks = clocks
        state = Mutex(State(bucket: TokenBucket(rate: rate, at: clocks.monotonic())))
    }

    /// Bytes a second; `nil` for no limit, 0 for nothing until that changes.
    package var rate: Int64? {
        get { state.withLock { $0.bucket.rate } }
        set {
            let now = clocks.monotonic()
            let wakes = state.withLock { state in
                state.bucket.set(rate: newValue, at: now)
                return state.listeners.values.map(\.wake)
            }
            for wake in wakes { wake() }
        }
    }

    /// `wake` is called on any thread when the rate has changed, until ``forget(_:)`` was called as often as this.
    func listen(_ listener: AnyObject, _ wake: @escaping @Sendable () -> Void) {
        state.withLock { $0.listeners[ObjectIdentifier(listener), default: (wake, 0)].count += 1 }
    }

    func forget(_ listener: AnyObject) {
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
    enum Drawn {
        case bytes(Int)
        /// Nothing was taken from any. `by` is the one that takes longest.
        case refused(by: Throttle, again: MonotonicTime?)
    }

    /// Takes the same from all of them, or nothing from any.
    ///
    /// Between the question and the payment another thread may take as well. Then an account is overdrawn, by one piece
    /// at most, and the next waits for as much longer: no byte is lost or given away.
    func draw(upTo wanted: Int, at now: MonotonicTime) -> Drawn {
        // Who has waited for a limit that many share takes what has gathered under its own meanwhile, and so loses none of it.
        let sizes = map { $0.size(at: now) }
        let turn = sizes.compactMap(\.piece).max() ?? wanted
        let count = sizes.reduce(Swift.min(wanted, turn)) { Swift.min($0, $1.allowance) }
        var slowest: (throttle: Throttle, again: MonotonicTime?)?
        for throttle in self {
            guard case .later(let again) = throttle.ready(for: count, at: now) else { continue }
            // No time at all is later than any.
            if let before = slowest, (before.again ?? .never) >= (again ?? .never) { continue }
            slowest = (throttle, again)
        }
        if let slowest { return .refused(by: slowest.throttle, again: slowest.again) }
        for throttle in self { throttle.spend(count) }
        return .bytes(count)
    }

    /// What was drawn and did not go.
    func giveBack(_ count: Int) { for throttle in self { throttle.spend(-count) } }
}

extension MonotonicTime {
    fileprivate static let never = MonotonicTime(nanoseconds: .max)
}
