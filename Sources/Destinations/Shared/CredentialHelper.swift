internal import Core
internal import Credentials
internal import Glibc
internal import Linux
internal import Transport

/// A service or program of the person that gives a right in JSON, because it has a key that this machine has not.
struct CredentialHelper: Sendable {
    enum Source: Sendable {
        case service(url: String, headers: [CredentialProvider.Header], caFile: FilePath?)
        /// With servers, its connections obey policy.
        case command([String], servers: ProgramServers?)
    }

    let source: Source
    /// Its role in messages: `the signer`.
    let role: String
    /// The failure code when it cannot be used.
    let code: Failure.Code
    /// Sends the questions to a service; by default the destination's own.
    let client: AuthorizedClient
    /// How long it may take.
    private let timeout: Duration
    /// Runs a program.
    private let reader: SecretReader

    /// - Parameters:
    ///   - asking: The destination's.
    ///   - reply: `reply_timeout` of the destination, where it is set.
    init(
        _ source: Source, role: String, code: Failure.Code, client: AuthorizedClient, reader: SecretReader,
        reply: Duration?
    ) {
        timeout = reply ?? .seconds(30)
        self.reader = reader
        self.source = source
        self.role = role
        self.code = code
        switch source {
        case .service(let url, let headers, let caFile):
            self.client = client.other(
                CredentialProvider(headers, reader: reader), origin: WebAddress(url).origin, caFile: caFile)
        case .command: self.client = client
        }
    }

    /// For messages. Arguments may be secret.
    var name: String {
        switch source {
        case .service(let url, _, _): "\(role) at \(client.host(url))"
        case .command(let words, _): "\(role) \(FilePath(words.first ?? "").display)"
        }
    }

    /// The address for requests; `nil` if no network service is used.
    var address: WebAddress? { if case .service(let url, _, _) = source { WebAddress(url) } else { nil } }

    /// - Parameters:
    ///   - what: A description of the question, for error messages.
    ///   - judge: Returns the error in a service's answer; `nil` to use its status.
    /// - Throws: ``UploadError``; `CancellationError`.
    func answer(
        to question: JSONValue, _ what: String, _ context: RequestContext,
        judge: (Response) -> UploadError? = { _ in nil }
    ) async throws -> [UInt8] {
        guard let bytes = try? question.bytes else { throw problem("cannot be asked", .misconfigured) }
        return switch source {
        case .service(let url, _, _): try await answer(of: url, to: bytes, what, context, judge)
        case .command(let words, let servers): try await answer(of: words, to: bytes, servers)
        }
    }

    private func answer(
        of url: String, to question: [UInt8], _ what: String, _ context: RequestContext,
        _ judge: (Response) -> UploadError?
    ) async throws -> [UInt8] {
        let request = Request(
            "POST", url,
            headers: [("Content-Type", "application/json"), ("Accept", "application/json"), Request.acceptsGzip],
            body: .bytes(question), limits: Limits(replyWait: timeout, whole: timeout))
        for isLast in [false, true] {
            let response: Response
            do { response = try await client.send(request, context).response } catch let error
                as AuthorizedClient.NoAnswerError
            {
                throw client.silence("no \(role.dropFirst("the ".count)) at \(client.host(url))", error)
            }
            if response.status == 200 { return response.body }
            // Its secret may have been renewed, and was read again. A question changes nothing, and can be repeated.
            if response.status == 401, !isLast { continue }
            if let error = judge(response) { throw error }
            let after = retryAfter(response.headers, now: client.clocks.wall())
            let remedy: Remedy =
                switch response.status {
                case 401, 403: .authenticate
                case 429: .rateLimit(after: after)
                case 500..., 408: .holdDestination(after: after)
                default: .misconfigured
                }
            var refused = client.refused(what, response, remedy)
            // Its message may contain addresses nevertheless, whose secrets are not remembered yet.
            refused.failure.message = redacted(refused.failure.message)
            throw refused
        }
        throw problem("does not answer", .holdDestination(after: nil))
    }

    private func answer(
        of words: [String], to question: [UInt8], _ servers: ProgramServers?
    ) async throws -> [UInt8] {
        // The program may need a credential that systemd passes to the daemon.
        let passed = getenv("CREDENTIALS_DIRECTORY").map { ["CREDENTIALS_DIRECTORY=\(String(cString: $0))"] } ?? []
        let program = Program(
            words: words.map { Array($0.utf8) }, environment: Program.plainEnvironment + passed, folder: "/",
            input: question)
        do {
            return try await reader.output(of: program, to: servers, atMost: 1 << 20, within: timeout)
        } catch let held as CommandHeldError {
            throw problem("gives no answer: \(held)", .holdDestination(after: nil))
        } catch let error
            as Program.Problem
        {
            throw problem(
                "gives no answer: \(error); run it by hand as the daemon's user, with a question on its standard input",
                .holdDestination(after: nil))
        }
    }

    func problem(_ words: String, _ remedy: Remedy) -> UploadError {
        UploadError(
            client.failure(
                remedy == .misconfigured ? .config : .transient, code, "\(name) \(words)", retryable: true),
            remedy: remedy)
    }

    /// Its message, safe to show: no request went to an address in it, so its secrets are not remembered.
    func shown(_ words: String) -> String {
        FilePath(String(redacted(client.withoutSecrets(words)).prefix(200))).display
    }
}

// A person's settings for it, in a section.
extension CredentialHelper {
    struct Settings: DeclaredSettings {
        var url: String?
        var token: SecretSource?
        var headers: [String: SecretSource] = [:]
        var caFile: FilePath?
        var command: [String]?
        var network = HookNetwork.any
        var ports = ProgramServers.webPorts

        static let defaults = Settings()

        static let keys = DestinationKey<Settings>.table {
            DestinationKey("url", \.url, as: .url, "The service that is asked.")
            DestinationKey("token", \.token, "Sent to it as `Authorization: Bearer …`.")
            DestinationKey("headers", \.headers, as: .headers, "More headers for it.")
            DestinationKey("ca_file", \.caFile, "Certificates to trust for it instead of the system's (PEM).")
            DestinationKey("command", \.command, "Instead of a service, a program and its arguments.")
            DestinationKey(
                "network", \.network, "Whether connections of that program obey the policy; `{default}` by default.")
            DestinationKey(
                "ports", \.ports,
                "With `network: policy`: the ports of other machines that it may connect to; `[{default}]` by default.")
        }

        /// `nil` where the section is not set.
        var source: Source? {
            if let command {
                return .command(command, servers: network == .policy ? ProgramServers(ports: ports) : nil)
            }
            guard let url else { return nil }
            let authorization = token.map { CredentialProvider.Header("Authorization", prefix: "Bearer ", $0) }
            let others = headers.sorted { $0.key < $1.key }.map { CredentialProvider.Header($0.key, $0.value) }
            return .service(url: url, headers: (authorization.map { [$0] } ?? []) + others, caFile: caFile)
        }
    }

    /// Lower-case. Set twice, they would break the framing.
    private static let reserved: Set<String> = [
        "content-type", "content-length", "transfer-encoding", "expect", "host", "connection", "accept",
    ]

    static func isSet(_ values: [String: SettingValue], in section: String) -> Bool {
        values.keys.contains { $0.hasPrefix("\(section).") }
    }

    /// - Parameter lacking: The missing statement where neither a service nor a program is named: `does not say who
    ///   signs`.
    static func objections(
        _ values: [String: SettingValue], in section: String, lacking: String
    ) -> [SettingObjection] {
        guard isSet(values, in: section) else { return [] }
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) {
            all.append(SettingObjection(key: "\(section).\(key)", problem: problem))
        }
        if let words = values.texts("\(section).command") {
            if words.first?.hasPrefix("/") != true {
                object("command", "takes a program by its absolute path, and its arguments; no shell looks for it")
            }
            for key in ["url", "token", "headers", "ca_file"] where values.has("\(section).\(key)") {
                object(key, "is for a service, and `command` is asked; take one of them out")
            }
        } else if !values.has("\(section).url") {
            all.append(
                SettingObjection(
                    key: section, problem: "\(lacking): set `url` or `command`",
                    missing: ["\(section).url", "\(section).command"]))
        }
        if values.has("\(section).ca_file"), HTTPObjections.isUnencrypted(values.text("\(section).url")) {
            object("ca_file", "has no effect: `url` begins with `http://`; write `https://` there, or take this out")
        }
        if values.has("\(section).network"), !values.has("\(section).command") {
            object("network", "is for a program in `command`")
        }
        if values.has("\(section).ports"), values.text("\(section).network") != HookNetwork.policy.rawValue {
            object("ports", "has no effect without `network: policy`; add that, or remove it")
        }
        if case .literal(let token)? = values.secret("\(section).token"),
            !token.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        {
            object("token", "has a character that no header may have")
        }
        for (name, source) in (values.map("\(section).headers") ?? [:]).sorted(by: { $0.key < $1.key }) {
            if let problem = HTTPObjections.problem(ofHeader: source) { object("headers.\(name)", problem) }
            if reserved.contains(name.lowercased()) {
                object("headers.\(name)", "cannot be set: it belongs to the protocol")
            }
            if name.lowercased() == "authorization", values.has("\(section).token") {
                object("headers.\(name)", "is what `token` sets; take one of them out")
            }
        }
        return all
    }
}
