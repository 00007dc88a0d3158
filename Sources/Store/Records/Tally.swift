package import Core

/// The number of uploads from one folder to one destination in one state.
package struct Tally: Sendable, Hashable {
    package var folder: String
    package var destination: String
    package var state: UploadState
    package var uploads: Int
    package var bytes: Int64
}
