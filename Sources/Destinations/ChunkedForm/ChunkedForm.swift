internal import Core
internal import Credentials
internal import Transport

/// A server that takes a file as numbered blocks, each in its own form (`multipart/form-data`).
struct ChunkedForm: Destination {
    private let server: FormEndpoint
    private let transfer: FormTransfer
    private let judged: JudgedAddress
    var site: DestinationSite { judged.site }

    func uncutPiece(ofSize size: Int64?) -> IndivisibleRequest? {
        let settings = server.settings
        // A last block that takes the rest has less than twice the size of the others.
        let most =
            settings.rule == .merge ? settings.blockSize.addingClamped(settings.blockSize - 1) : settings.blockSize
        guard let size else { return IndivisibleRequest(bytes: most, keys: ["block.size"]) }
        guard let plan = PartPlan(size: size, partSize: settings.blockSize, rule: settings.rule) else { return nil }
        return IndivisibleRequest(bytes: max(plan[0].length, plan[plan.count - 1].length), keys: ["block.size"])
    }

    private func engine(_ context: RequestContext) -> PartsEngine {
        PartsEngine(
            dialect: FormDialect(server: server, context: context), parallel: transfer.parallel, gone: transfer.gone,
            finalError: transfer.finalError)
    }

    func upload(
        _ order: UploadOrder, reporter: any UploadReporter, context: RequestContext
    ) async throws -> RemoteObject {
        try await engine(context).upload(order, reporter)
    }

    func lasting(of checkpoint: Checkpoint) -> Checkpoint {
        var kept = PartsCheckpoint(checkpoint.keeping(PartsCheckpoint.lasting))
        // Without a request that removes them, the server keeps the parts.
        if server.settings.abort == nil, PartsCheckpoint(checkpoint).isBegun { kept.increment(\.remains) }
        return kept.stored
    }

    func discard(_ checkpoint: Checkpoint, context: RequestContext) async throws(UploadError) -> Bool {
        // A complete file cannot be removed: forms have no request for that.
        if checkpoint.isFinished, server.settings.abort == nil { return false }
        return try await server.client.stoppable("the removal") {
            try await engine(context).discard(PartsCheckpoint(checkpoint))
        }
    }

    func obstacleToRemoving(test order: UploadOrder, context: RequestContext) async -> String? {
        server.settings.abort == nil ? "this form has no request to remove a file" : nil
    }

    func find(_ order: UploadOrder, context: RequestContext) async throws(UploadError) -> RemoteLookup {
        .unknown("a chunked form has no request to look up a file")
    }

    func check(context: RequestContext) async -> CheckResult {
        let dialect = FormDialect(server: server, context: context)
        do {
            // OPTIONS changes nothing. Any answer shows that a server responds, and a portal's answer is recognised.
            let answer = try await dialect.exchange(
                Request("OPTIONS", dialect.url, limits: dialect.limits.small), .probe)
            if answer.response.refusesOnlyChallenge {
                throw server.client.refused("OPTIONS", answer.response, .authenticate)
            }
            if let error = server.client.refusedByProxy("OPTIONS", answer.response) { throw error }
            let status = answer.response.status
            let words = "answered \(status) to OPTIONS" + server.client.orProxy(answer.response)
            if answer.response.isWebPage, status < 400 {
                return CheckResult(.warning, words + " with a web page: check the address")
            }
            switch status {
            case 401, 403: return CheckResult(.failed, words + ": check \(server.client.right)")
            case 404, 410: return CheckResult(.failed, words + ": nothing is there; check the address")
            case 300..<400: return CheckResult(.failed, words + ", which redirects elsewhere; check the address")
            case 500, 502...: return CheckResult(.failed, words + "; uploads wait until it works")
            default:
                return CheckResult(
                    .ok,
                    "a server answers there; the first upload shows whether it accepts the forms of "
                        + "`\(dialect.settings.preset)`"
                ).about(.flow)
            }
        } catch let error as UploadError {
            return CheckResult(.failed, error.failure.message)
        } catch {
            return CheckResult(.failed, "the check was stopped")
        }
    }

    func objection(toHeader name: String) -> String? {
        Self.reserved.contains(name.lowercased()) ? "`\(name)` belongs to the protocol" : nil
    }

    /// Lower-case. A second occurrence would break the framing.
    private static let reserved: Set<String> = [
        "content-type", "content-length", "transfer-encoding", "expect", "host", "connection",
    ]
}

extension ChunkedForm {
    static let kind = DestinationDefinition(
        type: DestinationSchema(
            name: "chunked-form",
            summary:
                "a server that takes numbered blocks as forms, as Resumable.js, Dropzone, Plupload and others send them",
            keys: FormTransfer.keys.map(\.setting), presets: FormPreset.summaries,
            releaseDoubts: { $0.has("preset") ? ChunkedForm.releaseDoubts($0) : [] },
            objections: { $0.has("preset") ? ChunkedForm.read($0).objections : [] }
        ),
        http: HTTPUse(reserved: reserved) { values in
            let names = values.map("headers") ?? [:]
            return names.keys.contains { $0.lowercased() == "authorization" } ? "headers.Authorization" : nil
        }
    ) { values, tools in try ChunkedForm(values, tools) }

    private static func releaseDoubts(_ values: [String: SettingValue]) -> [String] {
        let transfer = FormTransfer.keys.settings(values)
        let ends = transfer.gone.releaseDoubts + transfer.finalError.releaseDoubts
        guard read(values).settings.success.conditions.isEmpty else { return ends }
        return ends + [
            "any answer with one of the statuses of `success` acknowledges a block, whatever its body says, also "
                + "an error in a 200; list the bodies of a success under `success.json`, like `[\"/error empty\"]`"
        ]
    }

    private static func read(
        _ values: [String: SettingValue]
    ) -> (settings: FormSettings, objections: [SettingObjection]) {
        let preset = values.text("preset").flatMap { FormPreset.named($0)?.values } ?? [:]
        var reading = FormReading(values.mergedOver(preset))
        let settings = reading.settings()
        var objections = reading.objections
        for section in ["headers", "open.headers", "send.headers", "finish.headers", "abort.headers"] {
            for name in (values.map(section) ?? [:]).keys.sorted() where reserved.contains(name.lowercased()) {
                objections.append(
                    SettingObjection(key: "\(section).\(name)", problem: "cannot be set: it belongs to the protocol"))
            }
        }
        return (settings, objections)
    }

    init(_ values: [String: SettingValue], _ tools: DestinationTools) throws {
        guard let url = values.text("url") else { throw UnusableSettingError(key: "url", problem: "is missing") }
        transfer = FormTransfer.keys.settings(values)
        let (settings, objections) = Self.read(values)
        if let first = objections.first { throw UnusableSettingError(key: first.key, problem: first.problem) }
        var headers: [CredentialProvider.Header] = []
        for (name, source) in (values.map("headers") ?? [:]).sorted(by: { $0.key < $1.key }) {
            // A literal is a template, and is filled in with the rest of the request.
            if case .literal = source { continue }
            headers.append(.init(name, source, key: "headers.\(name)"))
        }
        server = FormEndpoint(
            url: url,
            client: AuthorizedClient(
                tools, headers: headers, origins: [WebAddress(url).origin], own: "the credential and the headers"),
            secrets: CredentialProvider(
                settings.secrets.sorted { $0.key < $1.key }.map { .init($0.key, $0.value) }, reader: tools.secrets),
            settings: settings, limits: transfer.limits)
        judged = tools.judged(url)
    }
}

/// Settings for the sending of blocks, beside those that describe the forms.
struct FormTransfer: DeclaredSettings {
    var parallel = 1
    var gone = GonePolicy.reupload
    var finalError = FinalErrorPolicy.fail
    var limits = RequestLimits()

    static let defaults = FormTransfer()

    static let keys = DestinationKey<FormTransfer>.table {
        DestinationKey("url", .url, required: true, "The address that takes the blocks.")
        DestinationKey(
            "preset", .choice(FormPreset.names), required: true, "Which client's forms the server understands.")
        DestinationKey("headers", .headers, "More headers for every request, to this server only.")
        DestinationKey("credential", .secret, "The value of `{credential}`.")
        DestinationKey("secrets", .secrets, "The values of `{secret:NAME}`, by name.")
        DestinationKey(
            "block",
            .section([
                SettingKey("size", .size, "Bytes of a block; the preset's, or 1 MiB."),
                SettingKey(
                    "rule", .choice(PartPlan.Rule.allCases.map(\.rawValue)),
                    "How the rest of a file is sent: as a `short` block of its own, or with the last block (`merge`)."
                ),
                SettingKey(
                    "announce", .choice(FormSettings.Announcement.allCases.map(\.rawValue)),
                    "The value of `{block_size}` for a file that is smaller than a block."),
            ]), "How files are split.")
        DestinationKey(
            "parallel_blocks", \.parallel, as: .whole(1...16),
            "Blocks of one file that are sent at once; {default} by default.")
        DestinationKey(
            "id", .choice(FormSettings.IDRule.allCases.map(\.rawValue)),
            "How `{id}` is made: at random, or of size, path and content.")
        DestinationKey(
            "repeat_safe", .flag,
            "Whether a block may be sent twice. If not, a block without an answer starts the file again."
        )
        GonePolicy.key(\.gone)
        FinalErrorPolicy.key(\.finalError)
        DestinationKey(
            "open",
            .section([
                method, address, fields, query, ownHeaders,
                SettingKey(
                    "file_part",
                    .section([
                        SettingKey("name", .text, "The name of the part."),
                        SettingKey("filename", .text, "The file name in it."),
                        SettingKey("content_type", .text, "Its type."),
                        SettingKey(
                            "body", .choice(["empty", "absent"]),
                            "Whether the part is sent without a byte in it, or left out."),
                    ]), "The file's part of this request."),
                SettingKey("token", .text, "Where the answer names the upload, as a JSON pointer."),
            ]), "A first request, for servers that give each upload a name.")
        DestinationKey(
            "send",
            .section([
                bodyMethod, address, fields, query, ownHeaders, part,
                SettingKey("omit", .texts, "Fields, parameters and headers of the preset that are left out."),
                SettingKey("omit_when_single", .texts, "The same for files of one block."),
                SettingKey(
                    "only_when_resumed", .texts,
                    "Those that only the first block has when an upload is resumed."),
            ]), "The request with a block.")
        DestinationKey("success", .section([status, json]), "Which answers acknowledge: all of it must hold.")
        DestinationKey("permanent", .section([status, json]), "Which answers are final: any of it is enough.")
        DestinationKey(
            "restart", .section([status, json]), "Which answers ask for the file from its first block on.")
        DestinationKey(
            "done", .text,
            "Where the answer to the last block has the file's address, as a JSON pointer; `none` if there is none."
        )
        DestinationKey("new_id", .text, "Where an answer gives the upload another id, as a JSON pointer.")
        DestinationKey(
            "probe",
            .section([
                client, address, query,
                SettingKey("status", .texts, "Statuses that mean that the server has the block."),
                SettingKey("list", .text, "Where one answer lists all blocks that are there."),
                SettingKey("base", .whole(0...1), "The first block's number in that list; 1 by default."),
                SettingKey("header", .text, "A header of each answer that shows how much the server has."),
            ]), "How to ask the server which blocks it has.")
        DestinationKey(
            "finish",
            .section([
                method, address, fields, query, ownHeaders, encoding,
                SettingKey("when", .choice(["always", "multi"]), "`multi`: not for files of one block."),
                SettingKey("take", .text, "Where the answer has the file's address, as a JSON pointer."),
            ]), mayBeNone: true,
            "A last request, for servers that join the blocks on demand; `none` for those that need none.")
        DestinationKey(
            "abort",
            .section([
                method, address, fields, query, ownHeaders, encoding,
                SettingKey("status", .texts, "Statuses that mean that nothing is left."),
            ]), "A request that removes the data of a cancelled upload.")
        for key in RequestLimits.keys { key.of(\.limits) }
    }

    // Parts of several sections.

    private static let part = SettingKey(
        "file_part",
        .section([
            SettingKey("name", .text, "The name of the part with the bytes."),
            SettingKey("filename", .text, "The file name in it; `{name}` unless the preset says otherwise."),
            SettingKey("content_type", .text, "Its type; `application/octet-stream` by default."),
        ]), "The part of the form with the bytes.")
    private static let address = SettingKey(
        "url", .text, "Another path on the same server; it may contain templates.")
    private static let fields = SettingKey(
        "fields", .fields, "Fields of the form: names to texts with `{names}`, secrets, or objects (`{json: …}`).")
    private static let query = SettingKey("query", .map, "Parameters of the address, in the same form.")
    private static let ownHeaders = SettingKey("headers", .headers, "More headers for this request.")
    private static let method = SettingKey("method", .choice(["POST", "PUT", "GET", "DELETE"]), "The method.")
    private static let bodyMethod = SettingKey("method", .choice(["POST", "PUT"]), "The method.")
    private static let client = SettingKey("method", .choice(["GET", "POST"]), "The method.")
    private static let encoding = SettingKey(
        "encoding", .choice(FormSettings.Encoding.allCases.map(\.rawValue)), "How its fields are written.")
    private static let status = SettingKey("status", .texts, "Statuses, like `[200-299, 404]`.")
    private static let json = SettingKey(
        "json", .texts,
        "Conditions on the answer's JSON, like `/success = true`, `/error empty`, `/files/*/error absent`, `/status not error, 400-599`, `/data exists`."
    )
}
