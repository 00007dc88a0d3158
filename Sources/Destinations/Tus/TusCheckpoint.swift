internal import Core

/// The fields of a tus server in the checkpoint of an upload.
struct TusCheckpoint: TypedCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    struct Fields: CheckpointFields {
        static let all = Fields()

        /// The server has refused a request for bytes by its method: ``BodyRefusal``, kept over a restart.
        let isPatchRefused = CheckpointField<Bool>("patch_refused")
    }
}

extension OffsetCheckpoint {
    var tus: TusCheckpoint {
        get { self[as: TusCheckpoint.self] }
        set { self[as: TusCheckpoint.self] = newValue }
    }
}
