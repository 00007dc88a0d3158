internal import Synchronization

/// A piece of work that is done once for all tasks that need it at the same time. It is cancelled when no task waits
/// for it any more.
package final class SingleFlight: Sendable {
    private struct Running {
        var task: Task<Void, any Error>
        var waiting: Int
        let number: Int
    }

    private let running = Mutex<Running?>(nil)
    private let begun = Mutex(0)

    package init() {}

    /// Waits for the running work, or starts it.
    ///
    /// - Throws: Errors of the work; `CancellationError` when the last waiting task was cancelled.
    package func join(_ work: @escaping @Sendable () async throws -> Void) async throws {
        let mine = running.withLock { running -> Running in
            var now = running ?? Running(task: Task { try await work() }, waiting: 0, number: nextNumber())
            now.waiting += 1
            running = now
            return now
        }
        let hasLeft = StopFlag()
        defer { leave(mine.number, hasLeft, isCancelled: false) }
        try await withTaskCancellationHandler {
            try await mine.task.value
        } onCancel: {
            leave(mine.number, hasLeft, isCancelled: true)
        }
    }

    private func nextNumber() -> Int {
        begun.withLock { begun in
            begun += 1
            return begun
        }
    }

    /// A cancelled task leaves at once, and not a second time at the end.
    private func leave(_ number: Int, _ hasLeft: StopFlag, isCancelled: Bool) {
        guard hasLeft.set() else { return }
        let alone = running.withLock { running -> Task<Void, any Error>? in
            guard var now = running, now.number == number else { return nil }
            now.waiting -= 1
            running = now.waiting > 0 ? now : nil
            return now.waiting > 0 || !isCancelled ? nil : now.task
        }
        alone?.cancel()
    }
}
