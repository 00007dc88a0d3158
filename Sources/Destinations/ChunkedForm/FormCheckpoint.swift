internal import Core

/// The fields of a chunked form in the checkpoint of an upload.
struct FormCheckpoint: TypedCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    struct Fields: CheckpointFields {
        static let all = Fields()

        /// The origin of the server that has the upload.
        let server = CheckpointField<String?>("server")
        /// The preset with which it was begun.
        let preset = CheckpointField<String?>("preset")
        /// Our name for the upload.
        let id = CheckpointField<String?>("id")
        /// The server's name for it.
        let token = CheckpointField<String?>("token")

        // MARK: For a removal

        /// The file's name at the remote.
        let name = CheckpointField<FilePath?>("name")
        let mediaType = CheckpointField<String?>("mime")
    }
}

extension PartsCheckpoint {
    var form: FormCheckpoint {
        get { self[as: FormCheckpoint.self] }
        set { self[as: FormCheckpoint.self] = newValue }
    }
}
