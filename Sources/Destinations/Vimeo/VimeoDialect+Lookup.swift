internal import Core
internal import Transport

// Looks in the account for videos that may belong to an upload: the service cannot find a creation by a key.

extension VimeoDialect {
    /// A video in the account's list.
    struct Listed: Sendable {
        var uri: String
        var name: String?
        var size: Int64?
        /// ms since 1970, by the service's clock.
        var madeAt: Int64
        var item: JSONValue
    }

    private static let fields = "uri,link,name,created_time,upload"
    /// Maximum number of pages, of 50 videos each.
    private static let maxPages = 10

    /// The videos that were made since then, newest first.
    ///
    /// - Parameter since: ms since 1970, by the service's clock as far as it is known.
    /// - Returns: `isWhole` where there are no others, and the size of each is known.
    func recent(since: Int64) async throws -> (videos: [Listed], isWhole: Bool) {
        var found: [Listed] = []
        var isWhole = true
        for page in 1...Self.maxPages {
            let (_, json) = try await call(
                "GET", "/me/videos?sort=date&direction=desc&per_page=50&page=\(page)&fields=\(Self.fields)", nil,
                "the list of videos")
            guard case .list(let items)? = json?["data"] else {
                throw unusableAnswer("an answer to the request for videos without a list")
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
                found.append(
                    Listed(
                        uri: uri, name: item["name"]?.text, size: size, madeAt: made.milliseconds, item: item))
            }
            if json?["paging"]?["next"]?.text == nil { return (found, isWhole) }
        }
        return (found, false)
    }

    // MARK: An end that was requested before a cancel

    /// Time within which a video appears in the list.
    static let showing: Int64 = 600_000

    /// Removes the video of a four-step upload that was cancelled while its end was requested.
    ///
    /// - Returns: Whether there is nothing left of it.
    /// - Throws: ``UploadError``, with ``Failure/Code/removalUnknown`` when it cannot be found out.
    func removeEnded(_ checkpoint: OffsetCheckpoint) async throws -> Bool {
        let asked = checkpoint.vimeo.endingAt ?? 0
        let (videos, isWhole): ([Listed], Bool)
        do { (videos, isWhole) = try await recent(since: asked) } catch let error as UploadError {
            guard error.failure.http == 403 else { throw error }
            throw unknown(Self.inEnd, "the token may not list videos: \(error.failure.message)")
        }
        // A video with a name was named by a program that knows it.
        let mine = videos.filter { video in
            video.size == (checkpoint.vimeo.endingSize ?? 0) && !api.known.contains(video.uri)
                && ["", "Untitled"].contains(video.name ?? "")
        }
        if mine.count == 1, let video = mine.first { return try await remove(video.uri) }
        let isEarly = api.now.subtractingReportingOverflow(asked).partialValue < Self.showing
        if isEarly { throw notShown(Self.inEnd, mine.count) }
        if mine.isEmpty, isWhole { return true }
        throw unknown(
            Self.inEnd,
            mine.isEmpty
                ? "not every video in the account has a known size"
                : "\(mine.count) videos in the account may be its")
    }

    private static let inEnd = "it was cancelled while its completion was requested"

    /// - Parameter what: The step at which it was cancelled.
    func notShown(_ what: String, _ count: Int) -> UploadError {
        let some = count == 0 ? "no video" : count == 1 ? "one video" : "more than one video"
        return UploadError(
            failure(
                .transient, .notShownYet,
                "\(what), and the account shows \(some) that may be its; it is checked again",
                retryable: true), remedy: .retry(after: nil))
    }

    func unknown(_ what: String, _ words: String) -> UploadError {
        var error = UploadError(
            failure(
                .protocol, .removalUnknown,
                "\(what), and it is not known whether it became a video: \(words); check the account",
                retryable: false), remedy: .failUpload)
        error.isConclusive = true
        return error
    }

    // MARK: Whether a flow is supported

    enum FlowSupport: Sendable {
        case supported, unknown
        case refused(UploadError)
    }

    /// Requests an upload of an impossible size, which creates nothing: a service that does not support the flow
    /// reports that first.
    ///
    /// - Returns: Whether it is supported; unknown where the service refused something else first.
    func flowSupport() async throws -> FlowSupport {
        let size = JSONValue.whole(-1)
        let body: [String: JSONValue] =
            switch settings.flow {
            case .tus: ["upload": .object(["approach": .text("tus"), "size": size])]
            case .twoStep: ["upload": .object(["approach": .text("streaming"), "size": size])]
            case .fourStep: ["type": .text("streaming"), "size": size]
            }
        let (response, json) = try await call(
            "POST", "/me/videos?fields=uri", .object(body), "an upload by `flow: \(settings.flow.rawValue)`",
            allowing: Set(400..<500), version: settings.flow == .fourStep ? .ofTickets : .current)
        if (200..<300).contains(response.status), let video = json?["uri"]?.text.flatMap({ Self.path(of: $0) }) {
            // The service accepts any size, and has made a video.
            _ = try await remove(video)
        }
        if (200..<300).contains(response.status) { return .supported }
        let verdict = api.verdict(response)
        if response.status != 429 {
            if verdict.isOfFlow {
                return .refused(api.refusal(response, "an upload by `flow: \(settings.flow.rawValue)`"))
            }
            if verdict.isOfSize { return .supported }
        }
        return .unknown
    }
}
