internal import Core
internal import Credentials
internal import Digests
internal import Transport

/// A person's settings for a tus server, with defaults filled in.
struct TusSettings: Sendable {
    var isASCII = false
    var checksum: Hasher.Algorithm?
    var limits = RequestLimits()
    /// `chunk_size`.
    var chunk: Int64?
    var gone = GonePolicy.reupload
    var finalError = FinalErrorPolicy.fail
    var allowedOrigins: [String] = []
    var token: SecretSource?
    var headers: [String: SecretSource] = [:]
    var caFile: FilePath?
}

/// A server that speaks tus 1.0 (https://tus.io/protocols/resumable-upload).
struct Tus: Destination {
    private let server: TusServer
    private let chunks: ChunkSize
    private let gone: GonePolicy
    private let finalError: FinalErrorPolicy
    let site: DestinationSite

    private func engine(_ dialect: TusDialect) -> OffsetEngine {
        OffsetEngine(dialect: dialect, chunks: chunks, gone: gone, finalError: finalError)
    }

    func upload(
        _ order: UploadOrder, reporter: any UploadReporter, context: RequestContext
    ) async throws -> RemoteObject {
        let dialect = TusDialect(server: server, context: context)
        guard let url = order.url else { return try await engine(dialect).upload(order, reporter) }
        // The address was checked when it was given; the configuration may have changed since.
        if let objection = objection(toURL: url) {
            throw UploadError(
                dialect.failure(
                    .config, .urlRefused, "the address that was given for this upload cannot be used: \(objection)",
                    retryable: false), remedy: .failUpload)
        }
        let elsewhere = TusDialect(server: server.elsewhere(url), context: context)
        return try await engine(elsewhere).upload(order, reporter)
    }

    func lasting(of checkpoint: Checkpoint) -> Checkpoint { checkpoint.keeping(OffsetCheckpoint.lasting) }

    func discard(_ checkpoint: Checkpoint, context: RequestContext) async throws(UploadError) -> Bool {
        let dialect = TusDialect(server: server, context: context)
        let checkpoint = OffsetCheckpoint(checkpoint)
        guard let url = checkpoint.url else { return true }
        // The server that has the upload is no longer configured, and no other server gets a request to remove it.
        guard dialect.isOurs(checkpoint), dialect.objection(to: checkpoint) == nil else { return false }
        // The `discard` of ``Destination`` has no notes: a removal is one request without a body.
        do { return try await dialect.remove(url) } catch let error as UploadError { throw error } catch {
            throw UploadError(
                dialect.failure(.cancelled, .cancelled, "the removal was stopped", retryable: true),
                remedy: .retry(after: nil))
        }
    }

    func obstacleToRemoving(test order: UploadOrder, context: RequestContext) async -> String? {
        let dialect = TusDialect(server: server, context: context)
        // A server that cannot be asked removes nothing; the check reports why.
        let answer = try? await dialect.options(dialect.endpoint)
        if answer?.announced.extensions.contains("termination") ?? false { return nil }
        return "the server cannot remove a finished file"
    }

    func find(_ order: UploadOrder, context: RequestContext) async throws(UploadError) -> RemoteLookup {
        // Questions are not entered in a ledger.
        let dialect = TusDialect(server: order.url.map { server.elsewhere($0) } ?? server, context: context)
        do { return try await dialect.find(order) } catch let error as UploadError { throw error } catch {
            throw UploadError(
                dialect.failure(.cancelled, .cancelled, "the request was stopped", retryable: true),
                remedy: .retry(after: nil))
        }
    }

    var reportsSpace: Bool { true }

    func space(context: RequestContext) async throws(UploadError) -> RemoteSpace? {
        let dialect = TusDialect(server: server, context: context)
        do { return try await dialect.space() } catch let error as UploadError { throw error } catch {
            throw UploadError(
                dialect.failure(.cancelled, .cancelled, "the request was stopped", retryable: true),
                remedy: .retry(after: nil))
        }
    }

    var requestSize: RequestSize? { chunks.learned }
    func recall(_ size: RequestSize) { chunks.recall(size) }

    func check(context: RequestContext) async -> CheckResult {
        let dialect = TusDialect(server: server, context: context)
        do {
            if let (response, announced) = try await dialect.options(dialect.endpoint) {
                return judge(response, announced)
            }
            // `/files` and `/files/` differ, and using the wrong one is the commonest mistake.
            let other = dialect.endpoint.hasSuffix("/") ? String(dialect.endpoint.dropLast()) : dialect.endpoint + "/"
            if try await dialect.options(other) != nil {
                return CheckResult(
                    .failed, "no tus server answers at this address, but one does at \(withoutSecrets(other))")
            }
            return judge(stranger: try await dialect.plainOptions(dialect.endpoint))
        } catch let error as UploadError {
            return CheckResult(.failed, error.checkDescription())
        } catch {
            return CheckResult(.failed, "the check was stopped")
        }
    }

    private func judge(_ response: Response, _ announced: TusAnnounced) -> CheckResult {
        guard announced.versions.contains("1.0.0") else {
            let versions = FilePath(server.client.withoutSecrets(announced.versions.joined(separator: ", "))).display
            return CheckResult(.failed, "the server speaks tus \(versions.prefix(200)), and not 1.0.0")
        }
        guard announced.extensions.contains("creation") else {
            return CheckResult(.failed, "the server does not offer the extension `creation`, so no upload can begin")
        }
        let extensions = FilePath(server.client.withoutSecrets(announced.extensions.sorted().joined(separator: ", ")))
        var words = "tus 1.0.0 with \(extensions.display.prefix(200))"
        if let most = announced.maxSize { words += "; at most \(most) bytes a file" }
        if let space = announced.space { words += "; \(space.text)" }
        if let wanted = server.settings.checksum, !announced.checksums.contains(wanted.rawValue) {
            return CheckResult(
                .warning, words + "; it does not offer the checksum \(wanted.rawValue), so none is sent",
                space: announced.space)
        }
        return CheckResult(.ok, words, space: announced.space)
    }

    /// Judges an answer without any sign of tus.
    private func judge(stranger response: Response) -> CheckResult {
        if let error = server.client.refusedByProxy("OPTIONS", response) {
            return CheckResult(.failed, error.failure.message)
        }
        let status = response.status
        let isPage = response.headers["Content-Type"]?.lowercased().hasPrefix("text/html") == true
        let answer = "answered \(status) to OPTIONS" + (isPage ? " with a web page" : "")
        if isOfObjectStore(response.body) {
            return CheckResult(.failed, answer + " as an object store does: set `type: s3`, with a bucket and its keys")
        }
        switch status {
        case 401, 403: return CheckResult(.failed, answer + ": check the token")
        case 404, 410: return CheckResult(.failed, answer + ": nothing is there; check the address")
        case 300..<400: return CheckResult(.failed, answer + ", which redirects elsewhere; check the address")
        // Servers that do not know OPTIONS may still speak tus.
        case 501: break
        case 500...: return CheckResult(.failed, answer + "; uploads wait until it works")
        default: break
        }
        return CheckResult(
            .warning, answer + " and did not announce tus; uploads are tried anyway: check the address")
    }

    /// Whether a body is the error document of S3 and its relatives: `<Error><Code>AccessDenied</Code>…`.
    private func isOfObjectStore(_ body: [UInt8]) -> Bool {
        let text = String(decoding: textStart(of: body).prefix(2048), as: UTF8.self)
        return text.hasPrefix("<") && text.contains("<Error>") && text.contains("<Code>")
    }
}

extension Tus {
    /// A cut request with a checksum keeps nothing, so those are shorter.
    private static let defaultCheckedChunk: Int64 = 8 << 20

    static let kind = DestinationDefinition(
        type: DestinationSchema(
            name: "tus", summary: "a server that speaks tus 1.0, such as tusd or `sluice receive`",
            keys: TusSettings.keys.map(\.setting),
            releaseDoubts: {
                let settings = TusSettings.keys.settings($0)
                return settings.gone.releaseDoubts + settings.finalError.releaseDoubts
            })
    ) { values, tools in try Tus(values, tools) }

    init(_ values: [String: SettingValue], _ tools: DestinationTools) throws {
        guard let url = values.text("url") else { throw UnusableSettingError(key: "url", problem: "is missing") }
        let settings = TusSettings.keys.settings(values)
        var headers: [CredentialProvider.Header] = []
        if let token = settings.token { headers.append(.init("Authorization", prefix: "Bearer ", token)) }
        for (name, source) in settings.headers.sorted(by: { $0.key < $1.key }) {
            if Self.reserved.contains(name.lowercased()) {
                throw UnusableSettingError(key: "headers", problem: "cannot set `\(name)`: it belongs to the protocol")
            }
            headers.append(.init(name, source))
        }
        let allowed = AllowedOrigins(homes: [url], named: settings.allowedOrigins)
        server = TusServer(
            endpoint: url,
            client: AuthorizedClient(
                transport: tools.transport, credentials: CredentialProvider(headers, reader: tools.secrets),
                origins: allowed.origins, allowed: allowed, caFile: settings.caFile, clocks: tools.clocks,
                name: tools.name),
            settings: settings, capabilities: TusCapabilities(), log: tools.log)
        // An address without a host was refused earlier.
        site = WebAddress(url).site ?? .here
        chunks = ChunkSize(
            chosen: settings.chunk,
            otherwise: settings.checksum == nil ? ChunkSize.standard : Self.defaultCheckedChunk)
        gone = settings.gone
        finalError = settings.finalError
    }

    func objection(toHeader name: String) -> String? {
        Self.reserved.contains(name.lowercased()) ? "`\(name)` belongs to the protocol" : nil
    }

    /// The credentials of its requests, and the routes that they may take, were decided for one origin.
    func objection(toURL url: String) -> String? {
        let (target, home) = (WebAddress(url), WebAddress(server.endpoint).origin)
        guard (1...2048).contains(url.utf8.count), url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            target.scheme == "http" || target.scheme == "https", !target.host.isEmpty
        else { return "it must be an http or https address of at most 2048 printable ASCII characters" }
        if target.hasUser { return "it has a user name in it; `token` and `headers` of the destination are for that" }
        if target.origin != home {
            return "it is of \(FilePath(target.origin).display), and the destination is \(FilePath(home).display): "
                + "configure a destination for that server"
        }
        return nil
    }

    /// Lower-case. Set twice, they would break the protocol or the framing.
    private static let reserved: Set<String> = [
        "tus-resumable", "upload-offset", "upload-length", "upload-metadata", "upload-checksum", "upload-concat",
        "upload-defer-length", "content-type", "content-length", "transfer-encoding", "expect", "host", "connection",
    ]
}

extension TusSettings: DeclaredSettings {
    static let defaults = TusSettings()

    static let keys = DestinationKey<TusSettings>.table {
        DestinationKey("url", .url, required: true, "The address for new uploads.")
        AllowedOrigins.key(\.allowedOrigins)
        DestinationKey(
            "token", \.token, "Sent as `Authorization: Bearer …`, to this server and to `allow_origins` only.")
        DestinationKey(
            "headers", \.headers, as: .headers,
            "More headers for every request, to this server and to `allow_origins` only.")
        DestinationKey.caFile(\.caFile)
        ChunkSize.key(\.chunk)
        DestinationKey(
            "checksum", .choice(["none", "sha1", "sha256"]),
            "The checksum that the server verifies for each request, if it offers that."
        ) { $1.checksum = String.of($0).flatMap { Hasher.Algorithm(rawValue: $0) } }
        DestinationKey(
            "ascii_filename", \.isASCII,
            "Writes non-ASCII characters of file names as %HH, for servers that refuse them.")
        GonePolicy.key(\.gone)
        FinalErrorPolicy.key(\.finalError)
        for key in RequestLimits.keys { key.of(\.limits) }
    }
}
