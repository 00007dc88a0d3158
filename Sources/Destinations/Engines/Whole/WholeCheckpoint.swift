internal import Core

/// The checkpoint of ``WholeEngine``. The directory has no fields of its own.
struct WholeCheckpoint: TypedCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    struct Fields: CheckpointFields {
        static let all = Fields()

        /// The temporary file, below the remote's root.
        let part = CheckpointField<FilePath?>("part")
        /// The digest of the file, in hexadecimal digits: other content is not appended to its bytes.
        let sha256 = CheckpointField<String?>("sha256")
        /// The bytes below this offset are durable at the remote, as far as the remote can report it.
        let offset = CheckpointField<Int64?>("offset")
    }
}
