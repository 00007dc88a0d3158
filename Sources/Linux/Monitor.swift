internal import Core
internal import Glibc

/// A value behind a lock, and a way to wait until it has changed (pthread_mutex_lock(3), pthread_cond_wait(3)).
///
/// Not for code that runs in Swift's pool: a thread waits in it.
///
/// `@unchecked Sendable`, proof: `value` is touched with `lock` held alone, and the two C objects stay at one address
/// from `init` to `deinit` and are made for use by many threads.
package final class Monitor<Value>: @unchecked Sendable {
    private var value: Value
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let changed: UnsafeMutablePointer<pthread_cond_t>

    package init(_ value: sending Value) {
        self.value = value
        lock = .allocate(capacity: 1)
        changed = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(lock)
        changed.deallocate()
        lock.deallocate()
    }

    /// Looks at the value or changes it. Nobody who waits is woken.
    package func withLock<R>(_ body: (inout Value) -> R) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return body(&value)
    }

    /// Changes the value, and lets one who waits look again.
    package func change<R>(_ body: (inout Value) -> R) -> R {
        defer { pthread_cond_signal(changed) }
        return withLock(body)
    }

    /// Changes the value, and lets everybody who waits look again.
    package func changeForAll<R>(_ body: (inout Value) -> R) -> R {
        defer { pthread_cond_broadcast(changed) }
        return withLock(body)
    }

    /// Waits until `body` has an answer: asked at once, and again after each change.
    package func wait<R>(_ body: (inout Value) -> R?) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while true {
            if let answer = body(&value) { return answer }
            pthread_cond_wait(changed, lock)
        }
    }

    /// As ``wait(_:)``, for at most `limit`.
    ///
    /// - Returns: `nil` when `body` had no answer in time; it was asked once more at the end.
    package func wait<R>(atMost limit: Duration, _ body: (inout Value) -> R?) -> R? {
        var deadline = timespec()
        clock_gettime(CLOCK_MONOTONIC, &deadline)
        let start = Int64(deadline.tv_sec) * 1_000_000_000 + Int64(deadline.tv_nsec)
        let (sum, isNever) = start.addingReportingOverflow(limit.inNanoseconds)
        let end = isNever ? .max : sum
        deadline = timespec(tv_sec: Int(end / 1_000_000_000), tv_nsec: Int(end % 1_000_000_000))
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while true {
            if let answer = body(&value) { return answer }
            if pthread_cond_timedwait(changed, lock, &deadline) != 0 { return body(&value) }
        }
    }
}
