internal import Core
internal import Transport

/// The protocol of one kind of remote that counts bytes. A value; the progress is in the checkpoint.
///
/// Of ``OffsetCheckpoint``, the dialect sets `url` and `server`. Fields of its own are in a type of its own.
protocol OffsetDialect: Sendable {
    /// Creates an upload for the file, without sending bytes, and sets `url`.
    ///
    /// - Returns: Whether the remote knows this upload from before, and may have bytes of it.
    /// - Throws: ``UploadError``; `CancellationError`.
    func create(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Bool

    /// Whether a creation that was begun and not answered has made nothing besides the upload of the next one: the
    /// remote answers a repeated creation with the same upload. Called before the beginning of each creation is
    /// recorded, and keeps in the checkpoint what the next call needs.
    ///
    /// - Throws: ``UploadError``; `CancellationError`.
    func repeatsCreation(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Bool

    /// Forgets what ``repeatsCreation(_:_:)`` kept: the creation has left nothing behind.
    func forgetCreation(_ checkpoint: inout OffsetCheckpoint)

    /// Whether the request that creates an upload may carry the whole file, which is small: ``CreationWithBytes``.
    ///
    /// - Throws: ``UploadError``; `CancellationError`.
    func createsWithBytes(_ order: UploadOrder, _ checkpoint: OffsetCheckpoint) async throws -> Bool

    /// Creates an upload with a request that carries the whole file, and sets `url`. Passes each byte to `digest`.
    func create(
        carrying order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, past digest: SentDigest,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> CreationResult

    /// Whether a person gave the upload's own address: then it is never created.
    func isGiven(_ order: UploadOrder) -> Bool

    /// The error of such an upload that is lost for this reason.
    func lostGiven(_ order: UploadOrder, _ reason: String) -> UploadError

    /// Whether the checkpoint was made with the server that is configured now, as far as it shows.
    func isOurs(_ checkpoint: OffsetCheckpoint) -> Bool

    /// The reason why no request may go to the upload of a checkpoint until a person has allowed it; `nil` for none.
    func objection(to checkpoint: OffsetCheckpoint) -> UploadError?

    /// Queries the remote's offset. Follows a permanent redirect and keeps the new address in the checkpoint.
    func locate(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Position

    /// How many of the remaining `count` bytes one request may carry.
    func allowance(for count: Int64) -> Int64

    /// Whether the remote has refused a request with bytes for its method: then one carries at most
    /// ``Contradiction/probe`` bytes, until the remote accepts one.
    func isProbing(_ checkpoint: OffsetCheckpoint) -> Bool

    /// In bytes: every request except the last ends at a multiple of it.
    var alignment: Int64 { get }

    /// Every request except the last carries at least this many bytes.
    var minRequest: Int64 { get }

    /// ``RequestPermit/reserve(for:)``, for a request that has to carry more than its ``allowance(for:)``.
    func reserve(for count: Int64) async -> Shortage?
    /// ``RequestPermit/returnReservation(for:sent:)``.
    func returnReservation(for count: Int64, sent: Int64)

    /// Sends bytes `range.lowerBound..<range.upperBound` of the file, and passes each of them to `digest`.
    func send(
        _ range: Range<Int64>, _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, past digest: SentDigest,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> SendResult

    /// The checkpoint of the object to remove at the remote when an upload starts again; `nil` for none.
    func remains(of checkpoint: OffsetCheckpoint) -> OffsetCheckpoint?

    /// Whether the account lists its uploads with their addresses, so that another user of the account may send to one
    /// of ours.
    var isListed: Bool { get }

    /// The remote's name for an upload that was created, and the address where a person finds it; `nil` where that is
    /// known only at the end, or is a secret.
    func name(of checkpoint: OffsetCheckpoint) -> (id: String, url: String?)?

    /// Whether an upload with every byte is complete. Otherwise it is complete only when the remote says so, and
    /// ``conclude(_:_:_:)`` completes it.
    func isWhole(_ checkpoint: OffsetCheckpoint) -> Bool

    /// Whether a last request is needed when the remote has every byte: ``conclude(_:_:_:)``.
    var concludes: Bool { get }

    /// Sends that last request. After a crash it is called again with the checkpoint that was recorded last, without
    /// asking for the offset.
    ///
    /// - Throws: ``UploadError``, with ``Remedy/pending(after:)`` while the remote works; `CancellationError`; errors
    ///   of `reporter`.
    func conclude(
        _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> Conclusion

    /// Whether the remote answers as itself at another address than the upload's. This distinguishes a lost upload from
    /// a proxy that lost its backend.
    func isThere() async throws -> Bool

    /// Whether the upload is a section of a file, which the remote joins with others later. Its end completes no file,
    /// and a lost section is sent again. The caller checks the staged copy, and sends the file as one upload if the
    /// remote refuses the section.
    var isSection: Bool { get }

    /// Makes a failure that the engine found, in this destination's name.
    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure
}

extension OffsetDialect {
    func repeatsCreation(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Bool { false }
    func forgetCreation(_ checkpoint: inout OffsetCheckpoint) {}
    func createsWithBytes(_ order: UploadOrder, _ checkpoint: OffsetCheckpoint) async throws -> Bool { false }
    func create(
        carrying order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, past digest: SentDigest,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> CreationResult {
        CreationResult(answer: .declined, delivery: DeliveryBounds(atLeast: 0, atMost: 0))
    }
    func isGiven(_ order: UploadOrder) -> Bool { false }
    func lostGiven(_ order: UploadOrder, _ reason: String) -> UploadError {
        error(.protocol, .uploadLost, reason, .failUpload)
    }
    func objection(to checkpoint: OffsetCheckpoint) -> UploadError? { nil }
    func remains(of checkpoint: OffsetCheckpoint) -> OffsetCheckpoint? { nil }
    func name(of checkpoint: OffsetCheckpoint) -> (id: String, url: String?)? { nil }
    func isProbing(_ checkpoint: OffsetCheckpoint) -> Bool { false }
    var alignment: Int64 { 1 }
    var minRequest: Int64 { 0 }
    func reserve(for count: Int64) async -> Shortage? { nil }
    func returnReservation(for count: Int64, sent: Int64) {}
    func isWhole(_ checkpoint: OffsetCheckpoint) -> Bool { true }
    var isListed: Bool { false }
    var isSection: Bool { false }
    var concludes: Bool { false }
    func conclude(
        _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> Conclusion { .done(RemoteDescription()) }
}

extension OffsetDialect {
    /// The end of a request that begins at `offset` of a file of `size` bytes and carries at most `most`, except for
    /// the alignment.
    func end(from offset: Int64, of size: Int64, atMost most: Int64) -> Int64 {
        let allowed = offset + allowance(for: min(size - offset, most))
        let end = min(size, max(allowed, offset + min(minRequest, size - offset)))
        if end == size || alignment <= 1 { return end }
        let aligned = end / alignment * alignment
        return aligned > offset ? aligned : min(size, (offset / alignment + 1) * alignment)
    }

    /// The fewest bytes that a request at `offset` has to carry; 0 where any number will do.
    func leastRequest(from offset: Int64, of size: Int64) -> Int64 {
        if minRequest == 0 && alignment <= 1 { return 0 }
        let aligned = alignment <= 1 ? 0 : (offset / alignment + 1) * alignment - offset
        return min(size - offset, max(minRequest, aligned))
    }

    /// Makes an error that the engine found, in this destination's name.
    func error(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, _ remedy: Remedy) -> UploadError {
        UploadError(failure(kind, code, message, retryable: true), remedy: remedy)
    }
}

/// The remote's result for a file.
struct RemoteDescription: Sendable {
    /// As in ``RemoteObject``.
    var id: String?
    var url: String?
    /// A stronger proof than the offset; `nil` when the offset is the only one.
    var verifiedBy: String?
    var warnings: [String] = []
}

enum Conclusion: Sendable {
    case done(RemoteDescription)
    /// The remote says that it lacks bytes, regardless of the offset that it named. When that offset is still the end
    /// of the file, `error` is thrown.
    case incomplete(UploadError)
    /// The remote has received the bytes and does not keep them. The upload starts again when `error` is over.
    case rejected(UploadError)
    /// The remote does not find bytes that it had accepted. Only a person has the file sent again, after one more
    /// question.
    case missing(UploadError)
}

/// The remote's answer about the state of an upload.
enum Position: Sendable {
    case at(Int64)
    /// The upload no longer exists. `isCertain` when the remote itself said so, and no proxy in front of it could have.
    case gone(isCertain: Bool)
    /// The address belongs to something else than our file.
    case foreign(String)
    /// An answer that may be a temporary fault; after several of them the upload counts as gone.
    case doubtful(UploadError)
}

/// The result of one request with bytes.
struct SendResult: Sendable {
    enum Answer: Sendable {
        /// The new offset; `nil` when the remote did not name it.
        case accepted(Int64?)
        /// Unclear until the remote's offset was queried. If that has not changed, bytes may be sent again
        /// `again` times, and then `error` is thrown.
        case status(UploadError, again: Int)
        /// Too many bytes for one request.
        case tooMuch(UploadError)
        /// The remote found the bytes damaged.
        case damaged(UploadError)
        /// An ``UploadError`` or `CancellationError`; it ends the attempt.
        case failed(any Error)
    }

    var answer: Answer
    /// Bytes of the range that the socket accepted.
    var bytesSent: Int64
    /// How many of those bytes have left.
    var delivery: DeliveryBounds
    /// The unsuccessful answer is about where the upload stands (another offset, a lock), and says nothing about the
    /// file.
    var isAboutOffset = false
    /// The answer's text says that the upload was finished before, or that the bytes have the wrong offset.
    var mentionsOffset = false
    /// The remote marks the answer as its final one to the whole upload, which a refusal then ends.
    var isFinal = false

    init(_ answer: Answer, _ carried: AuthorizedClient.Carried, isOfState: Bool = false, mentionsOffset: Bool = false) {
        self.answer = answer
        self.mentionsOffset = mentionsOffset
        bytesSent = carried.bytesSent
        delivery = carried.delivery
        self.isAboutOffset = isOfState
    }

    /// The remote's error, if the request was no success.
    var error: UploadError? {
        switch answer {
        case .accepted: nil
        case .status(let error, _), .tooMuch(let error), .damaged(let error): error
        case .failed(let error): error as? UploadError
        }
    }

    /// Whether the request was refused because the upload stands at another offset (tus 1.0.0, `PATCH`: 409). Then none
    /// of its bytes were accepted.
    var isConflict: Bool {
        if case .status(let error, _) = answer { error.failure.http == 409 } else { false }
    }

    /// Makes the result for a request without a readable answer.
    init(_ carried: AuthorizedClient.Carried) {
        let error: any Error = if case .failure(let error) = carried.result { error } else { CancellationError() }
        self.init(.failed(error), carried)
    }

    /// Makes the result for a request that was not sent.
    init(unsent answer: Answer) { self.init(answer, AuthorizedClient.Carried(unsent: CancellationError())) }
}
