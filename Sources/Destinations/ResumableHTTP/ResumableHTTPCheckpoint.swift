internal import Core

/// The fields of an upload by the draft in its checkpoint.
struct ResumableHTTPCheckpoint: TypedCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    struct Fields: CheckpointFields {
        static let all = Fields()

        /// The version in which the server has last answered about the upload.
        let interop = CheckpointField<InteropVersion?>("interop")
        /// The server has said that the upload is complete.
        let isComplete = CheckpointField<Bool>("complete")
        /// It said so only when it was asked: its answer to the request that completed the upload is not known.
        let isUnanswered = CheckpointField<Bool>("complete_unanswered")
        /// It said so without the mark of a final answer, by a success at the end of the file.
        let isUnmarked = CheckpointField<Bool>("complete_unmarked")
        /// The address of the finished file, which the final answer named.
        let finalURL = CheckpointField<String?>("final_url")
        /// Limits of the upload, in bytes.
        let maxAppendSize = CheckpointField<Int64?>("max_append")
        let minAppendSize = CheckpointField<Int64?>("min_append")
        /// The server has refused a request for bytes by its method: ``BodyRefusal``, kept over a restart.
        let isPatchRefused = CheckpointField<Bool>("patch_refused")
    }
}

extension OffsetCheckpoint {
    var draft: ResumableHTTPCheckpoint {
        get { self[as: ResumableHTTPCheckpoint.self] }
        set { self[as: ResumableHTTPCheckpoint.self] = newValue }
    }
}
