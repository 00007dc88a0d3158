/// Everything a destination needs to go on after a crash: the remote's own name for the upload, and how far it got.
///
/// Fields are the dialect's business (`url`, `offset`, `reach` …). Stored before the step that depends on it.
///
/// One without fields says that nothing was begun: nothing is at the remote, and nothing is removed there after a cancel.
package struct Checkpoint: Hashable, Sendable, Codable {
    package var fields: [String: String]

    package init(_ fields: [String: String] = [:]) { self.fields = fields }

    /// Set for ``Destination/discard(_:)`` when the upload had been verified before it was cancelled.
    package static let isFinished = "finished"
    /// Set when the remote has more of what it names than may have left here: another writer sends there, and it is never removed.
    package static let isOfAnother = "of_another"
    /// What the remote called a file that it had and did not find any more: shown until there is another name, and never that of what is
    /// complete.
    package static let perhapsTwice = "perhaps_twice"

    package subscript(field: String) -> String? {
        get { fields[field] }
        set { fields[field] = newValue }
    }
}

/// The bytes of an upload, whole and durable: a copy in the staging folder, or a source that is uploaded in place.
package struct StagedFile: Hashable, Sendable {
    package var place: FilePlace
    /// Bytes.
    package var size: Int64
    /// SHA-256 of the content, 32 bytes.
    package var sha256: [UInt8]
    /// What is known of its parts.
    package var parts: PartDigests

    /// Of a file of our own.
    package init(path: FilePath, size: Int64, sha256: [UInt8], parts: PartDigests = PartDigests()) {
        self.init(place: .path(path), size: size, sha256: sha256, parts: parts)
    }

    package init(place: FilePlace, size: Int64, sha256: [UInt8], parts: PartDigests = PartDigests()) {
        self.place = place
        self.size = size
        self.sha256 = sha256
        self.parts = parts
    }
}

/// What a destination is asked to upload. A value: progress is in the checkpoint.
package struct UploadOrder: Sendable {
    /// The upload's own id, stable over restarts; sent along so that a server can tell a repeat from a new upload.
    package var id: String
    /// Counts `retry`s by a person, from 1.
    package var generation: Int
    package var file: StagedFile
    /// The name at the remote, with `/` between folders, as bytes.
    package var name: FilePath
    /// MIME type, `application/octet-stream` when unknown.
    package var mediaType: String
    /// The source's mtime in nanoseconds since 1970.
    package var modified: Int64
    /// From the folder's templates.
    package var metadata: [String: String]
    /// What the store holds from an earlier attempt; `nil` for the first.
    package var checkpoint: Checkpoint?
    /// Where this upload is to be created, in place of the destination's own address; of the same origin.
    package var url: String?
    /// The source is deleted or moved away when this upload is complete: the remote should be able to use what it holds by then.
    package var removesSource = false

    package init(
        id: String, generation: Int, file: StagedFile, name: FilePath, mediaType: String, modified: Int64,
        metadata: [String: String], checkpoint: Checkpoint?, url: String? = nil, removesSource: Bool = false
    ) {
        self.url = url
        self.removesSource = removesSource
        self.id = id
        self.generation = generation
        self.file = file
        self.name = name
        self.mediaType = mediaType
        self.modified = modified
        self.metadata = metadata
        self.checkpoint = checkpoint
    }
}

/// What the remote holds in the end, verified.
package struct RemoteObject: Hashable, Sendable, Codable {
    /// The remote's own name for it, if it has one that is no secret.
    package var id: String?
    /// Where a person finds it; no secret. `nil` when the address itself is a capability.
    package var url: String?
    /// How it was verified: `offset`, `digest`, `checksum` …
    package var verifiedBy: String
    /// What went wrong without harm, for the person.
    package var warnings: [String]

    package init(id: String?, url: String?, verifiedBy: String, warnings: [String] = []) {
        self.id = id
        self.url = url
        self.verifiedBy = verifiedBy
        self.warnings = warnings
    }
}

/// A file that travels with another one, and where it stands at the same destination.
package struct Companion: Hashable, Sendable {
    /// MIME type.
    package var mediaType: String
    package var state: UploadState
    /// What the remote has of it, once it is complete.
    package var remote: RemoteObject?

    package init(mediaType: String, state: UploadState, remote: RemoteObject? = nil) {
        self.mediaType = mediaType
        self.state = state
        self.remote = remote
    }
}

/// Where an upload is within one attempt. Live, never stored.
package enum UploadPhase: String, Hashable, Sendable, Codable {
    case opening, uploading, finishing
}

/// The temporary right to send an upload was given anew, for the same upload.
package struct CredentialNews: Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable {
        /// The one before was about to end.
        case ending
        /// The remote took the one before no more.
        case refused
    }
    package var reason: Reason
    /// When the new one ends, where that is known.
    package var until: WallTime?

    package init(reason: Reason, until: WallTime? = nil) {
        self.reason = reason
        self.until = until
    }
}

/// How a destination tells what happens while it works. The daemon makes it durable.
package protocol UploadNotes: AnyObject, Sendable {
    /// Stores the checkpoint. **Durable when it returns**: call it before the step that depends on it.
    func record(_ checkpoint: Checkpoint) async throws
    /// The server confirmed the bytes below `offset`; stored with the checkpoint. May be lower than before.
    func accepted(_ offset: Int64, _ checkpoint: Checkpoint) async throws
    /// The parts that the server has acknowledged since the upload was begun, in their order.
    func parts() async throws -> [TakenPart]
    /// The server confirmed these parts, and has those in `lost` no more, by their indices. **Durable when it returns.**
    ///
    /// - Parameter acked: Bytes of all parts that it has now.
    func took(_ parts: [TakenPart], lost: [Int], acked: Int64) async throws
    /// The files that travel with this one to this destination, those of its own round first. When one of them is over, an
    /// upload that waits is tried again.
    func companions() async throws -> [Companion]
    /// The upload begins anew at the remote, and no part of it was taken. What `old` names there is removed behind it; `nil` when nothing is to be.
    /// **Durable when it returns**, both at once.
    func renewed(_ checkpoint: Checkpoint, leaving old: Checkpoint?) async throws
    /// What the remote calls this upload, where it says so before it is complete, and it is no secret; shown as ``RemoteObject/id`` will be.
    /// The same again writes nothing. ``renewed(_:leaving:)`` with a checkpoint in which it does not stand, and a checkpoint without fields, forget it: to be
    /// called behind them.
    ///
    /// - Parameter url: Where a person finds it, as ``RemoteObject/url``, if that is known by now.
    func named(_ id: String, at url: String?) async throws
    /// Whether the remote calls another upload to this destination so: what is looked for there may not be taken for this one's then.
    func isOfAnother(_ id: String) async throws -> Bool
    /// The right to send this upload was renewed at the remote. Told to people and hooks; whatever depends on it is in a checkpoint.
    func credential(_ news: CredentialNews) async throws
    /// Bytes of the file handed to the socket so far in this attempt's running request, as an offset in the file.
    /// Called often, from any thread; must be cheap.
    func sending(_ offset: Int64)
    /// Bytes that left for a destination with no socket of ours, for the ledger, which counts the others at their sockets.
    func spent(_ bytes: Int64)
    /// Bytes that came from such a destination, or are about to: its files are read back.
    func received(_ bytes: Int64)
    func entered(_ phase: UploadPhase)
    /// A person wants it to end behind what is on its way: to be asked before each further part or request with bytes of the file.
    /// What is on its way is waited for and written down, and then the attempt ends as a cancelled one does. When no byte is left to
    /// be sent it goes on to its end. May become `false` again. Cheap.
    var isToPause: Bool { get }
    /// The attempt is being stopped, and not since no byte may go any more: a last request may clear up behind it.
    var mayClearUp: Bool { get }
}

extension UploadNotes {
    /// As ``named(_:at:)``, of what has no address.
    package func named(_ id: String) async throws { try await named(id, at: nil) }
    package var mayClearUp: Bool { false }
    package func received(_ bytes: Int64) {}
    package func isOfAnother(_ id: String) async throws -> Bool { false }
}

/// ``UploadNotes`` for files that go together; each is named by the id of its order.
package protocol BundleNotes: AnyObject, Sendable {
    /// Stores the checkpoints. **Durable when it returns.**
    ///
    /// - Returns: Those that may go on; the others were cancelled meanwhile.
    func record(_ checkpoints: [String: Checkpoint]) async throws -> Set<String>
    /// Requests that are made in `body` are this upload's: without it nobody pays for them, and none goes.
    func paying<R>(for id: String, _ body: () async throws -> R) async rethrows -> R
    /// As ``UploadNotes/sending(_:)``.
    func sending(_ id: String, _ offset: Int64)
    /// As ``UploadNotes/spent(_:)``.
    func spent(_ id: String, _ bytes: Int64)
    /// As ``UploadNotes/received(_:)``.
    func received(_ id: String, _ bytes: Int64)
    func entered(_ phase: UploadPhase)
    /// As ``UploadNotes/isToPause``: a file that is not being sent yet is left out.
    func isToPause(_ id: String) -> Bool
}

extension BundleNotes {
    package func received(_ id: String, _ bytes: Int64) {}
}

/// One configured remote. A value with addresses and credentials and no progress.
package protocol Destination: Sendable {
    /// Where its bytes go first, for whoever has to know what they cost there.
    var site: DestinationSite { get }
    /// Takes the file to the remote and verifies it there. Goes on from `order.checkpoint` where there is one.
    ///
    /// Cancelling the task stops the running request at once (abortively) and throws `CancellationError`; the
    /// checkpoint that was recorded last is then good for the next call.
    ///
    /// - Throws: ``UploadError`` with the remedy; `CancellationError`; whatever `notes` throws, unchanged.
    func upload(_ order: UploadOrder, notes: any UploadNotes) async throws -> RemoteObject
    /// What it will say with each part of a file of `size` bytes, so that it is made while the file is read anyway.
    func wishes(forSize size: Int64) -> [PartDigests.Wish]
    /// The largest piece of a file of `size` bytes that goes whole or not at all, for a file that is not begun; `nil` where a request
    /// may end anywhere.
    ///
    /// - Parameter size: `nil`: of a file of any size that the settings are meant for.
    func uncutPiece(ofSize size: Int64?) -> UncutPiece?
    /// How many bytes its requests carry, where a larger one has failed; `nil` where none has.
    var requestSize: RequestSize? { get }
    /// Takes up what an earlier run has learned of the same remote.
    func recall(_ size: RequestSize)
    /// Which files it takes together; `nil` for none.
    var bundling: Bundling? { get }
    /// Takes small files that no attempt was made for to the remote, as one piece of work, and verifies them there.
    ///
    /// For the plain case, and no other: a file that is not in the answer is uploaded for itself, which finds out why.
    ///
    /// - Returns: What the remote holds, by the id of its order; when the task was cancelled, what it holds by then.
    /// - Throws: `CancellationError` when that is nothing; whatever `notes` throws, unchanged.
    func upload(together orders: [UploadOrder], notes: any BundleNotes) async throws -> [String: RemoteObject]
    /// Gives the remote's space back: removes what `checkpoint` names, finished or not. "Not there" is success.
    ///
    /// - Returns: `false` when the remote offers no removal, or not of what is finished (``Checkpoint/isFinished``).
    func discard(_ checkpoint: Checkpoint) async throws(UploadError) -> Bool
    /// Asks, without side effects, whether the remote already holds this very content under the order's name.
    ///
    /// For whoever has lost the record of what was sent: `sluice rebuild`.
    ///
    /// - Throws: ``UploadError`` when the remote cannot be asked now.
    func find(_ order: UploadOrder) async throws(UploadError) -> Finding
    /// Asks, without side effects, whether uploads would work: for `sluice check`.
    func check() async -> CheckResult
    /// What is against a request header of this name for one upload's requests; `nil` for nothing.
    func objection(toHeader name: String) -> String?
    /// What is against this address for the creation of one upload; `nil` for nothing.
    func objection(toURL url: String) -> String?
    /// Whether ``space()`` may have an answer.
    var tellsSpace: Bool { get }
    /// Asks what it holds, newest first, also what others brought: one page, without side effects.
    ///
    /// - Parameter mark: ``RemotePage/next`` of the page before; `nil` for the first.
    /// - Returns: `nil` when this kind of remote cannot be asked.
    func list(after mark: String?) async throws(UploadError) -> RemotePage?
    /// Asks for uploads that were begun there, by whomever, and are not whole; without side effects.
    ///
    /// - Returns: `nil` when this kind of remote cannot be asked.
    func unfinished() async throws(UploadError) -> [RemoteUnfinished]?
    /// Asks how much room there is, without side effects.
    ///
    /// - Returns: `nil` when the remote says nothing of it.
    /// - Throws: ``UploadError`` when the remote cannot be asked now, which is no reason not to send.
    func space() async throws(UploadError) -> RemoteSpace?
}

extension Destination {
    package func wishes(forSize size: Int64) -> [PartDigests.Wish] { [] }
    package func uncutPiece(ofSize size: Int64?) -> UncutPiece? { nil }
    package var requestSize: RequestSize? { nil }
    package func recall(_ size: RequestSize) {}
    package var bundling: Bundling? { nil }
    package func upload(
        together orders: [UploadOrder], notes: any BundleNotes
    ) async throws -> [String: RemoteObject] { [:] }
    package var tellsSpace: Bool { false }
    package func objection(toHeader name: String) -> String? { "it makes no requests that could have headers" }
    package func objection(toURL url: String) -> String? { "it creates no uploads at an address" }
    package func space() async throws(UploadError) -> RemoteSpace? { nil }
    package func list(after mark: String?) async throws(UploadError) -> RemotePage? { nil }
    package func unfinished() async throws(UploadError) -> [RemoteUnfinished]? { nil }
}

/// An upload that was begun at a remote and is not whole.
package struct RemoteUnfinished: Hashable, Sendable {
    /// The remote's own name for it.
    package var id: String
    /// What it is to become, as ``RemoteObject/id`` would have it.
    package var name: String
    package var begunAt: WallTime?
    /// For ``Destination/discard(_:)``.
    package var checkpoint: Checkpoint

    package init(id: String, name: String, begunAt: WallTime?, checkpoint: Checkpoint) {
        self.id = id
        self.name = name
        self.begunAt = begunAt
        self.checkpoint = checkpoint
    }
}

/// What a remote holds, one page of it.
package struct RemotePage: Hashable, Sendable {
    package struct Item: Hashable, Sendable {
        /// The remote's own name for it: ``RemoteObject/id``.
        package var id: String
        /// What a person calls it there.
        package var name: String?
        /// Where a person finds it.
        package var url: String?
        /// The remote's own word for how it stands.
        package var state: String?
        /// Bytes.
        package var size: Int64?
        package var createdAt: WallTime?

        package init(
            id: String, name: String? = nil, url: String? = nil, state: String? = nil, size: Int64? = nil,
            createdAt: WallTime? = nil
        ) {
            self.id = id
            self.name = name
            self.url = url
            self.state = state
            self.size = size
            self.createdAt = createdAt
        }
    }

    package var items: [Item]
    /// Where the next page begins; `nil` for the last.
    package var next: String?

    package init(items: [Item], next: String?) {
        self.items = items
        self.next = next
    }
}

/// What a remote says of a file that it may hold already.
package enum Finding: Hashable, Sendable {
    /// The same content under the same name, as its digest says.
    case held(RemoteObject)
    case absent
    /// This kind of remote cannot be asked; why, for a person.
    case unknown(String)
}

/// The answer of a check of one thing: `ok` with what was seen, or what is wrong and the remedy.
package struct CheckResult: Hashable, Sendable {
    package enum Verdict: String, Hashable, Sendable, Codable { case ok, warning, failed }
    package var verdict: Verdict
    package var detail: String
    /// What a destination said of its room.
    package var space: RemoteSpace?

    package init(_ verdict: Verdict, _ detail: String, space: RemoteSpace? = nil) {
        self.verdict = verdict
        self.detail = detail
        self.space = space
    }
}
