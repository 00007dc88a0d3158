internal import Core
internal import Synchronization

/// Questions that a key may not ask, as learned from answers, for all uploads of a destination.
final class S3ForbiddenQuestions: Sendable {
    enum Question: Hashable, Sendable {
        /// For an object that is known to exist.
        case object
        case parts
    }

    private struct State {
        var until: MonotonicTime?
        var logged: Set<Question> = []
    }

    private let state = Mutex(State())
    private let log: @Sendable (String) -> Void
    /// After this time the question is tried again: the key may have been given the right meanwhile.
    private static let pause: Duration = .seconds(3600)

    init(log: @escaping @Sendable (String) -> Void) { self.log = log }

    /// Whether the key may not query objects.
    func cannotLookUp(_ now: MonotonicTime) -> Bool { state.withLock { $0.until.map { now < $0 } ?? false } }

    /// Records that a request for an object that is known to exist was answered with 403.
    func refused(_ now: MonotonicTime, right: String) {
        state.withLock { $0.until = now.advanced(by: Self.pause) }
        logOnce(
            .object,
            "the key may not read objects (\(right)): only conditional writes protect existing names, completed "
                + "objects are not checked, and after a lost answer a file is sent again")
    }

    /// Records an answer that described the object.
    func answered() { state.withLock { $0.until = nil } }

    /// Records that the list of parts was answered with 403.
    func refusedParts(right: String) {
        logOnce(
            .parts,
            "the key may not list parts (\(right)): an upload that continues after a stop trusts the parts that were acknowledged"
        )
    }

    /// Logs the words once.
    private func logOnce(_ question: Question, _ words: String) {
        if state.withLock({ $0.logged.insert(question).inserted }) { log(words) }
    }
}
