package import Core

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
    /// The address where it is created, or where it exists.
    package var url: GivenURL?
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

    package var uploadClass: UploadClass { UploadClass(folder: folder, destination: destination, mask: mask) }
    package var files: FileClass { FileClass(folder: folder, mask: mask) }

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
    /// What its file answers to the questions of conditions.
    package var mask = FileMask.unknown
    /// Uploads of the same asset with the same number are alternatives: one of them is enough. `nil` where there are
    /// none.
    package var choice: Int64?
    /// It waits for the alternatives before it until ``Store/currentRunTime`` is this; `nil`: it may go.
    package var standby: Int64?
    /// Whether its last attempt failed, and no other has begun since.
    package var isTroubled = false
    /// Whether the remote may know of it: there is a checkpoint.
    package var isBegun = false
    /// ``Checkpoint/expires``.
    package var expires: WallTime?
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
        upload.ending == .cancelled && upload.generation == 1 && failure?.cause == .age
    }

    /// Whether it has ended because a newer version of its source was found, of which it had no copy.
    package var isSuperseded: Bool { upload.ending == .cancelled && failure?.cause == .newerSource }

    /// Whether it has ended because another destination, which is enough, has the file.
    package var isSuperfluous: Bool { upload.ending == .cancelled && failure?.cause == .alternative }

    /// Whether it has ended because `before_upload` rejected it.
    package var isSkipped: Bool { upload.ending == .cancelled && upload.isSkipped }
}
