internal import Linux
internal import Synchronization

/// Lets one piece of work run at a time, in the order of the requests, with a limit of how many wait.
final class ThumbnailQueue: Sendable {
    /// Too many wait already.
    struct FullError: Error {}
    /// The client has left before its turn.
    struct LeftError: Error {}

    /// Time between two questions whether a waiting client has left.
    private static let leftCheck = Duration.milliseconds(250)

    private let turn = AsyncSemaphore(slots: 1) {}
    private let waiting = Mutex(0)
    private let most: Int

    /// - Parameter most: How many may wait or run.
    init(most: Int = 32) { self.most = most }

    /// - Parameter hasLeft: Whether the client has left. Then its place is free at once.
    /// - Throws: ``FullError``; ``LeftError``; `CancellationError` if the task is cancelled before its turn; errors of
    ///   the work.
    func run<R: Sendable>(
        unless hasLeft: @escaping @Sendable () -> Bool = { false }, _ work: @Sendable () async throws -> R
    ) async throws -> R {
        if hasLeft() { throw LeftError() }
        let hasPlace = waiting.withLock { waiting in
            guard waiting < most else { return false }
            waiting += 1
            return true
        }
        guard hasPlace else { throw FullError() }
        defer { waiting.withLock { $0 -= 1 } }
        guard await hasTurn(unless: hasLeft) else {
            try Task.checkCancellation()
            throw LeftError()
        }
        defer { turn.release() }
        if hasLeft() { throw LeftError() }
        return try await work()
    }

    /// Waits for the turn.
    ///
    /// - Returns: `false` when the client has left before it, or the task was cancelled.
    private func hasTurn(unless hasLeft: @escaping @Sendable () -> Bool) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { [turn] in await turn.acquire() }
            group.addTask {
                while !hasLeft() {
                    do { try await Alarms.shared.sleep(for: Self.leftCheck) } catch { break }
                }
                return false
            }
            var hasTurn = await group.next() ?? false
            group.cancelAll()
            // It may have come in the moment in which the client has left.
            while let more = await group.next() { hasTurn = hasTurn || more }
            return hasTurn
        }
    }
}
