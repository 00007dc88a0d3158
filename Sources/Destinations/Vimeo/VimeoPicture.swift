internal import Core
internal import Linux
internal import Transport

/// An image that is uploaded together with a video, and becomes its thumbnail (thumbnails of the API, version 3.4:
/// `POST {video}/pictures`, `PUT` to the link that it names, `PATCH` with `active`).
struct VimeoPicture: Sendable {
    let dialect: VimeoDialect

    private static let types: Set = ["image/jpeg", "image/png", "image/gif"]
    /// The end of the video's upload wakes the pictures that wait for it.
    private static let retryWait: Duration = .seconds(300)

    static func isImage(_ order: UploadOrder) -> Bool { order.mediaType.hasPrefix("image/") }

    func upload(_ order: UploadOrder, _ reporter: any UploadReporter) async throws -> RemoteObject {
        try judge(order)
        try await order.file.checkStatus(dialect.failure)
        reporter.entered(.opening)
        var checkpoint = VimeoPictureCheckpoint(order.checkpoint ?? Checkpoint())
        if !dialect.isOurs(OffsetCheckpoint(checkpoint.stored)) { try await renew(&checkpoint, reporter, losses: nil) }
        while true {
            if try await sendPicture(order, &checkpoint, reporter),
                let picture = try await activate(checkpoint, reporter)
            {
                return RemoteObject(id: picture, url: nil, verifiedBy: "active")
            }
            // The next creation shows whether its video is gone as well.
            let losses = checkpoint.increment(\.losses)
            try await renew(&checkpoint, reporter, losses: losses < Self.maxLosses ? losses : nil)
            if losses >= Self.maxLosses { throw gone("the thumbnail") }
        }
    }

    private static let maxLosses: Int64 = 3

    /// - Returns: `false` when the link has ended.
    private func sendPicture(
        _ order: UploadOrder, _ checkpoint: inout VimeoPictureCheckpoint, _ reporter: any UploadReporter
    ) async throws -> Bool {
        if checkpoint.isSent { return true }
        if checkpoint.url == nil { try await create(&checkpoint, reporter) }
        reporter.entered(.uploading)
        guard try await send(order, checkpoint, reporter) else { return false }
        checkpoint.isSent = true
        try await reporter.accepted(order.file.size, checkpoint.stored)
        return true
    }

    private func judge(_ order: UploadOrder) throws(UploadError) {
        guard Self.types.contains(order.mediaType) else {
            throw dialect.refusal(
                .notAPicture, "it is \(order.mediaType), and Vimeo takes JPEG, PNG and GIF for thumbnails")
        }
        guard order.file.size > 0 else {
            throw dialect.refusal(.emptyFile, "an empty file is not a picture; it is not sent")
        }
    }

    // MARK: Its video

    /// The address of the video to which the picture belongs.
    private func video(_ reporter: any UploadReporter) async throws -> String {
        guard let companion = try await reporter.companions().first(where: { VimeoDialect.mayBeVideo($0.mediaType) })
        else { throw dialect.refusal(.noVideo, "it accompanies no video; `group` of its folder sets that") }
        switch companion.state {
        case .completed:
            guard let video = companion.remote?.id.flatMap({ VimeoDialect.path(of: $0) }) else {
                throw dialect.refusal(.noVideo, "the page of the video that it accompanies is not known")
            }
            return video
        case .cancelled, .removed:
            throw dialect.refusal(.noVideo, "the upload of the video that it accompanies was cancelled")
        case .failed, .staging, .queued, .uploading: break
        }
        let how = companion.state == .failed ? ", whose upload failed" : " to be complete"
        throw UploadError(
            dialect.failure(
                .transient, .companionFirst, "a thumbnail that waits for its video\(how)", retryable: true),
            remedy: .pending(after: Self.retryWait))
    }

    // MARK: Steps

    private func create(_ checkpoint: inout VimeoPictureCheckpoint, _ reporter: any UploadReporter) async throws {
        let video = try await video(reporter)
        let (picture, url) = try await dialect.api.creations.make(dialect.api.client, after: 0) {
            let (response, json) = try await withCancellationGrace(VimeoDialect.cancellationGrace) {
                try await call("POST", video + "/pictures", nil, "the creation of a thumbnail")
            }
            guard response.status != 404 else {
                // A portal's answer says nothing about the video.
                guard dialect.api.isServiceError(response) else {
                    throw dialect.api.refusal(response, "the creation of a thumbnail")
                }
                throw gone("the video that it accompanies")
            }
            guard let picture = json?["uri"]?.string, Self.isPicture(picture, of: video) else {
                throw dialect.unusableAnswer("an answer to the creation of a thumbnail that does not name it")
            }
            return (picture, try dialect.uploadAddress(json?["link"]?.string))
        }
        checkpoint.picture = picture
        checkpoint.server = dialect.server
        checkpoint.url = url
        try await reporter.record(checkpoint.stored)
    }

    /// - Returns: Whether there is such a link.
    private func send(
        _ order: UploadOrder, _ checkpoint: VimeoPictureCheckpoint, _ reporter: any UploadReporter
    ) async throws -> Bool {
        guard let url = checkpoint.url else { return false }
        let file = order.file
        let request = Request(
            "PUT", url, headers: [("Content-Type", order.mediaType)],
            body: .file(file.place, offset: 0, count: file.size), limits: dialect.settings.limits.sending)
        let response = try await dialect.ranges.client.sendBody(request, dialect.context) {
            reporter.sending(min($0, file.size))
        }
        .result.get().response
        switch response.status {
        case 200..<300:
            if response.isWebPage {
                throw dialect.ranges.client.answeredByPage("the bytes of a thumbnail", response)
            }
            return true
        case 401, 403, 404, 410: return false
        default: throw dialect.ranges.refused(response, "the bytes of a thumbnail", dialect.ranges.remedy(response))
        }
    }

    /// - Returns: `nil` when it no longer exists.
    private func activate(_ checkpoint: VimeoPictureCheckpoint, _ reporter: any UploadReporter) async throws -> String?
    {
        guard let picture = checkpoint.picture else { return nil }
        reporter.entered(.finishing)
        var (response, json) = try await call(
            "PATCH", picture, .object(["active": .bool(true)]), "the choice of a thumbnail")
        if (200..<300).contains(response.status), json?["active"]?.flag != true {
            (response, json) = try await call(
                "GET", picture + "?fields=uri,active", nil, "the lookup of a thumbnail")
        }
        if response.status == 404 {
            guard dialect.api.isServiceError(response) else {
                throw dialect.api.refusal(response, "the choice of a thumbnail")
            }
            return nil
        }
        guard json?["active"]?.flag == true else {
            throw UploadError(
                dialect.failure(
                    .protocol, .notActive, "the thumbnail was chosen, and is not shown", retryable: true),
                remedy: .retry(after: nil))
        }
        return picture
    }

    /// Like the dialect's own. 404 is handled, and a token without this right holds no other upload.
    private func call(
        _ method: String, _ path: String, _ body: JSONValue?, _ what: String
    ) async throws -> (response: Response, json: JSONValue?) {
        let answer = try await dialect.call(method, path, body, what, allowing: [403, 404])
        guard answer.response.status == 403 else { return answer }
        let error = dialect.api.refusal(answer.response, what)
        guard error.remedy == .authenticate else { throw error }
        throw dialect.refusal(
            .thumbnailForbidden, error.failure.message + "; the token needs the scope `edit` for thumbnails")
    }

    private func renew(_ checkpoint: inout VimeoPictureCheckpoint, _ reporter: any UploadReporter, losses: Int64?)
        async throws
    {
        let old = Self.remains(of: checkpoint)
        checkpoint = VimeoPictureCheckpoint()
        checkpoint.losses = losses
        try await reporter.renewed(checkpoint.stored, leaving: old?.stored)
    }

    static func remains(of checkpoint: VimeoPictureCheckpoint) -> VimeoPictureCheckpoint? {
        guard checkpoint.picture != nil else { return nil }
        var remains = VimeoPictureCheckpoint()
        remains.picture = checkpoint.picture
        remains.server = checkpoint.server ?? ""
        return remains
    }

    private func gone(_ what: String) -> UploadError {
        dialect.refusal(.videoDeleted, "\(what) was deleted there")
    }

    /// `/videos/123/pictures/456`.
    private static func isPicture(_ path: String, of video: String) -> Bool {
        let start = video + "/pictures/"
        return path.hasPrefix(start) && VimeoDialect.path(of: "/videos/" + path.dropFirst(start.count)) != nil
    }
}
