internal import Core
internal import Transport

/// The protocol of one kind of remote that takes a file in numbered parts. A value; the progress is in the checkpoint
/// and in the acknowledged parts.
///
/// The dialect's own fields of the checkpoint are in a type of its own.
protocol PartsDialect: Sendable {
    /// Whether the upload is created with a request. If so, a lost answer leaves an orphan.
    var opensByRequest: Bool { get }
    /// Whether a request tells the remote that all parts were sent.
    var completesByRequest: Bool { get }
    /// Whether a part that is sent again replaces itself. If not, a part with an unknown outcome ends the upload at the
    /// remote.
    var repeatsSafely: Bool { get }
    /// Whether the last part may have an end of its own, so that it is sent only when all others are acknowledged.
    var lastGoesAlone: Bool { get }
    /// Whether an answer may give the upload another name, so that the first part is sent alone.
    var mayRename: Bool { get }
    /// Whether the remote compares the received content with the digest of the whole file. If not, the digest of the
    /// staged copy is computed again as its parts leave, before the last part leaves or the remote assembles the file.
    var comparesContent: Bool { get }
    var inquiry: PartsInquiry { get }
    /// Whether the remote can only say which parts it has, and nothing about their content. Then the answer to the
    /// request that completes the file decides.
    var onlyCounts: Bool { get }
    /// Whether the upload has a name that was made for it alone: then a part that did not leave here is another
    /// writer's.
    var hasOwnName: Bool { get }
    /// Whether a file that is cut like this ends with a request. If not, its last part is the end.
    func endsByRequest(_ plan: PartPlan) -> Bool
    /// The names of its fields of the checkpoint that stay when the upload starts again.
    var lasting: [String] { get }

    /// How a new upload of this file is cut into parts.
    ///
    /// - Throws: ``UploadError`` for a file that cannot be sent like this.
    func plan(_ order: UploadOrder) throws -> PartPlan

    /// The configuration key that makes parts of this size smaller; `nil` where they cannot be smaller.
    func sizeKey(ofPart length: Int64) -> String?
    /// The remote accepted a part of this size.
    func accepted(_ length: Int64)
    /// The connection has cut parts of this size repeatedly.
    func cut(_ length: Int64)

    /// The same dialect for one upload of a bundle, whose account its requests are charged to.
    func charging(upload id: String) -> Self

    /// Reserves the quota for a part of this size; ``returnReservation(for:sent:)`` gives back the rest. See
    /// ``RequestPermit/reserve(for:)``.
    func reserve(for count: Int64) async -> Shortage?
    func returnReservation(for count: Int64, sent: Int64)

    /// Chooses the file's name at the remote. Makes only queries: it leaves nothing at the remote, regardless of the
    /// outcome.
    ///
    /// - Parameter restarts: How often the upload was begun before, for any reason: each time needs another name.
    /// - Returns: The remote's object, if it already has the file and nothing has to be sent; otherwise `nil`.
    /// - Throws: ``UploadError``; `CancellationError`.
    func chooseName(
        _ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout PartsCheckpoint, restarts: Int64
    ) async throws -> RemoteObject?

    /// Creates an upload for the file, without sending bytes, and sets the fields that later requests need.
    ///
    /// - Throws: ``UploadError``; `CancellationError`.
    func begin(_ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout PartsCheckpoint) async throws

    /// The remote's future name for the file of an upload that was begun, and the address where a person finds it;
    /// `nil` where that is unknown.
    func name(of checkpoint: PartsCheckpoint) -> (id: String, url: String?)?

    /// Whether the checkpoint was made with the server that is configured now.
    func isOurs(_ checkpoint: PartsCheckpoint) -> Bool

    /// Queries which of these parts the remote has unchanged. If it gives a list, returns all that it has.
    func held(among indices: [Int], _ piece: PartsContext) async throws -> RemoteParts

    /// Whether a part that the remote says it holds, and for which there is no acknowledgement here, has the content
    /// that was to be sent.
    ///
    /// - Throws: ``UploadError``; `CancellationError`.
    func confirmsContent(for part: AcknowledgedPart, _ place: PartPlan.Part, _ piece: PartsContext) async throws -> Bool

    /// Whether two tags belong to the same part. Not called with empty tags.
    func isSame(_ mine: String, _ theirs: String) -> Bool

    func send(
        _ part: PartPlan.Part, _ piece: PartsContext, _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> PartSendResult

    /// Completes the file when every part is acknowledged. May be called again when its answer was lost.
    func complete(_ parts: [AcknowledgedPart], _ piece: PartsContext) async -> PartsCompletion

    /// Queries whether a started upload can be continued.
    ///
    /// - Parameter isPerhapsThere: Perhaps the file is complete, and only the answer was lost.
    func resumption(_ piece: PartsContext, isPerhapsThere: Bool) async throws -> PartsResumption

    /// Looks for the whole file, after the loss of an answer that may have reported it.
    ///
    /// - Returns: `nil` if it does not exist, or if the remote cannot report it.
    func found(_ piece: PartsContext) async throws -> RemoteObject?

    /// Whether the remote reports that nothing exists under the file's own name.
    ///
    /// - Returns: `false` also if the remote cannot report it.
    func isAbsent(_ piece: PartsContext) async throws -> Bool

    /// Whether an unfinished upload can be removed at the remote.
    var canAbort: Bool { get }

    /// Removes an unfinished upload at the remote. A missing object is success.
    ///
    /// - Returns: `false` when the remote offers no removal.
    func abort(_ checkpoint: PartsCheckpoint) async throws -> Bool

    /// Makes a failure that the engine found, in this destination's name.
    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure
}

extension PartsDialect {
    /// Whether a list from the remote is compared with the parts that may have left.
    var tracksReach: Bool {
        if case .none = inquiry { false } else { onlyCounts && hasOwnName }
    }

    /// Makes an error that the engine found, in this destination's name.
    func error(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, _ remedy: Remedy) -> UploadError {
        UploadError(failure(kind, code, message, retryable: true), remedy: remedy)
    }

    func sizeKey(ofPart length: Int64) -> String? { nil }
    func accepted(_ length: Int64) {}
    func cut(_ length: Int64) {}
    var lasting: [String] { [] }
    var onlyCounts: Bool { false }
    var hasOwnName: Bool { false }

    func endsByRequest(_ plan: PartPlan) -> Bool { completesByRequest }

    /// Whether another upload of the same file may have the same name, and the remote may complete the file without a
    /// request.
    func sharesName(_ plan: PartPlan) -> Bool {
        onlyCounts && !hasOwnName && inquiry != .none && !endsByRequest(plan)
    }
    func isAbsent(_ piece: PartsContext) async throws -> Bool { false }
    func name(of checkpoint: PartsCheckpoint) -> (id: String, url: String?)? { nil }

    func chooseName(
        _ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout PartsCheckpoint, restarts: Int64
    ) async throws -> RemoteObject? { nil }

    func confirmsContent(for part: AcknowledgedPart, _ place: PartPlan.Part, _ piece: PartsContext) async throws -> Bool
    { true }

    func isSame(_ mine: String, _ theirs: String) -> Bool { mine == theirs }

    func resumption(_ piece: PartsContext, isPerhapsThere: Bool) async throws -> PartsResumption {
        if isPerhapsThere, let object = try await found(piece) { return .finished(object) }
        return .goesOn
    }
}

/// The subject of a request: the file, its plan and the checkpoint.
struct PartsContext: Sendable {
    let order: UploadOrder
    let plan: PartPlan
    let checkpoint: PartsCheckpoint
    /// Set for the first part that is sent after an upload was continued, if the remote has some of its parts.
    var resumes = false
}

/// Whether an upload that was begun can be continued.
enum PartsResumption: Sendable {
    case goesOn
    case finished(RemoteObject)
    /// The upload has to start again, for this reason.
    case lost(String)
}

/// How to query which parts a remote has.
enum PartsInquiry: Sendable {
    /// The remote has no such query: its acknowledgements are trusted.
    case none
    /// One request returns all of them.
    case list
    /// One request for each part.
    case each
}

enum RemoteParts: Sendable {
    case parts([AcknowledgedPart])
    /// This server has no such query after all: its acknowledgements are trusted.
    case unknown
    /// The remote does not know the upload.
    case gone(UploadError)
}

/// The result of sending one part.
struct PartSendResult: Sendable {
    enum Answer: Sendable {
        /// - `finished`: the remote's description of the whole file, if the answer contains one.
        /// - `changes`: fields of the checkpoint with other values for later requests.
        case accepted(AcknowledgedPart, finished: RemoteObject?, changes: Checkpoint = Checkpoint())
        /// The remote does not know the upload, or no longer does.
        case gone(UploadError)
        /// The remote requires the upload from the beginning.
        ///
        /// - `changes`: fields of the checkpoint that stay.
        case startOver(
            UploadError, cause: PartsUpload.RenewalCause = .remote, changes: Checkpoint = Checkpoint())
        /// The remote found the part damaged.
        case damaged(UploadError)
        /// An ``UploadError`` or `CancellationError`; it ends the attempt.
        case failed(any Error)
    }

    var answer: Answer
    /// Bytes of the part that the socket accepted.
    var bytesSent: Int64
    /// How much of the part has left.
    var delivery: DeliveryBounds
    /// Whether the remote cannot have the part, because nothing of it left or because it was refused.
    var isRefused: Bool
    /// The remote has compared the part with a digest that was computed during staging: it would not have accepted
    /// bytes that have rotted since.
    var isProven: Bool
    /// The connection ended without an answer.
    var isUnanswered = false
    /// The body of the answer refuses the part, regardless of its status.
    var refusesInBody = false

    init(_ answer: Answer, bytesSent: Int64, isRefused: Bool = false, isProven: Bool = false) {
        self.isProven = isProven
        self.answer = answer
        self.bytesSent = bytesSent
        delivery = DeliveryBounds(atLeast: 0, atMost: bytesSent)
        self.isRefused = isRefused
    }

    /// Makes the result for a request that ended without an answer.
    init(unanswered carried: AuthorizedClient.Carried, _ part: PartPlan.Part) {
        let error: any Error = if case .failure(let error) = carried.result { error } else { CancellationError() }
        let leftNothing = (error as? UploadError)?.leavesNothingBehind ?? false
        // An empty part arrives without a byte leaving.
        let isUnsent = part.length > 0 && carried.delivery.atMost == 0
        self.init(.failed(error), bytesSent: carried.bytesSent, isRefused: leftNothing || isUnsent)
        delivery = carried.delivery
        isUnanswered = error is UploadError && !leftNothing
    }
}

/// The result of the request to complete the file.
enum PartsCompletion: Sendable {
    case done(RemoteObject)
    /// The remote does not assemble the file.
    ///
    /// - `isListed`: The remote's list says that it lacks these parts, or has others than were sent. Otherwise they are
    ///   a guess: the list agrees with the acknowledgements, or there is no list.
    case missing([Int], isListed: Bool, UploadError)
    case gone(UploadError)
    /// The same as in ``PartSendResult/Answer``.
    case startOver(UploadError, cause: PartsUpload.RenewalCause = .remote, changes: Checkpoint = Checkpoint())
    /// The remote has every part, and has not reported the complete file.
    case unconfirmed(UploadError)
    case failed(any Error)
}
