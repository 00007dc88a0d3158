internal import Core
internal import Credentials
internal import Transport

/// The key that a cloud service gives to a machine or container that it runs.
///
/// Sources: Amazon EC2 user guide, "Use the Instance Metadata Service" and "Retrieve security credentials from instance
/// metadata" (version 2, with a token; version 1 is not used); AWS SDKs and tools reference guide, "Container
/// credential provider".
actor InstanceMetadataKeys: S3KeySource {
    enum Kind: String, Sendable, CaseIterable { case instance, container }

    struct Settings: Sendable {
        var kind: Kind
        /// The address, if it is not the default of its kind.
        var url: String?
        var role: String?
        /// The token that the container service requires.
        var token: SecretSource?
        /// Time limit of one question. The service is on the local network: if it does not answer at once, it is not
        /// there.
        var timeout: Duration = .seconds(5)
    }

    private struct Held {
        var key: S3Key
        var end: WallTime?
    }

    /// The session token for questions to an instance, and its end.
    private struct Session {
        var token: String
        var end: WallTime
    }

    private let settings: Settings
    private let client: AuthorizedClient
    private let reader: SecretReader
    private var held: Held?
    private var session: Session?
    /// Number of the reading, so that a refusal of an old key does not discard a new one.
    private var reading = 0
    private var isRefused = false
    private var askedAt: WallTime?

    /// A service that gives the same key until its end is not queried again for each part.
    private static let pause: Int64 = 60_000
    private static let sessionLength = 21_600

    init(_ settings: Settings, client: AuthorizedClient, reader: SecretReader) {
        self.settings = settings
        self.client = client
        self.reader = reader
    }

    func current(_ context: RequestContext) async throws -> (key: S3Key, reading: Int) {
        let now = client.clocks.wall()
        if let held, !isRefused, !isDue(held, now) { return (held.key, reading) }
        askedAt = now
        do {
            let given = try await settings.kind == .instance ? instance(context) : container(context)
            held = Held(key: given.key, end: given.end)
            isRefused = false
            reading += 1
            return (given.key, reading)
        } catch let error as UploadError {
            // A key that is still valid is used although its renewal failed.
            if let held, !isRefused, let end = held.end, end > now { return (held.key, reading) }
            throw error
        }
    }

    func refused(_ reading: Int) { if reading == self.reading { isRefused = true } }

    private func isDue(_ held: Held, _ now: WallTime) -> Bool {
        guard let end = held.end, end < now.advanced(by: S3Keys.margin) else { return false }
        return askedAt.map { abs(now.milliseconds - $0.milliseconds) >= Self.pause } ?? true
    }

    // MARK: The instance

    private func instance(_ context: RequestContext) async throws -> (key: S3Key, end: WallTime?) {
        let base = settings.url ?? "http://169.254.169.254"
        let list = "\(base)/latest/meta-data/iam/security-credentials/"
        var role = settings.role
        if role == nil {
            let answer = try await instance(list, base, context)
            if answer.status == 404 {
                throw problem(base, "the instance has no role: give it one that may write to the bucket", .authenticate)
            }
            try mustBeGood(answer, base)
            role = String(decoding: answer.body, as: UTF8.self).split(whereSeparator: \.isWhitespace).first
                .map(String.init)
            // AWS IAM API reference, RoleName.
            if role?.utf8.allSatisfy({ $0.isLetterOrDigit(or: "+=,.@_-") }) == false {
                throw problem(base, "its answer is not the name of a role", .misconfigured)
            }
        }
        guard let role else {
            throw problem(base, "the instance has no role: give it one that may write to the bucket", .authenticate)
        }
        let answer = try await instance(list + PercentCoding.encode(role.utf8), base, context)
        if answer.status == 404 {
            throw problem(base, "the instance has no role `\(FilePath(role).display)`", .authenticate)
        }
        return try key(answer, base)
    }

    /// Returns an answer of the instance, whatever its status. A session that the instance no longer knows is started
    /// again, once.
    private func instance(_ url: String, _ base: String, _ context: RequestContext) async throws -> Response {
        for isLast in [false, true] {
            let session = try await currentSession(base, context)
            let answer = try await send("GET", url, [("X-aws-ec2-metadata-token", session.token)], base, context)
            guard answer.status == 401, !isLast else { return answer }
            self.session = nil
        }
        throw problem(base, "it rejects the token", .authenticate)
    }

    private func currentSession(_ base: String, _ context: RequestContext) async throws -> Session {
        let now = client.clocks.wall()
        if let session, now < session.end { return session }
        let answer = try await send(
            "PUT", "\(base)/latest/api/token", [("X-aws-ec2-metadata-token-ttl-seconds", "\(Self.sessionLength)")],
            base,
            context)
        try mustBeGood(answer, base)
        let token = String(decoding: answer.body, as: UTF8.self)
        guard !token.isEmpty, token.utf8.count <= 4096, !answer.isWebPage,
            token.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw problem(base, "its answer is not a token", .misconfigured)
        }
        client.remember([token])
        let session = Session(token: token, end: now.advanced(by: .seconds(Self.sessionLength - 300)))
        self.session = session
        return session
    }

    // MARK: The container

    private func container(_ context: RequestContext) async throws -> (key: S3Key, end: WallTime?) {
        var url = settings.url
        if url == nil { url = await variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") }
        if url == nil, let path = await variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            url = "http://169.254.170.2\(path)"
        }
        guard let url else {
            throw UploadError(
                client.failure(
                    .auth, .secretUnreadable,
                    "no key is given to this container: neither AWS_CONTAINER_CREDENTIALS_FULL_URI nor "
                        + "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is set; give it a role, or set `url`", retryable: true
                ),
                remedy: .authenticate)
        }
        guard Self.isNear(url) else {
            throw problem(
                url, "that is another machine, and the key could be read on its way; use https", .misconfigured)
        }
        let token = try await containerToken()
        if let token { client.remember([token]) }
        let answer = try await send("GET", url, token.map { [("Authorization", $0)] } ?? [], url, context)
        return try key(answer, url)
    }

    private func containerToken() async throws -> String? {
        var source = settings.token
        // The service rewrites the file from time to time.
        if source == nil, let path = await variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            source = .file(FilePath(path))
        }
        guard let source else { return await variable("AWS_CONTAINER_AUTHORIZATION_TOKEN") }
        do { return try await reader.read(source).reveal() } catch {
            throw UploadError(
                client.failure(.auth, .secretUnreadable, "\(error)", retryable: true), remedy: .authenticate)
        }
    }

    private func variable(_ name: String) async -> String? {
        try? await reader.read(.environment(name)).reveal()
    }

    // MARK: Both

    private func send(
        _ method: String, _ url: String, _ headers: [(String, String)], _ base: String,
        _ context: RequestContext
    ) async throws -> Response {
        var request = Request(
            method, url, headers: headers,
            limits: Limits(connect: settings.timeout, replyWait: settings.timeout, whole: settings.timeout),
            answerLimit: 64 << 10)
        // The answer is only for this machine.
        request.mayUseProxy = false
        do { return try await client.send(request, context).response } catch let error as AuthorizedClient.NoAnswerError
        {
            throw client.silence("no instance metadata at \(client.host(base))", error)
        }
    }

    private func mustBeGood(_ answer: Response, _ base: String) throws(UploadError) {
        guard answer.status != 200 else { return }
        let remedy: Remedy =
            switch answer.status {
            case 401, 403: .authenticate
            case 429: .rateLimit(after: retryAfter(answer.headers, now: client.clocks.wall()))
            case 500...: .holdDestination(after: retryAfter(answer.headers, now: client.clocks.wall()))
            default: .misconfigured
            }
        throw problem(base, "it answers \(answer.status)", remedy)
    }

    /// The key in an answer. Answers of instances have `Code`, which is `Success`.
    private func key(_ answer: Response, _ base: String) throws -> (key: S3Key, end: WallTime?) {
        try mustBeGood(answer, base)
        guard let json = JSONValue.read(answer.body) else {
            throw problem(base, "its answer is not JSON", .authenticate)
        }
        if let code = json["Code"]?.text, code != "Success" {
            throw problem(
                base, "it gives no key, but `\(FilePath(client.withoutSecrets(code)).display)`", .authenticate)
        }
        do {
            return try S3KeyDocument.read(String(decoding: answer.body, as: UTF8.self), profile: "", from: "its answer")
        } catch {
            throw problem(base, "\(error)", .authenticate)
        }
    }

    private func problem(_ base: String, _ words: String, _ remedy: Remedy) -> UploadError {
        let kind: Failure.Class =
            switch remedy {
            case .authenticate: .auth
            case .misconfigured: .config
            default: .transient
            }
        return UploadError(
            client.failure(
                kind, .instanceMetadata, "the instance metadata at \(client.host(base)) cannot be used: \(words)",
                retryable: true), remedy: remedy)
    }

    /// Whether a key cannot be read in transit, because the service is on this link or the connection is encrypted.
    static func isNear(_ url: String) -> Bool {
        let address = WebAddress(url)
        if address.scheme == "https" { return true }
        let host = address.host.filter { $0 != "[" && $0 != "]" }
        guard let ip = IPAddress(host) else { return host == "localhost" }
        // The services of Amazon's machines and containers; no other host may have these addresses.
        return ip.isLoopback || ip.isLinkLocal || IPSubnet("fd00:ec2::/32")?.contains(ip) == true
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) {
            all.append(SettingObjection(key: "instance_metadata.\(key)", problem: problem))
        }
        guard let kind: Kind = values.word("instance_metadata.kind") else { return [] }
        if kind == .instance, values.has("instance_metadata.token") {
            object("token", "has no effect for `instance`, which gives one itself")
        }
        if kind == .container, values.has("instance_metadata.role") {
            object("role", "has no effect for `container`, whose address has it")
        }
        if let url = values.text("instance_metadata.url") {
            if !isNear(url) { object("url", "is another machine, and the key could be read on its way; use https") }
            let path = WebAddress(url).path
            if kind == .instance, !path.isEmpty {
                object("url", "ends with its host for `instance`: the paths below it are the same everywhere")
            }
        }
        return all
    }
}
