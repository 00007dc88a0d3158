internal import Core
internal import Linux
internal import Transport

/// The draft "Resumable Uploads for HTTP" as ``OffsetEngine`` needs it: creation, position, bytes, completion, removal.
struct ResumableHTTPDialect: AddressedDialect {
    let server: ResumableHTTPServer
    /// The context of its requests.
    let context: RequestContext
    let memory: UploadLimitMemory

    /// - Parameter checkpoint: That of the upload, if there is one.
    init(server: ResumableHTTPServer, context: RequestContext, _ checkpoint: OffsetCheckpoint = OffsetCheckpoint()) {
        self.server = server
        self.context = context
        memory = UploadLimitMemory(checkpoint)
    }

    var endpoint: String { server.endpoint }
    var client: AuthorizedClient { server.client }
    var settings: ResumableHTTPSettings { server.settings }
    var requests: RedirectedRequests {
        RedirectedRequests(client: client, allowed: server.allowed, context: context)
    }

    static let partialType = ("Content-Type", "application/partial-upload")

    // MARK: Requirements of the engine

    func create(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Bool {
        let announced = try await announced()
        if let limits = announced?.limits {
            memory.assume(limits)
            if let objection = limits.objection(toSize: order.file.size) {
                throw UploadError(
                    failure(
                        .permanent, .maxSizeExceeded,
                        "the file has \(order.file.size) bytes, and \(client.host(endpoint)) \(objection)",
                        retryable: false), remedy: .failUpload)
            }
        }
        // An origin that is not allowed is recorded nevertheless: when a person has allowed it, this upload continues
        // there.
        let creation = UploadCreation(dialect: self, order: order)
        let made = try await server.creations.make(client, after: checkpoint.orphans ?? 0) { try await creation.make() }
        try requireOwn(made.url, order)
        checkpoint.url = made.url
        checkpoint.server = WebAddress(endpoint).origin
        checkpoint.draft.interop = made.version
        checkpoint.draft.isComplete = made.isComplete
        memory.take(made.fields, at: client.clocks.wall(), &checkpoint)
        // The server may name a smaller limit for this file than for all.
        if let objection = memory.limits.objection(toSize: order.file.size), !made.isComplete {
            // If it is not removed now, the server does so when its time is over.
            _ = try? await remove(made.url, checkpoint)
            throw UploadError(
                failure(
                    .permanent, .maxSizeExceeded,
                    "the file has \(order.file.size) bytes, and \(client.host(endpoint)) \(objection) of its type",
                    retryable: false), remedy: .failUpload)
        }
        return false
    }

    /// An empty file may have no address of its own.
    func requireOwn(_ url: String, _ order: UploadOrder) throws(UploadError) {
        if order.file.size > 0 { try requireOwn(url, among: server.addresses, order) }
    }

    func locate(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Position {
        guard let url = checkpoint.url else { return .gone(isCertain: true) }
        // An empty file is complete with its creation, whose answer need not name an upload.
        if order.file.size == 0, checkpoint.draft.isComplete { return .at(0) }
        memory.located = nil
        let lookup = try await look(at: url, of: order.file.size, checkpoint.draft.interop)
        checkpoint.url = lookup.url
        if let version = lookup.version { checkpoint.draft.interop = version }
        memory.take(lookup.fields, at: client.clocks.wall(), &checkpoint)
        guard case .at(let offset) = lookup.position else { return lookup.position }
        memory.located = offset
        if lookup.fields.isComplete == true, !checkpoint.draft.isComplete {
            checkpoint.draft.isComplete = true
            checkpoint.draft.isUnanswered = !checkpoint.isEndAnswered
        }
        // An earlier answer was wrong, or had no mark: the upload still takes bytes.
        if lookup.fields.isComplete == false, offset < order.file.size || checkpoint.draft.isUnmarked {
            checkpoint.draft.isComplete = false
        }
        return lookup.position
    }

    func send(
        _ range: Range<Int64>, _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, past digest: SentDigest,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> SendResult {
        guard let url = checkpoint.url else { return SendResult(unsent: .accepted(nil)) }
        memory.located = nil
        let isLast = range.upperBound == order.file.size
        if isProbing(checkpoint), !range.isEmpty,
            let refusal = await askWithoutBody(url, at: range.lowerBound, checkpoint)
        {
            return refusal
        }
        let count = range.upperBound - range.lowerBound
        let carried = await client.sendBody(
            Request(
                "PATCH", url, headers: headers(offset: range.lowerBound, isLast: isLast, checkpoint),
                body: .file(order.file.place, offset: range.lowerBound, count: count, check: digest),
                limits: settings.limits.sending),
            context, sent: sent)
        guard case .success(let answer) = carried.result else {
            return SendResult(.failed(carried.result.error ?? CancellationError()), carried)
        }
        if server.verdict(.PATCH, answer.response, to: version(checkpoint)) == .tooMuch,
            memory.limits.maxAppendSize == nil
        {
            await learnLimits()
        }
        let append = AppendAnswer(
            dialect: self, answer: answer, version: version(checkpoint), range: range, isLast: isLast)
        var result = append.result(carried, &checkpoint)
        // A server may repeat the final answer of an upload that was complete before, if the offset was too low.
        if result.isFinal, (200..<300).contains(answer.response.status), await isWholeThere(order, &checkpoint) {
            (result.answer, result.isFinal) = (.accepted(nil), false)
        }
        return result
    }

    /// Whether the server says that the upload is complete with every byte. Without a usable answer its last one stands.
    private func isWholeThere(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async -> Bool {
        if case .at(order.file.size)? = try? await locate(order, &checkpoint) {
            checkpoint.draft.isComplete
        } else {
            false
        }
    }

    func isProbing(_ checkpoint: OffsetCheckpoint) -> Bool {
        server.bodies.isRefused || checkpoint.draft.isPatchRefused
    }

    /// A limit of the server's is never exceeded.
    func allowance(for count: Int64) -> Int64 {
        context.permit.allowance(for: min(count, max(1, memory.limits.maxAppendSize ?? .max)))
    }

    var minRequest: Int64 { memory.limits.minRequest }

    func isWhole(_ checkpoint: OffsetCheckpoint) -> Bool { checkpoint.draft.isComplete }

    var concludes: Bool { true }

    func conclude(
        _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, _ reporter: any UploadReporter
    ) async throws -> Conclusion {
        try await UploadCompletion(dialect: self, order: order, reporter: reporter).conclude(&checkpoint)
    }

    func isThere() async throws -> Bool {
        let response = try await options(server.interop.candidates().first ?? .nine)
        if UploadAnnouncement(response.headers).isOfDraft { return true }
        // Servers of older drafts announce nothing.
        return response.status < 500 && ![404, 410].contains(response.status) && !(300..<400).contains(response.status)
            && !response.isWebPage
    }

    // MARK: Requests

    /// The headers of a request that appends bytes.
    func headers(offset: Int64, isLast: Bool, _ checkpoint: OffsetCheckpoint) -> [(String, String)] {
        version(checkpoint).headers + [
            ("Upload-Offset", "\(offset)"), ("Upload-Complete", isLast ? "?1" : "?0"), Self.partialType,
        ]
    }

    /// The version for the requests of an upload that was created.
    func version(_ checkpoint: OffsetCheckpoint) -> InteropVersion {
        server.interop.candidates(first: checkpoint.draft.interop).first ?? .nine
    }

    /// A server that has refused the method itself first gets a request without bytes, at the offset that it has named.
    ///
    /// - Returns: `nil` where bytes may be sent.
    private func askWithoutBody(_ url: String, at offset: Int64, _ checkpoint: OffsetCheckpoint) async -> SendResult? {
        let carried = await client.sendBody(
            Request(
                "PATCH", url,
                headers: headers(offset: offset, isLast: false, checkpoint) + [("Content-Length", "0")],
                body: .bytes([]), limits: settings.limits.small), context, sent: { _ in })
        switch carried.result {
        case .failure(let error): return SendResult(.failed(error), carried)
        case .success(let answer):
            guard server.verdict(.PATCH, answer.response, to: version(checkpoint)) == .stop(.misconfigured) else {
                return nil
            }
            return SendResult(.failed(client.refused("a request for bytes", answer.response, .misconfigured)), carried)
        }
    }

    /// - Returns: `false` when the server does not support removal.
    func remove(_ url: String, _ checkpoint: OffsetCheckpoint) async throws -> Bool {
        let answer = try await requests.follow(
            Request("DELETE", url, headers: version(checkpoint).headers, limits: settings.limits.small))
        switch server.verdict(.DELETE, answer.response, to: version(checkpoint)) {
        case .success: return true
        case .stop(let remedy): throw client.refused("the removal", answer.response, remedy)
        default: return false
        }
    }

    /// The server's description of itself; `nil` when it announces nothing.
    func announced() async throws -> UploadAnnouncement? {
        try await server.discovery.current(client.clocks, query)
    }

    /// Asks again: the limits are needed for a request that was too large.
    private func learnLimits() async {
        // Without an answer the size is found by trying.
        let announced = try? await server.discovery.refresh(client.clocks, query)
        if let limits = announced?.limits { memory.assume(limits) }
    }

    private func query() async throws -> UploadAnnouncement? {
        var tried: [InteropVersion] = []
        while let version = server.interop.next(after: tried) {
            tried.append(version)
            let response = try await options(version)
            let namesOther = server.interop.learn(from: response.headers, to: version)
            guard (200..<300).contains(response.status) else {
                if namesOther { continue }
                return nil
            }
            let announced = UploadAnnouncement(response.headers)
            guard announced.isOfDraft else { continue }
            // tusd announces the draft in any version, and speaks none later than 6.
            if announced.isOfTus {
                server.interop.suggest(.six)
            } else if !namesOther {
                server.interop.suggest(version)
            }
            return announced
        }
        return nil
    }

    func options(_ version: InteropVersion) async throws -> Response {
        try await requests.send(
            Request("OPTIONS", endpoint, headers: version.headers, limits: settings.limits.small)
        ).response
    }
}

extension Result {
    fileprivate var error: Failure? { if case .failure(let error) = self { error } else { nil } }
}
