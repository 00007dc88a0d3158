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
    /// The address for creating this upload, or of the upload itself; of the destination's origin.
    package var url: GivenURL?
    /// The source is deleted or moved when this upload is complete: the remote's object should be usable by then.
    package var removesSource = false

    package init(
        id: String, generation: Int, file: StagedFile, name: FilePath, mediaType: String, modified: Int64,
        metadata: [String: String], checkpoint: Checkpoint?, url: GivenURL? = nil, removesSource: Bool = false
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
