internal import Core
internal import Linux

/// Sends the commands of a person one after another: the next one may take back what the one before does.
struct TopCommands: Sendable {
    /// What became of a command.
    struct Answer: Hashable, Sendable {
        var text: String
        var isError: Bool
        /// How many waited behind one without an answer, and were not sent.
        var unsent = 0
        /// Of one without an answer: what is said beside those that were not sent.
        var silence = ""

        /// Of commands that were not sent, also what became of the one before them, if that is still shown.
        func after(_ shown: Answer?) -> Answer {
            guard unsent > 0, let shown else { return self }
            return Answer(text: "", isError: true, unsent: shown.unsent + unsent, silence: shown.silence)
        }

        /// Where commands were not sent it has room in 80 columns. Their number comes first: a narrower terminal cuts
        /// the end.
        var line: String {
            if unsent == 0 { return text }
            let words = unsent == 1 ? "1 later command was not sent" : "\(unsent) later commands were not sent"
            return silence.isEmpty ? words : "\(words); \(silence)"
        }
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
                report(Answer(text: "", isError: true, unsent: 1))
                return false
            }
            do {
                report(Answer(text: try await awaiting(atMost: limit, work), isError: false))
            } catch let error as TimeLimitError {
                let seconds = error.limit.components.seconds
                report(
                    Answer(
                        text: "no answer within \(seconds) s: it may still be done", isError: true,
                        silence: "the first may be done: no answer within \(seconds) s"))
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
