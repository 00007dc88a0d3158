internal import Core
internal import Transport

// What the account holds that may be an upload's: a creation has no key by which the service would know it again.

extension VimeoDialect {
    /// A video in the account's list.
    struct Listed: Sendable {
        var uri: String
        var name: String?
        var size: Int64?
        var item: JSONValue
    }

    /// Clocks differ, and a machine may not have asked for the time yet.
    private static let skew: Int64 = 600_000
    private static let fields = "uri,link,name,created_time,upload"
    /// So many pages of 50 are read.
    private static let mostPages = 10

    /// The videos that were made since then, newest first.
    ///
    /// - Parameter since: ms since 1970, by the service's clock as far as it is known.
    /// - Returns: `isWhole` where there are no more than these, and each says of which size it is.
    func recent(since: Int64) async throws -> (videos: [Listed], isWhole: Bool) {
        var found: [Listed] = []
        var isWhole = true
        for page in 1...Self.mostPages {
            let (_, json) = try await asked(
                "GET", "/me/videos?sort=date&direction=desc&per_page=50&page=\(page)&fields=\(Self.fields)", nil,
                "the list of videos")
            guard case .list(let items)? = json?["data"] else {
                throw strange("an answer to the question for videos without a list")
            }
            for item in items {
                guard let uri = item["uri"]?.text.flatMap({ Self.path(of: $0) }),
                    let made = item["created_time"]?.text.flatMap({ WallTime(rfc3339: $0) })
                else {
                    isWhole = false
                    continue
                }
                if made.milliseconds < since - Self.skew { return (found, isWhole) }
                let size = item["upload"]?["size"]?.whole
                if size == nil { isWhole = false }
                found.append(Listed(uri: uri, name: item["name"]?.text, size: size, item: item))
            }
            if json?["paging"]?["next"]?.text == nil { return (found, isWhole) }
        }
        return (found, false)
    }

    // MARK: A creation whose answer is not known

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
        if checkpoint["creating"] != nil, let asked = checkpoint["asked_at"].flatMap({ Int64($0) }) {
            if try await adopt(since: asked, order, &checkpoint, notes) {
                order.checkpoint = checkpoint
                return order
            }
        }
        // What has to wait asks for nothing, and leaves the time of the last question as it is.
        try api.creations.check(api.asking)
        checkpoint["asked_at"] = "\(api.now)"
        order.checkpoint = checkpoint
        return order
    }

    /// - Returns: Whether the upload goes on with what an earlier creation has made.
    private func adopt(
        since asked: Int64, _ order: UploadOrder, _ checkpoint: inout Checkpoint, _ notes: any UploadNotes
    ) async throws -> Bool {
        let approach: String
        switch settings.flow {
        case .tus: approach = "tus"
        case .twoStep: approach = "streaming"
        // A ticket that was not ended is nothing, and no list has it.
        case .fourStep: return false
        }
        let name = try await said(of: order).fields["name"]?.text
        let videos: [Listed]
        do { videos = try await recent(since: asked).videos } catch let error as UploadError {
            switch error.remedy {
            // It cannot be asked for, and will not be later.
            case .authenticate, .misconfigured, .giveUp: return try nothing(since: asked, checkpoint)
            default: throw error
            }
        }
        for video in videos
        where video.size == order.file.size && video.name == name && !api.known.contains(video.uri) {
            let upload = video.item["upload"]
            guard upload?["approach"]?.text ?? approach == approach,
                upload?["status"]?.text ?? "in_progress" == "in_progress",
                let link = upload?["upload_link"]?.string, let url = try? uploadAddress(link),
                try await !notes.isOfAnother(video.uri)
            else { continue }
            var found = checkpoint
            for field in ["creating", "asked_at"] { found[field] = nil }
            found["url"] = url
            found["video"] = video.uri
            found["link"] = video.item["link"]?.text.flatMap { Self.page($0) }
            found["flow"] = settings.flow.rawValue
            found["server"] = server
            var look = found
            // No byte of this file has left: what has any is somebody else's.
            guard case .at(0) = try await locate(order, &look) else { continue }
            api.known.note(video.uri)
            api.creations.succeeded()
            checkpoint = look
            try await notes.record(checkpoint)
            try await notes.named(video.uri, at: found["link"])
            log("the video of a creation whose answer was lost was found: \(video.uri)")
            return true
        }
        return false
    }

    /// It could not be looked for: the next creation waits longer with each that came to nothing, also over a restart.
    ///
    /// - Returns: `false`.
    private func nothing(since asked: Int64, _ checkpoint: Checkpoint) throws(UploadError) -> Bool {
        let wait = CreationPatience.wait(after: checkpoint.number("orphans") + 1)
        // A clock that was set back meanwhile makes it no longer than that.
        let gone = max(0, api.now.subtractingReportingOverflow(asked).partialValue)
        let left = wait - .milliseconds(gone)
        if left > .zero { throw api.asking.tooManyCreations(left) }
        return false
    }

    // MARK: An end that was asked for before a cancel

    /// So long a video may take to show in the list.
    private static let showing: Int64 = 600_000

    /// Removes the video of a four-step upload that was cancelled while its end was asked for.
    ///
    /// - Returns: Whether there is nothing left of it.
    /// - Throws: ``UploadError``, with ``Failure/removalUnknown`` when it cannot be found out.
    func removeEnded(_ checkpoint: Checkpoint) async throws -> Bool {
        let asked = checkpoint.number("ending_at")
        let (videos, isWhole): ([Listed], Bool)
        do { (videos, isWhole) = try await recent(since: asked) } catch let error as UploadError {
            guard error.failure.http == 403 else { throw error }
            throw unknown("the token may not list videos: \(error.failure.message)")
        }
        // One that has a name was given it by whoever knows it.
        let mine = videos.filter { video in
            video.size == checkpoint.number("ending_size") && !api.known.contains(video.uri)
                && ["", "Untitled"].contains(video.name ?? "")
        }
        if mine.count == 1, let video = mine.first { return try await remove(video.uri) }
        let isEarly = api.now.subtractingReportingOverflow(asked).partialValue < Self.showing
        if isEarly {
            throw UploadError(
                failure(
                    .transient, "not_shown_yet",
                    "it was cancelled while its end was asked for, and the account shows \(mine.isEmpty ? "no" : "more than one") video that may be its",
                    retryable: true), remedy: .again(after: nil))
        }
        if mine.isEmpty, isWhole { return true }
        throw unknown(
            mine.isEmpty
                ? "not every video in the account says of which size it is"
                : "\(mine.count) videos in the account may be its")
    }

    private func unknown(_ words: String) -> UploadError {
        UploadError(
            failure(
                .protocol, Failure.removalUnknown,
                "it was cancelled while its end was asked for, and whether a video came of it could not be found out: \(words); look at the account",
                retryable: false), remedy: .giveUp)
    }

    // MARK: Whether a flow is taken

    /// Asks for an upload of an impossible size, which makes nothing: a service that does not take the flow says so first.
    ///
    /// - Returns: The refusal of the flow; `nil` where it is taken, or something else was refused.
    func refusalOfFlow() async throws -> UploadError? {
        let size = JSONValue.whole(-1)
        let body: [String: JSONValue] =
            switch settings.flow {
            case .tus: ["upload": .object(["approach": .text("tus"), "size": size])]
            case .twoStep: ["upload": .object(["approach": .text("streaming"), "size": size])]
            case .fourStep: ["type": .text("streaming"), "size": size]
            }
        let (response, json) = try await asked(
            "POST", "/me/videos?fields=uri", .object(body), "an upload by `flow: \(settings.flow.rawValue)`",
            allowing: Set(400..<500), version: settings.flow == .fourStep ? .ofTickets : .current)
        if (200..<300).contains(response.status), let video = json?["uri"]?.text.flatMap({ Self.path(of: $0) }) {
            // It takes any size, and has made one.
            _ = try await remove(video)
        }
        guard !(200..<300).contains(response.status), response.status != 429 else { return nil }
        return api.verdict(response).isOfFlow
            ? api.refusal(response, "an upload by `flow: \(settings.flow.rawValue)`") : nil
    }
}
