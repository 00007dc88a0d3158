package import Core

/// A claimed upload: the worker holds its lease.
package struct Claim: Sendable, Hashable {
    package var upload: UploadRecord
    package var asset: AssetRecord
    package var checkpoint: Checkpoint?
    /// What conditions ask of its file.
    package var file: FileFacts
    /// The reservation for its first bytes, if there is one.
    package var step: StoredReservation?
}
