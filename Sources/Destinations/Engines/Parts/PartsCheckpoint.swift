internal import Core

/// The checkpoint of ``PartsEngine``, with ``EngineFields``.
struct PartsCheckpoint: EngineCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    /// Fields that stay when the upload starts again.
    static let lasting =
        [
            EngineFields.all.orphans.name, EngineFields.all.wasReuploaded.name, EngineFields.all.restarts.name,
            EngineFields.all.mayBeDoubled.name, EngineFields.all.refusedBefore.name,
            EngineFields.all.leftToOthers.name,
        ] + [
            fields.creationsFound.name, fields.beginnings.name, fields.losses.name, fields.remains.name,
            fields.denials.name,
        ]

    struct Fields: CheckpointFields {
        static let all = Fields()

        // MARK: The upload at the remote

        /// The dialect's fields name an upload at the remote.
        let isBegun = CheckpointField<Bool>("begun")
        /// Creations without an answer whose upload was found and continued.
        let creationsFound = CheckpointField<Int64?>("found_again")

        // MARK: How the file was cut, and its identity. Settings may change meanwhile

        /// Bytes of each part except the last.
        let partSize = CheckpointField<Int64?>("part_size")
        let rule = CheckpointField<PartPlan.Rule?>("rule")
        /// Bytes of the file.
        let size = CheckpointField<Int64?>("size")
        /// The digest of the file, in hexadecimal digits.
        let sha256 = CheckpointField<String?>("sha256")

        // MARK: Progress. The acknowledged parts have a table of their own

        /// Where a part must not be sent twice: the index of the part that may have left.
        let partInDoubt = CheckpointField<Int?>("sending")
        /// The remote may have received the request to assemble the file.
        let isCompleting = CheckpointField<Bool>("completing")
        /// The index of the part whose answer reported the complete file.
        let finishedPart = CheckpointField<Int?>("done")
        /// ``RemoteObject/url`` of that answer.
        let finishedURL = CheckpointField<String?>("done_url")
        /// ``RemoteObject/verifiedBy`` of that answer.
        let finishedVerifiedBy = CheckpointField<String?>("done_by")
        /// The last part was sent again, because no answer reported the complete file.
        let isReconfirmed = CheckpointField<Bool>("reconfirmed")
        /// The part with the highest index may have left: answers about it are about this upload.
        let mayEndHaveLeft = CheckpointField<Bool>("last_left")
        /// The remote says that it has that part, and no answer to it was seen.
        let isEndUnanswered = CheckpointField<Bool>("end_unanswered")

        // MARK: ``PartCuts``

        /// Attempts in a row whose parts the connection cut, without an accepted part since.
        let cuts = CheckpointField<Int64?>("part_cuts")
        /// Bytes of such a part.
        let cutSize = CheckpointField<Int64?>("part_cut_size")

        // MARK: ``PartsBounds``

        /// No part from this index on has left as a whole. Kept where a list of parts is compared with it.
        let reach = CheckpointField<Int?>("reach")
        /// The last part that was missing may have left, and the remote has not said since that one is missing.
        let mayBeWhole = CheckpointField<Bool>("final_sent")
        /// The peer at the other end of the connections has acknowledged every byte.
        let isDelivered = CheckpointField<Bool>("delivered")

        // MARK: Starting again

        /// Times that the upload was started again for any reason: each one has another name at the remote.
        let beginnings = CheckpointField<Int64?>("beginnings")
        /// Times that it was started again because the remote did not know it any more, before its last byte can have
        /// left.
        let losses = CheckpointField<Int64?>("lost")
        /// Times that the remote did not assemble the file: ``CompletionRetryLimit``.
        let refusedCompletions = CheckpointField<Int64?>("completions_refused")
        /// Times that the body of the last answer refused the file, where a part must not be sent twice.
        let denials = CheckpointField<Int64?>("denied")
        /// Unfinished uploads that could not be removed at the remote.
        let remains = CheckpointField<Int64?>("remains")
    }
}

extension UploadOrder {
    /// The checkpoint of an earlier attempt; without fields for the first.
    var partsCheckpoint: PartsCheckpoint { PartsCheckpoint(checkpoint ?? Checkpoint()) }
}

// The cut of a file is kept with its upload, because settings may change meanwhile.

extension PartsCheckpoint {
    /// Records how the file of an order is cut, and its identity.
    mutating func set(_ plan: PartPlan, _ order: UploadOrder) {
        self.partSize = plan.partSize
        self.rule = plan.rule
        self.size = plan.size
        self.sha256 = hexadecimal(order.file.sha256)
    }

    /// How the upload was cut; `nil` where that is unknown, or where the file had another size.
    func plan(of order: UploadOrder) -> PartPlan? {
        guard self.size == order.file.size, let rule = self.rule else { return nil }
        return PartPlan(size: order.file.size, partSize: self.partSize ?? 0, rule: rule)
    }
}
