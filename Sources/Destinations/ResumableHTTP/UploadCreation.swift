internal import Core
internal import Transport

/// Creates the upload of one file: without bytes, so that its address is recorded before the first byte leaves. An
/// empty file is complete with this request.
struct UploadCreation: Sendable {
    let dialect: ResumableHTTPDialect
    let order: UploadOrder

    struct Made: Sendable {
        /// The address of the upload; that of creations where an empty file has none.
        var url: String
        var version: InteropVersion
        var fields: UploadFields
        var isComplete = false
    }

    private var server: ResumableHTTPServer { dialect.server }
    private var client: AuthorizedClient { dialect.client }
    private var isEmpty: Bool { order.file.size == 0 }

    /// Tries the versions of the draft, the likeliest first. Another one is tried at once only after a refusal, which
    /// has made nothing at the server.
    func make() async throws -> Made {
        var refusal: UploadError?
        var tried: [InteropVersion] = []
        while let version = server.interop.next(after: tried) {
            tried.append(version)
            let answer = try await dialect.requests.follow(request(version))
            switch server.verdict(.POST, answer.response, to: version) {
            case .success: return try await made(answer, version)
            case .otherVersion: refusal = client.refused("creation", answer.response, .misconfigured)
            case .stop(let remedy): throw client.refused("creation", answer.response, remedy)
            default: throw client.refused("creation", answer.response, .failUpload)
            }
        }
        throw refusal ?? withoutSign(nil)
    }

    private func request(_ version: InteropVersion) -> Request {
        Request(
            "POST", dialect.endpoint,
            headers: version.headers + [
                ("Upload-Complete", isEmpty ? "?1" : "?0"), ("Upload-Length", "\(order.file.size)"),
                ("Content-Type", order.mediaType), ("Content-Disposition", ContentDisposition.header(order.name.name)),
            ], limits: dialect.settings.limits.small)
    }

    private func made(_ answer: AuthorizedClient.Answer, _ version: InteropVersion) async throws -> Made {
        let response = answer.response
        let fields = UploadFields(response.headers)
        if isEmpty {
            // The answer of the target itself, which has the whole file. A portal's page acknowledges nothing.
            if response.isWebPage, !fields.isOfDraft { throw client.answeredByPage("creation", response) }
            return Made(url: dialect.endpoint, version: version, fields: fields, isComplete: true)
        }
        let url: String
        do { url = try dialect.requests.uploadAddress(answer, of: dialect.endpoint, log: server.log) } catch {
            if !fields.isOfDraft { server.interop.recordSilent(version) }
            throw error
        }
        var isKnown = fields.isOfDraft || server.interop.hasSpoken(version)
        if !isKnown {
            do { isKnown = try await isUpload(url, version) } catch var error as UploadError {
                // It is about the question. The creation has made an upload, whose address is lost with this error.
                (error.failure.code, error.failure.http) = (.creationUnclear, nil)
                throw error
            }
        }
        if isKnown {
            server.interop.recordSpoken(version)
            return Made(url: url, version: version, fields: fields)
        }
        server.interop.recordSilent(version)
        throw withoutSign(response)
    }

    /// An answer to a creation need not have a header of the draft, and any server may answer a POST with 201 and an
    /// address. So the address is asked.
    private func isUpload(_ url: String, _ version: InteropVersion) async throws -> Bool {
        // It is asked when a person has allowed its origin.
        if client.objection(to: url) != nil { return true }
        let answer = try await dialect.requests.follow(
            Request("HEAD", url, headers: version.headers, limits: dialect.settings.limits.small))
        switch server.verdict(.HEAD, answer.response, to: version) {
        case .success, .gone, .otherVersion, .doubtful: return UploadFields(answer.response.headers).isOfDraft
        // It says nothing about the upload, and the next question will.
        default: return true
        }
    }

    private func withoutSign(_ response: Response?) -> UploadError {
        UploadError(
            dialect.failure(
                .protocol, .unusableAnswer,
                "\(client.host(dialect.endpoint)) answered \(response?.status ?? 0) to the creation without any sign of "
                    + "resumable uploads (draft-ietf-httpbis-resumable-upload); it may have stored an empty file"
                    + (server.interop.isAutomatic ? "; another version of the draft is tried next" : ""),
                retryable: true), remedy: .misconfigured)
    }
}
