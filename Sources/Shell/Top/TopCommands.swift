internal import Core
internal import Linux

/// Sends the commands of a person one after another: the next one may take back what the one before does.
struct TopCommands: Sendable {
    /// What became of a command.
    struct Answer: Sendable {
        var text: String
        var isError: Bool
        /// False for one that waited behind another one without an answer.
        var isSent = true
    }

    /// How many were not answered yet.
    private(set) var unanswered = 0
    /// Since when there are such.
    private(set) var since: WallTime?
    /// Whether the command before was answered in time.
    private var last: Task<Bool, Never>?

    /// Queues a command.
    ///
    /// After one that was not answered in time, those that waited behind it are not sent: a person gave them long ago,
    /// and does not expect them any more.
    ///
    /// - Parameters:
    ///   - limit: How long its answer is waited for.
    ///   - work: Sends it, and says what was done.
    ///   - report: Takes its only answer, after which ``answered()`` is to be called.
    mutating func send(
        at now: WallTime, within limit: Duration, _ work: @escaping @Sendable () async throws -> String,
        report: @escaping @Sendable (Answer) -> Void
    ) {
        unanswered += 1
        since = since ?? now
        last = Task { [last] in
            guard await last?.value != false else {
                report(Answer(text: "a later command was not sent", isError: true, isSent: false))
                return false
            }
            do {
                report(Answer(text: try await awaiting(atMost: limit, work), isError: false))
            } catch let error as TimeLimitError {
                report(Answer(text: "\(TopState.words(error)); it may still do this", isError: true))
                return false
            } catch { report(Answer(text: TopState.words(error), isError: true)) }
            return true
        }
    }

    /// Counts an answer that was reported.
    mutating func answered() {
        unanswered -= 1
        if unanswered == 0 { (since, last) = (nil, nil) }
    }

    /// Waits until all commands are answered.
    ///
    /// - Returns: Whether they were within this time.
    func end(within limit: Duration) async -> Bool {
        guard let last else { return true }
        return (try? await awaiting(atMost: limit) { await last.value }) ?? false
    }
}
