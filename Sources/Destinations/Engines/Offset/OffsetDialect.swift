internal import Core
internal import Transport

/// How one kind of remote that counts bytes is spoken to. A value; the progress is in the checkpoint.
///
/// Of the checkpoint, `url` and `server` belong to the dialect and every other field to ``OffsetRun``.
protocol OffsetDialect: Sendable {
    /// Asks for a place for the file, without a byte of it, and sets `url`.
    ///
    /// - Returns: Whether the remote knows this upload from before, and may have bytes of it.
    /// - Throws: ``UploadError``; `CancellationError`.
    func create(_ order: UploadOrder, _ checkpoint: inout Checkpoint) async throws -> Bool

    /// Whether the checkpoint was made with the server that is configured now, as far as it tells.
    func isOurs(_ checkpoint: Checkpoint) -> Bool

    /// Why no request may go to the upload of a checkpoint until a person has allowed it; `nil` for nothing.
    func objection(to checkpoint: Checkpoint) -> UploadError?

    /// Asks how far the remote got. Follows a permanent redirect and keeps the new address in the checkpoint.
    func locate(_ order: UploadOrder, _ checkpoint: inout Checkpoint) async throws -> Position

    /// How many of the `count` bytes that are left one request may carry.
    func allowance(for count: Int64) -> Int64

    /// Every request but the last ends at a multiple of it, in bytes.
    var alignment: Int64 { get }

    /// Sends bytes `range.lowerBound..<range.upperBound` of the file, each of them past `digest`.
    func send(
        _ range: Range<Int64>, _ order: UploadOrder, _ checkpoint: inout Checkpoint, past digest: SentDigest,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> Sending

    /// What is to be removed at the remote when an upload begins anew; `nil` for nothing.
    func remains(of checkpoint: Checkpoint) -> Checkpoint?

    /// Others that may use the same account find the addresses of its uploads in a list: somebody else may send to one of ours.
    var isListed: Bool { get }

    /// What the remote calls an upload that was created, and where a person finds it; `nil` where that is known only in the end, or
    /// is a secret.
    func name(of checkpoint: Checkpoint) -> (id: String, url: String?)?

    /// Something is to be done or asked when the remote has every byte: ``conclude(_:_:_:)``.
    var concludes: Bool { get }

    /// Does that. After a crash it is asked again with the checkpoint that was recorded last, and with the bytes not looked at.
    ///
    /// - Throws: ``UploadError``, with ``Remedy/pending(after:)`` while the remote works; `CancellationError`; what `notes` throws.
    func conclude(
        _ order: UploadOrder, _ checkpoint: inout Checkpoint, _ notes: any UploadNotes
    ) async throws -> Conclusion

    /// Whether the remote, asked elsewhere than at the upload, looks like itself: not a proxy that lost it.
    func isThere() async throws -> Bool

    /// A failure that the engine found, in this destination's name.
    func failure(_ kind: Failure.Class, _ code: String, _ message: String, retryable: Bool) -> Failure
}

extension OffsetDialect {
    func objection(to checkpoint: Checkpoint) -> UploadError? { nil }
    func remains(of checkpoint: Checkpoint) -> Checkpoint? { nil }
    func name(of checkpoint: Checkpoint) -> (id: String, url: String?)? { nil }
    var alignment: Int64 { 1 }
    var isListed: Bool { false }
    var concludes: Bool { false }
    func conclude(
        _ order: UploadOrder, _ checkpoint: inout Checkpoint, _ notes: any UploadNotes
    ) async throws -> Conclusion { .done(Outcome()) }
}

extension OffsetDialect {
    /// Where a request ends that begins at `offset` of a file of `size` bytes, and carries no more than `most` but for the alignment.
    func end(from offset: Int64, of size: Int64, atMost most: Int64) -> Int64 {
        let end = offset + allowance(for: min(size - offset, most))
        if end == size || alignment <= 1 { return end }
        let aligned = end / alignment * alignment
        return aligned > offset ? aligned : min(size, (offset / alignment + 1) * alignment)
    }

    /// An error that the engine found, in this destination's name.
    func error(_ kind: Failure.Class, _ code: String, _ message: String, _ remedy: Remedy) -> UploadError {
        UploadError(failure(kind, code, message, retryable: true), remedy: remedy)
    }
}

/// What a remote made of the bytes.
struct Outcome: Sendable {
    /// As in ``RemoteObject``.
    var id: String?
    var url: String?
    /// Stronger than that it has the bytes; `nil` when it is just that.
    var verifiedBy: String?
    var warnings: [String] = []
}

enum Conclusion: Sendable {
    case done(Outcome)
    /// It says that it lacks bytes, whatever offset it named. When that offset is still the file's end, `error` it is.
    case incomplete(UploadError)
    /// It has taken the bytes and does not keep them. The upload is to begin anew when `error` is over.
    case rejected(UploadError)
    /// It does not find what it had taken. Only a person has the file sent again, after one more look.
    case missing(UploadError)
}

/// Where a remote says that an upload stands.
enum Position: Sendable {
    case at(Int64)
    /// Not there any more. `isCertain` when the remote itself said so, and no proxy in front of it could have.
    case gone(isCertain: Bool)
    /// The address holds something else than our file.
    case foreign(String)
    /// An answer that may be a fault of the moment; after some of them the upload counts as gone.
    case doubtful(UploadError)
}

/// How one sending ended.
struct Sending: Sendable {
    enum Answer: Sendable {
        /// The new offset; `nil` when the remote did not name it.
        case accepted(Int64?)
        /// Unclear until the remote was asked where it stands. When it stands where it stood, bytes may be sent again
        /// `again` times, and then `error` it is.
        case look(UploadError, again: Int)
        /// Too many bytes for one request.
        case tooMuch(UploadError)
        /// The remote found them damaged.
        case damaged(UploadError)
        /// An ``UploadError`` or `CancellationError`: ends the attempt.
        case failed(any Error)
    }

    var answer: Answer
    /// Bytes of the range that the socket took.
    var bytesSent: Int64
    /// How many of them have left.
    var delivery: Delivery
    /// An answer that is no success is about where the upload stands (another offset, a lock), and says nothing of the file.
    var isOfState = false
    /// Its text says that the upload was finished before, or that the bytes stand at the wrong place.
    var saysPlace = false

    init(_ answer: Answer, _ carried: Asking.Carried, isOfState: Bool = false, saysPlace: Bool = false) {
        self.answer = answer
        self.saysPlace = saysPlace
        bytesSent = carried.bytesSent
        delivery = carried.delivery
        self.isOfState = isOfState
    }

    /// What the remote said, where it was no success.
    var error: UploadError? {
        switch answer {
        case .accepted: nil
        case .look(let error, _), .tooMuch(let error), .damaged(let error): error
        case .failed(let error): error as? UploadError
        }
    }

    /// It was refused since the upload stands elsewhere (tus 1.0.0, `PATCH`: 409), and none of its bytes were taken.
    var isConflict: Bool {
        if case .look(let error, _) = answer { error.failure.http == 409 } else { false }
    }

    /// The request was not made.
    init(unsent answer: Answer) { self.init(answer, Asking.Carried(unsent: CancellationError())) }
}
