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
