internal import Core
internal import Credentials
internal import Digests
internal import Linux
internal import Transport

/// A server that takes chunked forms, and the facts that all uploads to it have learned.
struct FormEndpoint: Sendable {
    let url: String
    let client: AuthorizedClient
    /// The secrets that templates name.
    let secrets: CredentialProvider
    let settings: FormSettings
    let limits: RequestLimits
    let blockDigests = BlockDigests()
    let creations = CreationBackoff()

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        client.failure(kind, code, message, retryable: retryable)
    }
}

/// Chunked forms as ``PartsEngine`` needs them. Everything that is particular to one server is in the settings, and not
/// here.
struct FormDialect: PartsDialect {
    let server: FormEndpoint
    /// The context of its requests.
    let context: RequestContext

    var url: String { server.url }
    var client: AuthorizedClient { server.client }
    var secrets: CredentialProvider { server.secrets }
    var settings: FormSettings { server.settings }
    var limits: RequestLimits { server.limits }
    var blockDigests: BlockDigests { server.blockDigests }
    private var creations: CreationBackoff { server.creations }

    func charging(upload id: String) -> FormDialect {
        FormDialect(server: server, context: context.charging(upload: id))
    }

    var opensByRequest: Bool { settings.open != nil }
    var completesByRequest: Bool { settings.finish != nil }
    var repeatsSafely: Bool { settings.repeatsSafely }
    var lastGoesAlone: Bool { true }
    var mayRename: Bool { settings.newID != nil }
    var comparesContent: Bool { false }
    var canAbort: Bool { settings.abort != nil }
    var onlyCounts: Bool { true }
    var hasOwnName: Bool { settings.id == .uuid4 || settings.open != nil }

    func endsByRequest(_ plan: PartPlan) -> Bool {
        settings.finish.map { plan.count > 1 || !$0.skipsSinglePart } ?? false
    }

    var inquiry: PartsInquiry {
        switch settings.probe {
        case nil, .header: .none
        case .list: .list
        case .each: .each
        }
    }

    func reserve(for count: Int64) async -> Shortage? { await context.permit.reserve(for: count) }
    func returnReservation(for count: Int64, sent: Int64) { context.permit.returnReservation(for: count, sent: sent) }

    func sizeKey(ofPart length: Int64) -> String? { "block.size" }

    func plan(_ order: UploadOrder) throws -> PartPlan {
        guard let plan = PartPlan(size: order.file.size, partSize: settings.blockSize, rule: settings.rule) else {
            throw UploadError(
                failure(.local, .stagedChanged, "a file of \(order.file.size) bytes", retryable: true),
                remedy: .restage(.changed))
        }
        try checkHeaders(order, plan)
        return plan
    }

    func isOurs(_ checkpoint: PartsCheckpoint) -> Bool {
        checkpoint.form.server.map { WebAddress($0).origin } == WebAddress(url).origin
            && checkpoint.form.preset == settings.preset
    }

    // MARK: Requirements of the engine

    func chooseName(
        _ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout PartsCheckpoint, restarts: Int64
    ) async throws -> RemoteObject? {
        checkpoint.form.server = WebAddress(url).origin
        checkpoint.form.preset = settings.preset
        checkpoint.form.id = id(order, restarts)
        if settings.abort != nil {
            checkpoint.form.name = order.name
            checkpoint.form.mediaType = order.mediaType
        }
        return nil
    }

    func begin(_ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout PartsCheckpoint) async throws {
        guard let open = settings.open else { return }
        let piece = PartsContext(order: order, plan: plan, checkpoint: checkpoint)
        checkpoint.form.token = try await creations.make(client, after: checkpoint.orphans ?? 0) {
            let (request, reading) = try await request(open.message, piece, nil, open.part)
            let answer = try await exchange(request, .open, wantsJSON: true)
            if answer.verdict == .stop(.authenticate) { await secrets.refused(reading) }
            guard case .success = answer.verdict else {
                var error = refused("the opening", answer)
                // The status was a success and the body was not: it is unknown whether an upload was begun.
                if (200..<300).contains(answer.response.status), error.remedy.endsOnlyAttempt {
                    error.failure.code = .unusableAnswer
                }
                throw error
            }
            guard let token = answer.document?[open.token]?.text, !token.isEmpty, token.utf8.count <= 4096 else {
                throw UploadError(
                    failure(
                        .protocol, .noToken,
                        "\(host) answered \(answer.response.status) to the opening, and its answer has nothing at "
                            + "\(open.token.source): \(FilePath(excerpt(answer.response)).display)", retryable: true),
                    remedy: .retry(after: nil))
            }
            return token
        }
    }

    /// The id of an upload. It is another one each time the upload starts again, so that no earlier blocks are mixed
    /// in.
    private func id(_ order: UploadOrder, _ restarts: Int64) -> String {
        switch settings.id {
        case .uuid4:
            var bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
            // RFC 9562, section 5.4.
            bytes[6] = bytes[6] & 0x0F | 0x40
            bytes[8] = bytes[8] & 0x3F | 0x80
            let digits = Array(hexadecimal(bytes))
            return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
        case .sizeName:
            let plain = order.name.bytes.filter { $0.isLetterOrDigit(or: "_-") }
            // Two files with the same name and size must have different ids, and so must one file under two names that
            // differ only in case.
            let whole = Hasher.digest(.sha256, of: order.file.sha256 + order.name.bytes)
            let digest = hexadecimal(Array(whole.prefix(8)))
            return "\(order.file.size)-\(String(decoding: plain.suffix(120), as: UTF8.self))-\(digest)"
                + (restarts > 0 ? "-\(restarts)" : "")
        }
    }

    func held(among indices: [Int], _ piece: PartsContext) async throws -> RemoteParts {
        switch settings.probe {
        case nil, .header: return .parts([])
        case .list(let message, let pointer, let base):
            let answer = try await perform(message, piece, nil)
            guard case .success = answer.verdict else { throw refused("the list of its blocks", answer) }
            guard case .list(let items)? = answer.document?[pointer] else {
                throw UploadError(
                    failure(
                        .protocol, .noList,
                        "\(host) was asked for its blocks, and its answer has no list at \(pointer.source): "
                            + FilePath(excerpt(answer.response)).display, retryable: true), remedy: .retry(after: nil))
            }
            let numbers = items.compactMap { item -> Int? in
                let number = item.text.flatMap { Int($0) }?.subtractingReportingOverflow(base)
                return number.flatMap { $0.overflow ? nil : $0.partialValue }
            }
            return .parts(
                Set(numbers).filter { $0 >= 0 && $0 < piece.plan.count }.map {
                    AcknowledgedPart(index: $0, size: piece.plan[$0].length)
                })
        case .each(let message, let statuses):
            var held: [AcknowledgedPart] = []
            for index in indices {
                let part = piece.plan[index]
                let answer = try await perform(message, piece, part)
                if confirms(answer, statuses) {
                    held.append(AcknowledgedPart(index: index, size: part.length))
                } else if case .stop(let remedy) = answer.verdict, remedy.isOfServer {
                    throw refused("the lookup of block \(index + 1)", answer)
                }
            }
            // A server that says yes to every question, like a page that any address returns, proves nothing.
            if let first = held.first {
                let claimsEveryBlock = try await claimsEveryBlock(message, statuses, piece, piece.plan[first.index])
                if claimsEveryBlock { held = [] }
            }
            return .parts(held)
        }
    }

    /// Whether the server claims to have a block of an upload that was never begun.
    private func claimsEveryBlock(
        _ message: FormSettings.Message, _ statuses: FormStatuses, _ piece: PartsContext, _ part: PartPlan.Part
    ) async throws -> Bool {
        var other = piece.checkpoint
        other.form.id = "sluice-" + hexadecimal(Random.bytes(16))
        if other.form.token != nil { other.form.token = other.form.id }
        let answer = try await perform(
            message, PartsContext(order: piece.order, plan: piece.plan, checkpoint: other), part)
        return confirms(answer, statuses)
    }

    /// Whether an answer says yes by one of these statuses, and nothing in it says no.
    private func confirms(_ answer: ParsedReply, _ statuses: FormStatuses) -> Bool {
        statuses.contains(answer.response.status) && !answer.response.isWebPage
            && !settings.success.isDenied(by: answer.body)
    }

    func send(
        _ part: PartPlan.Part, _ piece: PartsContext, _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> PartSendResult {
        do {
            let (request, reading) = try await request(settings.send, piece, part, settings.part, limits.sending)
            let carried = await client.sendBody(request, context, sent: sent)
            guard case .success(let answer) = carried.result else { return PartSendResult(unanswered: carried, part) }
            return await judge(
                ParsedReply(answer.response, self, .part, wantsJSON: settings.done != nil), part, piece, reading)
        } catch {
            // Nothing was sent: a secret or the copy could not be read.
            return PartSendResult(.failed(error), bytesSent: 0, isRefused: true)
        }
    }

    private func judge(
        _ answer: ParsedReply, _ part: PartPlan.Part, _ piece: PartsContext, _ reading: Int
    ) async -> PartSendResult {
        func ends(_ answer: PartSendResult.Answer, isRefused: Bool = true) -> PartSendResult {
            PartSendResult(answer, bytesSent: part.length, isRefused: isRefused)
        }
        let error = refused("block \(part.index + 1) of \(piece.plan.count)", answer)
        switch answer.verdict {
        case .success: break
        case .startOver: return ends(.startOver(error))
        // The server may have received the last block twice, which may be the reason.
        case .gone: return ends(.gone(error), isRefused: false)
        case .damaged where settings.repeatsSafely: return ends(.damaged(error))
        // The server may have appended the block as it is. For the last block, a wrong digest has refused the file.
        case .damaged: return part.isLast ? ends(.failed(error), isRefused: false) : ends(.startOver(error))
        case .stop(let remedy):
            if remedy == .authenticate { await secrets.refused(reading) }
            var sending = ends(.failed(error), isRefused: isRefused(answer, part))
            // A JSON answer that is no success refuses the file itself.
            sending.refusesInBody = answer.body.document != nil && (200..<300).contains(answer.response.status)
            return sending
        }
        if let end = confirmedOffset(answer.response), end != part.end {
            return ends(
                .startOver(
                    UploadError(
                        failure(
                            .protocol, .otherPosition,
                            "the server is at byte \(end) after block \(part.index + 1), which ends at \(part.end)",
                            retryable: true), remedy: .retry(after: nil))))
        }
        var changes = FormCheckpoint()
        if let pointer = settings.newID, let id = answer.document?[pointer]?.text, (1...255).contains(id.utf8.count) {
            changes.id = id
        }
        return ends(
            .accepted(
                AcknowledgedPart(index: part.index, size: part.length), finished: finished(answer, at: settings.done),
                changes: changes.stored))
    }

    /// Whether an answer that is no success says that the server does not have the block.
    private func isRefused(_ answer: ParsedReply, _ part: PartPlan.Part) -> Bool {
        if part.offset > 0, !answer.response.isWebPage, confirmedOffset(answer.response) == part.offset { return true }
        return answer.body != .cut
            && FormVerdict.hadNoEffect(answer.response.status, isOnlyRepeated: settings.repeatsSafely)
    }

    /// The offset of a server that names it with each answer: the first byte that it lacks.
    private func confirmedOffset(_ response: Response) -> Int64? {
        guard case .header(let name)? = settings.probe, let line = response.headers[name] else { return nil }
        let range = line.split(separator: "=").last ?? ""
        let ends = range.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, ends[0].filter({ $0 != " " }) == "0" else { return nil }
        return plainInteger(String(ends[1])).flatMap { $0 < .max ? $0 + 1 : nil }
    }

    func complete(_ parts: [AcknowledgedPart], _ piece: PartsContext) async -> PartsCompletion {
        let reported =
            piece.checkpoint.has(\.finishedPart)
            ? RemoteObject(id: nil, url: piece.checkpoint.finishedURL, verifiedBy: Self.verifiedBy(piece)) : nil
        if let finish = settings.finish, endsByRequest(piece.plan) {
            do {
                let answer = try await perform(finish.message, piece, nil, .finish, wantsJSON: finish.url != nil)
                let error = refused("the request to finish", answer)
                switch answer.verdict {
                case .success:
                    return .done(
                        finished(answer, at: finish.url) ?? reported
                            ?? RemoteObject(id: nil, url: nil, verifiedBy: Self.verifiedBy))
                case .startOver: return .startOver(error)
                case .gone: return .gone(error)
                case .damaged, .stop: return .failed(error)
                }
            } catch { return .failed(error) }
        }
        if let reported { return .done(reported) }
        guard let done = settings.done else {
            return .done(RemoteObject(id: nil, url: nil, verifiedBy: Self.verifiedBy(piece)))
        }
        return .unconfirmed(
            UploadError(
                failure(
                    .protocol, .notConfirmed,
                    "\(host) took all \(piece.plan.count) block(s) and did not confirm that the file is there: its "
                        + "answer has nothing at \(done.source)", retryable: true), remedy: .failUpload))
    }

    /// Each block was acknowledged, and the staged copy was read once more before the last of them.
    private static let verifiedBy = "acknowledgement"

    /// - Returns: How the file was verified; says if the last block was found at the server and no answer to it was
    ///   seen.
    private static func verifiedBy(_ piece: PartsContext) -> String {
        piece.checkpoint.isEndUnanswered ? "blocks_unanswered" : verifiedBy
    }

    private func finished(_ answer: ParsedReply, at pointer: JSONPointer?) -> RemoteObject? {
        guard let pointer, case .text(let text)? = answer.document?[pointer], !text.isEmpty else { return nil }
        let isFit = text.utf8.count <= 2048 && printable(text) == text
        return RemoteObject(
            id: nil, url: isFit ? client.withoutSecrets(text) : nil, verifiedBy: Self.verifiedBy)
    }

    /// A form has no request to look for a file.
    func found(_ piece: PartsContext) async throws -> RemoteObject? { nil }

    func abort(_ checkpoint: PartsCheckpoint) async throws -> Bool {
        guard let abort = settings.abort else { return false }
        let rule = checkpoint.rule ?? .short
        guard let name = checkpoint.form.name,
            let plan = PartPlan(
                size: checkpoint.size ?? 0, partSize: checkpoint.partSize ?? 0, rule: rule)
        else { return false }
        let order = UploadOrder(
            id: "", generation: 0, file: StagedFile(path: "", size: plan.size, sha256: []), name: name,
            mediaType: checkpoint.form.mediaType ?? "", modified: 0, metadata: [:],
            checkpoint: checkpoint.stored)
        let answer = try await perform(
            abort.message, PartsContext(order: order, plan: plan, checkpoint: checkpoint), nil, .abort)
        let status = answer.response.status
        if answer.verdict == .success || confirms(answer, abort.statuses) { return true }
        // An answer that requests a wait when sending blocks does so here too. A login page or an error in a 200 has
        // removed nothing.
        let isEmptySuccess = (200..<300).contains(status)
        if case .stop(let remedy) = answer.verdict, remedy.isOfServer || status == 500 || isEmptySuccess {
            throw refused("the removal", answer)
        }
        return false
    }

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        client.failure(kind, code, message, retryable: retryable)
    }
}

extension Remedy {
    /// Whether the server or the connection is at fault, independently of the request.
    var isOfServer: Bool {
        switch self {
        case .holdDestination, .rateLimit, .outOfSpace, .authenticate: true
        case .retry(let after): after != nil
        case .refused, .misconfigured, .pending, .lackQuota, .restage, .failUpload: false
        }
    }
}
