internal import Core

/// The fields of ApsaraVideo VOD in the checkpoint of an upload.
struct ApsaraCheckpoint: TypedCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    /// Fields that stay when the upload gets another medium.
    static let lasting = [
        fields.reference.name, fields.mediaCount.name, fields.lostMedia.name, fields.leftMedia.name,
        fields.former.name, fields.failedMedia.name, fields.sentTwiceMedia.name,
    ]

    /// Fields of the medium and of the right to send its bytes.
    static let ofTicket = [
        fields.kind.name, fields.media.name, fields.endpoint.name, fields.bucket.name, fields.key.name,
        fields.region.name, fields.imageURL.name, fields.grantID.name, fields.grantSecret.name,
        fields.grantToken.name, fields.grantEnd.name, fields.grantUntil.name,
    ]

    struct Fields: CheckpointFields {
        static let all = Fields()

        // MARK: The medium, as VOD or the person's own service gave it

        let kind = CheckpointField<ApsaraMediaKind?>("sort")
        /// ``ApsaraMedium/id``.
        let media = CheckpointField<String?>("media")
        /// ``ApsaraMedium/endpoint``.
        let endpoint = CheckpointField<String?>("media_endpoint")
        let bucket = CheckpointField<String?>("bucket")
        /// The object's name; the same field as ``S3Checkpoint``'s.
        let key = CheckpointField<FilePath?>("key")
        /// ``ApsaraMedium/region``.
        let region = CheckpointField<String?>("media_region")
        /// ``ApsaraMedium/imageURL``.
        let imageURL = CheckpointField<String?>("image_url")

        // MARK: The right to send its bytes

        let grantID = CheckpointField<String?>("grant_id")
        let grantSecret = CheckpointField<String?>("grant_secret")
        let grantToken = CheckpointField<String?>("grant_token")
        /// The end of the right by the clock of the service, in ms since 1970.
        let grantEnd = CheckpointField<Int64?>("grant_end")
        /// The end of the right by the clock of this machine, in ms since 1970.
        let grantUntil = CheckpointField<Int64?>("grant_until")

        // MARK: Requests for a medium

        /// Our name for the medium; finds a medium again when the answer to its creation was lost.
        let reference = CheckpointField<String?>("reference")
        /// A request for a medium was begun.
        let isAsking = CheckpointField<Bool>("asking")
        /// Number of media that VOD gave for this upload.
        let mediaCount = CheckpointField<Int64?>("media_count")
        /// Number of requests whose answer is unknown and cannot be found out.
        let lostMedia = CheckpointField<Int64?>("lost_media")
        /// Number of media that were given up because the right to them ended; they stay empty.
        let leftMedia = CheckpointField<Int64?>("left_media")
        /// The file name that was sent to VOD.
        let file = CheckpointField<String?>("file")

        // MARK: Media that were given up although VOD had their bytes

        /// The last of them; it is shown until there is another.
        let former = CheckpointField<String?>("former")
        /// Media that VOD could not process, with commas between them.
        let failedMedia = CheckpointField<String?>("failed_media")
        /// Media that VOD could not find any more, with commas between them: the file was sent again.
        let sentTwiceMedia = CheckpointField<String?>("twice_media")

        // MARK: After the last byte

        /// How it is known that the storage has the file.
        let transferredBy = CheckpointField<String?>("transferred")
        /// Problems on the way, for the person.
        let warnings = CheckpointField<[String]>("warnings")
        /// Answers in a row that the medium does not exist.
        let missingAnswers = CheckpointField<Int64?>("missing")
        /// The generation in which they were counted.
        let missingIn = CheckpointField<Int?>("missing_in")
        /// How often VOD was queried whether it can use the medium.
        let polls = CheckpointField<Int64?>("polls")
        /// The time of the first query, in ms since 1970.
        let waitsSince = CheckpointField<Int64?>("waits_since")
    }
}

extension PartsCheckpoint {
    var apsara: ApsaraCheckpoint {
        get { self[as: ApsaraCheckpoint.self] }
        set { self[as: ApsaraCheckpoint.self] = newValue }
    }
}
