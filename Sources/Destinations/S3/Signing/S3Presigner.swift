internal import Core
internal import Credentials
internal import Transport

/// Has requests signed by an external signer that holds the key: a service or a program of the person. Every request
/// goes to an address that the signer gave (a presigned URL), and no key is stored here.
actor S3Presigner: S3Signing {
    /// The kind of key is unknown here.
    nonisolated var isTemporary: Bool { false }
    private struct Kept {
        var given: S3SignedAddress
        var end: MonotonicTime
    }

    private let signer: CredentialHelper
    /// For requests to the bucket, and for messages.
    private let client: AuthorizedClient
    private let settings: S3Settings
    private let hosts: S3SignedHosts
    /// Addresses of parts that are sent later.
    private var kept: [String: Kept] = [:]
    /// Parts for which a question is in flight, with its number.
    private var coming: [String: Int] = [:]
    /// Tasks that wait for a question about another part of their upload, whose answer contains their address too.
    private var waiting: [Int: [CheckedContinuation<Void, Never>]] = [:]
    private var questions = 0

    /// Number of parts that are requested together.
    static let ahead = 32
    private static let maxKeptAddresses = 1024
    /// Validity of an address when the signer does not say when it ends.
    private static let life: Duration = .seconds(300)
    /// Minimum validity that must be left when a request begins.
    private static let margin: Duration = .seconds(30)

    init(
        _ signer: CredentialHelper.Source, hosts: [String], client: AuthorizedClient, settings: S3Settings,
        reader: SecretReader
    ) {
        self.signer = CredentialHelper(
            signer, role: "the signer", code: .signerUnusable, client: client, reader: reader,
            reply: settings.limits.reply)
        self.client = client
        self.settings = settings
        self.hosts = S3SignedHosts(
            endpoint: WebAddress(settings.endpoint.replacing("{region}", with: settings.region)), others: hosts,
            bucket: settings.bucket)
    }

    func signed(_ request: S3Request, _ context: RequestContext) async throws -> S3Signed {
        let wanted = S3SigningRequest(request)
        var early = signedEarlier(wanted)
        if early == nil, let question = wanted.mark.flatMap({ coming[$0] }) {
            await withCheckedContinuation { waiting[question, default: []].append($0) }
            try Task.checkCancellation()
            early = signedEarlier(wanted)
        }
        let wasEarly = early != nil
        let given = if let early { early } else { try await requestAddress(wanted, context) }
        conceal(given)
        return S3Signed(url: given.url, headers: given.headers(over: request.headers)) { answer, corrected in
            guard [400, 401, 403].contains(answer.status), !corrected.contains(.key) else { return nil }
            let verdict = S3Verdict(answer, isTemporary: false, now: self.client.clocks.wall())
            // All services answer "Request has expired" for an address that has ended. A request that is refused for
            // another reason would be refused again, with all its bytes.
            let hasEnded =
                verdict.message.lowercased().contains("expired")
                || verdict.concernsKey && verdict.code != nil && verdict.code != "AccessDenied"
            // Repeating a question whose answer had no body costs nothing.
            guard wasEarly || hasEnded || request.method == "HEAD" && verdict.hasNoBody else { return nil }
            await self.forget()
            return .key
        }
    }

    /// The parts that are requested together with a part: all of them come after it.
    static func behind(_ part: PartPlan.Part, of plan: PartPlan) -> [PartPlan.Part] {
        (part.index + 1..<min(plan.count, part.index + ahead)).map { plan[$0] }
    }

    /// Addresses that were signed together with it may be of no use either.
    private func forget() { kept = [:] }

    private func signedEarlier(_ wanted: S3SigningRequest) -> S3SignedAddress? {
        guard let mark = wanted.mark, let there = kept.removeValue(forKey: mark), counts(there) else { return nil }
        return there.given
    }

    private func counts(_ there: Kept) -> Bool {
        client.clocks.monotonic().advanced(by: Self.margin) < there.end
    }

    private func conceal(_ given: S3SignedAddress) {
        client.conceal(address: given.url)
        for (name, value) in given.headers where isSecretName(name) { client.rememberForNow(value) }
    }

    // MARK: Asking

    /// Requests one address, and for a part also those of the following parts that are neither known nor requested.
    private func requestAddress(_ first: S3SigningRequest, _ context: RequestContext) async throws -> S3SignedAddress {
        guard first.mark != nil else { return try await requestAddresses([first], context) }
        kept = kept.filter { counts($0.value) }
        let further = first.request.further.map { S3SigningRequest(first.request, part: $0) }.filter { wanted in
            wanted.mark.map { kept[$0] == nil && coming[$0] == nil } ?? false
        }
        questions += 1
        let number = questions
        for mark in further.compactMap(\.mark) { coming[mark] = number }
        defer {
            coming = coming.filter { $0.value != number }
            waiting.removeValue(forKey: number)?.forEach { $0.resume() }
        }
        return try await requestAddresses([first] + further, context)
    }

    private func requestAddresses(_ all: [S3SigningRequest], _ context: RequestContext) async throws -> S3SignedAddress
    {
        let question = JSONValue.object([
            "version": .whole(1), "destination": .text(client.name), "bucket": .text(settings.bucket),
            "endpoint": .text(hosts.endpoint.description), "region": .text(settings.region),
            "requests": .list(all.map(\.json)),
        ])
        let answer = try await signer.answer(to: question, "the request for a signed address", context)
        // Neither a login page nor the answer of a broken proxy is one.
        guard let first = all.first, let signed = JSONValue.read(answer)?["signed"]?.items, let given = signed.first
        else {
            throw signer.problem(
                "gives something other than JSON with a list called `signed`", .holdDestination(after: nil))
        }
        let now = client.clocks.wall()
        for (wanted, json) in zip(all, signed).dropFirst() {
            // An unusable address of a later part is requested again when it is needed.
            guard let mark = wanted.mark, let given = try? S3SignedAddress(json, for: wanted, at: hosts, now: now)
            else {
                continue
            }
            if kept.count >= Self.maxKeptAddresses { kept = [:] }
            kept[mark] = Kept(given: given, end: client.clocks.monotonic().advanced(by: given.life ?? Self.life))
        }
        do { return try S3SignedAddress(given, for: first, at: hosts, now: now) } catch .wrong(let words) {
            throw signer.problem(words, .misconfigured)
        } catch .refused(let words, let isFinal) {
            throw refused(first, words, isFinal)
        }
    }

    // MARK: Words

    private func refused(_ wanted: S3SigningRequest, _ words: String, _ isFinal: Bool) -> UploadError {
        let need =
            switch wanted.operation {
            case .list: "; `sluice remote` needs it"
            case .uploads: "; `sluice orphans` needs it"
            default: ""
            }
        return UploadError(
            client.failure(
                isFinal ? .permanent : .auth, .signerRefused,
                "\(signer.name) refuses `\(wanted.operation.rawValue)`: \(signer.shown(words))\(need)",
                retryable: !isFinal),
            remedy: isFinal ? .failUpload : .authenticate)
    }
}

extension AuthorizedClient {
    /// A signed address gives the right to its request.
    func conceal(address: String) {
        for (name, value) in PercentCoding.query(decoding: WebAddress(address).query ?? "") ?? [:]
        where isSecretName(name) || name.lowercased() == "awsaccesskeyid" {
            rememberForNow(value)
            // The id of the key that signs, before the day and the region.
            if name.lowercased() == "x-amz-credential" { rememberForNow(String(value.prefix { $0 != "/" })) }
        }
    }
}
