internal import Core
internal import Linux
internal import Transport

// The steps after the service has every byte.

extension VimeoDialect {
    var concludes: Bool { true }

    func conclude(
        _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> Conclusion {
        var outcome = RemoteDescription()
        if checkpoint.vimeo.completeURI != nil, checkpoint.vimeo.video == nil {
            try await activate(order, &checkpoint, reporter)
            guard checkpoint.vimeo.video != nil else {
                guard verification(of: order) == .transfer else {
                    // It cannot be confirmed that the video can be watched, and the source is to be removed.
                    throw try await later(&checkpoint, reporter, "the video that it became was not found")
                }
                outcome.warnings.append("it is complete there, and the video that it became was not found")
                return .done(outcome)
            }
        }
        if checkpoint.vimeo.completeURI != nil, !checkpoint.vimeo.isDescribed {
            try await describe(order, &checkpoint, reporter, &outcome.warnings)
        } else {
            outcome.warnings += try await metadata(of: order).warnings
        }
        return try await judge(order, &checkpoint, reporter, outcome)
    }

    // MARK: Four steps

    /// Ends a ticket, which makes a video of it.
    private func activate(
        _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws {
        guard let complete = checkpoint.vimeo.completeURI else { return }
        let path = complete.hasPrefix("/") ? complete : "/" + complete
        // It is signed.
        api.client.conceal(addressOfUpload: api.base + path)
        if !checkpoint.vimeo.has(\.endingAt) {
            // Recorded before the request: from then on there may be a video that has to be found, also after a cancel.
            checkpoint.vimeo.endingAt = api.now
            checkpoint.vimeo.endingSize = order.file.size
            try await reporter.record(checkpoint.stored)
        }
        let (response, _) = try await withCancellationGrace(Self.cancellationGrace) {
            try await call("DELETE", path, nil, "the end of the upload", allowing: [404], version: .ofTickets)
        }
        if (200..<300).contains(response.status) {
            if let video = response.headers["Location"].flatMap({ Self.path(of: $0) }) {
                return try await recordVideo(video, &checkpoint, reporter)
            }
        } else if !api.verdict(response).isDeadTicket {
            throw api.refusal(response, "the end of the upload")
        }
        // The ticket was ended before, by a request whose answer was lost, or this answer does not name the video.
        if let video = try await findVideo(order, checkpoint, reporter) {
            checkpoint.vimeo.wasFoundBySize = true
            try await recordVideo(video, &checkpoint, reporter)
        } else if (200..<300).contains(response.status) {
            throw unusableAnswer("the end of the upload was accepted without naming the video that it became")
        }
    }

    private func recordVideo(
        _ video: String, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws {
        api.known.note(video)
        checkpoint.vimeo.video = video
        try await reporter.record(checkpoint.stored)
        try await reporter.recordName(video, at: checkpoint.vimeo.link)
    }

    /// Looks for the one video that may be this upload's: of its size, made since its end was requested, and not
    /// another upload's.
    private func findVideo(
        _ order: UploadOrder, _ checkpoint: OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> String? {
        let vimeo = checkpoint.vimeo
        let begun = (vimeo.has(\.endingAt) ? vimeo.endingAt : vimeo.ticketAt) ?? 0
        var mine: [String] = []
        // A video with another name was named by a program that knows it.
        let names = ["", "Untitled", order.name.name.display, order.name.stem.display]
        for video in try await recent(since: begun).videos
        where video.size == order.file.size && !api.known.contains(video.uri) && names.contains(video.name ?? "") {
            if try await !reporter.belongsToAnotherUpload(video.uri) { mine.append(video.uri) }
        }
        return mine.count == 1 ? mine.first : nil
    }

    /// How often the video's fields are sent; after that the upload is complete without them.
    private static let settingsTries: Int64 = 6

    private func describe(
        _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter,
        _ warnings: inout [String]
    ) async throws {
        guard let video = checkpoint.vimeo.video else { return }
        let metadata = try await metadata(of: order)
        warnings += metadata.warnings
        do {
            _ = try await call(
                "PATCH", video, .object(metadata.fields), "the properties of the video", version: .ofTickets)
        } catch let error as UploadError {
            guard error.failure.retryable, checkpoint.vimeo.increment(\.descriptionTries) < Self.settingsTries else {
                warnings.append("the properties of the video were not accepted: \(error.failure.message)")
                checkpoint.vimeo.isDescribed = true
                return try await reporter.record(checkpoint.stored)
            }
            try await reporter.record(checkpoint.stored)
            // The service has every byte: the file does not wait like an unfinished upload.
            let wait = if case .rateLimit(let after?) = error.remedy { after } else { Duration.seconds(30) }
            throw UploadError(error.failure, remedy: .pending(after: wait))
        }
        checkpoint.vimeo.isDescribed = true
        try await reporter.record(checkpoint.stored)
    }

    // MARK: The video's state

    /// The final states of a video, as in the service's own client.
    private static let endings = [
        "available", "uploading_error", "transcoding_error", "quota_exceeded", "total_cap_exceeded",
    ]
    /// The states that a video has only after its bytes were accepted.
    static let later = ["transcode_starting", "transcoding", "available"]
    /// A video counts as deleted after this many queries in a row do not find it.
    private static let maxMissingAnswers: Int64 = 3
    private static let day: Duration = .seconds(86_400)
    private static let longestPoll: Duration = .seconds(300)

    /// Where the source is to be removed, the video must be watchable, unless the configuration requires less.
    func verification(of order: UploadOrder) -> VimeoVerification {
        settings.verify ?? (order.removesSource ? .transcoded : .transfer)
    }

    private func judge(
        _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter,
        _ outcome: RemoteDescription
    ) async throws -> Conclusion {
        guard let video = checkpoint.vimeo.video else { return .done(outcome) }
        let (response, json): (Response, JSONValue?)
        do {
            (response, json) = try await call(
                "GET", "\(video)?fields=uri,link,status,is_playable,upload.status,upload.size,transcode.status", nil,
                "the lookup of the video", allowing: [404, 410])
        } catch let error as UploadError where error.lacksAnswer {
            throw try await later(&checkpoint, reporter, error.failure.message)
        }
        guard (200..<300).contains(response.status) else {
            guard api.isServiceError(response) else {
                throw try await later(&checkpoint, reporter, "a \(response.status) that is not the service's own")
            }
            // A video may not be visible everywhere yet.
            if checkpoint.vimeo.increment(\.missingAnswers) < Self.maxMissingAnswers {
                throw try await later(&checkpoint, reporter, "it is not found; asking again")
            }
            return .missing(
                refusal(
                    .videoDeleted,
                    "the video \(FilePath(video).display) was not found there \(Self.maxMissingAnswers) times after its bytes had arrived: it was deleted"
                ))
        }
        checkpoint.vimeo.missingAnswers = nil
        checkpoint.missingIn = nil
        // Only known words count: an answer from an intermediary, or a word of a later version, is no success.
        guard let uri = json?["uri"]?.string else {
            throw try await later(&checkpoint, reporter, "an answer without content")
        }
        guard Self.isSame(uri, video) else {
            throw try await later(&checkpoint, reporter, "an answer about another video")
        }
        if let there = json?["upload"]?["size"]?.whole, there != order.file.size {
            throw try await later(
                &checkpoint, reporter, "it reports \(there) bytes, and the file has \(order.file.size)")
        }
        var outcome = outcome
        if checkpoint.concludesFrom == "offset_unanswered" {
            outcome.warnings.append("no answer to its last bytes arrived; the service reports that it has all of them")
        }
        outcome.id = video
        if let link = json?["link"]?.text.flatMap({ Self.page($0) }), checkpoint.vimeo.link != link {
            checkpoint.vimeo.link = link
            try await reporter.recordName(video, at: link)
        }
        outcome.url = checkpoint.vimeo.link
        let (upload, transcode) = (json?["upload"]?["status"]?.text, json?["transcode"]?["status"]?.text)
        let status = json?["status"]?.text
        if status == "quota_exceeded" || status == "total_cap_exceeded" {
            return .rejected(await accountFullError(status))
        }
        if status == "uploading_error" || upload == "error" {
            return .rejected(
                UploadError(
                    failure(
                        .protocol, .uploadRejected,
                        "the service has accepted every byte, and reports that the upload failed",
                        retryable: true), remedy: .refused(after: .seconds(60))))
        }
        if status == "transcoding_error" || transcode == "error" {
            let states = [status, transcode.map { "transcode \($0)" }].compactMap { $0 }
            let words = FilePath(states.joined(separator: ", "))
            return .rejected(
                refusal(
                    .transcodingFailed,
                    "the service has accepted every byte, but cannot make a video of them: it says \(words.display)"))
        }
        let isPlayable = Self.isPlayable(json?["is_playable"]?.flag, status, upload, transcode)
        switch verification(of: order) {
        case .transfer where upload == "complete" || isPlayable || status.map(Self.later.contains) == true:
            return .done(outcome)
        case .transcoded where isPlayable:
            outcome.verifiedBy = "transcoded"
            if let waited = waited(checkpoint), waited > settings.verifyTimeout {
                outcome.warnings.append("the service processed it for \(waited.inWords), longer than `verify_timeout`")
            }
            return .done(outcome)
        default: break
        }
        let error = try await later(&checkpoint, reporter, status ?? transcode ?? upload ?? "nothing")
        // An offset was out of date, or the service lost acknowledged bytes: it is not working, but waiting for us.
        let lacksBytes = upload == "in_progress" || upload == nil && status == "uploading"
        if lacksBytes { return .incomplete(error) }
        throw error
    }

    /// Whether every known field of a video says that it can be watched, and at least one does.
    private static func isPlayable(_ flag: Bool?, _ status: String?, _ upload: String?, _ transcode: String?) -> Bool {
        guard flag != false, upload ?? "complete" == "complete" else { return false }
        // A video that can be watched may still be encoded in more sizes.
        if flag == true { return status.map(later.contains) ?? true }
        let words = [status.map { $0 == "available" }, transcode.map { $0 == "complete" }].compactMap { $0 }
        return !words.isEmpty && words.allSatisfy { $0 }
    }

    /// Whether an answer is about this video: a secret for users of the link may follow after a colon.
    private static func isSame(_ uri: String, _ video: String) -> Bool {
        func name(_ text: String) -> Substring? { path(of: text)?.split(separator: ":").first }
        return name(uri) == name(video)
    }

    /// Queries again later, with growing waits.
    private func later(
        _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter, _ status: String
    ) async throws -> UploadError {
        let polls = checkpoint.vimeo.increment(\.polls)
        if !checkpoint.vimeo.has(\.waitsSince) { checkpoint.vimeo.waitsSince = api.now }
        try await reporter.record(checkpoint.stored)
        let wait = min(settings.firstPoll * (1 << min(polls - 1, 10)), max(Self.longestPoll, settings.firstPoll))
        return api.client.unverified(
            "the video", status, waited: waited(checkpoint) ?? .zero, timeout: settings.verifyTimeout, poll: wait)
    }

    /// How long the service has been working since every byte was there; `nil` where there was no need to wait.
    private func waited(_ checkpoint: OffsetCheckpoint) -> Duration? {
        guard let since = checkpoint.vimeo.waitsSince else { return nil }
        return max(.zero, .milliseconds(api.now.subtractingReportingOverflow(since).partialValue))
    }

    private func accountFullError(_ status: String?) async -> UploadError {
        let failure = failure(
            .quota, .quotaExceeded,
            "the service has accepted every byte, and the account's \(status == "total_cap_exceeded" ? "storage" : "quota") "
                + "does not allow the video", retryable: true)
        let reset = (try? await space())?.resetsAt
        let now = api.client.clocks.wall()
        // Finding out costs the whole file: not before tomorrow, where the service names no time.
        let wait =
            reset.flatMap { $0 > now ? Duration.milliseconds($0.milliseconds - now.milliseconds) : nil } ?? Self.day
        return UploadError(failure, remedy: .outOfSpace(after: wait))
    }

    // MARK: Other requests

    /// The smaller of the period's quota and the total storage; `nil` if the service does not report it, as for a token
    /// without the scope `private`.
    func space() async throws -> RemoteSpace? {
        let (_, json) = try await api.call("GET", "/me?fields=upload_quota", nil, "the lookup of the quota", context)
        guard let space = json?["upload_quota"]?["space"] else { return nil }
        let isCount = space["unit"]?.text == "video_count"
        let periodic = json?["upload_quota"]?["periodic"]
        let showsPeriod = space["showing"]?.text != "lifetime"
        // Negative values are unknown.
        func count(_ name: String) -> Int64? { space[name]?.whole.flatMap { $0 < 0 ? nil : $0 } }
        let reset = showsPeriod ? periodic?["reset_date"]?.text.flatMap { WallTime(rfc3339: $0) } : nil
        let answer = RemoteSpace(
            isCount ? .files : .bytes, free: count("free"), used: count("used"), limit: count("max"), resetsAt: reset)
        return answer.left == nil && answer.used == nil && answer.limit == nil ? nil : answer
    }

    /// - Parameter mark: The number of a page, from 1.
    func list(after mark: String?) async throws -> RemotePage {
        let number = mark.flatMap { Int($0) }.map { max(1, $0) } ?? 1
        let (_, json) = try await api.call(
            "GET",
            "/me/videos?sort=date&direction=desc&per_page=50&page=\(number)"
                + "&fields=uri,name,link,created_time,status,upload.size,upload.status", nil, "the list of videos",
            context)
        guard case .list(let data)? = json?["data"] else {
            throw unusableAnswer("an answer to the request for videos without a list")
        }
        let items = data.compactMap { video -> RemotePage.Item? in
            guard let id = video["uri"]?.string else { return nil }
            return RemotePage.Item(
                id: id, name: video["name"]?.text, url: video["link"]?.text,
                state: video["status"]?.text ?? video["upload"]?["status"]?.text,
                size: video["upload"]?["size"]?.whole.flatMap { $0 < 0 ? nil : $0 },
                createdAt: video["created_time"]?.text.flatMap { WallTime(rfc3339: $0) })
        }
        return RemotePage(items: items, next: json?["paging"]?["next"] == nil ? nil : "\(number + 1)")
    }

    /// - Returns: Whether there is nothing left of it.
    func remove(_ video: String) async throws -> Bool {
        let (response, _) = try await api.call(
            "DELETE", video, nil, "the removal of a cancelled upload", context, allowing: [403, 404, 410])
        if response.status != 403, response.isWebPage {
            throw api.refusal(response, "the removal of a cancelled upload")
        }
        // A token that may not delete now will not be allowed to later.
        return response.status != 403
    }

    /// The scopes of the token, by the service's names; `nil` if the service does not report them.
    func scopes() async throws -> Set<String>? {
        let (_, json) = try await api.call("GET", "/oauth/verify", nil, "the lookup of the token's scopes", context)
        return json?["scope"]?.text.map { Set($0.split(separator: " ").map(String.init)) }
    }
}
