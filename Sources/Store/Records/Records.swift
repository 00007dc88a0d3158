package import Core

// What the store takes and gives: values, so that no statement leaves the room.

/// A settled file with everything that its folder's settings make of it.
package struct Arrival: Sendable, Hashable {
    /// One upload to come.
    package struct Order: Sendable, Hashable {
        package var destination: String
        package var name: FilePath
        package var mediaType: String
        package var key: String?
        package var context: [String: String]
        package var metadata: [String: String]
        /// Further request headers, which may be secrets.
        package var headers: [String: String] = [:]
        /// Where to create it, in place of the destination's own address.
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
    package var orders: [Order]
    /// A person asked for it although it may have been uploaded before.
    package var again: Bool
    /// Arrivals of one batch with the same number travel together; `nil` for one that goes alone.
    package var unit: Int?
    /// It joins the newest of this path (below the folder), which was taken before.
    package var joins: FilePath?
    package var keeping: Keeping

    package init(
        file: SettledFile, action: SourceAction, priority: Int, orders: [Order], again: Bool = false,
        keeping: Keeping = .copy
    ) {
        self.keeping = keeping
        self.file = file
        self.action = action
        self.priority = priority
        self.orders = orders
        self.again = again
    }
}

/// What became of an arrival.
package enum ArrivalOutcome: Sendable, Hashable {
    /// Written down, with the ids of its uploads.
    case recorded(asset: Int64, uploads: [String])
    /// The same, of a path whose earlier version was recorded before.
    case newVersion(asset: Int64, uploads: [String])
    /// The asset that was waiting for this path has the new look.
    case renewed(asset: Int64)
    /// This version of this path is known.
    case known
    /// Another live upload has the key.
    case keyTaken(String)

    /// `nil` where nothing was written down.
    var asset: Int64? {
        switch self {
        case .recorded(let asset, _), .newVersion(let asset, _), .renewed(let asset): asset
        case .known, .keyTaken: nil
        }
    }
}

/// What tells one version of a recorded file from the next. An asset that has not been copied yet may be given another
/// one at any time: whoever worked with the one before must not speak for it.
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
package struct UnknownWords: Sendable, Hashable {
    package var state: String?
    package var settledBy: String?
    package var action: String?
    package var sourceState: String?
    package var keeping: String?

    package init() {}
}

package struct AssetRecord: Sendable, Hashable {
    package var id: Int64
    package var folder: String
    package var root: FilePath
    package var identity: StoredIdentity
    /// ctime in ns since 1970 when it was looked at last before it was staged.
    package var changed: Int64
    package var settledBy: SettledBy
    package var state: AssetState
    package var sha256: [UInt8]?
    package var action: SourceAction
    package var sourceState: SourceState
    package var sourceNote: String?
    package var priority: Int
    package var keeping: Keeping
    /// Bytes that are uploaded: those of the source, unless a command made something else of it.
    package var stagedSize: Int64
    /// SHA-256 of the source, where `sha256` is of something else.
    package var sourceSHA256: [UInt8]?
    /// When it was recorded.
    package var arrivedAt: WallTime
    package var unknown = UnknownWords()

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
    /// Further request headers, which may be secrets: their values are never shown. None of what is complete.
    package var headers: [String: String]
    /// Where it is created, in place of the destination's own address.
    package var url: String?
    package var size: Int64
    package var modified: Int64
    package var priority: Int
    package var state: UploadState
    package var generation: Int
    package var attempt: Int
    /// When a person paused it.
    package var pausedAt: WallTime?
    package var backoffUntil: MonotonicTime?
    package var acked: Int64
    /// What was verified there; nothing of what is not complete.
    package var remote: RemoteObject?
    package var remoteDelete: String?
    package var createdAt: WallTime
    package var startedAt: WallTime?
    package var finishedAt: WallTime?
    /// How it ended, once it has left the lists.
    package var ended: UploadState?
    /// ``Store/ran`` when it was over.
    package var ranAt: Int64?

    /// `before_upload` has let it go, in this generation.
    package var isApproved = false
    /// `before_upload` did not want it, in this generation.
    package var isSkipped = false
    /// Bytes up to which it was sent when its last attempt ended: what the remote has of them is known when it was asked.
    package var sent: Int64 = 0
    /// What the remote calls it, where it said so before the upload was complete.
    package var named: String?
    /// Where a person finds that, if it is known.
    package var namedURL: String?
    /// ``Store/ran`` when it failed first since bytes of it were taken.
    package var failingSince: Int64?
    /// Its last attempt failed, and no other was begun since.
    package var isTroubled = false
    /// The remote may know of it: there is a checkpoint.
    package var isBegun = false
    package var unknown = UnknownWords()

    /// What the remote calls it, complete or not.
    package var remoteID: String? { remote?.id ?? named }
    /// Where a person finds it, complete or not.
    package var remoteURL: String? { remote?.url ?? namedURL }

    /// How it ended, wherever it is shown; `nil` while it is not over.
    package var ending: UploadState? { state.isTerminal ? ended ?? state : nil }

    /// Bytes that the server has not confirmed.
    package var missing: Int64 { max(0, size - acked) }
}

/// An upload with its asset and its last failure: what a list shows.
package struct UploadRow: Sendable, Hashable {
    package var upload: UploadRecord
    package var asset: AssetRecord
    package var failure: Failure?

    /// It has ended for its age, and nobody began it again.
    package var isExpired: Bool {
        upload.ending == .cancelled && upload.generation == 1 && failure?.code == Expiry.code
    }

    /// It has ended because `before_upload` says so.
    package var isSkipped: Bool { upload.ending == .cancelled && upload.isSkipped }
}

/// A claimed upload: the worker holds its lease.
package struct Claim: Sendable, Hashable {
    package var upload: UploadRecord
    package var asset: AssetRecord
    package var checkpoint: Checkpoint?
    /// What may be sent for it first, where that was reserved.
    package var step: ReservedStep?
}

package struct EventRecord: Sendable, Hashable {
    package var seq: Int64
    package var at: WallTime
    package var type: String
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
    /// The upload itself went on without them, or was tried again.
    package var isEarlier: Bool
}

/// Where uploads come from and where they go: what may run is decided for these, and not for each upload.
package struct UploadClass: Sendable, Hashable {
    package var folder: String
    package var destination: String

    package init(folder: String, destination: String) {
        self.folder = folder
        self.destination = destination
    }
}

/// How many uploads of a destination stand in a state.
package struct Tally: Sendable, Hashable {
    package var destination: String
    package var state: UploadState
    package var uploads: Int
    package var bytes: Int64
}

/// How an attempt ended, for ``Store/finish(_:_:)``.
package enum AttemptOutcome: Sendable, Hashable {
    /// No verdict: a hold, a stop. Uses no attempt.
    case yielded
    /// The destination was at fault. Uses no attempt; others are tried before this one.
    ///
    /// - Parameter knowing: Where it asked for them, the files that travel with it as it found them: when another one of
    ///   them is over by now, it does not wait.
    /// - Parameter isFault: Something did not work; `false` where all is well and it is only too early.
    case held(Failure, until: MonotonicTime, knowing: [Companion]? = nil, isFault: Bool = true)
    /// This upload waits until then and tries again. Uses an attempt.
    case again(Failure, until: MonotonicTime)
    case refused(Failure)
    /// The staged copy is not what was recorded.
    case copyLost(Failure)
    /// The source that was uploaded in place is another version now: it comes back as a new file.
    ///
    /// - Parameter isFinished: The destination holds all of what was sent.
    case sourceChanged(Failure, isFinished: Bool)
    /// `before_upload` does not want it sent: it ends like one that a person cancels, and its source stays.
    case skipped(Failure)
    case verified(RemoteObject)
}
