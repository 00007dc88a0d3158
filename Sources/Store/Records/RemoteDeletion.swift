package import Core

package struct RemoteDeletion: Sendable, Hashable {
    /// How the removal ended.
    package enum Result: String, Sendable, Hashable {
        case done
        /// The destination cannot remove them, or may not.
        case unsupported
        /// It failed for too long, or the destination is not configured any more.
        case gaveUp = "gave_up"
        /// It cannot be found out what is left.
        case unknown
    }

    package var id: Int64
    package var upload: String
    package var destination: String
    package var checkpoint: Checkpoint
    package var tries: Int
    package var createdAt: WallTime
    /// Whether the upload itself went on without them, or was tried again.
    package var isEarlier: Bool
}
