internal import Core
internal import Digests
internal import Transport

/// A person's settings for a tus server, with defaults filled in.
struct TusSettings: Sendable {
    var preset: TusPreset?
    var account: String?
    var library: String?
    var apiKey: SecretSource?
    var isASCII = false
    var checksum: Hasher.Algorithm?
    /// `nil`: the server is asked.
    var extensions: Set<String>?
    var methodOverride = MethodOverridePolicy.auto
    var createWithBytes = CreateWithBytesPolicy.auto
    var limits = RequestLimits()
    /// `chunk_size`.
    var chunk: Int64?
    /// Partial uploads of one file at the same time.
    var parallel = 1
    var gone = GonePolicy.reupload
    var finalError = FinalErrorPolicy.fail
    var allowedOrigins: [String] = []
    var token: SecretSource?
}

/// A server that speaks tus 1.0 (https://tus.io/protocols/resumable-upload).
struct Tus: Destination {
    private let server: TusServer
    /// With ``TusPreset/bunnyStream``.
    private let bunny: BunnyStream?
    private let chunks: ChunkSize
    private let gone: GonePolicy
    private let finalError: FinalErrorPolicy
    private let judged: JudgedAddress
    var site: DestinationSite { judged.site }

    private func engine(_ dialect: any OffsetDialect) -> OffsetEngine {
        OffsetEngine(dialect: dialect, chunks: chunks, gone: gone, finalError: finalError)
    }

    func upload(
        _ order: UploadOrder, reporter: any UploadReporter, context: RequestContext
    ) async throws -> RemoteObject {
        // The address of an upload that is not being sent may become that of another one.
        defer { server.addresses.release(upload: order.id) }
        if let bunny {
            return try await engine(BunnyDialect(stream: bunny, server: server, context: context)).upload(
                order, reporter)
        }
        let dialect = TusDialect(server: server, context: context)
        // The address was checked when it was given; the configuration may have changed since.
        if let url = order.url?.creation ?? order.url?.upload,
            let refusal = GivenAddress(url: url, endpoint: server.endpoint).refusal(server.client)
        {
            throw refusal
        }
        switch order.url {
        case nil: return try await upload(order, by: dialect, reporter)
        case .creation(let url):
            let elsewhere = TusDialect(server: server.elsewhere(url), context: context)
            return try await upload(order, by: elsewhere, reporter)
        case .upload(let url):
            let given = TusGivenUpload(url: url, server: server.endpoint)
            return try await engine(dialect).upload(given.opening(order), reporter)
        }
    }

    private func upload(
        _ order: UploadOrder, by dialect: TusDialect, _ reporter: any UploadReporter
    ) async throws -> RemoteObject {
        if let url = order.offsetCheckpoint.url { try dialect.requireOwn(url, among: server.addresses, order) }
        let parts = ConcatenatedUpload(dialect: dialect, chunks: chunks, gone: gone, finalError: finalError)
        let joined = try await parts.joinIfWanted(order, reporter)
        let (object, checkpoint) = try await engine(dialect).complete(joined, reporter)
        return try await parts.finish(order, object, checkpoint, reporter)
    }

    func uncutPiece(ofSize size: Int64?) -> IndivisibleRequest? {
        server.settings.preset?.minChunk.map { IndivisibleRequest(bytes: min($0, size ?? $0)) }
    }

    func lasting(of checkpoint: Checkpoint) -> Checkpoint {
        var checkpoint = OffsetCheckpoint(checkpoint)
        ConcatenationCheckpoint.countLostCreations(in: &checkpoint)
        return checkpoint.stored.keeping(OffsetCheckpoint.lasting)
    }

    func discard(_ checkpoint: Checkpoint, context: RequestContext) async throws(UploadError) -> Bool {
        let dialect = TusDialect(server: server, context: context)
        let checkpoint = OffsetCheckpoint(checkpoint)
        return try await server.client.stoppable("the removal") {
            if let bunny {
                return try await BunnyDialect(stream: bunny, server: server, context: context).discard(checkpoint)
            }
            let parts = checkpoint.concatenation.removableParts
            let urls = [checkpoint.url].compactMap { $0 } + parts.map(\.url)
            // A creation with bytes whose answer was lost may have made a complete file, whose address is not known.
            if urls.isEmpty { return !checkpoint.mayBeWhole }
            // The server that has the upload is no longer configured, and no other server gets a request to remove it.
            guard dialect.isOurs(checkpoint), urls.allSatisfy({ server.client.objection(to: $0) == nil }) else {
                return false
            }
            var isRemoved = true
            if let url = checkpoint.url {
                // This upload is not being sent any more: another one has its address.
                if server.addresses.isClaimed(url) { return false }
                isRemoved = try await dialect.methods.remove(url, checkpoint)
            }
            for part in parts where try await !dialect.remove(part, checkpoint) { isRemoved = false }
            return isRemoved
        }
    }

    func obstacleToRemoving(test order: UploadOrder, context: RequestContext) async -> String? {
        if bunny != nil { return nil }
        let dialect = TusDialect(server: server, context: context)
        // A server that cannot be asked removes nothing; the check reports why.
        let announced = try? await dialect.capabilities.latest(dialect) { _ in true }
        if announced?.offers(.termination) ?? false { return nil }
        return "the server cannot remove a finished file"
    }

    func find(_ order: UploadOrder, context: RequestContext) async throws(UploadError) -> RemoteLookup {
        // Questions are not entered in a ledger.
        let dialect = TusDialect(
            server: order.url?.creation.map { server.elsewhere($0) } ?? server, context: context)
        return try await server.client.stoppable { try await dialect.find(order) }
    }

    var reportsSpace: Bool { true }

    func space(context: RequestContext) async throws(UploadError) -> RemoteSpace? {
        let dialect = TusDialect(server: server, context: context)
        return try await server.client.stoppable { try await dialect.space() }
    }

    var limitsSize: Bool { server.capabilities.isAsked }
    var sizeLimit: Int64? { server.capabilities.last?.maxSize }

    func querySizeLimit(context: RequestContext) async throws(UploadError) -> Int64? {
        let dialect = TusDialect(server: server, context: context)
        return try await server.client.stoppable { try await server.capabilities.query(dialect)?.maxSize }
    }

    var requestSize: RequestSize? {
        guard server.bodies.isRefused else { return chunks.learned }
        var size = chunks.learned ?? .unlimited
        size.refusesBytes = true
        return size
    }

    func recall(_ size: RequestSize) {
        chunks.recall(size)
        server.bodies.isRefused = size.refusesBytes
    }

    func check(context: RequestContext) async -> CheckResult {
        let dialect = TusDialect(server: server, context: context)
        do {
            try await bunny?.check(context)
            if let announced = try await dialect.options(dialect.endpoint)?.announced {
                return judge(announced).about(.flow)
            }
            // `/files` and `/files/` differ, and using the wrong one is the commonest mistake.
            let other = dialect.endpoint.hasSuffix("/") ? String(dialect.endpoint.dropLast()) : dialect.endpoint + "/"
            if try await dialect.options(other) != nil {
                return CheckResult(
                    .failed, "no tus server answers at this address, but one does at \(withoutSecrets(other))")
            }
            return UnannouncedServer(
                client: server.client, response: try await dialect.plainOptions(dialect.endpoint), speech: "tus"
            ).result
        } catch let error as UploadError {
            return CheckResult(.failed, error.checkDescription(right: server.client.right))
        } catch {
            return CheckResult(.failed, "the check was stopped")
        }
    }

    private func judge(_ announced: TusAnnounced) -> CheckResult {
        guard announced.versions.contains("1.0.0") else {
            let versions = FilePath(server.client.withoutSecrets(announced.versions.joined(separator: ", "))).display
            return CheckResult(.failed, "the server speaks tus \(versions.prefix(200)), and not 1.0.0")
        }
        let used = server.settings.extensions ?? announced.extensions
        let extensions = FilePath(server.client.withoutSecrets(used.sorted().joined(separator: ", ")))
        var words = used.isEmpty ? "tus 1.0.0 without extensions" : "tus 1.0.0 with \(extensions.display.prefix(200))"
        if server.settings.extensions != nil { words += ", as `extensions` lists" }
        if let most = announced.maxSize { words += "; at most \(most) bytes a file" }
        if let space = announced.space { words += "; \(space.text)" }
        if server.settings.parallel > 1, !used.contains("concatenation") {
            words +=
                "; it does not join uploads (`concatenation`), so `parallel: \(server.settings.parallel)` has no effect"
        }
        if !used.contains(TusExtension.creation.rawValue) {
            return CheckResult(
                .warning,
                words
                    + "; without the extension `creation`, each upload needs the address of an upload that exists there "
                    + "(`sluice add --upload-url`)", space: announced.space)
        }
        if let wanted = server.settings.checksum, server.settings.extensions == nil,
            !announced.checksums.contains(wanted.rawValue)
        {
            return CheckResult(
                .warning, words + "; it does not offer the checksum \(wanted.rawValue), so none is sent",
                space: announced.space)
        }
        return CheckResult(.ok, words, space: announced.space)
    }
}

extension Tus {
    /// A cut request with a checksum keeps nothing, so those are shorter.
    private static let defaultCheckedChunk: Int64 = 8 << 20

    static let kind = DestinationDefinition(
        type: DestinationSchema(
            name: "tus", summary: "a server that speaks tus 1.0, such as tusd or `sluice receive`",
            keys: TusSettings.keys.map(\.setting), presets: TusPreset.summaries,
            releaseDoubts: {
                let settings = TusSettings.keys.settings($0)
                return settings.gone.releaseDoubts + settings.finalError.releaseDoubts
            }, objections: { TusPreset.objections($0) }),
        http: HTTPUse(reserved: reserved) { $0.has("token") ? "token" : nil }
    ) { values, tools in try Tus(values, tools) }

    init(_ values: [String: SettingValue], _ tools: DestinationTools) throws {
        if let objection = TusPreset.objections(values).first {
            throw UnusableSettingError(key: objection.key, problem: objection.problem)
        }
        let settings = TusSettings.keys.settings(values)
        guard let url = values.text("url") ?? settings.preset?.url(account: settings.account) else {
            throw UnusableSettingError(key: "url", problem: "is missing")
        }
        server = TusServer(
            endpoint: url,
            client: tools.client(token: settings.token, url: url, named: settings.allowedOrigins),
            settings: settings, capabilities: TusCapabilities(settings), log: tools.log)
        judged = tools.judged(url)
        chunks = ChunkSize(
            chosen: settings.chunk,
            otherwise: settings.preset?.chunk
                ?? (settings.checksum == nil ? ChunkSize.standard : Self.defaultCheckedChunk),
            least: settings.preset?.minChunk ?? 0)
        bunny = BunnyStream(settings, url: url, tools)
        gone = settings.gone
        finalError = settings.finalError
    }

    func objection(toHeader name: String) -> String? {
        Self.reserved.contains(name.lowercased()) ? "`\(name)` belongs to the protocol" : nil
    }

    func objection(toURL url: String) -> String? {
        if bunny != nil { return "`preset: bunny-stream` has one address for all uploads" }
        return GivenAddress(url: url, endpoint: server.endpoint).objection
    }

    func objection(toUploadURL url: String) -> String? { objection(toURL: url) }

    /// Lower-case. Set twice, they would break the protocol or the framing.
    static let reserved: Set<String> = [
        "tus-resumable", "upload-offset", "upload-length", "upload-metadata", "upload-checksum", "upload-concat",
        "upload-defer-length", "content-type", "content-length", "transfer-encoding", "expect", "host", "connection",
        "x-http-method-override",
    ]
}

extension TusSettings: DeclaredSettings {
    static let defaults = TusSettings()

    static let keys = DestinationKey<TusSettings>.table {
        DestinationKey("preset", \.preset, among: TusPreset.allCases, "The facts about a video service.")
        DestinationKey("account", \.account, "The account, with `preset: cloudflare-stream`.")
        DestinationKey("library", \.library, "The video library, with `preset: bunny-stream`.")
        DestinationKey("api_key", \.apiKey, "The key of that library.")
        DestinationKey("url", .url, "The address for new uploads; required without `preset`.")
        AllowedOrigins.key(\.allowedOrigins)
        DestinationKey(
            "token", \.token, "Sent as `Authorization: Bearer …`, to this server and to `allow_origins` only.")
        ChunkSize.key(\.chunk)
        DestinationKey(
            "parallel", \.parallel, as: .whole(1...16),
            "Partial uploads of one file at the same time, which the server joins, if it offers that; {default} by default."
        )
        DestinationKey(
            "checksum", .choice(["none", "sha1", "sha256"]),
            "The checksum that the server verifies for each request, if it offers that."
        ) { $1.checksum = String.of($0).flatMap { Hasher.Algorithm(rawValue: $0) } }
        DestinationKey(
            "ascii_filename", \.isASCII,
            "Writes non-ASCII characters of file names as %HH, for servers that refuse them.")
        TusExtension.key(\.extensions)
        DestinationKey(
            "method_override", \.methodOverride,
            "Sends PATCH and DELETE as POST with `X-HTTP-Method-Override`: `auto` (default) where a gateway "
                + "blocks them and the server obeys that, `always`, or `never`.")
        DestinationKey(
            "create_with_bytes", \.createWithBytes,
            "Sends a file of at most 1 MiB with the request that creates its upload: `auto` (default) to `sluice receive` "
                + "only, `true`, or `false`.")
        GonePolicy.key(\.gone)
        FinalErrorPolicy.key(\.finalError)
        for key in RequestLimits.keys { key.of(\.limits) }
    }
}
