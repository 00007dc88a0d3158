/// Runs `body`, which waits for a disk or the kernel, outside Swift's thread pool.
package func blocking<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
        inBackground { continuation.resume(with: Result(catching: body)) }
    }
}

/// Runs `body`, which may wait for a disk or the kernel, on a background thread.
package func inBackground(_ body: @escaping @Sendable () -> Void) { blockingWorkers.add(body) }

/// Many pieces wait for a disk only when the disk has trouble; more threads would not help.
private let blockingWorkers = Workers<@Sendable () -> Void>("blocking", most: 64, linger: .seconds(5)) { $0() }
