internal import Core

/// The fields of Vimeo in the checkpoint of a video. Times are in ms since 1970, by the service's clock.
struct VimeoCheckpoint: TypedCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    /// The values of the creation request, by which its video is recognised in a list.
    static let ofCreation = [
        fields.askedAt.name, fields.isAskedByOwnClock.name, fields.askedSize.name, fields.askedName.name,
        fields.candidate.name, fields.candidateSince.name,
    ]

    struct Fields: CheckpointFields {
        static let all = Fields()

        // MARK: The video

        /// How it was created; a later setting counts for later uploads.
        let flow = CheckpointField<VimeoFlow?>("flow")
        /// The video's address in the API.
        let video = CheckpointField<String?>("video")
        /// Its public page.
        let link = CheckpointField<String?>("link")
        /// The size for which it was created, in bytes.
        let videoSize = CheckpointField<Int64?>("video_size")
        /// It was found by its size alone.
        let wasFoundBySize = CheckpointField<Bool>("found")

        // MARK: A creation whose answer is not known

        /// When it was sent.
        let askedAt = CheckpointField<Int64?>("asked_at")
        /// That time is by the clock of this machine: the service's was not known yet.
        let isAskedByOwnClock = CheckpointField<Bool>("asked_by", text: "box")
        /// The size that it named, in bytes.
        let askedSize = CheckpointField<Int64?>("asked_size")
        /// The name that it gave to the video.
        let askedName = CheckpointField<String?>("asked_name")
        /// The address of a video that it may have made.
        let candidate = CheckpointField<String?>("seen")
        /// When that video was seen first.
        let candidateSince = CheckpointField<Int64?>("seen_at")

        // MARK: An upload in four steps

        /// The address that ends it.
        let completeURI = CheckpointField<String?>("complete")
        /// When its ticket was made.
        let ticketAt = CheckpointField<Int64?>("ticket_at")
        /// When its end was requested.
        let endingAt = CheckpointField<Int64?>("ending_at")
        /// The size of the file, in bytes.
        let endingSize = CheckpointField<Int64?>("ending_size")
        /// The video's title, description and other metadata were sent.
        let isDescribed = CheckpointField<Bool>("settled")
        /// How often that was tried.
        let descriptionTries = CheckpointField<Int64?>("settings_tries")

        // MARK: After the last byte

        /// Answers in a row that the video does not exist.
        let missingAnswers = CheckpointField<Int64?>("missing")
        /// How often the service was queried whether the video is ready.
        let polls = CheckpointField<Int64?>("polls")
        /// The time of the first query.
        let waitsSince = CheckpointField<Int64?>("waits_since")
    }
}

extension OffsetCheckpoint {
    var vimeo: VimeoCheckpoint {
        get { self[as: VimeoCheckpoint.self] }
        set { self[as: VimeoCheckpoint.self] = newValue }
    }
}

/// The checkpoint of a picture that becomes the thumbnail of a video.
struct VimeoPictureCheckpoint: TypedCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    struct Fields: CheckpointFields {
        static let all = Fields()

        /// The address for the bytes.
        let url = CheckpointField<String?>("url")
        /// The origin of the configured API.
        let server = CheckpointField<String?>("server")
        /// The picture's address in the API.
        let picture = CheckpointField<String?>("picture")
        /// The service accepted its bytes.
        let isSent = CheckpointField<Bool>("sent")
        /// Number of pictures that disappeared before they were shown.
        let losses = CheckpointField<Int64?>("losses")
    }
}
