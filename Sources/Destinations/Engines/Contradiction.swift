internal import Core

/// A remote that contradicts itself about where an upload stands, repeatedly. It refuses bytes from the offset that it
/// names, or accepts them with a success and names the same offset again, or its answers to the question for that
/// offset cannot be used.
///
/// The cause may be a lock, a cache or a proxy that recovers in a moment, so the first few times cost only a short
/// wait. After that, only a few bytes of the file are sent to test whether it is over, the waits grow up to an hour,
/// and it is reported.
struct Contradiction {
    enum Kind {
        /// The named offset and the accepted bytes contradict each other.
        case conflict
        /// The remote accepts nothing: a lock that does not end. Counted with ``conflict``.
        case standstill
        case unknownOffset

        /// The field with the number of answers in a row.
        var count: KeyPath<OffsetCheckpoint.Fields, CheckpointField<Int64?>> {
            self == .unknownOffset ? \.unusableAnswers : \.conflicts
        }
        /// The field with the time of the first of them.
        var since: KeyPath<OffsetCheckpoint.Fields, CheckpointField<Int64?>> {
            self == .unknownOffset ? \.unusableSince : \.conflictsSince
        }
    }

    /// Up to this many times, all remaining bytes are sent anyway.
    static let few: Int64 = 3
    /// After this many in a row, or this long, it is reported.
    private static let maxAnswers: Int64 = 10
    private static let maxDuration = Duration.seconds(3600)
    /// Bytes that are sent to test whether it is over.
    static let probe: Int64 = 64 << 10

    private var code: Failure.Code? {
        switch kind {
        case .conflict: .serverContradicts
        case .unknownOffset: .offsetUnknown
        case .standstill: nil
        }
    }

    let kind: Kind
    /// Number in a row, including this one.
    let times: Int64
    private let lasted: Duration

    /// Counts one more. The caller makes it durable.
    ///
    /// - Parameter error: The error that ends this attempt.
    init(_ kind: Kind, _ error: UploadError, in checkpoint: inout OffsetCheckpoint) {
        self.kind = kind
        times = checkpoint.increment(kind.count)
        let now = error.failure.at
        let since = times > 1 ? checkpoint[dynamicMember: kind.since] ?? 0 : now
        checkpoint[dynamicMember: kind.since] = since
        // A clock that was set back gives no duration.
        lasted = .milliseconds(max(0, now.subtractingReportingOverflow(since).partialValue))
    }

    static func exceedsLimit(_ checkpoint: OffsetCheckpoint) -> Bool { checkpoint.conflicts ?? 0 >= few }

    /// Resets the count: the remote moved on, or its answer can be used.
    static func end(_ kind: Kind, in checkpoint: inout OffsetCheckpoint) {
        checkpoint[dynamicMember: kind.count] = nil
        checkpoint[dynamicMember: kind.since] = nil
        if kind != .unknownOffset { checkpoint.conflictPeak = nil }
    }

    /// 2 s after the first, doubled each time.
    private var wait: Duration { min(.seconds(1 << min(times, 20)), Self.maxDuration) }

    /// The upload's error until the next attempt.
    ///
    /// - Parameters:
    ///   - error: The error for a single occurrence.
    ///   - words: The remote's message.
    func error(_ error: UploadError, _ words: String) -> UploadError {
        guard times > Self.few || !error.remedy.endsOnlyAttempt else { return error }
        var error = error
        var wait = wait
        if case .retry(let after?) = error.remedy { wait = max(wait, after) }
        error.remedy = .retry(after: wait)
        error.failure.retryable = true
        guard times >= Self.maxAnswers || lasted >= Self.maxDuration else { return error }
        let long = lasted >= .seconds(1) ? " in \(lasted.inWords)" : ""
        error.failure.kind = .protocol
        error.failure.code = code ?? error.failure.code
        error.failure.message +=
            "; \(kind == .conflict ? "the server contradicts itself" : "this happened"), \(times) times in a row\(long): \(words). "
            + "It is asked again every \(wait.inWords)"
            + (kind != .unknownOffset ? ", with \(Self.probe >> 10) KiB at most" : "")
            + "; check the server or a proxy in front of it, or cancel the upload"
        return error
    }
}
