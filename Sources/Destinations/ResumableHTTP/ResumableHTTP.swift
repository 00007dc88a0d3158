internal import Core
internal import Transport

/// A server that speaks the IETF's draft "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload).
struct ResumableHTTP: Destination {
    private let server: ResumableHTTPServer
    private let chunks: ChunkSize
    private let judged: JudgedAddress
    var site: DestinationSite { judged.site }

    func dialect(_ context: RequestContext) -> ResumableHTTPDialect {
        ResumableHTTPDialect(server: server, context: context)
    }

    func upload(
        _ order: UploadOrder, reporter: any UploadReporter, context: RequestContext
    ) async throws -> RemoteObject {
        var target = server
        if let url = order.url?.creation {
            if let refusal = GivenAddress(url: url, endpoint: server.endpoint).refusal(server.client) { throw refusal }
            target = server.elsewhere(url)
        }
        let dialect = ResumableHTTPDialect(server: target, context: context, order.offsetCheckpoint)
        // The address of an upload that is not being sent may become that of another one.
        defer { server.addresses.release(upload: order.id) }
        if let url = order.offsetCheckpoint.url { try dialect.requireOwn(url, order) }
        let engine = OffsetEngine(
            dialect: dialect, chunks: chunks, gone: server.settings.gone, finalError: server.settings.finalError)
        return try await engine.upload(order, reporter)
    }

    func lasting(of checkpoint: Checkpoint) -> Checkpoint { checkpoint.keeping(OffsetCheckpoint.lasting) }

    /// The draft removes unfinished uploads only: a finished file belongs to the target.
    func discard(_ checkpoint: Checkpoint, context: RequestContext) async throws(UploadError) -> Bool {
        let isFinished = checkpoint.isFinished
        let checkpoint = OffsetCheckpoint(checkpoint)
        guard let url = checkpoint.url else { return true }
        // This upload is not being sent any more: another one has its address.
        if isFinished || checkpoint.draft.isComplete || server.addresses.isClaimed(url) { return false }
        let dialect = ResumableHTTPDialect(server: server, context: context, checkpoint)
        // The server that has the upload is no longer configured, and no other server gets a request to remove it.
        guard dialect.isOurs(checkpoint), dialect.objection(to: checkpoint) == nil else { return false }
        return try await server.client.stoppable("the removal") { try await dialect.remove(url, checkpoint) }
    }

    func find(_ order: UploadOrder, context: RequestContext) async throws(UploadError) -> RemoteLookup {
        .unknown(
            "\(server.client.host(server.endpoint)) cannot be asked for a file by its name, as resumable uploads have no "
                + "request for that")
    }

    var requestSize: RequestSize? { chunks.learned }
    func recall(_ size: RequestSize) { chunks.recall(size) }

    func check(context: RequestContext) async -> CheckResult {
        let dialect = dialect(context)
        do {
            if let announced = try await dialect.announced() { return result(announced) }
            let response = try await dialect.options(server.interop.candidates().first ?? .nine)
            if UploadAnnouncement(response.headers).isOfTus {
                return CheckResult(.failed, "the server speaks tus and not this protocol: set `type: tus`")
            }
            return UnannouncedServer(client: server.client, response: response, speech: "resumable uploads").result
        } catch let error as UploadError {
            return CheckResult(.failed, error.checkDescription(right: server.client.right))
        } catch {
            return CheckResult(.failed, "the check was stopped")
        }
    }

    private func result(_ announced: UploadAnnouncement) -> CheckResult {
        var words = ["resumable uploads", interopWords]
        words += announced.limits.words
        return CheckResult(.ok, words.joined(separator: "; ")).about(.flow)
    }

    /// The answer to OPTIONS names no version: it shows with the first upload.
    private var interopWords: String {
        if let version = server.settings.interop.version { return "\(version.words), as configured" }
        if let spoken = server.interop.spoken { return "\(spoken.words), as its answers show" }
        let words = server.interop.candidates().map(\.words).joined(separator: ", then ")
        return "its version shows with the first upload (\(words))"
    }

    func objection(toHeader name: String) -> String? {
        Self.reserved.contains(name.lowercased()) ? "`\(name)` belongs to the protocol" : nil
    }

    func objection(toURL url: String) -> String? { GivenAddress(url: url, endpoint: server.endpoint).objection }

    /// Lower-case. Set twice, they would break the protocol or the framing.
    private static let reserved: Set<String> = [
        "upload-draft-interop-version", "upload-offset", "upload-length", "upload-complete", "upload-incomplete",
        "upload-limit", "content-type", "content-disposition", "content-length", "transfer-encoding", "expect", "host",
        "connection",
    ]
}

extension ResumableHTTP {
    static let kind = DestinationDefinition(
        type: DestinationSchema(
            name: "resumable-http",
            summary: "a server that speaks Resumable Uploads for HTTP, the IETF's draft that follows tus",
            keys: ResumableHTTPSettings.keys.map(\.setting),
            releaseDoubts: {
                let settings = ResumableHTTPSettings.keys.settings($0)
                return settings.gone.releaseDoubts + settings.finalError.releaseDoubts
            }),
        http: HTTPUse(reserved: reserved) { $0.has("token") ? "token" : nil }
    ) { values, tools in try ResumableHTTP(values, tools) }

    init(_ values: [String: SettingValue], _ tools: DestinationTools) throws {
        guard let url = values.text("url") else { throw UnusableSettingError(key: "url", problem: "is missing") }
        let settings = ResumableHTTPSettings.keys.settings(values)
        server = ResumableHTTPServer(
            endpoint: url,
            client: tools.client(token: settings.token, url: url, named: settings.allowedOrigins),
            settings: settings, log: tools.log)
        judged = tools.judged(url)
        chunks = ChunkSize(chosen: settings.chunk)
    }
}
