internal import Core
internal import Credentials
internal import Linux
internal import Transport

/// An account at Vimeo: its settings, and the facts that all uploads to it have learned.
struct VimeoAccount: Sendable {
    let api: VimeoAPI
    /// The address of an upload, which speaks tus. Without a token: it must not reach another host.
    let tus: TusServer
    let ranges: ContentRange
    let settings: VimeoSettings
    let secrets: SecretReader
    let log: @Sendable (String) -> Void
}

/// The API of Vimeo (version 3.4) as ``OffsetEngine`` needs it: creates a video or ticket, sends bytes to its address,
/// and takes the last steps when they are there.
struct VimeoDialect: OffsetDialect {
    let account: VimeoAccount
    /// The context of its requests.
    let context: RequestContext

    var api: VimeoAPI { account.api }
    private var tus: TusDialect { TusDialect(server: account.tus, context: context) }
    var ranges: ContentRange { account.ranges }
    var settings: VimeoSettings { account.settings }
    private var secrets: SecretReader { account.secrets }
    var log: @Sendable (String) -> Void { account.log }

    var server: String { WebAddress(settings.base).origin }

    // MARK: Creation

    func create(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Bool {
        guard order.file.size > 0 else {
            throw refusal(.emptyFile, "an empty file makes a video that never ends; it is not sent")
        }
        // Otherwise the service accepts every byte and then makes no video of them.
        if !Self.mayBeVideo(order.mediaType) {
            var words = "it is \(order.mediaType), and Vimeo takes videos; `include` can leave it out"
            if VimeoPicture.isImage(order) {
                words += ", and `video.thumbnail` makes it the thumbnail of its group's video"
            }
            throw refusal(.notAVideo, words)
        }
        let earlier = checkpoint.orphans ?? 0
        do {
            try await api.creations.make(api.client, after: earlier) {
                if earlier > 0 {
                    log("a creation got no answer: the account may hold one more empty video; `sluice remote` shows it")
                }
                switch settings.flow {
                case .tus: try await createVideo("tus", order, &checkpoint)
                case .twoStep: try await createVideo("streaming", order, &checkpoint)
                case .fourStep: try await createTicket(order, &checkpoint)
                }
            }
        } catch let error as UploadError {
            // Nothing was begun, so no time is recorded.
            if error.leavesNothingBehind { checkpoint.stored.remove(VimeoCheckpoint.ofCreation) }
            throw error
        }
        checkpoint.stored.remove(VimeoCheckpoint.ofCreation)
        checkpoint.vimeo.flow = settings.flow
        checkpoint.server = server
        checkpoint.vimeo.videoSize = order.file.size
        return false
    }

    /// Decides by the ending; an unknown ending is allowed.
    static func mayBeVideo(_ mediaType: String) -> Bool {
        mediaType.hasPrefix("video/") || mediaType == "application/mxf" || mediaType == "application/octet-stream"
    }

    private func createVideo(
        _ approach: String, _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint
    ) async throws {
        var body = try await metadata(of: order).fields
        var upload: [String: JSONValue] = ["approach": .text(approach), "size": .whole(order.file.size)]
        if approach == "streaming" { upload["mime_type"] = .text(order.mediaType) }
        body["upload"] = .object(upload)
        let (size, name) = (order.file.size, body["name"]?.text)
        let (json, video) = try await api.known.creating(size, name) {
            let json = try await createVideoEntry(
                .object(body), "?fields=uri,link,name,upload", "the creation of a video")
            guard let video = json?["uri"]?.string.flatMap({ Self.path(of: $0) }) else {
                throw unusableAnswer("an answer to the creation that names no video")
            }
            // Before another upload can take it for its own.
            api.known.note(video)
            return (json, video)
        }
        let answer = json?["upload"]
        // The video has to be removed again, also when the rest of the answer is unusable.
        checkpoint.vimeo.video = video
        checkpoint.vimeo.link = json?["link"]?.text.flatMap { Self.page($0) }
        if let other = answer?["approach"]?.text, other != approach {
            throw unusableAnswer(
                "the video was created with the approach `\(FilePath(other).display)`, and not `\(approach)`: "
                    + "this account or application may not upload so")
        }
        checkpoint.url = try uploadAddress(answer?["upload_link"]?.string)
    }

    private func createTicket(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws {
        let body: [String: JSONValue] = ["type": .text("streaming"), "size": .whole(order.file.size)]
        let json = try await createVideoEntry(
            .object(body), "", "the creation of an upload ticket", version: .ofTickets)
        guard let complete = json?["complete_uri"]?.string, Self.isPlain(complete) else {
            throw unusableAnswer(
                "an answer to the creation that does not say how the upload ends: the application may have no upload access"
            )
        }
        checkpoint.url = try uploadAddress(json?["upload_link_secure"]?.string)
        checkpoint.vimeo.completeURI = complete
        checkpoint.vimeo.ticketAt = api.now
    }

    /// When the upload is stopped, a creation in flight is awaited for this long: a video without a record is never
    /// removed.
    static let cancellationGrace: Duration = .milliseconds(800)

    private func createVideoEntry(
        _ body: JSONValue, _ query: String, _ what: String, version: VimeoAPI.Version = .current
    ) async throws -> JSONValue? {
        try await withCancellationGrace(Self.cancellationGrace) {
            try await call("POST", "/me/videos" + query, body, what, version: version).json
        }
    }

    func uploadAddress(_ link: String?) throws(UploadError) -> String {
        guard let link, !link.isEmpty else {
            throw unusableAnswer("an answer to the creation that names no address for the bytes")
        }
        // An address at an origin that is not allowed is recorded too, and waits for a person.
        do { return try UploadLocation(link, base: settings.base + "/", allowed: tus.allowed).url } catch {
            throw unusableAnswer("the address for the bytes is refused: \(error.reason)")
        }
    }

    /// A value beyond a limit, such as the length of a name, is an error of this file.
    func metadata(of order: UploadOrder) async throws -> VimeoFields.MetadataFields {
        var password: String?
        if let source = settings.password {
            do {
                let secret = try await secrets.read(source).reveal()
                // A server may repeat a value that it refuses.
                api.client.conceal(secret)
                password = secret
            } catch { throw api.client.unreadable(error) }
        }
        do { return try settings.video.metadata(of: order, password: password) } catch {
            throw refusal(.metadataRefused, error.text)
        }
    }

    /// `/videos/123` from an address that may be absolute.
    static func path(of location: String) -> String? {
        let path = WebAddress(location).path
        let name = path.dropFirst(8)
        // Some have a secret after a colon, for users of the link.
        let isName = (1...100).contains(name.utf8.count) && name.utf8.allSatisfy { $0.isLetterOrDigit(or: "-_:") }
        return path.hasPrefix("/videos/") && isName ? path : nil
    }

    /// The address of a page, if it can be shown to people.
    static func page(_ link: String) -> String? {
        let scheme = WebAddress(link).scheme
        return isPlain(link) && (scheme == "https" || scheme == "http") ? link : nil
    }

    private static func isPlain(_ text: String) -> Bool {
        (1...2048).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    // MARK: Bytes

    func isOurs(_ checkpoint: OffsetCheckpoint) -> Bool {
        checkpoint.server.map { WebAddress($0).origin == server } ?? true
    }

    func objection(to checkpoint: OffsetCheckpoint) -> UploadError? { tus.objection(to: checkpoint) }

    private func flow(_ checkpoint: OffsetCheckpoint) -> VimeoFlow {
        checkpoint.vimeo.flow ?? settings.flow
    }

    func locate(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Position {
        guard let url = checkpoint.url else { return .gone(isCertain: true) }
        guard flow(checkpoint) == .tus else { return try await ranges.locate(url, order, &checkpoint, context) }
        do { return try await tus.locate(order, &checkpoint) } catch let error as UploadError {
            // The request had no token that could be refused: the link has ended.
            guard let status = error.failure.http, status == 401 || status == 403 else { throw error }
            return .gone(isCertain: false)
        }
    }

    var isListed: Bool { true }

    func allowance(for count: Int64) -> Int64 { tus.allowance(for: count) }
    var minRequest: Int64 { tus.minRequest }
    func reserve(for count: Int64) async -> Shortage? { await tus.reserve(for: count) }
    func returnReservation(for count: Int64, sent: Int64) { tus.returnReservation(for: count, sent: sent) }

    func send(
        _ range: Range<Int64>, _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, past digest: SentDigest,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> SendResult {
        guard let url = checkpoint.url else { return SendResult(unsent: .accepted(nil)) }
        guard flow(checkpoint) == .tus else {
            return await ranges.send(range, to: url, order, &checkpoint, past: digest, context, sent)
        }
        return await tus.send(range, order, &checkpoint, past: digest, sent)
    }

    /// The API, which knows the video unless a proxy has lost its backend.
    func isThere() async throws -> Bool {
        let what = "the lookup of the account"
        let (response, _) = try await call("GET", "/me?fields=uri", nil, what)
        if response.isWebPage { throw api.client.answeredByPage(what, response) }
        return true
    }

    /// A video counts against the account's quota, with bytes or without. A ticket that was not activated does not.
    func remains(of checkpoint: OffsetCheckpoint) -> OffsetCheckpoint? {
        // A video that was found by its size alone may be another writer's.
        guard let video = checkpoint.vimeo.video, !checkpoint.vimeo.wasFoundBySize else { return nil }
        let kept = [
            OffsetCheckpoint.fields.url.name, OffsetCheckpoint.fields.reach.name,
            OffsetCheckpoint.fields.concludesFrom.name, VimeoCheckpoint.fields.flow.name,
            VimeoCheckpoint.fields.videoSize.name,
        ]
        var remains = OffsetCheckpoint(checkpoint.stored.keeping(kept))
        remains.vimeo.video = video
        remains.server = checkpoint.server ?? server
        return remains
    }

    func name(of checkpoint: OffsetCheckpoint) -> (id: String, url: String?)? {
        checkpoint.vimeo.video.map { ($0, checkpoint.vimeo.link) }
    }

    // MARK: Words

    /// Like ``VimeoAPI/call(_:_:_:_:_:allowing:version:)``. When the quota is used up, adds the time at which it is
    /// renewed.
    func call(
        _ method: String, _ path: String, _ body: JSONValue?, _ what: String, allowing: Set<Int> = [],
        version: VimeoAPI.Version = .current
    ) async throws -> (response: Response, json: JSONValue?) {
        do {
            return try await api.call(method, path, body, what, context, allowing: allowing, version: version)
        } catch var error
            as UploadError
        {
            if case .outOfSpace(nil) = error.remedy { error.remedy = .outOfSpace(after: try await resetWait()) }
            throw error
        }
    }

    private func resetWait() async throws -> Duration? {
        // The refusal counts; an unknown end is no further error.
        guard let reset = try? await space()?.resetsAt else { return nil }
        let now = api.client.clocks.wall()
        return reset > now ? .milliseconds(reset.milliseconds - now.milliseconds) : nil
    }

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        api.failure(kind, code, message, retryable: retryable)
    }

    /// Refuses this file alone.
    func refusal(_ code: Failure.Code, _ message: String) -> UploadError {
        UploadError(failure(.permanent, code, message, retryable: false), remedy: .failUpload)
    }

    /// Reports an answer that no account with the right to upload gets.
    func unusableAnswer(_ message: String) -> UploadError {
        UploadError(
            failure(.protocol, .unusableAnswer, message, retryable: true), remedy: .misconfigured)
    }
}
