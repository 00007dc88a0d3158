internal import Linux
internal import Synchronization

/// Lets one piece of work run at a time, in the order of the requests, with a limit of how many wait.
final class ThumbnailQueue: Sendable {
    /// Too many wait already.
    struct FullError: Error {}

    private let turn = AsyncSemaphore(slots: 1) {}
    private let waiting = Mutex(0)
    private let most: Int

    /// - Parameter most: How many may wait or run.
    init(most: Int = 32) { self.most = most }

    /// - Throws: ``FullError``; `CancellationError` if the task is cancelled before its turn; errors of the work.
    func run<R: Sendable>(_ work: @Sendable () async throws -> R) async throws -> R {
        let hasPlace = waiting.withLock { waiting in
            guard waiting < most else { return false }
            waiting += 1
            return true
        }
        guard hasPlace else { throw FullError() }
        defer { waiting.withLock { $0 -= 1 } }
        guard await turn.acquire() else { throw CancellationError() }
        defer { turn.release() }
        return try await work()
    }
}
