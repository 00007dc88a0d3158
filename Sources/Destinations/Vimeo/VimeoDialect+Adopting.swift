internal import Core
internal import Transport

// A creation whose answer is not known: the video that it made, if it made one. The service keeps no key of a creation, and others may use
// the same account: a video counts as ours only when nobody else can have made it.

extension VimeoDialect {
    /// What a creation is asked for with, and by which its video is known in a list. Fields of the checkpoint.
    static let asked = ["asked_at", "asked_by", "asked_size", "asked_name", "seen", "seen_at"]

    /// Clocks differ, and a machine may not have asked for the time yet.
    static let skew: Int64 = 600_000

    /// Until when a creation may have been carried out that was asked for at 0, in ms.
    private var answering: Int64 {
        Int64(((settings.limits.reply ?? .seconds(60)) + .seconds(60)).inSeconds * 1000)
    }

    /// Between the two looks at a video that may be ours: long enough for another box to hear of one that it made, and to begin.
    private var settling: Duration { settings.firstPoll * 10 }

    /// What an attempt begins with: a video that an earlier one made, and whose name nobody has heard, is looked for before another is made.
    ///
    /// - Throws: ``UploadError``; `CancellationError`; what `notes` throws.
    func prepared(_ order: UploadOrder, _ notes: any UploadNotes) async throws -> UploadOrder {
        var order = order
        var checkpoint = order.checkpoint ?? Checkpoint()
        if let video = checkpoint["video"], isOurs(checkpoint) {
            api.known.note(video)
            try await notes.named(video, at: checkpoint["link"])
        }
        guard checkpoint["url"] == nil, checkpoint["concluding"] == nil else { return order }
        if checkpoint["creating"] != nil, isOurs(checkpoint), checkpoint["asked_at"] != nil {
            if try await adopt(order, &checkpoint, notes) {
                order.checkpoint = checkpoint
                return order
            }
        }
        // What has to wait asks for nothing, and leaves the time of the last question as it is.
        try api.creations.check(api.asking)
        for field in Self.asked { checkpoint[field] = nil }
        checkpoint["asked_at"] = "\(api.now)"
        checkpoint["asked_by"] = api.isTimeKnown ? nil : "box"
        checkpoint["asked_size"] = "\(order.file.size)"
        // One that cannot be said is refused when it is to be created.
        checkpoint["asked_name"] = (try? await said(of: order))?.fields["name"]?.text
        checkpoint["server"] = server
        order.checkpoint = checkpoint
        return order
    }

    /// When a creation was asked for, by the service's clock as far as it is known by now.
    private func askedAt(_ checkpoint: Checkpoint) -> Int64 {
        let asked = checkpoint.number("asked_at")
        return checkpoint["asked_by"] == nil ? asked : asked.addingClamped(api.ahead)
    }

    /// - Returns: Whether the upload goes on with what an earlier creation has made.
    private func adopt(
        _ order: UploadOrder, _ checkpoint: inout Checkpoint, _ notes: any UploadNotes
    ) async throws -> Bool {
        // A ticket that was not ended is nothing, and no list has it.
        guard settings.flow != .fourStep else { return false }
        let name = try await said(of: order).fields["name"]?.text
        var videos: [Listed]
        do {
            videos = try await recent(since: askedAt(checkpoint)).videos.filter {
                isMade($0, by: checkpoint, size: order.file.size, name: name)
            }
        } catch let error as UploadError {
            switch error.remedy {
            // It cannot be asked for, and will not be later.
            case .authenticate, .misconfigured, .giveUp: return try nothing(checkpoint)
            default: throw error
            }
        }
        if let seen = checkpoint["seen"] {
            videos = videos.filter { $0.uri == seen } + videos.filter { $0.uri != seen }
        }
        var isInDoubt = false
        for video in videos {
            guard let found = try await empty(video), try await !notes.isOfAnother(video.uri) else {
                isInDoubt = true
                continue
            }
            // Another creation of this daemon, for the same words and size, has no answer yet.
            let isAmbiguous = api.known.isCreating(order.file.size, name)
            let now = api.now
            let seen = checkpoint["seen"] == video.uri ? checkpoint.number("seen_at") : nil
            let waited = seen.map { Duration.milliseconds(max(0, now.subtractingReportingOverflow($0).partialValue)) }
            guard !isAmbiguous, let waited, waited >= settling else {
                if seen == nil {
                    checkpoint["seen"] = video.uri
                    checkpoint["seen_at"] = "\(now)"
                    try await notes.record(checkpoint)
                }
                let left = max(settings.firstPoll, settling - (waited ?? .zero))
                throw UploadError(
                    failure(
                        .transient, "creation_unclear",
                        "the video \(video.uri) may be that of a creation whose answer was lost; it is used when nobody else has sent bytes to it by then",
                        retryable: true), remedy: .pending(after: left))
            }
            // Two uploads of this daemon may have waited for the same one.
            guard api.known.claim(video.uri) else { continue }
            api.creations.succeeded()
            for field in Self.asked + ["creating"] { checkpoint[field] = nil }
            for (field, value) in found.fields { checkpoint[field] = value }
            try await notes.record(checkpoint)
            try await notes.named(video.uri, at: found["link"])
            log("the video of a creation whose answer was lost was found: \(video.uri)")
            return true
        }
        return isInDoubt ? try nothing(checkpoint) : false
    }

    /// Whether a video may be that of the creation of this checkpoint, by all that the list tells of it.
    private func isMade(_ video: Listed, by checkpoint: Checkpoint, size: Int64, name: String?) -> Bool {
        let asked = askedAt(checkpoint)
        return video.size == size && video.name == name && !api.known.contains(video.uri)
            && video.madeAt >= asked - Self.skew && video.madeAt <= asked.addingClamped(answering + Self.skew)
    }

    /// A video without a byte, as an upload goes on with it; `nil` for any other: what has bytes is somebody else's.
    private func empty(_ video: Listed) async throws -> Checkpoint? {
        let approach = settings.flow == .tus ? "tus" : "streaming"
        let upload = video.item["upload"]
        guard upload?["approach"]?.text ?? approach == approach,
            upload?["status"]?.text ?? "in_progress" == "in_progress",
            let link = upload?["upload_link"]?.string, let url = try? uploadAddress(link)
        else { return nil }
        var found = Checkpoint()
        found["url"] = url
        found["video"] = video.uri
        found["video_size"] = video.size.map { "\($0)" }
        found["link"] = video.item["link"]?.text.flatMap { Self.page($0) }
        found["flow"] = settings.flow.rawValue
        found["server"] = server
        guard case .at(0) = try await stand(of: &found, size: video.size ?? 0) else { return nil }
        return found
    }

    /// Where the upload of a checkpoint stands.
    func stand(of checkpoint: inout Checkpoint, size: Int64) async throws -> Position {
        let order = UploadOrder(
            id: "", generation: 1, file: StagedFile(path: "", size: size, sha256: []), name: "", mediaType: "video/mp4",
            modified: 0, metadata: [:], checkpoint: checkpoint)
        return try await locate(order, &checkpoint)
    }

    /// It could not be looked for: the next creation waits longer with each that came to nothing, also over a restart.
    ///
    /// - Returns: `false`.
    private func nothing(_ checkpoint: Checkpoint) throws(UploadError) -> Bool {
        let wait = CreationPatience.wait(after: checkpoint.number("orphans") + 1)
        // A clock that was set back meanwhile makes it no longer than that.
        let gone = max(0, api.now.subtractingReportingOverflow(askedAt(checkpoint)).partialValue)
        let left = wait - .milliseconds(gone)
        if left > .zero { throw api.asking.tooManyCreations(left) }
        return false
    }

    // MARK: After a cancel

    /// Whether more bytes are there than may have left here, which another writer has sent.
    func isOfAnother(_ checkpoint: Checkpoint) async throws -> Bool {
        guard let video = checkpoint["video"], checkpoint["url"] != nil, checkpoint["concluding"] == nil,
            let size = checkpoint["video_size"].flatMap({ Int64($0) }),
            let reach = checkpoint["reach"].flatMap({ Int64($0) })
        else { return false }
        var look = checkpoint
        // A host that is not allowed is not asked: then the state of the video alone tells.
        if objection(to: checkpoint) == nil, case .at(let offset) = try await stand(of: &look, size: size) {
            return offset > reach
        }
        // The address of a video that is whole ends: by whom it was sent, its state tells.
        guard reach < size else { return false }
        let (_, json) = try await asked(
            "GET", "\(video)?fields=uri,status,upload.status", nil, "the question whose bytes a video has",
            allowing: [404, 410])
        return json?["upload"]?["status"]?.text == "complete" || json?["status"]?.text.map(Self.later.contains) == true
    }

    /// Removes the video of a creation that was cancelled before its answer was known.
    ///
    /// - Returns: Whether there is nothing left of it.
    /// - Throws: ``UploadError``, with ``Failure/removalUnknown`` when it cannot be found out.
    func removeCreated(_ checkpoint: Checkpoint) async throws -> Bool {
        let what = "it was cancelled before the answer to its creation was known"
        let (videos, isWhole): ([Listed], Bool)
        do { (videos, isWhole) = try await recent(since: askedAt(checkpoint)) } catch let error as UploadError {
            guard error.failure.http == 403 else { throw error }
            throw unknown(what, "the token may not list videos: \(error.failure.message)")
        }
        // Of a checkpoint of before these were kept nothing can be known.
        guard let size = checkpoint["asked_size"].flatMap({ Int64($0) }) else {
            throw unknown(what, "it is not known what was asked for")
        }
        let mine = videos.filter { isMade($0, by: checkpoint, size: size, name: checkpoint["asked_name"]) }
        var without: [Listed] = []
        for video in mine where try await empty(video) != nil { without.append(video) }
        // So long another box may take to hear of one that it made, and a list to show it.
        if api.now.subtractingReportingOverflow(askedAt(checkpoint)).partialValue < Self.showing {
            throw notShown(what, without.count)
        }
        if without.isEmpty, isWhole { return true }
        guard without.count == 1, let video = without.first, !api.known.isCreating(size, checkpoint["asked_name"])
        else {
            throw unknown(
                what,
                without.isEmpty
                    ? "not every video in the account says of which size it is"
                    : "\(without.count) videos in the account may be its")
        }
        return try await remove(video.uri)
    }
}
