internal import Core

/// The fields of a bucket in the checkpoint of an upload, at S3, OSS and the storage of ApsaraVideo VOD.
struct S3Checkpoint: TypedCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    /// Fields that stay when the upload starts again.
    static var lasting: [String] { [fields.takenNames.name] }

    /// The object's name; empty where it is unknown.
    var objectKey: FilePath { self.key ?? "" }

    struct Fields: CheckpointFields {
        static let all = Fields()

        /// The host and bucket that have the upload.
        let server = CheckpointField<String?>("server")
        /// The object's name.
        let key = CheckpointField<FilePath?>("key")
        /// The service's name for an upload in parts; absent for a file in one request.
        let upload = CheckpointField<String?>("upload")
        /// The checksum with which it was begun; a later setting counts for later uploads.
        let checksum = CheckpointField<S3Preset.Checksum?>("checksum")
        /// The time of the first request to start it, in ms since 1970.
        let askedAt = CheckpointField<Int64?>("asked_at")
        /// The highest number of the file's names that was found taken by a request that may not query objects.
        let takenNames = CheckpointField<Int?>("taken_names")
    }
}

extension PartsCheckpoint {
    var s3: S3Checkpoint {
        get { self[as: S3Checkpoint.self] }
        set { self[as: S3Checkpoint.self] = newValue }
    }
}
