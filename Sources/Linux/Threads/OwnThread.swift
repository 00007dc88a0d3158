/// Runs an actor's work one piece after another, outside Swift's thread pool.
///
/// The pool has one thread for each core, two on a small machine. An actor that waits for a disk would block one of
/// them; with this it blocks its own. The thread starts with the first piece and ends with this object.
package final class OwnThread: SerialExecutor {
    private let worker: Workers<@Sendable () -> Void>

    /// - Parameter name: At most 15 bytes; shown by `ps -L` and `top -H`.
    package init(name: String) { worker = Workers(name, most: 1) { $0() } }

    // Every piece holds this object, so none is left at this point.
    deinit { worker.close() }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        worker.add { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
