internal import Core
internal import Digests
internal import Linux
internal import Synchronization
internal import Transport

/// tus 1.0 as ``OffsetEngine`` needs it: creation, position, bytes, removal.
struct TusDialect: OffsetDialect {
    let server: TusServer
    /// The context of its requests.
    let context: RequestContext

    var endpoint: String { server.endpoint }
    var client: AuthorizedClient { server.client }
    var settings: TusSettings { server.settings }
    var capabilities: TusCapabilities { server.capabilities }
    private var creations: CreationBackoff { server.creations }
    private var bodies: BodyRefusal { server.bodies }
    var log: @Sendable (String) -> Void { server.log }
    var allowed: AllowedOrigins { server.allowed }

    static let version = ("Tus-Resumable", "1.0.0")

    // MARK: Requirements of the engine

    func create(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Bool {
        let announced = try await capabilities.current(self)
        if let most = announced?.maxSize, order.file.size > most {
            throw UploadError(
                failure(
                    .permanent, .maxSizeExceeded,
                    "the file has \(order.file.size) bytes, and \(host(endpoint)) takes at most \(most)",
                    retryable: false), remedy: .failUpload)
        }
        // The address may have another origin, and is recorded nevertheless: when a person has allowed that origin,
        // this upload continues there.
        let (url, response) = try await creations.make(client, after: checkpoint.orphans ?? 0) {
            var answer = try await post(order, checkpoint, isMinimal: false)
            if answer.verdict == .lessMetadata { answer = try await post(order, checkpoint, isMinimal: true) }
            switch answer.verdict {
            case .success: return (try uploadAddress(answer.answer), answer.answer.response)
            case .stop(let remedy): throw refused("creation", answer.answer.response, remedy)
            default: throw refused("creation", answer.answer.response, .failUpload)
            }
        }
        checkpoint.url = url
        checkpoint.server = WebAddress(endpoint).origin
        // In tus 1.0 the header answers a creation that carried bytes, and ours carries none: so this server knows the
        // upload, or holds its content already.
        return response.headers["Upload-Offset"].flatMap { plainInteger($0) } ?? 0 > 0
    }

    /// The server is the origin of the configured address; the upload's own address may have another, which the server
    /// chooses.
    func isOurs(_ checkpoint: OffsetCheckpoint) -> Bool {
        checkpoint.server.map { WebAddress($0).origin == WebAddress(endpoint).origin } ?? true
    }

    func objection(to checkpoint: OffsetCheckpoint) -> UploadError? {
        checkpoint.url.flatMap { client.objection(to: $0) }
    }

    func locate(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Position {
        guard let url = checkpoint.url else { return .gone(isCertain: true) }
        let answer = try await followRedirects(
            Request("HEAD", url, headers: [Self.version], limits: settings.limits.small))
        let response = answer.response
        checkpoint.url = answer.url
        let isTus = response.hasTusHeader
        switch verdict(.HEAD, response) {
        case .success: return try position(response, order, isTus)
        case .gone: return .gone(isCertain: isTus)
        case .doubtful: return .doubtful(refused("the lookup of its offset", response, .retry(after: nil)))
        case .stop(let remedy): throw refused("the lookup of its offset", response, remedy)
        default: throw refused("the lookup of its offset", response, .retry(after: nil))
        }
    }

    func send(
        _ range: Range<Int64>, _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, past digest: SentDigest,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> SendResult {
        guard let url = checkpoint.url else { return SendResult(unsent: .accepted(nil)) }
        if isProbing(checkpoint), !range.isEmpty, let refusal = await askWithoutBody(url, at: range.lowerBound) {
            return refusal
        }
        let carried: AuthorizedClient.Carried
        do {
            var headers = [
                Self.version, ("Upload-Offset", "\(range.lowerBound)"),
                ("Content-Type", "application/offset+octet-stream"),
            ]
            if let checksum = try await checksum(range, order) { headers.append(("Upload-Checksum", checksum)) }
            let count = range.upperBound - range.lowerBound
            carried = await client.sendBody(
                Request(
                    "PATCH", url, headers: headers,
                    body: .file(order.file.place, offset: range.lowerBound, count: count, check: digest),
                    limits: settings.limits.sending),
                context, sent: sent)
        } catch { return SendResult(unsent: .failed(error)) }
        switch carried.result {
        case .failure(let error): return SendResult(.failed(error), carried)
        case .success(let answer):
            switch verdict(.PATCH, answer.response) {
            case .stop(.misconfigured): (bodies.isRefused, checkpoint.tus.isPatchRefused) = (true, true)
            // A server may accept a request without bytes, and refuse every one with bytes.
            case .success where !answer.response.isWebPage:
                (bodies.isRefused, checkpoint.tus.isPatchRefused) = (false, false)
            default: break
            }
            return SendResult(
                judge(answer, &checkpoint), carried,
                isOfState: isAboutState(answer.response, range), mentionsOffset: mentionsOffset(answer.response))
        }
    }

    func isProbing(_ checkpoint: OffsetCheckpoint) -> Bool { bodies.isRefused || checkpoint.tus.isPatchRefused }

    /// A server that has refused the method itself first gets a request without bytes, at the offset that it has named.
    ///
    /// - Returns: `nil` where bytes may be sent.
    private func askWithoutBody(_ url: String, at offset: Int64) async -> SendResult? {
        let carried = await client.sendBody(
            Request(
                "PATCH", url,
                headers: [
                    Self.version, ("Upload-Offset", "\(offset)"), ("Content-Type", "application/offset+octet-stream"),
                    ("Content-Length", "0"),
                ], body: .bytes([]), limits: settings.limits.small), context, sent: { _ in })
        switch carried.result {
        case .failure(let error): return SendResult(.failed(error), carried)
        case .success(let answer):
            guard verdict(.PATCH, answer.response) == .stop(.misconfigured) else { return nil }
            return SendResult(.failed(refused("a request for bytes", answer.response, .misconfigured)), carried)
        }
    }

    /// Whether an answer is about where the upload stands: a conflict that names another offset, or one of tusd's codes
    /// for a lock, a stop by the server or an interrupted body.
    private func isAboutState(_ response: Response, _ range: Range<Int64>) -> Bool {
        let named = offset(in: response)
        // If it names the end of these bytes, it has accepted them.
        return response.status == 409 && named.map { $0 != range.lowerBound && $0 != range.upperBound } ?? false
            || errorCode(response).map(TusVerdict.codesOfState.contains) == true
    }

    /// Recognises `Upload already completed` and similar texts. A hook that refuses the file has others.
    private func mentionsOffset(_ response: Response) -> Bool {
        if response.isWebPage { return false }
        let text = String(decoding: response.body.prefix(1024), as: UTF8.self).lowercased()
        return text.contains("offset")
            || text.contains("already") && (text.contains("complete") || text.contains("finish"))
    }

    /// - Returns: `nil` also for an offset that is given twice with different values: a proxy has joined two answers.
    private func offset(in response: Response) -> Int64? {
        let values = Set(response.headers.lines.filter { $0.name.lowercased() == "upload-offset" }.map(\.value))
        return values.count == 1 ? values.first.flatMap { plainInteger($0) } : nil
    }

    func allowance(for count: Int64) -> Int64 { context.permit.allowance(for: count) }

    func isThere() async throws -> Bool { try await options(endpoint) != nil }

    /// - Returns: `nil` if the server does not report it. tus has no such field; `sluice receive` has.
    func space() async throws -> RemoteSpace? {
        try await capabilities.latest(self) { $0.free != nil }?.space
    }

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        client.failure(kind, code, message, retryable: retryable)
    }

    // MARK: The rest of the protocol

    /// - Returns: `false` when the server does not support removal.
    func remove(_ url: String) async throws -> Bool {
        let answer = try await followRedirects(
            Request("DELETE", url, headers: [Self.version], limits: settings.limits.small))
        switch verdict(.DELETE, answer.response) {
        case .success: return true
        case .stop(let remedy): throw refused("the removal", answer.response, remedy)
        default: return false
        }
    }

    /// The server's description of itself; `nil` when the answer is not that of a tus server.
    func options(_ url: String) async throws -> (response: Response, announced: TusAnnounced)? {
        let response = try await plainOptions(url)
        guard (200..<300).contains(response.status), let announced = TusAnnounced(response.headers) else { return nil }
        return (response, announced)
    }

    /// The answer as it is, from a tus server or not.
    func plainOptions(_ url: String) async throws -> Response {
        try await withUploadErrors {
            try await client.send(Request("OPTIONS", url, limits: settings.limits.small), context)
        }.response
    }

    private func post(
        _ order: UploadOrder, _ checkpoint: OffsetCheckpoint, isMinimal: Bool
    ) async throws -> (verdict: TusVerdict, answer: AuthorizedClient.Answer) {
        let metadata = TusMetadata.header(
            order, isASCII: settings.isASCII, isMinimal: isMinimal, isRepeat: checkpoint.wasReuploaded)
        let answer = try await followRedirects(
            Request(
                "POST", endpoint,
                headers: [
                    Self.version, ("Upload-Length", "\(order.file.size)"), ("Upload-Metadata", metadata),
                ], limits: settings.limits.small))
        return (verdict(.POST, answer.response), answer)
    }

    private func uploadAddress(_ answer: AuthorizedClient.Answer) throws(UploadError) -> String {
        let response = answer.response
        guard let location = response.headers["Location"], !location.isEmpty else {
            let isPage = response.headers["Content-Type"]?.lowercased().hasPrefix("text/html") == true
            throw UploadError(
                failure(
                    .protocol, .noLocation,
                    "\(host(endpoint)) answered \(response.status) to the creation without saying where the upload is"
                        + (isPage ? "; it sent a web page: a login portal, or the wrong address" : ""),
                    retryable: true), remedy: .misconfigured)
        }
        do {
            let resolved = try TusLocation(location, base: answer.url, allowed: allowed)
            if resolved.isSchemeUpgraded {
                log("\(host(endpoint)) names uploads with http, but was reached with https; https is used")
            }
            return resolved.url
        } catch {
            throw UploadError(
                failure(
                    .config, .badLocation, "the server's address for the upload is refused: \(error.reason)",
                    retryable: true),
                remedy: .misconfigured)
        }
    }

    /// The rules for an answer to HEAD, in this order.
    private func position(_ response: Response, _ order: UploadOrder, _ isTus: Bool) throws(UploadError) -> Position {
        guard let offset = offset(in: response) else {
            // 200 without a header of tus comes from a portal or a proxy.
            let remedy: Remedy = isTus ? .retry(after: nil) : .misconfigured
            throw UploadError(
                failure(
                    .protocol, .noOffset,
                    "\(host(response.url)) answered \(response.status) without a usable Upload-Offset", retryable: true),
                remedy: remedy)
        }
        if let length = response.headers["Upload-Length"].flatMap({ plainInteger($0) }), length != order.file.size {
            return .foreign("its length is \(length), and the file's is \(order.file.size)")
        }
        if offset > order.file.size { return .foreign("it holds \(offset) bytes, and the file has \(order.file.size)") }
        if let echoed = response.headers["Upload-Metadata"].flatMap({ TusMetadata.values($0)["sha256"] }),
            echoed != Array(hexadecimal(order.file.sha256).utf8)
        {
            return .foreign("its metadata names other content")
        }
        return .at(offset)
    }

    private func judge(_ answer: AuthorizedClient.Answer, _ checkpoint: inout OffsetCheckpoint) -> SendResult.Answer {
        let response = answer.response
        func refusal(_ remedy: Remedy) -> UploadError { refused("bytes", response, remedy) }
        switch verdict(.PATCH, response) {
        case .success where response.isWebPage: return .status(refusal(.misconfigured), again: 0)
        case .success: return .accepted(offset(in: response))
        case .moved:
            let url: String
            do { url = try redirectTarget(answer, "bytes") } catch { return .failed(error) }
            checkpoint.url = url
            // The server reports an unchanged offset: the request had no effect once.
            return .status(refusal(.retry(after: nil)), again: 3)
        case .status(let remedy, let again): return .status(refusal(remedy), again: again)
        case .tooMuch: return .tooMuch(refusal(.failUpload))
        case .damaged: return .damaged(refusal(.failUpload))
        case .stop(let remedy): return .failed(refusal(remedy))
        case .gone, .doubtful, .lessMetadata, .unsupported: return .status(refusal(.retry(after: nil)), again: 0)
        }
    }

    /// Follows permanent and temporary redirects of requests without a body, to allowed origins only.
    func followRedirects(_ request: Request) async throws -> AuthorizedClient.Answer {
        var request = request
        var answer = try await withUploadErrors { try await client.send(request, context) }
        for _ in 0..<5 {
            guard answer.response.status == 307 || answer.response.status == 308 else { return answer }
            request.url = try redirectTarget(answer, request.method)
            let next = request
            answer = try await withUploadErrors { try await client.send(next, context) }
        }
        throw refused(request.method, answer.response, .misconfigured)
    }

    /// - Throws: For a redirect that is not followed, because its origin is not allowed, as with portals.
    private func redirectTarget(_ answer: AuthorizedClient.Answer, _ what: String) throws(UploadError) -> String {
        var refusal = refused(what, answer.response, .misconfigured)
        guard let location = answer.response.headers["Location"],
            let target = try? TusLocation(location, base: answer.url, allowed: allowed)
        else { throw refusal }
        if target.isAllowed { return target.url }
        refusal.failure.message += client.withoutSecrets(". It leads to \(allowed.objection(to: target.url))")
        throw refusal
    }

    private func withUploadErrors(_ body: () async throws -> AuthorizedClient.Answer) async throws
        -> AuthorizedClient.Answer
    {
        do { return try await body() } catch let error as AuthorizedClient.NoAnswerError { throw error.error }
    }

    private func checksum(_ range: Range<Int64>, _ order: UploadOrder) async throws -> String? {
        guard let algorithm = settings.checksum,
            try await capabilities.current(self)?.checksums.contains(algorithm.rawValue) == true
        else { return nil }
        let path = order.file.place
        do {
            let digest = try await blocking { try digestOfPiece(algorithm, path, range) }
            return "\(algorithm.rawValue) \(base64(digest))"
        } catch {
            throw UploadError(
                failure(.local, .stagedUnreadable, "\(error)", retryable: true), remedy: .restage(.unreadable))
        }
    }

    // MARK: Words

    func verdict(_ verb: TusVerdict.Verb, _ response: Response) -> TusVerdict {
        let isFull = response.status == 507 || response.status == 413 && mentionsFullStorage(response)
        return TusVerdict(
            verb, status: response.status, code: errorCode(response),
            wait: retryAfter(response.headers, now: client.clocks.wall(), most: isFull ? Self.longestFull : 3600),
            isFull: isFull)
    }

    /// The quota may be monthly; then the server says when it ends. A person who makes space before that runs `sluice
    /// resume`; a restart queries as well.
    private static let longestFull: Int64 = 7 * 86_400

    /// A plain text, and not the page of a proxy, gives the reason why there is no space.
    private func mentionsFullStorage(_ response: Response) -> Bool {
        if response.headers["Content-Type"]?.lowercased().hasPrefix("text/html") == true { return false }
        let text = String(decoding: response.body.prefix(1024), as: UTF8.self).lowercased()
        return ["quota", "insufficient storage", "no space left", "disk full", "disk is full"].contains {
            text.contains($0)
        }
    }

    /// `ERR_UPLOAD_LOCKED: …`: the beginning of tusd's plain-text answers.
    private func errorCode(_ response: Response) -> String? {
        let start = response.body.prefix(64)
        guard start.starts(with: "ERR_".utf8) else { return nil }
        return String(decoding: start.prefix { $0 == 0x5F || (0x41...0x5A).contains($0) }, as: UTF8.self)
    }

    func refused(_ what: String, _ response: Response, _ remedy: Remedy) -> UploadError {
        client.refused(what, response, remedy)
    }

    func host(_ url: String) -> String { client.host(url) }
}
