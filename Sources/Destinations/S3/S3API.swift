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
    /// Hexadecimal SHA-256 of the body; `nil` for one that is not read before it is sent.
    var payload: String? = S3Message.emptyPayload
    /// `nil`: as of all requests without bytes of the file.
    var limits: Limits?
    /// It is answered with a list, which may come compressed. Not signed: it says nothing of the bucket.
    var isForList = false
    /// Of a part: those behind it, which are signed together with it where somebody else signs.
    var further: [PartPlan.Part] = []
    /// In words, for a refusal.
    var what: String
}

/// Sends requests to one bucket, each signed anew.
struct S3API: Sendable {
    let asking: Asking
    let settings: S3Settings
    private let signer: any S3Signing
    /// The keys of the configuration that give the right to ask, for a person.
    let rights: String
    private let learned = Learned()
    private let looks: S3Looks
    let creations = CreationPatience()

    /// What answers have taught, for all uploads of the destination.
    private final class Learned: Sendable {
        /// It gives no list of parts.
        let hasNoList = Atomic(false)
        /// An ETag was the MD5 of what was sent: then all of its kind are, of whole files or of parts.
        let wholeTagsAreMD5 = Atomic(false)
        let partTagsAreMD5 = Atomic(false)
        /// The ETag of an object of parts was made of theirs: then all are.
        let tagsAreJoined = Atomic(false)
        /// Keys that uploads of this program are on their way to, with the upload's id.
        let names = Mutex<[FilePath: String]>([:])
        /// By the ids of uploads: names before these are other files'.
        let searches = Mutex<[String: Int]>([:])
        /// Keys that are known to be there, with the content's digest.
        let there = Mutex<[FilePath: [UInt8]]>([:])
    }

    /// - Parameter log: One line for the log.
    init(
        asking: Asking, settings: S3Settings, signer: any S3Signing, rights: String,
        log: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        looks = S3Looks(log: log)
        self.asking = asking
        self.rights = rights
        self.settings = settings
        self.signer = signer
    }

    /// What ETags of 32 digits are, by what is set and what was seen.
    func tags(ofWhole isWhole: Bool) -> S3Preset.Tags {
        guard settings.tags == .unknown else { return settings.tags }
        let isLearned =
            isWhole ? learned.wholeTagsAreMD5.load(ordering: .relaxed) : learned.partTagsAreMD5.load(ordering: .relaxed)
        return isLearned ? .md5 : .unknown
    }

    /// Whether the ETag of an object of parts is made of theirs.
    var joinsTags: Bool {
        get { settings.preset.joinsTags || learned.tagsAreJoined.load(ordering: .relaxed) }
        nonmutating set { learned.tagsAreJoined.store(newValue, ordering: .relaxed) }
    }

    func tagWasMD5(ofWhole isWhole: Bool) {
        if isWhole {
            learned.wholeTagsAreMD5.store(true, ordering: .relaxed)
        } else {
            learned.partTagsAreMD5.store(true, ordering: .relaxed)
        }
    }

    /// Two uploads that found the same key free would write over each other.
    ///
    /// - Returns: `false` when another upload is on its way there.
    func reserve(_ key: FilePath, for id: String) -> Bool {
        learned.names.withLock { names in
            if let other = names[key], other != id { return false }
            names[key] = id
            return true
        }
    }

    private static let mostThere = 4096

    /// Where an upload's search for a free name goes on.
    func nextName(for id: String) -> Int { learned.searches.withLock { $0[id] ?? 1 } }

    func setNextName(_ number: Int?, for id: String) {
        learned.searches.withLock { searches in
            if searches.count >= Self.mostThere { searches = [:] }
            searches[id] = number
        }
    }

    func note(_ key: FilePath, with sha256: [UInt8]) {
        learned.there.withLock { there in
            if there.count >= Self.mostThere { there = [:] }
            there[key] = sha256
        }
    }

    /// Whether another content was seen there. It may have gone since: whoever hears so asks before a byte leaves.
    func isTaken(_ key: FilePath, from sha256: [UInt8]) -> Bool {
        learned.there.withLock { $0[key].map { $0 != sha256 } ?? false }
    }

    /// Whether this very content was seen there.
    func isThere(_ key: FilePath, with sha256: [UInt8]) -> Bool { learned.there.withLock { $0[key] == sha256 } }

    func letGo(of ids: Set<String>) { learned.names.withLock { $0 = $0.filter { !ids.contains($0.value) } } }

    var hasNoList: Bool {
        get { learned.hasNoList.load(ordering: .relaxed) }
        nonmutating set { learned.hasNoList.store(newValue, ordering: .relaxed) }
    }

    /// The key may not look at objects: one that is known to be there was answered with 403.
    var mayNotLook: Bool { looks.isBlind(asking.clocks.monotonic()) }

    func lookWasRefused() {
        let right = settings.preset.wire.signing == .s3 ? "s3:GetObject" : "oss:GetObject"
        looks.refused(asking.clocks.monotonic(), right: right)
    }

    func lookWasAnswered() { looks.answered() }

    func partsWereRefused() {
        looks.refusedParts(right: settings.preset.wire.signing == .s3 ? "s3:ListMultipartUploadParts" : "oss:ListParts")
    }

    /// The key is somebody else's, who may not sign everything.
    var isPresigned: Bool { signer is S3Presigner }
    /// No digest of a body goes along in its own header: the connection keeps what is sent as it is, or somebody else signs, and such
    /// a signature covers no body.
    var isSecure: Bool { isPresigned || WebAddress(settings.endpoint).scheme == "https" }
    /// Where the objects are, told from every other place.
    var server: String { "\(WebAddress(settings.endpoint).authority ?? "")/\(settings.bucket)" }

    /// - Returns: The answer, whatever it says. What another signature may mend is mended once each.
    /// - Throws: ``Asking/Unanswered``; ``UploadError``; `CancellationError`.
    func send(_ request: S3Request) async throws -> Response {
        try await exchange(request) { try await asking.ask($0) }.response
    }

    /// The same for bytes of a file: what left of them is told in any case.
    func carry(_ request: S3Request, _ sent: @escaping @Sendable (Int64) -> Void) async -> Asking.Carried {
        var carried = Asking.Carried(unsent: CancellationError())
        do {
            let answer = try await exchange(request) { signed in
                carried = await asking.carry(signed, sent: sent)
                return try carried.result.get()
            }
            carried.result = .success(answer)
        } catch { carried.result = .failure(error) }
        return carried
    }

    private func exchange(
        _ request: S3Request, _ ask: (Request) async throws -> Asking.Answer
    ) async throws -> Asking.Answer {
        var corrected: Set<S3Signed.Correction> = []
        while true {
            let signed = try await signer.signed(request)
            let began = asking.clocks.monotonic()
            let answer = try await ask(
                Request(
                    request.method, signed.url,
                    headers: signed.headers + (request.isForList ? [Request.acceptsGzip] : []),
                    body: request.body, limits: request.limits ?? settings.limits.small))
            let response = answer.response
            // Now, and not when it was sent: of those there may be many meanwhile.
            if let proof = signed.proof { asking.rememberForNow(proof) }
            if case .file = request.body { await signer.carried(for: asking.clocks.monotonic().since(began)) }
            guard !(200..<300).contains(response.status), response.status != 404,
                let correction = await signed.mend(response, corrected)
            else { return answer }
            corrected.insert(correction)
        }
    }

    func verdict(_ response: Response) -> S3Verdict {
        S3Verdict(response, isLent: signer.isLent, now: asking.clocks.wall())
    }

    func refusal(_ response: Response, _ what: String) -> UploadError {
        // Many may have been signed since it was sent, and only the newest are remembered.
        if isPresigned { asking.conceal(address: response.url) }
        let verdict = verdict(response)
        return asking.refused(
            what, response, verdict.remedy, words: verdict.code == nil ? nil : asking.withoutSecrets(verdict.words),
            code: verdict.code.map { asking.withoutSecrets($0) })
    }

    /// Where a person finds an object.
    func address(of key: FilePath) -> String { settings.place(of: key, in: settings.region).url }
}
