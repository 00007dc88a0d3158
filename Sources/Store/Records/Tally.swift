package import Core

/// The number of a destination's uploads in one state.
package struct Tally: Sendable, Hashable {
    package var destination: String
    package var state: UploadState
    package var uploads: Int
    package var bytes: Int64
}
