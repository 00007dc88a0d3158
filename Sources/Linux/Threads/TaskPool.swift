internal import CLinux
internal import Glibc

/// The pool that runs the program's tasks, in place of libdispatch's, which Swift would take.
///
/// libdispatch's pool counts its busy threads once a second for as long as the process lives. A daemon that has nothing
/// to do should not wake a small box for that. This one sleeps until there is a job or a deadline is due.
package enum TaskPool {
    /// Takes over. Call it in `main`, before the first task.
    ///
    /// The first thread and the timer are made here: where a limit refuses them, nothing has begun yet.
    package static func install() throws(SystemError) {
        try Alarms.begin()
        try threads.begin()
        sluice_take_over_tasks(
            { job in if let job { TaskPool.threads.add(Job(pointer: job)) } },
            { job, deadline in if let job { TaskPool.add(Job(pointer: job), at: deadline) } })
    }

    /// One piece of a task, owned by the runtime and handed back to it once, by `sluice_run_job`.
    ///
    /// `@unchecked Sendable`, proof: nothing here looks behind the pointer.
    private struct Job: @unchecked Sendable {
        let pointer: UnsafeMutableRawPointer
    }

    /// Jobs never wait in the kernel, so more threads than cores gain nothing; and what this program does beside the
    /// kernel and its libraries never needs more than a few.
    private static let threads = Workers<Job>("task", most: min(max(2, sysconf(CInt(_SC_NPROCESSORS_ONLN))), 8)) {
        sluice_run_job($0.pointer)
    }

    private static func add(_ job: Job, at deadline: Int64) {
        Alarms.shared.set(at: deadline) { threads.add(job) }
    }
}
