internal import Dispatch

/// Runs an actor's work one piece after another, outside Swift's pool of threads.
///
/// The pool has one thread a core, two on a small box. An actor that waits for a disk would take one of them along;
/// with this it waits on its own.
package final class OwnThread: SerialExecutor {
    private let queue: DispatchQueue

    package init(name: String) { queue = DispatchQueue(label: name) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}

/// Runs `body`, which waits for a disk or the kernel, off Swift's pool of threads.
package func blocking<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(with: Result(catching: body)) }
    }
}
