internal import CLinux
internal import Core
internal import Glibc

/// A value protected by a lock (pthread_mutex_lock(3)), with a way to wait until it has changed (futex(2)).
///
/// It does not use pthread_cond_wait(3): up to glibc 2.40 a signal there may wake no thread (bug 25847), and a daemon
/// that sleeps until it is woken would sleep on. Here every change increments a number, and a waiting thread sleeps
/// only while the number is the one that it saw.
///
/// Not for code in Swift's thread pool, since the thread blocks.
///
/// `@unchecked Sendable`, proof: `value`, `sleepers` and `changes` are accessed only with `lock` held, except by the
/// kernel, which compares `changes` itself; and both C objects stay at one address from `init` to `deinit`.
package final class ConditionLock<Value>: @unchecked Sendable {
    private var value: Value
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let changes: UnsafeMutablePointer<UInt32>
    /// Threads that sleep or are about to: without any, the kernel need not wake one.
    private var sleepers = 0

    package init(_ value: sending Value) {
        self.value = value
        lock = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        changes = .allocate(capacity: 1)
        changes.initialize(to: 0)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
        changes.deallocate()
    }

    /// Reads or changes the value. Wakes no waiting thread.
    package func withLock<R>(_ body: (inout Value) -> R) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body(&value)
    }

    /// Changes the value, and wakes one waiting thread to check again.
    package func change<R>(_ body: (inout Value) -> R) -> R { change(waking: 1, body) }

    /// Changes the value, and wakes all waiting threads to check again.
    package func changeForAll<R>(_ body: (inout Value) -> R) -> R { change(waking: .max, body) }

    private func change<R>(waking most: Int32, _ body: (inout Value) -> R) -> R {
        withLock { value in
            defer { sluice_count_and_wake(changes, sleepers > 0 ? most : 0) }
            return body(&value)
        }
    }

    /// Waits until `body` returns a result: called at once, and again after each change.
    package func wait<R>(_ body: (inout Value) -> R?) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while true {
            if let answer = body(&value) { return answer }
            sleep(atMost: -1)
        }
    }

    /// Like ``wait(_:)``, for at most `limit`.
    ///
    /// - Returns: `nil` when `body` had no result in time; it was called once more at the end.
    package func wait<R>(atMost limit: Duration, _ body: (inout Value) -> R?) -> R? {
        let start = SuspendingClock().now
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while true {
            if let answer = body(&value) { return answer }
            let left = limit - start.duration(to: SuspendingClock().now)
            if left <= .zero { return nil }
            sleep(atMost: left.inNanoseconds)
        }
    }

    /// Releases the lock until a change, a spurious wake-up, or the end of the time (in ns, negative for no limit).
    private func sleep(atMost nanoseconds: Int64) {
        let seen = changes.pointee
        sleepers += 1
        pthread_mutex_unlock(lock)
        sluice_wait_for_change(changes, seen, nanoseconds)
        pthread_mutex_lock(lock)
        sleepers -= 1
    }
}
