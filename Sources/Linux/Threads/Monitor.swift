internal import CLinux
internal import Core
internal import Glibc

/// A value behind a lock (pthread_mutex_lock(3)), and a way to wait until it has changed (futex(2)).
///
/// The waiting is our own and not pthread_cond_wait(3): up to glibc 2.40 a signal may wake nobody there (bug 25847), and
/// a daemon that sleeps until it is woken would sleep on. Here every change counts a number up, and who waits sleeps only
/// while the number is the one that was there when it looked.
///
/// Not for code that runs in Swift's pool: a thread waits in it.
///
/// `@unchecked Sendable`, proof: `value`, `sleepers` and `changes` are touched with `lock` held alone, but for the kernel, which
/// compares `changes` by itself; and both C objects stay at one address from `init` to `deinit`.
package final class Monitor<Value>: @unchecked Sendable {
    private var value: Value
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let changes: UnsafeMutablePointer<UInt32>
    /// Threads that sleep or are about to: without any, the kernel need not be asked to wake them.
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

    /// Looks at the value or changes it. Nobody who waits is woken.
    package func withLock<R>(_ body: (inout Value) -> R) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body(&value)
    }

    /// Changes the value, and lets one who waits look again.
    package func change<R>(_ body: (inout Value) -> R) -> R { change(waking: 1, body) }

    /// Changes the value, and lets everybody who waits look again.
    package func changeForAll<R>(_ body: (inout Value) -> R) -> R { change(waking: .max, body) }

    private func change<R>(waking most: Int32, _ body: (inout Value) -> R) -> R {
        withLock { value in
            defer { sluice_count_and_wake(changes, sleepers > 0 ? most : 0) }
            return body(&value)
        }
    }

    /// Waits until `body` has an answer: asked at once, and again after each change.
    package func wait<R>(_ body: (inout Value) -> R?) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while true {
            if let answer = body(&value) { return answer }
            sleep(atMost: -1)
        }
    }

    /// As ``wait(_:)``, for at most `limit`.
    ///
    /// - Returns: `nil` when `body` had no answer in time; it was asked once more at the end.
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

    /// Lets go of the lock until something changes, perhaps for nothing, or the time (in ns, negative for ever) is over.
    private func sleep(atMost nanoseconds: Int64) {
        let seen = changes.pointee
        sleepers += 1
        pthread_mutex_unlock(lock)
        sluice_wait_for_change(changes, seen, nanoseconds)
        pthread_mutex_lock(lock)
        sleepers -= 1
    }
}
