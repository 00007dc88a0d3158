internal import Core
internal import Digests
internal import Linux
internal import Synchronization
internal import Transport

/// tus 1.0 as ``OffsetEngine`` needs it: creation, position, bytes, removal.
struct TusDialect: AddressedDialect {
    let server: TusServer
    /// The context of its requests.
    let context: RequestContext
    /// The section of the file that it sends, as a partial upload; `nil` for the whole file.
    var section: TusSection?

    var endpoint: String { server.endpoint }
    var client: AuthorizedClient { server.client }
    var settings: TusSettings { server.settings }
    var capabilities: TusCapabilities { server.capabilities }
    private var creations: CreationBackoff { server.creations }
    private var bodies: BodyRefusal { server.bodies }
    var log: @Sendable (String) -> Void { server.log }
    var allowed: AllowedOrigins { server.allowed }
    var requests: RedirectedRequests {
        RedirectedRequests(client: client, allowed: allowed, context: context)
    }
    var methods: TusMethods { TusMethods(dialect: self) }

    static let version = ("Tus-Resumable", "1.0.0")
    /// The type of requests with bytes. Some servers compare the whole value.
    static let bytesType = ("Content-Type", "application/offset+octet-stream")

    // MARK: Requirements of the engine

    func create(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Bool {
        let announced = try await capabilities.current(self)
        if announced?.lacks(.creation) == true {
            throw UploadError(
                failure(
                    .permanent, .creationUnsupported,
                    "\(host(endpoint)) does not offer the extension `creation`: give the address of an upload that exists "
                        + "there (`sluice add --upload-url`), or list `creation` under `extensions` if it creates uploads "
                        + "nevertheless",
                    retryable: false), remedy: .failUpload)
        }
        if let most = announced?.maxSize, order.file.size > most {
            throw UploadError(
                failure(
                    .permanent, .maxSizeExceeded,
                    "the file has \(order.file.size) bytes, and \(host(endpoint)) takes at most \(most)",
                    retryable: false), remedy: .failUpload)
        }
        try awaitNextCreation(checkpoint)
        // The address may have another origin, and is recorded nevertheless: when a person has allowed that origin,
        // this upload continues there.
        let (url, response): (String, Response)
        do {
            (url, response) = try await creations.make(client, after: checkpoint.orphans ?? 0) {
                var answer = try await post(order, checkpoint, isMinimal: false)
                if answer.verdict == .lessMetadata {
                    // Without `sluiceId` nothing shows that a later creation repeats it.
                    checkpoint.tus.creation = nil
                    answer = try await post(order, checkpoint, isMinimal: true)
                }
                switch answer.verdict {
                case .success:
                    return (try requests.uploadAddress(answer.answer, of: endpoint, log: log), answer.answer.response)
                case let verdict where isSection && verdict.refusesConcatenation(answer.answer.response):
                    throw ConcatenationRefusedError(
                        error: refused("a partial upload", answer.answer.response, .failUpload))
                case .stop(let remedy): throw refused("creation", answer.answer.response, remedy)
                default: throw refused("creation", answer.answer.response, .failUpload)
                }
            }
        } catch let error as UploadError {
            noteNextCreation(error, &checkpoint)
            throw error
        }
        try requireOwn(url, response, order)
        checkpoint.url = url
        checkpoint.server = WebAddress(endpoint).origin
        UploadExpiry(response, now: client.clocks.wall())?.store(in: &checkpoint)
        checkpoint.tus.id = settings.preset?.idHeader.flatMap { response.headers[$0] }
        if isSection { checkpoint.concatenation.location = response.headers["Location"] }
        // In tus 1.0 the header answers a creation that carried bytes, and ours carries none: so this server knows the
        // upload, or holds its content already.
        return response.headers["Upload-Offset"].flatMap { plainInteger($0) } ?? 0 > 0
    }

    func locate(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Position {
        guard let url = checkpoint.url else { return .gone(isCertain: true) }
        let answer = try await followRedirects(
            Request("HEAD", url, headers: [Self.version], limits: settings.limits.small))
        let response = answer.response
        checkpoint.url = answer.url
        UploadExpiry(response, now: client.clocks.wall())?.store(in: &checkpoint)
        let isTus = response.hasTusHeader
        switch verdict(.HEAD, response) {
        case .success:
            if checkpoint.concatenation.isJoined,
                let unfinished = try JoinedUpload(checkpoint, now: client.clocks.wall())
                    .unfinished(response, of: order, failure)
            {
                return unfinished
            }
            return try position(response, order, isTus)
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
        if isProbing(checkpoint), !range.isEmpty,
            let refusal = await askWithoutBody(url, at: range.lowerBound, order, &checkpoint)
        {
            return refusal
        }
        let isOverridden = methods.isOverridden(checkpoint)
        let carried: AuthorizedClient.Carried
        do {
            var headers = [Self.version, ("Upload-Offset", "\(range.lowerBound)"), Self.bytesType]
            if let checksum = try await checksum(range, order) { headers.append(("Upload-Checksum", checksum)) }
            let count = range.upperBound - range.lowerBound
            let request = methods.request(
                "PATCH", url, headers: headers,
                body: .file(order.file.place, offset: start + range.lowerBound, count: count, check: digest),
                limits: settings.limits.sending, isOverridden: isOverridden)
            carried =
                if let section { await section.send(request, count, client, context, sent) } else {
                    await client.sendBody(request, context, sent: sent)
                }
        } catch { return SendResult(unsent: .failed(error)) }
        guard case .success(let answer) = carried.result else {
            return SendResult(carried)
        }
        UploadExpiry(answer.response, now: client.clocks.wall())?.store(in: &checkpoint)
        let isRefused = verdict(.PATCH, answer.response) == .stop(.misconfigured)
        if isOverridden, isRefused { methods.forget(&checkpoint) }
        let mayAdopt = !isProbing(checkpoint) && methods.mayAdopt(after: answer.response, checkpoint)
        switch verdict(.PATCH, answer.response) {
        case _ where isRefused || mayAdopt: (bodies.isRefused, checkpoint.tus.isPatchRefused) = (true, true)
        // A server may accept a request without bytes, and refuse every one with bytes.
        case .success where !answer.response.isWebPage:
            (bodies.isRefused, checkpoint.tus.isPatchRefused) = (false, false)
        default: break
        }
        var judged = judge(answer, &checkpoint)
        if isRefused, mayAdopt {
            // The engine records the answer and asks for the offset. The next request tries the other form.
            judged = .status(refused("bytes", answer.response, .misconfigured), again: 1)
        } else if isOverridden, case .accepted = judged {
            judged = .accepted(methods.acceptedOffset(answer.response, isEnd: range.upperBound == order.file.size))
        }
        return SendResult(
            judged, carried, isOfState: isAboutState(answer.response, range),
            mentionsOffset: answer.response.mentionsOffset)
    }

    func isProbing(_ checkpoint: OffsetCheckpoint) -> Bool { bodies.isRefused || checkpoint.tus.isPatchRefused }

    /// A server that has refused the method itself first gets a request without bytes, at the offset that it has named.
    ///
    /// - Returns: `nil` where bytes may be sent.
    private func askWithoutBody(
        _ url: String, at offset: Int64, _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint
    ) async -> SendResult? {
        let isOverridden = methods.isOverridden(checkpoint)
        let carried = await client.sendBody(
            methods.emptyPatch(url, at: offset, isOverridden: isOverridden), context, sent: { _ in })
        guard case .success(let answer) = carried.result else { return SendResult(carried) }
        let isRefused = verdict(.PATCH, answer.response) == .stop(.misconfigured)
        if isOverridden, isRefused { methods.forget(&checkpoint) }
        if await methods.adopt(after: answer.response, at: offset, order, &checkpoint) || !isRefused { return nil }
        return SendResult(.failed(refused("a request for bytes", answer.response, .misconfigured)), carried)
    }

    /// Whether an answer is about where the upload stands: a conflict that names another offset, or one of tusd's codes
    /// for a lock, a stop by the server or an interrupted body.
    private func isAboutState(_ response: Response, _ range: Range<Int64>) -> Bool {
        let named = offset(in: response)
        // If it names the end of these bytes, it has accepted them.
        return response.status == 409 && named.map { $0 != range.lowerBound && $0 != range.upperBound } ?? false
            || response.leadingErrorCode.map(TusVerdict.codesOfState.contains) == true
    }

    /// - Returns: `nil` also for an offset that is given twice with different values: a proxy has joined two answers.
    func offset(in response: Response) -> Int64? {
        let values = Set(response.headers.lines.filter { $0.name.lowercased() == "upload-offset" }.map(\.value))
        return values.count == 1 ? values.first.flatMap { plainInteger($0) } : nil
    }

    var minRequest: Int64 { settings.preset?.minChunk ?? 0 }
    func allowance(for count: Int64) -> Int64 {
        context.permit.allowance(for: count)
    }

    /// With listed extensions, an answer to OPTIONS says nothing about the server.
    func isThere() async throws -> Bool {
        if !capabilities.isAsked { return true }
        return try await options(endpoint) != nil
    }

    /// - Returns: `nil` if the server does not report it. tus has no such field; `sluice receive` has.
    func space() async throws -> RemoteSpace? {
        try await capabilities.latest(self) { $0.free != nil }?.space
    }

    // MARK: The rest of the protocol

    /// The server's description of itself; `nil` when the answer is not that of a tus server.
    func options(_ url: String) async throws -> (response: Response, announced: TusAnnounced)? {
        let response = try await plainOptions(url)
        guard (200..<300).contains(response.status), let announced = TusAnnounced(response.headers) else { return nil }
        return (response, announced)
    }

    /// The answer as it is, from a tus server or not.
    func plainOptions(_ url: String) async throws -> Response {
        try await requests.send(Request("OPTIONS", url, limits: settings.limits.small)).response
    }

    private func post(
        _ order: UploadOrder, _ checkpoint: OffsetCheckpoint, isMinimal: Bool
    ) async throws -> (verdict: TusVerdict, answer: AuthorizedClient.Answer) {
        let metadata = TusMetadata.header(
            order, isASCII: settings.isASCII, titleKey: settings.preset?.titleKey, isMinimal: isMinimal,
            isRepeat: checkpoint.wasReuploaded || checkpoint.mayBeDoubled, part: section?.name(of: order.file))
        var headers = [Self.version, ("Upload-Length", "\(order.file.size)"), ("Upload-Metadata", metadata)]
        if isSection { headers.append(("Upload-Concat", "partial")) }
        let answer = try await followRedirects(
            Request("POST", endpoint, headers: headers, limits: settings.limits.small))
        return (verdict(.POST, answer.response), answer)
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
        if isGiven(order), response.headers["Upload-Length"] == nil, response.headers["Upload-Defer-Length"] != nil {
            return .foreign("its length is not fixed yet")
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
            do { url = try requests.target(of: answer, "bytes") } catch { return .failed(error) }
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
        try await requests.follow(request)
    }

    private func checksum(_ range: Range<Int64>, _ order: UploadOrder) async throws -> String? {
        guard let algorithm = settings.checksum,
            try await capabilities.current(self)?.checksums.contains(algorithm.rawValue) == true
        else { return nil }
        let path = order.file.place
        let bytes = start + range.lowerBound..<start + range.upperBound
        do {
            let digest = try await blocking { try digestOfPiece(algorithm, path, bytes) }
            return "\(algorithm.rawValue) \(base64(digest))"
        } catch {
            throw UploadError(
                failure(.local, .stagedUnreadable, "\(error)", retryable: true), remedy: .restage(.unreadable))
        }
    }

    // MARK: Words

    func verdict(_ verb: TusVerdict.Verb, _ response: Response) -> TusVerdict {
        let isFull = response.isOfFullStorage
        return TusVerdict(
            verb, status: response.status, code: response.leadingErrorCode,
            wait: retryAfter(
                response.headers, now: client.clocks.wall(), most: isFull ? Response.longestFullWait : 3600),
            isFull: isFull)
    }

    func refused(_ what: String, _ response: Response, _ remedy: Remedy) -> UploadError {
        client.refused(what, response, remedy)
    }

    func host(_ url: String) -> String { client.host(url) }
}
