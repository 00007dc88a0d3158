internal import Core

/// The fields of a tus server in the checkpoint of an upload.
struct TusCheckpoint: TypedCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    struct Fields: CheckpointFields {
        static let all = Fields()

        /// The server has refused a request for bytes by its method: ``BodyRefusal``, kept over a restart.
        let isPatchRefused = CheckpointField<Bool>("patch_refused")
        /// The service's id of the object.
        let id = CheckpointField<String?>("object_id")
        /// Requests for this upload that a gateway blocks are sent as POST: ``MethodOverride``.
        let isMethodOverridden = CheckpointField<Bool>("method_override")
        /// The server has refused bytes in a creation.
        let isCreationBodyRefused = CheckpointField<Bool>("creation_body_refused")
        /// Identifies the creation that was begun last: by an equal one a server may recognise it.
        let creation = CheckpointField<String?>("creation_at")
        /// The server had announced that it answers a repeated creation with the same upload.
        let repeatsCreation = CheckpointField<Bool>("creation_repeats")
        /// No creation is sent before this time, in ms since 1970: ``CreationBackoff``, kept over a restart.
        let nextCreation = CheckpointField<Int64?>("next_creation")
    }
}

extension OffsetCheckpoint {
    var tus: TusCheckpoint {
        get { self[as: TusCheckpoint.self] }
        set { self[as: TusCheckpoint.self] = newValue }
    }
}
