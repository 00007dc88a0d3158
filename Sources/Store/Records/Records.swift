package import Core

// The store's input and output: values, so that no statement leaves the module.

/// A settled file with the orders that follow from its folder's settings.
package struct NewAsset: Sendable, Hashable {
    /// One upload that is to be made.
    package struct PlannedUpload: Sendable, Hashable {
        package var destination: String
        package var name: FilePath
        package var mediaType: String
        package var key: String?
        package var context: [String: String]
        package var metadata: [String: String]
        /// Additional request headers, which may be secrets.
        package var headers: [String: String] = [:]
        /// The address where to create it, in place of the destination's own.
        package var url: String?

        package init(
            destination: String, name: FilePath, mediaType: String, key: String?, context: [String: String],
            metadata: [String: String]
        ) {
            self.destination = destination
            self.name = name
            self.mediaType = mediaType
            self.key = key
            self.context = context
            self.metadata = metadata
        }
    }

    package var file: SettledFile
    package var action: SourceAction
    package var priority: Int
    package var orders: [PlannedUpload]
    /// Whether a person asked for it although it may have been uploaded before.
    package var again: Bool
    /// Arrivals of one batch with the same number travel together; `nil` for one that goes alone.
    package var unit: Int?
    /// The earlier path (below the folder) whose newest asset it joins.
    package var joins: FilePath?
    package var stagingMode: StagingMode

    package init(
        file: SettledFile, action: SourceAction, priority: Int, orders: [PlannedUpload], again: Bool = false,
        stagingMode: StagingMode = .copy
    ) {
        self.stagingMode = stagingMode
        self.file = file
        self.action = action
        self.priority = priority
        self.orders = orders
        self.again = again
    }
}

/// The result of recording an arrival.
package enum NewAssetOutcome: Sendable, Hashable {
    /// Recorded, with the ids of its uploads.
    case recorded(asset: Int64, uploads: [String])
    /// The same, for a path whose earlier version was recorded before.
    case newVersion(asset: Int64, uploads: [String])
    /// The asset that was waiting for this path has been updated to the new status.
    case renewed(asset: Int64)
    /// This version of this path is known already.
    case known
    /// Another unfinished upload has the key.
    case keyTaken(String)

    /// `nil` where nothing was recorded.
    var asset: Int64? {
        switch self {
        case .recorded(let asset, _), .newVersion(let asset, _), .renewed(let asset): asset
        case .known, .keyTaken: nil
        }
    }
}

/// Distinguishes one version of a recorded file from the next. An asset that has not been copied yet may get another
/// version at any time; results for the earlier one must not be stored for it.
package struct AssetVersion: Sendable, Hashable {
    package var size: Int64
    package var modified: Int64
    package var changed: Int64
    package var inode: UInt64?

    /// For a statement with the asset's number as `?1`.
    static let condition = "AND size = ?2 AND modified = ?3 AND changed = ?4 AND inode IS ?5"
    func values(of asset: Int64) -> [Connection.Value] {
        [
            .integer(asset), .integer(size), .integer(modified), .integer(changed),
            .init(inode.map { Int64(bitPattern: $0) }),
        ]
    }
}

/// Words in the columns of a row that this program does not know: a newer one has written them. The program decides by a cautious
/// substitute, shows the words as they are, and leaves them in the database.
package struct UnknownValues: Sendable, Hashable {
    package var state: String?
    package var settledBy: String?
    package var action: String?
    package var sourceState: String?
    package var stagingMode: String?

    package init() {}
}

package struct AssetRecord: Sendable, Hashable {
    package var id: Int64
    package var folder: String
    package var root: FilePath
    package var identity: FileIdentity
    /// The last ctime before it was staged, in ns since 1970.
    package var changed: Int64
    package var settledBy: SettleProof
    package var state: AssetState
    package var sha256: [UInt8]?
    package var action: SourceAction
    package var sourceState: SourceState
    package var sourceNote: String?
    package var priority: Int
    package var stagingMode: StagingMode
    /// Bytes that are uploaded: those of the source, unless a command made another file of it.
    package var stagedSize: Int64
    /// SHA-256 of the source, where `sha256` is that of another file.
    package var sourceSHA256: [UInt8]?
    /// The time when it was recorded.
    package var arrivedAt: WallTime
    package var unknown = UnknownValues()

    package var path: SourcePath { SourcePath(root: root, relative: identity.relative) }
    package var size: Int64 { identity.size }
    package var version: AssetVersion {
        AssetVersion(size: size, modified: identity.modified, changed: changed, inode: identity.inode)
    }
    /// The name of its copy in the staging folder.
    package var stagedName: FilePath { FilePath("\(id)") }
}

package struct UploadRecord: Sendable, Hashable {
    package var id: String
    package var asset: Int64
    package var folder: String
    package var destination: String
    package var name: FilePath
    package var mediaType: String
    package var key: String?
    package var context: [String: String]
    package var metadata: [String: String]
    /// Additional request headers, which may be secrets: their values are never shown. Empty when the upload is
    /// complete.
    package var headers: [String: String]
    /// The address where it is created, in place of the destination's own.
    package var url: String?
    package var size: Int64
    package var modified: Int64
    package var priority: Int
    package var state: UploadState
    package var generation: Int
    package var attempt: Int
    /// The time when a person paused it.
    package var pausedAt: WallTime?
    package var backoffUntil: MonotonicTime?
    package var acked: Int64
    /// The verified remote object; `nil` while it is not complete.
    package var remote: RemoteObject?
    package var remoteDelete: String?
    package var createdAt: WallTime
    package var startedAt: WallTime?
    package var finishedAt: WallTime?
    /// How it ended, once it has left the lists.
    package var ended: UploadState?
    /// ``Store/currentRunTime`` when it ended.
    package var ranAt: Int64?

    package var uploadClass: UploadClass { UploadClass(folder: folder, destination: destination) }

    /// Whether `before_upload` has approved it, in this generation.
    package var isApproved = false
    /// Whether `before_upload` has rejected it, in this generation.
    package var isSkipped = false
    /// Bytes up to which it was sent when its last attempt ended. The remote's part of them is known once it is asked.
    package var sent: Int64 = 0
    /// The remote's id for it, where it is known before the upload is complete.
    package var named: String?
    /// An address for a person to find that, if it is known.
    package var namedURL: String?
    /// ``Store/currentRunTime`` at its first failure since the remote accepted bytes of it.
    package var failingSince: Int64?
    /// The most bytes that the server has confirmed in this generation, also where it has lost them since.
    package var furthest: Int64 = 0
    /// Whether its last attempt failed, and no other has begun since.
    package var isTroubled = false
    /// Whether the remote may know of it: there is a checkpoint.
    package var isBegun = false
    package var unknown = UnknownValues()

    /// The remote's id for it, complete or not.
    package var remoteID: String? { remote?.id ?? named }
    /// An address for a person to find it, complete or not.
    package var remoteURL: String? { remote?.url ?? namedURL }

    /// How it ended, wherever it is shown; `nil` while it has not ended.
    package var ending: UploadState? { state.isTerminal ? ended ?? state : nil }

    /// Bytes that the server has not confirmed.
    package var missing: Int64 { max(0, size - acked) }
}

/// An upload with its asset and its last failure: an entry of a list.
package struct UploadRow: Sendable, Hashable {
    package var upload: UploadRecord
    package var asset: AssetRecord
    package var failure: Failure?

    /// Whether it has ended because of its age, and was not begun again.
    package var isExpired: Bool {
        upload.ending == .cancelled && upload.generation == 1 && failure?.code == .expired
    }

    /// Whether it has ended because `before_upload` rejected it.
    package var isSkipped: Bool { upload.ending == .cancelled && upload.isSkipped }
}

/// A claimed upload: the worker holds its lease.
package struct Claim: Sendable, Hashable {
    package var upload: UploadRecord
    package var asset: AssetRecord
    package var checkpoint: Checkpoint?
    /// The reservation for its first bytes, if there is one.
    package var step: StoredReservation?
}

package struct EventRecord: Sendable, Hashable {
    package var seq: Int64
    package var at: WallTime
    package var type: EventType
    package var upload: String?
    package var detail: [String: String]
}

package struct PauseRecord: Sendable, Hashable {
    /// Open, since a newer program may have stored other scopes.
    package struct Scope: RawRepresentable, Sendable, Hashable {
        package let rawValue: String

        package init(rawValue: String) { self.rawValue = rawValue }

        package static let all = Scope(rawValue: "all")
        package static let folder = Scope(rawValue: "folder")
        package static let destination = Scope(rawValue: "destination")
        package var isKnown: Bool { [.all, .folder, .destination].contains(self) }
    }
    package var scope: Scope
    /// Empty for `all`.
    package var name: String
    package var since: WallTime
    package var until: WallTime?

    /// Whether it holds every upload. This program cannot tell what a pause of an unknown scope is meant to hold.
    package var holdsEverything: Bool { scope == .all || !scope.isKnown }
    /// Whether it holds what `scope` and `name` say.
    package func holds(_ scope: Scope, _ name: String) -> Bool {
        scope == .all ? holdsEverything : self.scope == scope && self.name == name
    }

    package init(scope: Scope, name: String, since: WallTime, until: WallTime?) {
        self.scope = scope
        self.name = name
        self.since = since
        self.until = until
    }
}

package struct RemoteDeletion: Sendable, Hashable {
    package var id: Int64
    package var upload: String
    package var destination: String
    package var checkpoint: Checkpoint
    package var tries: Int
    package var createdAt: WallTime
    /// Whether the upload itself went on without them, or was tried again.
    package var isEarlier: Bool
}

/// A folder and a destination. Policy is decided for these, and not for each upload.
package struct UploadClass: Sendable, Hashable {
    package var folder: String
    package var destination: String

    package init(folder: String, destination: String) {
        self.folder = folder
        self.destination = destination
    }
}

/// The number of a destination's uploads in one state.
package struct Tally: Sendable, Hashable {
    package var destination: String
    package var state: UploadState
    package var uploads: Int
    package var bytes: Int64
}

/// How an attempt ended, for ``AttemptEndings/finish(_:)``.
package enum AttemptOutcome: Sendable, Hashable {
    /// No result: a hold, a stop. Uses no attempt.
    case yielded
    /// The destination was at fault. Uses no attempt; others are tried before this one.
    ///
    /// - Parameter knowing: The files that travel with it as it found them, if it asked for them. If one of them has
    ///   ended by now, it does not wait.
    /// - Parameter isFault: Whether something failed; `false` where it is only too early.
    case held(Failure, until: MonotonicTime, knowing: [Companion]? = nil, isFault: Bool = true)
    /// This upload waits until then and tries again. Uses an attempt.
    case retry(Failure, until: MonotonicTime)
    /// - Parameter usesAttempt: Whether it is the last of the permitted refusals.
    case refused(Failure, usesAttempt: Bool = false)
    /// The staged copy is not as recorded.
    ///
    /// - Parameter until: When the upload may be sent again at the earliest; `nil` for as soon as it is staged again.
    case copyLost(Failure, CopyDefect, until: MonotonicTime? = nil)
    /// The source that was uploaded in place is another version now: it comes back as a new file.
    ///
    /// - Parameter isFinished: Whether the destination holds everything that was sent.
    case sourceChanged(Failure, isFinished: Bool)
    /// `before_upload` rejected it: it ends like a cancelled upload, and its source stays.
    case skipped(Failure)
    case verified(RemoteObject)
}
