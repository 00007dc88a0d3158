internal import Core
internal import Credentials
internal import Transport

/// An account at Vimeo (https://developer.vimeo.com/api/upload/videos), or at a server that speaks its API.
struct Vimeo: ObjectListing {
    private let account: VimeoAccount
    private let chunks: ChunkSize
    private let finalError: FinalErrorPolicy
    private let judged: JudgedAddress
    var site: DestinationSite { judged.site }

    /// Hosts of the service for bytes: `files.tus.vimeo.com` with a region before it, and `NUMBER.cloud.vimeo.com`
    /// (links that its own clients have recorded).
    static let domains = ["vimeo.com"]

    init(_ values: [String: SettingValue], _ tools: DestinationTools) throws {
        // The loader has reported all of them, with their places.
        if let objection = Self.objections(values).first {
            throw UnusableSettingError(key: objection.key, problem: objection.problem)
        }
        let settings = VimeoSettings.keys.settings(values)
        guard let token = settings.token else { throw UnusableSettingError(key: "token", problem: "is missing") }
        func client(_ headers: [CredentialProvider.Header], _ allowed: AllowedOrigins, hidesAddresses: Bool)
            -> AuthorizedClient
        {
            AuthorizedClient(
                tools, headers: headers, origins: [WebAddress(settings.base).origin], allowed: allowed,
                hidesAddresses: hidesAddresses)
        }
        // The address of an upload is its own permission, and is on other hosts: the token never goes there.
        let bytes = client(
            [], AllowedOrigins(homes: [settings.base], named: settings.allowedOrigins, domains: Self.domains),
            hidesAddresses: true)
        account = VimeoAccount(
            api: VimeoAPI(
                client(
                    [.init("Authorization", prefix: "Bearer ", token, key: "token")],
                    AllowedOrigins(homes: [settings.base]), hidesAddresses: false),
                base: settings.base,
                limits: settings.limits.small),
            tus: TusServer(
                endpoint: settings.base, client: bytes,
                settings: TusSettings(methodOverride: .never, limits: settings.limits),
                capabilities: TusCapabilities(), log: tools.log),
            ranges: ContentRange(
                client: bytes, limits: settings.limits, meaning: .count(RangeSemantics()), success: .ofPiece),
            settings: settings, secrets: tools.secrets, log: tools.log)
        judged = tools.judged(settings.base)
        chunks = ChunkSize(chosen: settings.chunk)
        finalError = settings.finalError
    }

    func upload(
        _ order: UploadOrder, reporter: any UploadReporter, context: RequestContext
    ) async throws -> RemoteObject {
        let dialect = VimeoDialect(account: account, context: context)
        if VimeoPicture.isImage(order), dialect.settings.video.thumbnail {
            return try await VimeoPicture(dialect: dialect).upload(order, reporter)
        }
        let engine = OffsetEngine(dialect: dialect, chunks: chunks, gone: .reupload, finalError: finalError)
        return try await engine.upload(try await dialect.prepared(order, reporter), reporter)
    }

    func lasting(of checkpoint: Checkpoint) -> Checkpoint { checkpoint.keeping(OffsetCheckpoint.lasting) }

    func discard(_ checkpoint: Checkpoint, context: RequestContext) async throws(UploadError) -> Bool {
        let dialect = VimeoDialect(account: account, context: context)
        let checkpoint = OffsetCheckpoint(checkpoint)
        let thing = checkpoint.vimeo.video ?? checkpoint[as: VimeoPictureCheckpoint.self].picture
        // A ticket that was not completed is no video, and expires.
        let isCreationUnanswered =
            checkpoint.isCreating && checkpoint.vimeo.has(\.askedAt) && dialect.settings.flow != .fourStep
        if thing == nil, !checkpoint.vimeo.has(\.endingAt), !isCreationUnanswered { return true }
        // A video that was not found is not removed for that reason.
        guard dialect.isOurs(checkpoint), !checkpoint.has(\.missingIn) else { return false }
        return try await account.api.client.stoppable("the removal") {
            if let thing {
                guard try await !dialect.belongsToAnotherUpload(checkpoint) else { return false }
                return try await dialect.remove(thing)
            }
            return !checkpoint.vimeo.has(\.endingAt)
                ? try await dialect.removeCreated(checkpoint) : try await dialect.removeEnded(checkpoint)
        }
    }

    func obstacleToRemoving(test order: UploadOrder, context: RequestContext) async -> String? {
        do {
            let scopes = try await VimeoDialect(account: account, context: context).scopes()
            return scopes?.contains("delete") ?? true ? nil : "the token lacks the scope `delete`"
        } catch {
            // The upload meets the same error, and reports it.
            return nil
        }
    }

    func find(_ order: UploadOrder, context: RequestContext) async throws(UploadError) -> RemoteLookup {
        .unknown("Vimeo gives no digest of its videos, and two videos may have one name: `sluice remote` lists them")
    }

    var reportsSpace: Bool { true }

    func space(context: RequestContext) async throws(UploadError) -> RemoteSpace? {
        let dialect = VimeoDialect(account: account, context: context)
        return try await account.api.client.stoppable { try await dialect.space() }
    }

    func list(after mark: String?, context: RequestContext) async throws(UploadError) -> RemotePage {
        let dialect = VimeoDialect(account: account, context: context)
        return try await account.api.client.stoppable { try await dialect.list(after: mark) }
    }

    var requestSize: RequestSize? { chunks.learned }
    func recall(_ size: RequestSize) { chunks.recall(size) }

    func check(context: RequestContext) async -> CheckResult {
        let dialect = VimeoDialect(account: account, context: context)
        do {
            let scopes = try await dialect.scopes()
            // A token without the right to read it gets no answer.
            let space = try await dialect.space()
            var result = judge(scopes, space)
            guard result.verdict != .failed else { return result }
            // This question comes last: an account with another error does not need it.
            switch try await dialect.flowSupport() {
            case .supported:
                result.parts.append(.init(.flow, .ok, "`flow: \(dialect.settings.flow.rawValue)` is accepted"))
            case .refused(let refusal):
                result.verdict = .failed
                result.detail += "; \(refusal.failure.message)"
                result.parts.append(.init(.flow, .failed, refusal.failure.message))
            case .unknown:
                let words =
                    "it is not known whether `flow: \(dialect.settings.flow.rawValue)` is accepted: "
                    + "the service refuses the trial for another reason"
                result.verdict = .warning
                result.detail += "; " + words
                result.parts.append(.init(.flow, .warning, words))
            }
            return result
        } catch let error as UploadError {
            return CheckResult(.failed, error.checkDescription(right: "the token"))
        } catch {
            return CheckResult(.failed, "the check was stopped")
        }
    }

    /// The purposes for which uploads and other functions need each scope.
    private var uses: [(scope: String, purpose: String)] {
        var uses = [
            ("delete", "removing what was cancelled"), ("private", "reading the quota and videos that are not public"),
        ]
        let edits = [
            account.settings.flow == .fourStep ? "naming a video" : nil,
            account.settings.video.thumbnail ? "setting a thumbnail" : nil,
        ].compactMap { $0 }
        if !edits.isEmpty { uses.insert(("edit", edits.joined(separator: " and ")), at: 0) }
        return uses
    }

    private func judge(_ scopes: Set<String>?, _ space: RemoteSpace?) -> CheckResult {
        var words = ["the token is good"]
        var verdict = CheckResult.Verdict.ok
        if let scopes {
            guard scopes.contains("upload") else {
                return CheckResult(
                    .failed, "the token is good, and lacks the scope `upload`: no upload can begin", space: space
                ).about(.credentials)
            }
            for use in uses where !scopes.contains(use.scope) {
                words.append("it lacks the scope `\(use.scope)`, for \(use.purpose)")
                verdict = .warning
            }
        }
        let credentials = CheckResult.Part(.credentials, verdict, words.joined(separator: "; "))
        if let space { words.append(space.text) }
        if account.settings.flow != .tus, account.settings.base == VimeoSettings.publicAPI {
            words.append(
                "the public service has switched `flow: \(account.settings.flow.rawValue)` off: set `flow: tus`")
            verdict = .warning
        }
        return CheckResult(verdict, words.joined(separator: "; "), space: space, parts: [credentials])
    }
}
