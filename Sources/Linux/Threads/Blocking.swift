/// Runs `body`, which waits for a disk or the kernel, off Swift's pool of threads.
package func blocking<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
        inBackground { continuation.resume(with: Result(catching: body)) }
    }
}

/// Runs `body`, which may wait for a disk or the kernel, on a thread that is there for such things.
package func inBackground(_ body: @escaping @Sendable () -> Void) { errands.add(body) }

/// What waits for a disk is many at once only when the disk is ill; more threads would not make it well.
private let errands = Workers<@Sendable () -> Void>("errand", most: 64, linger: .seconds(5)) { $0() }
