internal import Core
internal import Transport

// Handles a creation whose answer is unknown, and the video that it may have made. The service keeps no key of a
// creation, and others may use the same account: a video counts as ours only when no other program can have made it.

extension VimeoDialect {
    /// Clocks differ, and a machine may not have set its clock yet.
    static let skew: Int64 = 600_000

    /// The time in ms after which a creation that was sent at 0 can no longer be carried out.
    private var answering: Int64 {
        Int64(((settings.limits.reply ?? .seconds(60)) + .seconds(60)).inSeconds * 1000)
    }

    /// The wait between the two queries of a video that may be ours: long enough for another machine to receive the
    /// answer for one that it made, and to begin.
    private var settling: Duration { settings.firstPoll * 10 }

    /// The first step of an attempt: looks for a video that an earlier creation made without a received answer, before
    /// another is made.
    ///
    /// - Throws: ``UploadError``; `CancellationError`; errors of `reporter`.
    func prepared(_ order: UploadOrder, _ reporter: any UploadReporter) async throws -> UploadOrder {
        var order = order
        var checkpoint = order.offsetCheckpoint
        if let video = checkpoint.vimeo.video, isOurs(checkpoint) {
            api.known.note(video)
            try await reporter.recordName(video, at: checkpoint.vimeo.link)
        }
        guard checkpoint.url == nil, checkpoint.concludesFrom == nil else { return order }
        if checkpoint.isCreating, isOurs(checkpoint), checkpoint.vimeo.has(\.askedAt) {
            if try await adopt(order, &checkpoint, reporter) {
                order.checkpoint = checkpoint.stored
                return order
            }
        }
        // A creation that has to wait is not sent, and the time of the last one stays as it is.
        try api.creations.check(api.client)
        checkpoint.stored.remove(VimeoCheckpoint.ofCreation)
        checkpoint.vimeo.askedAt = api.now
        checkpoint.vimeo.isAskedByOwnClock = !api.isTimeKnown
        checkpoint.vimeo.askedSize = order.file.size
        // Fields that cannot be sent are refused at the creation.
        checkpoint.vimeo.askedName = (try? await metadata(of: order))?.fields["name"]?.text
        checkpoint.server = server
        order.checkpoint = checkpoint.stored
        return order
    }

    /// The time at which a creation was sent, by the service's clock as far as it is known by now.
    private func askedAt(_ checkpoint: OffsetCheckpoint) -> Int64 {
        let asked = checkpoint.vimeo.askedAt ?? 0
        return checkpoint.vimeo.isAskedByOwnClock ? asked.addingClamped(api.ahead) : asked
    }

    /// - Returns: Whether the upload continues with the video of an earlier creation.
    private func adopt(
        _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> Bool {
        // A ticket that was not ended is not in any list.
        guard settings.flow != .fourStep else { return false }
        let name = try await metadata(of: order).fields["name"]?.text
        var videos: [Listed]
        do {
            videos = try await recent(since: askedAt(checkpoint)).videos.filter {
                isMade($0, by: checkpoint, size: order.file.size, name: name)
            }
        } catch let error as UploadError {
            switch error.remedy {
            // The list cannot be read, and will not be readable later.
            case .authenticate, .misconfigured, .failUpload: return try recordFailedSearch(checkpoint)
            default: throw error
            }
        }
        if let seen = checkpoint.vimeo.candidate {
            videos = videos.filter { $0.uri == seen } + videos.filter { $0.uri != seen }
        }
        var isInDoubt = false
        for video in videos {
            guard let found = try await checkpointForEmptyVideo(video),
                try await !reporter.belongsToAnotherUpload(video.uri)
            else {
                isInDoubt = true
                continue
            }
            // Another creation of this daemon, with the same name and size, has no answer yet.
            let isAmbiguous = api.known.isCreating(order.file.size, name)
            let now = api.now
            let seen = checkpoint.vimeo.candidate == video.uri ? (checkpoint.vimeo.candidateSince ?? 0) : nil
            let waited = seen.map { Duration.milliseconds(max(0, now.subtractingReportingOverflow($0).partialValue)) }
            guard !isAmbiguous, let waited, waited >= settling else {
                if seen == nil {
                    checkpoint.vimeo.candidate = video.uri
                    checkpoint.vimeo.candidateSince = now
                    try await reporter.record(checkpoint.stored)
                }
                let left = max(settings.firstPoll, settling - (waited ?? .zero))
                throw UploadError(
                    failure(
                        .transient, .creationUnclear,
                        "the video \(video.uri) may be that of a creation whose answer was lost; it is used if no other upload has sent bytes to it by then",
                        retryable: true), remedy: .pending(after: left))
            }
            // Two uploads of this daemon may have waited for the same one.
            guard api.known.claim(video.uri) else { continue }
            api.creations.succeeded()
            checkpoint.stored.remove(VimeoCheckpoint.ofCreation)
            checkpoint.isCreating = false
            checkpoint.stored.merge(found.stored)
            try await reporter.record(checkpoint.stored)
            try await reporter.recordName(video.uri, at: found.vimeo.link)
            log("the video of a creation whose answer was lost was found: \(video.uri)")
            return true
        }
        return isInDoubt ? try recordFailedSearch(checkpoint) : false
    }

    /// Whether a video may come from the creation of this checkpoint, by all values in the list.
    private func isMade(_ video: Listed, by checkpoint: OffsetCheckpoint, size: Int64, name: String?) -> Bool {
        let asked = askedAt(checkpoint)
        return video.size == size && video.name == name && !api.known.contains(video.uri)
            && video.madeAt >= asked - Self.skew && video.madeAt <= asked.addingClamped(answering + Self.skew)
    }

    /// Returns the checkpoint to continue a video that has no bytes; `nil` for any other: one with bytes belongs to
    /// another writer.
    private func checkpointForEmptyVideo(_ video: Listed) async throws -> OffsetCheckpoint? {
        let approach = settings.flow == .tus ? "tus" : "streaming"
        let upload = video.item["upload"]
        guard upload?["approach"]?.text ?? approach == approach,
            upload?["status"]?.text ?? "in_progress" == "in_progress",
            let link = upload?["upload_link"]?.string, let url = try? uploadAddress(link)
        else { return nil }
        var found = OffsetCheckpoint()
        found.url = url
        found.vimeo.video = video.uri
        found.vimeo.videoSize = video.size
        found.vimeo.link = video.item["link"]?.text.flatMap { Self.page($0) }
        found.vimeo.flow = settings.flow
        found.server = server
        guard case .at(0) = try await position(of: &found, size: video.size ?? 0) else { return nil }
        return found
    }

    /// The offset of a checkpoint's upload.
    func position(of checkpoint: inout OffsetCheckpoint, size: Int64) async throws -> Position {
        let order = UploadOrder(
            id: "", generation: 1, file: StagedFile(path: "", size: size, sha256: []), name: "", mediaType: "video/mp4",
            modified: 0, metadata: [:], checkpoint: checkpoint.stored)
        return try await locate(order, &checkpoint)
    }

    /// The video could not be looked for: the next creation waits longer with each failed one, also after a
    /// restart.
    ///
    /// - Returns: `false`.
    private func recordFailedSearch(_ checkpoint: OffsetCheckpoint) throws(UploadError) -> Bool {
        let wait = CreationBackoff.wait(after: (checkpoint.orphans ?? 0) + 1)
        // A clock that was set back meanwhile does not make it longer.
        let gone = max(0, api.now.subtractingReportingOverflow(askedAt(checkpoint)).partialValue)
        let left = wait - .milliseconds(gone)
        if left > .zero { throw api.client.tooManyCreations(left) }
        return false
    }

    // MARK: After a cancel

    /// Whether there are more bytes than may have left here, which means that another writer has sent them.
    func belongsToAnotherUpload(_ checkpoint: OffsetCheckpoint) async throws -> Bool {
        guard let video = checkpoint.vimeo.video, checkpoint.url != nil, checkpoint.concludesFrom == nil,
            let size = checkpoint.vimeo.videoSize,
            let reach = checkpoint.reach
        else { return false }
        var status = checkpoint
        // A host that is not allowed is not contacted: then only the state of the video counts.
        if objection(to: checkpoint) == nil, case .at(let offset) = try await position(of: &status, size: size) {
            return offset > reach
        }
        // The address of a complete video ends. Its state shows which writer sent it.
        guard reach < size else { return false }
        let (_, json) = try await call(
            "GET", "\(video)?fields=uri,status,upload.status", nil, "the lookup of a video",
            allowing: [404, 410])
        return json?["upload"]?["status"]?.text == "complete" || json?["status"]?.text.map(Self.later.contains) == true
    }

    /// Removes the video of a creation that was cancelled before its answer was known.
    ///
    /// - Returns: Whether there is nothing left of it.
    /// - Throws: ``UploadError``, with ``Failure/Code/removalUnknown`` when it cannot be found out.
    func removeCreated(_ checkpoint: OffsetCheckpoint) async throws -> Bool {
        let what = "it was cancelled before the answer to its creation was known"
        let (videos, isWhole): ([Listed], Bool)
        do { (videos, isWhole) = try await recent(since: askedAt(checkpoint)) } catch let error as UploadError {
            guard error.failure.http == 403 else { throw error }
            throw unknown(what, "the token may not list videos: \(error.failure.message)")
        }
        // A checkpoint from before these fields existed has no value.
        guard let size = checkpoint.vimeo.askedSize else {
            throw unknown(what, "it is not known which video was requested")
        }
        let mine = videos.filter { isMade($0, by: checkpoint, size: size, name: checkpoint.vimeo.askedName) }
        var without: [Listed] = []
        for video in mine where try await checkpointForEmptyVideo(video) != nil { without.append(video) }
        // Another machine may take this long to receive the answer for a video that it made, and a list to show it.
        if api.now.subtractingReportingOverflow(askedAt(checkpoint)).partialValue < Self.showing {
            throw notShown(what, without.count)
        }
        if without.isEmpty, isWhole { return true }
        guard without.count == 1, let video = without.first, !api.known.isCreating(size, checkpoint.vimeo.askedName)
        else {
            throw unknown(
                what,
                without.isEmpty
                    ? "not every video in the account has a known size"
                    : "\(without.count) videos in the account may be its")
        }
        return try await remove(video.uri)
    }
}
