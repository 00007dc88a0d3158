package import Core

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
