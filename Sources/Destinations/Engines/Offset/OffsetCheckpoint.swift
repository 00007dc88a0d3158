internal import Core

/// The checkpoint of ``OffsetEngine``, with ``EngineFields``.
struct OffsetCheckpoint: EngineCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    /// Fields that stay when the upload starts again.
    static let lasting =
        [
            EngineFields.all.orphans.name, EngineFields.all.wasReuploaded.name, EngineFields.all.restarts.name,
            EngineFields.all.refusedBefore.name, EngineFields.all.wholeLosses.name, EngineFields.all.leftToOthers.name,
            EngineFields.all.nameNotFound.name, EngineFields.all.mayBeDoubled.name,
        ] + [fields.rejections.name] + ConcatenationCheckpoint.lasting

    struct Fields: CheckpointFields {
        static let all = Fields()

        // MARK: The upload at the remote. Set by the dialect

        /// The address of the upload.
        let url = CheckpointField<String?>("url")
        /// The origin of the configured server that has it.
        let server = CheckpointField<String?>("server")
        /// ``Checkpoint/expires``.
        let expires = CheckpointField<Int64?>.expires

        // MARK: Progress

        /// The last offset that the remote named, in bytes.
        let offset = CheckpointField<Int64?>("offset")
        /// The largest offset that a success named, regardless of later answers, in bytes.
        let acceptedOffset = CheckpointField<Int64?>("taken")
        /// The request with the last byte was answered with success, or the remote had the file before.
        let isEndAnswered = CheckpointField<Bool>("answered")
        /// How it is known that the remote has every byte. Only the dialect's ``OffsetDialect/conclude(_:_:_:)`` is
        /// left.
        let concludesFrom = CheckpointField<String?>("concluding")

        // MARK: ``SentBounds``

        /// No byte of the file from this offset on has left, in any request.
        let reach = CheckpointField<Int64?>("reach")
        /// The last byte may have left, and the remote has not said since that bytes are missing.
        let mayBeWhole = CheckpointField<Bool>("may_be_whole")
        /// The peer at the other end of the connection has acknowledged every byte.
        let isDelivered = CheckpointField<Bool>("delivered_whole")

        // MARK: Starting again

        /// Address of the upload that the remote refused at its end, before a person had it tried again.
        let refusedURL = CheckpointField<String?>("refused_url")
        /// Times that the remote accepted every byte and kept none.
        let rejections = CheckpointField<Int64?>("rejections")
        /// Times that the remote went back behind what it had acknowledged.
        let regressions = CheckpointField<Int64?>("regressions")
        /// The generation in which the remote did not find bytes that it had accepted.
        let missingIn = CheckpointField<Int?>("missing_in")
        /// Answers in a row about something else than this upload.
        let foreignAnswers = CheckpointField<Int64?>("foreign_seen")
        /// Answers in a row that may be a temporary fault.
        let doubtfulAnswers = CheckpointField<Int64?>("doubts")
        /// The offset of the bytes that arrived damaged.
        let damagedAt = CheckpointField<Int64?>("damaged_at")

        // MARK: ``Contradiction``

        /// Answers in a row without progress.
        let conflicts = CheckpointField<Int64?>("conflicts")
        /// The time of the first of them, in ms since 1970.
        let conflictsSince = CheckpointField<Int64?>("conflict_since")
        /// The largest offset that was named meanwhile: a larger one is progress.
        let conflictPeak = CheckpointField<Int64?>("conflict_peak")
        /// Questions for the offset in a row with unusable answers.
        let unusableAnswers = CheckpointField<Int64?>("blind_looks")
        /// The time of the first of them, in ms since 1970.
        let unusableSince = CheckpointField<Int64?>("blind_since")

        // MARK: ``ChunkSize``

        /// The offset of the last cut request.
        let cutFrom = CheckpointField<Int64?>("sent_from")
        /// The offset after the last byte of it that left.
        let cutTo = CheckpointField<Int64?>("sent_to")
        /// The size of that request, in bytes.
        let cutSize = CheckpointField<Int64?>("sent_size")
        /// Cut requests in a row that left nothing at the remote.
        let cutLosses = CheckpointField<Int64?>("losses")
        /// The bytes of the last such request that carried too little to count alone.
        let smallLoss = CheckpointField<Int64?>("small_loss")

        // MARK: ``ContentRange``

        /// The last byte was sent in a request of its own, and accepted.
        let wasLastByteAlone = CheckpointField<Bool>("last_byte_again")
    }
}

extension UploadOrder {
    /// The checkpoint of an earlier attempt; without fields for the first.
    var offsetCheckpoint: OffsetCheckpoint { OffsetCheckpoint(checkpoint ?? Checkpoint()) }
}
