internal import Core
internal import Transport

/// How one kind of remote that takes a file in numbered parts is spoken to. A value; the progress is in the checkpoint and in
/// the parts that were taken.
///
/// Of the checkpoint, every field that is not ``PartsRun``'s belongs to the dialect.
protocol PartsDialect: Sendable {
    /// Whether the upload has to be begun with a request. If so an answer that is lost leaves an orphan.
    var opensByRequest: Bool { get }
    /// Whether the remote is told with a request that all parts are there.
    var completesByRequest: Bool { get }
    /// Whether a part that comes again replaces itself. If not, one whose fate is unknown ends the upload at the remote.
    var repeatsSafely: Bool { get }
    /// Whether the last part may have an end of its own, so that it goes when all others are acknowledged.
    var lastGoesAlone: Bool { get }
    /// Whether an answer may give the upload another name, so that the first part goes alone.
    var mayRename: Bool { get }
    /// Whether the remote compares what it got with the digest of the whole file. If not, the digest of the staged copy is made
    /// once more, as its parts leave, before the last one does or the remote makes a file of them.
    var comparesContent: Bool { get }
    var inquiry: PartsInquiry { get }
    /// When it is asked what it has, it can only say which parts, and nothing of what is in them: the answer to the request that makes the
    /// file whole decides then.
    var onlyCounts: Bool { get }
    /// The upload has a name that was made for it alone: a part that did not leave here is another writer's.
    var hasOwnName: Bool { get }
    /// Whether that is so for a file that is cut like this. If not, its last part is the end.
    func endsByRequest(_ plan: PartPlan) -> Bool
    /// Its fields of the checkpoint that stay when the upload begins anew.
    var lasting: [String] { get }

    /// How a new upload of this file is cut.
    ///
    /// - Throws: ``UploadError`` for a file that cannot be sent like this.
    func plan(_ order: UploadOrder) throws -> PartPlan

    /// Sets aside what a part of so many bytes takes, and gives back what it did not take: ``Transporting/pledge(for:)``.
    func pledge(for count: Int64) -> Shortage?
    func returnPledge(for count: Int64, sent: Int64)

    /// Settles what the file is to be called there. By questions alone: whatever becomes of them, nothing is left at the remote.
    ///
    /// - Parameter restarts: So many times it was begun before, for whatever reason: another name is to be chosen each time.
    /// - Returns: What the remote holds already, so that nothing is to be sent; else `nil`.
    /// - Throws: ``UploadError``; `CancellationError`.
    func settle(
        _ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout Checkpoint, restarts: Int64
    ) async throws -> RemoteObject?

    /// Asks for a place for the file, without a byte of it, and sets what later requests need.
    ///
    /// - Throws: ``UploadError``; `CancellationError`.
    func begin(_ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout Checkpoint) async throws

    /// What the remote will call the file of an upload that was begun, and where a person finds it; `nil` where that is not known.
    func name(of checkpoint: Checkpoint) -> (id: String, url: String?)?

    /// Whether the checkpoint was made with the server that is configured now.
    func isOurs(_ checkpoint: Checkpoint) -> Bool

    /// Asks which of these parts the remote holds as they are; where it gives a list, all that it holds.
    func held(among indices: [Int], _ piece: PartsPiece) async throws -> HeldParts

    /// Whether a part that the remote says to hold, and that nobody here knows to have been acknowledged, is what was to be sent.
    ///
    /// - Throws: ``UploadError``; `CancellationError`.
    func vouches(for part: TakenPart, _ place: PartPlan.Part, _ piece: PartsPiece) async throws -> Bool

    /// Whether two tags are of the same part; empty ones are not asked about.
    func isSame(_ mine: String, _ theirs: String) -> Bool

    func send(
        _ part: PartPlan.Part, _ piece: PartsPiece, _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> PartSending

    /// Every part is acknowledged: makes a file of them. May be called again when its answer was lost.
    func complete(_ parts: [TakenPart], _ piece: PartsPiece) async -> PartsCompletion

    /// Looks whether what was begun may be gone on with.
    ///
    /// - Parameter isPerhapsThere: Only the answer that the file is there may have been lost.
    func resumption(_ piece: PartsPiece, isPerhapsThere: Bool) async throws -> PartsResumption

    /// Looks for the whole file, after an answer was lost that may have said that it is there.
    ///
    /// - Returns: `nil` when it is not there, or nobody can tell.
    func found(_ piece: PartsPiece) async throws -> RemoteObject?

    /// Whether the remote, asked under the file's own name, says that nothing is there.
    ///
    /// - Returns: `false` where nobody can tell, too.
    func isAbsent(_ piece: PartsPiece) async throws -> Bool

    /// Whether what was begun can be removed at the remote.
    var canAbort: Bool { get }

    /// Gives the remote's room back. "Not there" is success.
    ///
    /// - Returns: `false` when the remote offers no removal.
    func abort(_ checkpoint: Checkpoint) async throws -> Bool

    /// A failure that the engine found, in this destination's name.
    func failure(_ kind: Failure.Class, _ code: String, _ message: String, retryable: Bool) -> Failure
}

extension PartsDialect {
    /// A list that the remote gives is held against what may have left.
    var tracksReach: Bool {
        if case .none = inquiry { false } else { onlyCounts && hasOwnName }
    }

    /// An error that the engine found, in this destination's name.
    func error(_ kind: Failure.Class, _ code: String, _ message: String, _ remedy: Remedy) -> UploadError {
        UploadError(failure(kind, code, message, retryable: true), remedy: remedy)
    }

    var lasting: [String] { [] }
    var onlyCounts: Bool { false }
    var hasOwnName: Bool { false }

    func endsByRequest(_ plan: PartPlan) -> Bool { completesByRequest }

    /// Another upload of the same file may have the same name, and the remote make a file of it without being told to.
    func sharesName(_ plan: PartPlan) -> Bool {
        onlyCounts && !hasOwnName && inquiry != .none && !endsByRequest(plan)
    }
    func isAbsent(_ piece: PartsPiece) async throws -> Bool { false }
    func name(of checkpoint: Checkpoint) -> (id: String, url: String?)? { nil }

    func settle(
        _ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout Checkpoint, restarts: Int64
    ) async throws -> RemoteObject? { nil }

    func vouches(for part: TakenPart, _ place: PartPlan.Part, _ piece: PartsPiece) async throws -> Bool { true }

    func isSame(_ mine: String, _ theirs: String) -> Bool { mine == theirs }

    func resumption(_ piece: PartsPiece, isPerhapsThere: Bool) async throws -> PartsResumption {
        if isPerhapsThere, let object = try await found(piece) { return .finished(object) }
        return .goesOn
    }
}

/// What a request is about.
struct PartsPiece: Sendable {
    let order: UploadOrder
    let plan: PartPlan
    let checkpoint: Checkpoint
    /// The first part to be sent since an upload was taken up again of which the remote has some.
    var resumes = false
}

/// What becomes of an upload that was begun.
enum PartsResumption: Sendable {
    case goesOn
    case finished(RemoteObject)
    /// It has to begin anew, for this reason.
    case lost(String)
}

/// How a remote can be asked which parts it holds.
enum PartsInquiry: Sendable {
    /// Not at all: what it has acknowledged is believed.
    case none
    /// For all of them at once.
    case list
    /// For each part with a request.
    case each
}

enum HeldParts: Sendable {
    case parts([TakenPart])
    /// This server cannot be asked after all: what it has acknowledged is believed.
    case unknown
    /// The remote does not know the upload.
    case gone(UploadError)
}

/// How the sending of one part ended.
struct PartSending: Sendable {
    enum Answer: Sendable {
        /// - `finished`: what the remote says of the whole file, if it does.
        /// - `changes`: fields of the checkpoint that later requests are to be made with.
        case taken(TakenPart, finished: RemoteObject?, changes: [String: String])
        /// The remote does not know the upload, or not any more.
        case gone(UploadError)
        /// The remote wants to have it from the beginning.
        case startOver(UploadError)
        /// The remote found the part damaged.
        case damaged(UploadError)
        /// An ``UploadError`` or `CancellationError`: ends the attempt.
        case failed(any Error)
    }

    var answer: Answer
    /// Bytes of the part that the socket took.
    var bytesSent: Int64
    /// How much of the part has left.
    var delivery: Delivery
    /// Whether the remote cannot have the part: nothing of it left, or it was refused.
    var isRefused: Bool
    /// The remote has compared the part with a digest that was made while the file was staged: what rotted since would not have
    /// been taken.
    var isProven: Bool
    /// The body of the answer refuses the part, whatever its status.
    var saysNo = false

    init(_ answer: Answer, bytesSent: Int64, isRefused: Bool = false, isProven: Bool = false) {
        self.isProven = isProven
        self.answer = answer
        self.bytesSent = bytesSent
        delivery = Delivery(atLeast: 0, atMost: bytesSent)
        self.isRefused = isRefused
    }

    /// A request that ended without an answer.
    init(unanswered carried: Asking.Carried, _ part: PartPlan.Part) {
        let error: any Error = if case .failure(let error) = carried.result { error } else { CancellationError() }
        let isUnheard = (error as? UploadError)?.leavesNothingBehind ?? false
        // Of an empty part nothing has to leave.
        let isUnsent = part.length > 0 && carried.delivery.atMost == 0
        self.init(.failed(error), bytesSent: carried.bytesSent, isRefused: isUnheard || isUnsent)
        delivery = carried.delivery
    }
}

/// How the wish for a whole file ended.
enum PartsCompletion: Sendable {
    case done(RemoteObject)
    /// The remote does not make a file of its parts.
    ///
    /// - `isListed`: Its list says that it lacks these, or has others than were sent. If not they are a guess: the list agrees with what was
    ///   acknowledged, or there is none.
    case missing([Int], isListed: Bool, UploadError)
    case gone(UploadError)
    case startOver(UploadError)
    /// Every part is there, and the remote has not said that the file is.
    case unconfirmed(UploadError)
    case failed(any Error)
}
