internal import Core
internal import Credentials
internal import Digests
internal import Synchronization
internal import Transport

/// A request to a bucket, before it is signed.
struct S3Request: Sendable {
    var method: String
    /// `nil` for the bucket itself.
    var key: FilePath?
    var query: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []
    var body: Request.Body = .none
    /// Hexadecimal SHA-256 of the body; `nil` for a body that is not read before it is sent.
    var payload: String? = S3Message.emptyPayload
    /// `nil`: the limits of all requests without bytes of the file.
    var limits: Limits?
    /// The answer is a list, which may come compressed. Not signed: it says nothing about the bucket.
    var isForList = false
    /// For a part: the parts after it, which an external signer signs together with it.
    var further: [PartPlan.Part] = []
    /// A description for error messages.
    var what: String
}

/// Sends the requests of one upload, or of one query, to a bucket. Each request is signed when it is sent.
struct S3API: Sendable {
    let bucket: S3Bucket
    /// The context of its requests.
    let context: RequestContext

    var client: AuthorizedClient { bucket.client }
    var settings: S3Settings { bucket.settings }
    var rights: String { bucket.rights }
    var creations: CreationBackoff { bucket.creations }
    var server: String { bucket.server }
    var isPresigned: Bool { bucket.isPresigned }
    var isSecure: Bool { bucket.isSecure }
    private var signer: any S3Signing { bucket.signer }
    private var learned: S3Bucket.Learned { bucket.learned }
    private var forbiddenQuestions: S3ForbiddenQuestions { bucket.forbiddenQuestions }

    /// The meaning of ETags with 32 digits, from the settings and from experience.
    func tags(ofWhole isWhole: Bool) -> S3Preset.Tags {
        guard settings.tags == .unknown else { return settings.tags }
        let isLearned =
            isWhole ? learned.wholeTagsAreMD5.load(ordering: .relaxed) : learned.partTagsAreMD5.load(ordering: .relaxed)
        return isLearned ? .md5 : .unknown
    }

    /// Whether the ETag of a multipart object is computed from those of its parts.
    var joinsTags: Bool {
        get { settings.preset.joinsTags || learned.tagsAreJoined.load(ordering: .relaxed) }
        nonmutating set { learned.tagsAreJoined.store(newValue, ordering: .relaxed) }
    }

    func noteTagIsMD5(ofWhole isWhole: Bool) {
        if isWhole {
            learned.wholeTagsAreMD5.store(true, ordering: .relaxed)
        } else {
            learned.partTagsAreMD5.store(true, ordering: .relaxed)
        }
    }

    /// Reserves a key: two uploads that found the same key free would overwrite each other.
    ///
    /// - Returns: `false` when another upload to it is in progress.
    func reserve(_ key: FilePath, for id: String) -> Bool {
        learned.names.withLock { names in
            if let other = names[key], other != id { return false }
            names[key] = id
            return true
        }
    }

    private static let maxRememberedKeys = 4096

    /// Where an upload's search for a free name continues.
    func nextName(for id: String) -> Int { learned.searches.withLock { $0[id] ?? 1 } }

    func setNextName(_ number: Int?, for id: String) {
        learned.searches.withLock { searches in
            if searches.count >= Self.maxRememberedKeys { searches = [:] }
            searches[id] = number
        }
    }

    func note(_ key: FilePath, with sha256: [UInt8]) {
        learned.existingKeys.withLock { there in
            if there.count >= Self.maxRememberedKeys { there = [:] }
            there[key] = sha256
        }
    }

    /// Whether other content was seen there. It may be gone since: the caller queries the service before a byte is
    /// sent.
    func isTaken(_ key: FilePath, from sha256: [UInt8]) -> Bool {
        learned.existingKeys.withLock { $0[key].map { $0 != sha256 } ?? false }
    }

    /// Whether exactly this content was seen there.
    func isThere(_ key: FilePath, with sha256: [UInt8]) -> Bool { learned.existingKeys.withLock { $0[key] == sha256 } }

    var hasNoList: Bool {
        get { learned.hasNoList.load(ordering: .relaxed) }
        nonmutating set { learned.hasNoList.store(newValue, ordering: .relaxed) }
    }

    /// The key may not query objects: a request for an object that is known to exist was answered with 403.
    var cannotLookUp: Bool { forbiddenQuestions.cannotLookUp(client.clocks.monotonic()) }

    func noteLookupRefused() {
        let right = settings.preset.wire.signing == .s3 ? "s3:GetObject" : "oss:GetObject"
        forbiddenQuestions.refused(client.clocks.monotonic(), right: right)
    }

    func noteLookupAnswered() { forbiddenQuestions.answered() }

    func notePartsRefused() {
        forbiddenQuestions.refusedParts(
            right: settings.preset.wire.signing == .s3 ? "s3:ListMultipartUploadParts" : "oss:ListParts")
    }

    /// - Returns: The answer, whatever its status. Faults that another signature corrects are corrected once each.
    /// - Throws: ``AuthorizedClient/NoAnswerError``; ``UploadError``; `CancellationError`.
    func send(_ request: S3Request) async throws -> Response {
        try await exchange(request) { try await client.send($0, context) }.response
    }

    /// The same for bytes of a file: the number of bytes that left is reported in any case.
    func sendBody(_ request: S3Request, _ sent: @escaping @Sendable (Int64) -> Void) async -> AuthorizedClient.Carried {
        var carried = AuthorizedClient.Carried(unsent: CancellationError())
        do {
            let answer = try await exchange(request) { signed in
                carried = await client.sendBody(signed, context, sent: sent)
                return try carried.result.get()
            }
            carried.result = .success(answer)
        } catch { carried.result = .failure(error) }
        return carried
    }

    private func exchange(
        _ request: S3Request, _ ask: (Request) async throws -> AuthorizedClient.Answer
    ) async throws -> AuthorizedClient.Answer {
        var corrected: Set<S3Signed.Correction> = []
        while true {
            let signed = try await signer.signed(request, context)
            let began = client.clocks.monotonic()
            let answer = try await ask(
                Request(
                    request.method, signed.url,
                    headers: signed.headers + (request.isForList ? [Request.acceptsGzip] : []),
                    body: request.body, limits: request.limits ?? settings.limits.small))
            let response = answer.response
            // Remembered when the answer comes, and not when the request is sent: there may be many requests in
            // between.
            if let proof = signed.proof { client.rememberForNow(proof) }
            if case .file = request.body { await signer.carried(for: client.clocks.monotonic().since(began)) }
            guard !(200..<300).contains(response.status), response.status != 404,
                let correction = await signed.correct(response, corrected)
            else { return answer }
            corrected.insert(correction)
        }
    }

    func verdict(_ response: Response) -> S3Verdict {
        S3Verdict(response, isTemporary: signer.isTemporary, now: client.clocks.wall())
    }

    func refusal(_ response: Response, _ what: String) -> UploadError {
        // Many requests may have been signed since this one was sent, and only the newest are remembered.
        if isPresigned { client.conceal(address: response.url) }
        let verdict = verdict(response)
        return client.refused(
            what, response, verdict.remedy, words: verdict.code == nil ? nil : client.withoutSecrets(verdict.message),
            code: verdict.code.map { .service(client.withoutSecrets($0)) })
    }

    // MARK: Errors

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        client.failure(kind, code, message, retryable: retryable)
    }

    /// Refuses one file.
    func fileRefusal(_ code: Failure.Code, _ message: String) -> UploadError {
        UploadError(failure(.permanent, code, message, retryable: false), remedy: .failUpload)
    }

    /// The error for an answer that cannot be used.
    func unusable(_ message: String) -> UploadError {
        UploadError(
            failure(.protocol, .unusableAnswer, message, retryable: true), remedy: .retry(after: nil))
    }

    /// An object exists, and it cannot be found out which.
    func outcomeUnknown(_ key: FilePath) -> UploadError {
        fileRefusal(
            .outcomeUnknown,
            "\(address(of: key)) exists, and the given right does not allow reading it: it may be this file, "
                + "after a lost answer. Check it there; `sluice cancel` ends the upload, and the source stays")
    }

    /// The address where a person finds an object.
    func address(of key: FilePath) -> String { settings.place(of: key, in: settings.region).url }
}
