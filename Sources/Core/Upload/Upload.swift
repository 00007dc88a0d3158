/// The bytes of an upload, complete and durable: a copy in the staging folder, or a source that is uploaded in place.
package struct StagedFile: Hashable, Sendable {
    package var place: FilePlace
    /// Bytes.
    package var size: Int64
    /// SHA-256 of the content, 32 bytes.
    package var sha256: [UInt8]
    /// The known digests of its parts.
    package var parts: PartDigests

    /// Makes one from a file of our own.
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

/// The order for one upload, as it is given to a destination. A value: progress is in the checkpoint.
package struct UploadOrder: Sendable {
    /// The upload's own id, stable over restarts; sent along so that a server can distinguish a repeat from a new
    /// upload.
    package var id: String
    /// Number of `retry`s by a person, from 1.
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
    /// The stored checkpoint of an earlier attempt; `nil` for the first.
    package var checkpoint: Checkpoint?
    /// The address for creating this upload, in place of the destination's own; of the same origin.
    package var url: String?
    /// The source is deleted or moved when this upload is complete: the remote's object should be usable by then.
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

/// The remote's verified object for a finished upload.
package struct RemoteObject: Hashable, Sendable, Codable {
    /// The remote's own name for it, if there is one that is no secret.
    package var id: String?
    /// The address where a person finds it; no secret. `nil` when the address itself is a capability.
    package var url: String?
    /// How it was verified: `offset`, `digest`, `checksum` …
    package var verifiedBy: String
    /// Harmless problems on the way, for the person.
    package var warnings: [String]

    package init(id: String?, url: String?, verifiedBy: String, warnings: [String] = []) {
        self.id = id
        self.url = url
        self.verifiedBy = verifiedBy
        self.warnings = warnings
    }
}

/// A file that belongs to another one, and its state at the same destination.
package struct Companion: Hashable, Sendable {
    /// MIME type.
    package var mediaType: String
    package var state: UploadState
    /// The remote's object, once it is complete.
    package var remote: RemoteObject?

    package init(mediaType: String, state: UploadState, remote: RemoteObject? = nil) {
        self.mediaType = mediaType
        self.state = state
        self.remote = remote
    }
}

/// The step of an upload within one attempt. Live, never stored.
package enum UploadPhase: String, Hashable, Sendable, Codable {
    case opening, uploading, finishing
}

/// A renewal of the temporary right to send, for the same upload.
package struct CredentialRenewal: Hashable, Sendable {
    package enum Reason: String, Hashable, Sendable {
        /// The old right was about to end.
        case ending
        /// The remote no longer accepted the old right.
        case refused
    }
    package var reason: Reason
    /// When the new right ends, where that is known.
    package var until: WallTime?

    package init(reason: Reason, until: WallTime? = nil) {
        self.reason = reason
        self.until = until
    }
}

/// Callbacks by which a destination reports its progress. The daemon makes it durable.
package protocol UploadReporter: AnyObject, Sendable {
    /// Stores the checkpoint. **Durable when it returns**: call it before the step that depends on it.
    func record(_ checkpoint: Checkpoint) async throws
    /// The server confirmed the bytes below `offset`; stored with the checkpoint. May be lower than before.
    func accepted(_ offset: Int64, _ checkpoint: Checkpoint) async throws
    /// The parts that the server has acknowledged since the upload was begun, in their order.
    func parts() async throws -> [AcknowledgedPart]
    /// The server confirmed these parts, and no longer has the parts with the indices in `lost`. **Durable when it
    /// returns.**
    ///
    /// - Parameter acked: Bytes of all parts that it has now.
    func recordParts(_ parts: [AcknowledgedPart], lost: [Int], acked: Int64) async throws
    /// The files that belong to this one at this destination, those of its own round first. When one of them is over, a
    /// waiting upload is tried again.
    func companions() async throws -> [Companion]
    /// The upload starts again at the remote, and no part of it was accepted. The object that `old` names is removed
    /// later; `nil` when there is nothing to remove. **Durable when it returns**, both at once.
    func renewed(_ checkpoint: Checkpoint, leaving old: Checkpoint?) async throws
    /// Records the remote's name for this upload, where the remote gives one before the upload is complete and it is no
    /// secret. It is shown like ``RemoteObject/id``. Repeating the same name writes nothing. ``renewed(_:leaving:)``
    /// with a checkpoint that does not contain it, and a checkpoint without fields, forget it, so call this after them.
    ///
    /// - Parameter url: The address where a person finds it, like ``RemoteObject/url``, if it is known by now.
    func recordName(_ id: String, at url: String?) async throws
    /// Whether this is the remote's name for another upload to this destination: a found object with that name must not
    /// be taken for this upload's.
    func belongsToAnotherUpload(_ id: String) async throws -> Bool
    /// The right to send this upload was renewed at the remote. Reported to people and hooks; everything that depends
    /// on it is in a checkpoint.
    func credential(_ renewal: CredentialRenewal) async throws
    /// Bytes of the file that were passed to the socket in this attempt's running request, as an offset in the file.
    /// Called often, from any thread; must be cheap.
    func sending(_ offset: Int64)
    /// Bytes of the file that were passed to the socket in this attempt and that the remote does not have; they are sent
    /// again in this attempt. ``sending(_:)`` no longer counts them.
    func wasted(_ bytes: Int64) async throws
    /// Bytes that left for a destination without a socket of ours, for the ledger, which counts the others at their
    /// sockets.
    func spent(_ bytes: Int64)
    /// Bytes that came from such a destination, or will come: its files are read back.
    func received(_ bytes: Int64)
    func entered(_ phase: UploadPhase)
    /// Whether the attempt has to end after the requests in flight. Evaluated before each further part or request with
    /// bytes of the file. Requests in flight are awaited and recorded, and then the attempt ends as a cancelled one
    /// does. When no byte is left to be sent it continues to its end. May become `false` again. Cheap.
    var shouldPause: Bool { get }
    /// The attempt is being stopped, and not because sending is forbidden: a last request may clean up at the remote.
    var allowsCleanupRequest: Bool { get }
}

extension UploadReporter {
    /// Like ``recordName(_:at:)``, for an object without an address.
    package func recordName(_ id: String) async throws { try await recordName(id, at: nil) }
    package var allowsCleanupRequest: Bool { false }
    package func wasted(_ bytes: Int64) async throws {}
    package func received(_ bytes: Int64) {}
    package func belongsToAnotherUpload(_ id: String) async throws -> Bool { false }
}

/// ``UploadReporter`` for files that are sent together; each is named by the id of its order.
package protocol BundleReporter: AnyObject, Sendable {
    /// Stores the checkpoints. **Durable when it returns.**
    ///
    /// - Returns: The ids that may continue; the others were cancelled meanwhile.
    func record(_ checkpoints: [String: Checkpoint]) async throws -> Set<String>
    /// Like ``UploadReporter/sending(_:)``.
    func sending(_ id: String, _ offset: Int64)
    /// Like ``UploadReporter/spent(_:)``.
    func spent(_ id: String, _ bytes: Int64)
    /// Like ``UploadReporter/received(_:)``.
    func received(_ id: String, _ bytes: Int64)
    func entered(_ phase: UploadPhase)
    /// Like ``UploadReporter/shouldPause``: a file that is not being sent yet is left out.
    func shouldPause(_ id: String) -> Bool
}

extension BundleReporter {
    package func received(_ id: String, _ bytes: Int64) {}
}

/// An upload that was begun at a remote and is incomplete.
package struct RemoteUnfinished: Hashable, Sendable {
    /// The remote's own name for it.
    package var id: String
    /// The future name of its object, in the form of ``RemoteObject/id``.
    package var name: String
    package var begunAt: WallTime?
    /// The checkpoint for `Destination.discard`.
    package var checkpoint: Checkpoint

    package init(id: String, name: String, begunAt: WallTime?, checkpoint: Checkpoint) {
        self.id = id
        self.name = name
        self.begunAt = begunAt
        self.checkpoint = checkpoint
    }
}

/// One page of a remote's objects.
package struct RemotePage: Hashable, Sendable {
    package struct Item: Hashable, Sendable {
        /// The remote's own name for it: ``RemoteObject/id``.
        package var id: String
        /// The object's name there, for people.
        package var name: String?
        /// The address where a person finds it.
        package var url: String?
        /// The remote's own word for its state.
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
    /// The mark of the next page; `nil` on the last.
    package var next: String?

    package init(items: [Item], next: String?) {
        self.items = items
        self.next = next
    }
}

/// The remote's answer about a file that it may hold already.
package enum RemoteLookup: Hashable, Sendable {
    /// The same content under the same name, according to its digest.
    case found(RemoteObject)
    case absent
    /// This kind of remote has no such query; contains the reason, for a person.
    case unknown(String)
}

/// The result of a check of one thing: `ok` with the findings, or the problem and the remedy.
package struct CheckResult: Hashable, Sendable {
    package enum Verdict: String, Hashable, Sendable, Codable { case ok, warning, failed }
    package var verdict: Verdict
    package var detail: String
    /// The space that a destination reported.
    package var space: RemoteSpace?

    package init(_ verdict: Verdict, _ detail: String, space: RemoteSpace? = nil) {
        self.verdict = verdict
        self.detail = detail
        self.space = space
    }
}
