internal import Core

/// A remote that contradicts itself about where an upload stands, time after time: it refuses bytes from the offset that it names, or takes
/// them with a success and names the same offset again; or its answers to the question for that offset cannot be used.
///
/// It may be a lock, a cache or a proxy that is over in a moment, so the first few times cost no more than a short wait. Then only a little of
/// the file goes to see whether it is over, the waits grow up to an hour, and a person is told.
///
/// | field | means |
/// |---|---|
/// | `conflicts`, `conflict_since` | answers in a row that moved nothing, and when the first of them was (ms since 1970) |
/// | `conflict_peak` | the largest offset that was named meanwhile: more than that is progress |
/// | `blind_looks`, `blind_since` | questions for the offset in a row whose answers could not be used, and since when |
struct Contradiction {
    enum Kind {
        /// What it names and what it does are two things.
        case conflict
        /// It takes nothing: a lock that does not end. Counted with ``conflict``.
        case standstill
        case look

        var count: String { self == .look ? "blind_looks" : "conflicts" }
        var since: String { self == .look ? "blind_since" : "conflict_since" }
    }

    /// So often everything that is left is sent all the same.
    static let few: Int64 = 3
    /// So often in a row, or for so long, and a person is told.
    private static let most: Int64 = 10
    private static let longest = Duration.seconds(3600)
    /// What is sent to see whether it is over.
    static let probe: Int64 = 64 << 10

    private var code: String? {
        switch kind {
        case .conflict: "server_contradicts"
        case .look: "offset_unknown"
        case .standstill: nil
        }
    }

    let kind: Kind
    /// In a row, this one included.
    let times: Int64
    private let lasted: Duration

    /// Counts one more. To be made durable by the caller.
    ///
    /// - Parameter error: What ends this attempt for it.
    init(_ kind: Kind, _ error: UploadError, in checkpoint: inout Checkpoint) {
        self.kind = kind
        times = checkpoint.count(kind.count)
        let now = error.failure.at
        let since = times > 1 ? checkpoint.number(kind.since) : now
        checkpoint[kind.since] = "\(since)"
        // A clock that was set back tells nothing.
        lasted = .milliseconds(max(0, now.subtractingReportingOverflow(since).partialValue))
    }

    static func isMany(_ checkpoint: Checkpoint) -> Bool { checkpoint.number(Kind.conflict.count) >= few }

    /// The remote moved on, or its answer can be used.
    static func end(_ kind: Kind, in checkpoint: inout Checkpoint) {
        checkpoint[kind.count] = nil
        checkpoint[kind.since] = nil
        if kind != .look { checkpoint["conflict_peak"] = nil }
    }

    /// 2 s behind the first, doubled each time.
    private var wait: Duration { min(.seconds(1 << min(times, 20)), Self.longest) }

    /// What the upload is told until the next attempt.
    ///
    /// - Parameters:
    ///   - error: What it would be told if it was for once.
    ///   - words: What the remote said.
    func error(_ error: UploadError, _ words: String) -> UploadError {
        guard times > Self.few || !error.remedy.isForOnce else { return error }
        var error = error
        var wait = wait
        if case .again(let after?) = error.remedy { wait = max(wait, after) }
        error.remedy = .again(after: wait)
        error.failure.retryable = true
        guard times >= Self.most || lasted >= Self.longest else { return error }
        let long = lasted >= .seconds(1) ? " in \(lasted.inWords)" : ""
        error.failure.kind = .protocol
        error.failure.code = code ?? error.failure.code
        error.failure.message +=
            "; \(kind == .conflict ? "the server contradicts itself" : "that is so"), \(times) times in a row\(long): \(words). "
            + "It is asked again every \(wait.inWords)"
            + (kind != .look ? ", with \(Self.probe >> 10) KiB at most" : "")
            + "; look at the server or at a proxy in front of it, or cancel the upload"
        return error
    }
}
