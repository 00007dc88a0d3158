internal import CLinux
internal import Glibc

/// The pool that runs the program's tasks. It replaces libdispatch's, which Swift would use.
///
/// libdispatch's pool counts its busy threads once a second for as long as the process lives. An idle daemon should not
/// wake a small machine for that. This pool sleeps until there is a job or a deadline is due.
package enum TaskPool {
    /// Installs the pool. Call it in `main`, before the first task.
    ///
    /// The first thread and the timer are created here: where a limit refuses them, nothing has begun yet.
    package static func install() throws(SystemError) {
        try Alarms.begin()
        try threads.begin()
        sluice_take_over_tasks(
            { job in if let job { TaskPool.threads.add(Job(pointer: job)) } },
            { job, deadline in if let job { TaskPool.add(Job(pointer: job), at: deadline) } })
    }

    /// One piece of a task. The runtime owns it, and gets it back once, by `sluice_run_job`.
    ///
    /// `@unchecked Sendable`, proof: this code does not access the pointer's target.
    private struct Job: @unchecked Sendable {
        let pointer: UnsafeMutableRawPointer
    }

    /// Jobs never block in the kernel, so more threads than cores gain nothing; and apart from the kernel and its
    /// libraries this program never needs more than a few.
    private static let threads = Workers<Job>("task", most: min(max(2, sysconf(CInt(_SC_NPROCESSORS_ONLN))), 8)) {
        sluice_run_job($0.pointer)
    }

    private static func add(_ job: Job, at deadline: Int64) {
        Alarms.shared.set(at: deadline) { threads.add(job) }
    }
}
