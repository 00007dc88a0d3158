internal import CLinux
internal import Core
internal import Glibc
internal import Synchronization

/// Actions at given times, with one kernel timer for the earliest of them (timerfd_create(2)).
///
/// Uses CLOCK_BOOTTIME, like Swift's `ContinuousClock`: after a suspension an alarm is late, never early. Unlike a
/// sleeping task, a cancelled alarm is gone: it keeps no memory and causes no wake-up.
package final class Alarms: Sendable {
    package struct ID: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    private struct State {
        var deadlines = Deadlines<UInt64>()
        var actions: [UInt64: @Sendable () -> Void] = [:]
        var last: UInt64 = 0
        /// The deadline to which the timer is set.
        var armed: Int64?
    }

    private let state = Mutex(State())
    private let timer: CInt

    private static let made = Result { () throws(SystemError) in try Alarms() }

    /// The process's own alarms. Their thread lives as long as the process.
    package static var shared: Alarms {
        switch made {
        case .success(let alarms): alarms
        case .failure(let error): fatalError("\(error)")
        }
    }

    /// Creates the timer and its thread. Called in `main`, where a limit that refuses them can still be reported.
    static func begin() throws(SystemError) { _ = try made.get() }

    private init() throws(SystemError) {
        timer = try systemCall("timerfd_create", on: "CLOCK_BOOTTIME") { sluice_timer() }
        try startThread("alarms", run)
    }

    private func run() {
        while true {
            var count: UInt64 = 0
            // Returns when the timer has expired; an interrupted wait checks and waits again.
            _ = read(timer, &count, 8)
            fire()
        }
    }

    /// - Parameters:
    ///   - deadline: Nanoseconds on CLOCK_BOOTTIME.
    ///   - action: Runs on the alarms' thread: short, and never waiting.
    @discardableResult
    package func set(at deadline: Int64, _ action: @escaping @Sendable () -> Void) -> ID {
        state.withLock { state in
            state.last += 1
            state.actions[state.last] = action
            state.deadlines.add(state.last, at: MonotonicTime(nanoseconds: deadline))
            arm(&state)
            return ID(number: state.last)
        }
    }

    package func set(after delay: Duration, _ action: @escaping @Sendable () -> Void) -> ID {
        let (deadline, isNever) = sluice_boot_time().addingReportingOverflow(max(0, delay.inNanoseconds))
        return set(at: isNever ? .max : deadline, action)
    }

    /// Cancels an alarm. Has no effect when it has run already.
    package func cancel(_ alarm: ID) {
        state.withLock { state in
            guard state.actions.removeValue(forKey: alarm.number) != nil else { return }
            arm(&state)
        }
    }

    private func fire() {
        let now = MonotonicTime(nanoseconds: sluice_boot_time())
        let due = state.withLock { state in
            var due: [@Sendable () -> Void] = []
            while let first = state.deadlines.first, first.at <= now {
                state.deadlines.removeFirst()
                if let action = state.actions.removeValue(forKey: first.key) { due.append(action) }
            }
            state.armed = nil
            arm(&state)
            return due
        }
        for action in due { action() }
    }

    /// Sets the timer to the earliest remaining alarm. Called with the lock held, so that settings do not overtake each
    /// other.
    private func arm(_ state: inout State) {
        while let first = state.deadlines.first, state.actions[first.key] == nil { state.deadlines.removeFirst() }
        if state.deadlines.count > 64, state.deadlines.count > 2 * state.actions.count {
            state.deadlines.keep { state.actions[$0] != nil }
        }
        let earliest = state.deadlines.first?.at.nanoseconds
        guard earliest != state.armed else { return }
        state.armed = earliest
        sluice_set_timer(timer, state.armed ?? 0)
    }
}
