internal import Core
internal import Transport

/// A service or program of the person that calls VOD for us and has the key. docs/destinations/apsara-vod.md describes
/// its requests for authors of such a service.
struct ApsaraService: ApsaraUploadIssuer {
    let service: CredentialHelper
    let rights = "`authorisation`"
    var reportsCompletion: Bool { false }

    /// The service may have made a medium for the same reference before, and then returns that one.
    func begin(
        _ request: ApsaraUploadRequest, again: Bool, _ context: RequestContext
    ) async throws -> ApsaraTicketAnswer {
        .given(try await send("create", request, nil, "the request for an upload address", context), isNew: !again)
    }

    func renew(
        _ medium: ApsaraMedium, _ request: ApsaraUploadRequest, _ context: RequestContext
    ) async throws -> ApsaraUploadTicket {
        try await send("refresh", request, medium, "the request for a new credential", context)
    }

    /// The service decides how it handles pictures: it may answer with another picture.
    func renews(_ medium: ApsaraMedium) -> Bool { true }

    func isWhole(_ medium: ApsaraMedium, size: Int64, _ context: RequestContext) async throws -> Bool? { nil }
    func state(of medium: ApsaraMedium, size: Int64, _ context: RequestContext) async throws -> ApsaraState? { nil }

    func check(_ context: RequestContext) async -> CheckResult {
        do {
            let question = JSONValue.object([
                "version": .whole(1), "operation": .text("check"), "destination": .text(service.client.name),
            ])
            let answer = JSONValue.read(
                try await service.answer(to: question, "the check", context) { refusal($0, "the check") })
            guard let answer, case .object = answer else {
                return CheckResult(.failed, "\(service.name) gives something other than a JSON object")
            }
            let named = ApsaraUploadTicket.withNamesOfService(answer)
            if let problem = named["Data"].flatMap({ reportedError($0) }) ?? reportedError(named) {
                return CheckResult(.warning, problem.checkDescription(right: nil))
            }
            return CheckResult(.ok, "\(service.name) answers; whether VOD does is seen with the first file").about(
                .flow)
        } catch let error as UploadError {
            return CheckResult(.failed, error.checkDescription(right: rights))
        } catch { return CheckResult(.failed, "the check was stopped") }
    }

    // MARK: Questions

    private func send(
        _ operation: String, _ request: ApsaraUploadRequest, _ medium: ApsaraMedium?, _ what: String,
        _ context: RequestContext
    ) async throws -> ApsaraUploadTicket {
        var fields: [String: JSONValue] = [
            "version": .whole(1), "operation": .text(operation), "destination": .text(service.client.name),
            "kind": .text(request.sort.rawValue), "file": .text(request.name), "size": .whole(request.size),
            "sha256": .text(hexadecimal(request.sha256)), "reference": .text(request.reference),
            // In VOD's own form, so that the service can pass them on.
            "parameters": .object(request.metadata.fields.mapValues { .text($0) }),
        ]
        if let id = medium?.id { fields["media"] = .text(id) }
        let bytes = try await service.answer(to: .object(fields), what, context) { refusal($0, what) }
        guard let json = JSONValue.read(bytes), case .object = json else {
            throw service.problem("gives something other than a JSON object", .holdDestination(after: nil))
        }
        // Some services wrap their answer in an object with a code of its own.
        let named = ApsaraUploadTicket.withNamesOfService(json)
        let inner =
            named["UploadAddress"] == nil
            ? named["Data"].map { ApsaraUploadTicket.withNamesOfService($0) } ?? named : named
        if inner["UploadAddress"] == nil, let error = reportedError(inner) ?? reportedError(named) { throw error }
        do {
            return try ApsaraUploadTicket(inner, as: request.sort, before: request.sort == .image ? nil : medium)
        } catch {
            throw service.problem("gives \(error.words)", .holdDestination(after: nil))
        }
    }

    private func refusal(_ response: Response, _ what: String) -> UploadError? {
        // Without a message in the body the status is the message.
        guard let json = JSONValue.read(response.body),
            !ApsaraVerdict(json, status: response.status, wait: nil).words.isEmpty
        else { return nil }
        var error = service.client.refused(what, response)
        error.failure.message = redacted(error.failure.message)
        return error
    }

    /// Codes that services put beside an answer, in lower case.
    private static let successes: Set<String> = ["0", "200", "ok", "success"]

    /// Reads a refusal of a program, which has no status. Names may begin with a small letter.
    private func reportedError(_ json: JSONValue) -> UploadError? {
        let json = ApsaraUploadTicket.withNamesOfService(json)
        let isRefused = json["Code"]?.string.map { !Self.successes.contains($0.lowercased()) } ?? false
        guard json["Error"] != nil || isRefused else { return nil }
        let verdict = ApsaraVerdict(json, status: nil, wait: nil)
        let kind: Failure.Class =
            switch verdict.remedy {
            case .failUpload: .permanent
            case .authenticate: .auth
            case .misconfigured: .config
            default: .transient
            }
        return UploadError(
            service.client.failure(
                kind, verdict.code.map { .service(service.shown($0)) } ?? .authorisationRefused,
                "\(service.name) refuses: \(verdict.words.isEmpty ? "it does not say why" : service.shown(verdict.words))",
                retryable: verdict.remedy != .failUpload),
            remedy: verdict.remedy)
    }
}
