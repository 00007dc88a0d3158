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
        var heap = DeadlineHeap()
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
            state.heap.add(state.last, at: deadline)
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
        let now = sluice_boot_time()
        let due = state.withLock { state in
            var due: [@Sendable () -> Void] = []
            while let number = state.heap.next(dueAt: now) {
                if let action = state.actions.removeValue(forKey: number) { due.append(action) }
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
        while let first = state.heap.first, state.actions[first] == nil { state.heap.removeFirst() }
        if state.heap.count > 64, state.heap.count > 2 * state.actions.count {
            state.heap.keep { state.actions[$0] != nil }
        }
        guard state.heap.earliest != state.armed else { return }
        state.armed = state.heap.earliest
        sluice_set_timer(timer, state.armed ?? 0)
    }
}

/// Numbers with a deadline, the earliest first.
struct DeadlineHeap {
    private var heap: [(at: Int64, number: UInt64)] = []

    var count: Int { heap.count }
    var earliest: Int64? { heap.first?.at }
    var first: UInt64? { heap.first?.number }

    mutating func add(_ number: UInt64, at deadline: Int64) {
        heap.append((deadline, number))
        siftUp(from: heap.count - 1)
    }

    mutating func next(dueAt now: Int64) -> UInt64? {
        guard let first = heap.first, first.at <= now else { return nil }
        removeFirst()
        return first.number
    }

    mutating func removeFirst() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        heap[0] = last
        siftDown(from: 0)
    }

    mutating func keep(_ isWanted: (UInt64) -> Bool) {
        heap.removeAll { !isWanted($0.number) }
        for index in stride(from: heap.count / 2 - 1, through: 0, by: -1) { siftDown(from: index) }
    }

    private mutating func siftUp(from start: Int) {
        var index = start
        while index > 0, heap[index].at < heap[(index - 1) / 2].at {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func siftDown(from start: Int) {
        var index = start
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count && heap[child].at < heap[least].at {
                least = child
            }
            if least == index { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}
