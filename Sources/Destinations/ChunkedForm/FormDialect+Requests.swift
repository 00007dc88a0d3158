internal import Core
internal import Credentials
internal import Linux
internal import Transport

/// An answer and its parsed body.
struct ParsedReply: Sendable {
    let response: Response
    let body: FormReply
    let verdict: FormVerdict
    var document: JSONValue? { body.document }

    init(_ response: Response, _ dialect: FormDialect, _ question: FormVerdict.Question, wantsJSON: Bool = false) {
        self.response = response
        body = FormReply(response.body)
        verdict = FormVerdict(
            question, status: response.status, body, dialect.settings, wantsJSON: wantsJSON,
            isPage: response.isWebPage, isOfPath: response.mayBeOfPath,
            wait: retryAfter(response.headers, now: dialect.client.clocks.wall()))
    }
}

extension FormDialect {
    var host: String { client.host(url) }

    // MARK: Asking

    func exchange(_ request: Request, _ question: FormVerdict.Question, wantsJSON: Bool = false) async throws
        -> ParsedReply
    {
        do {
            return ParsedReply(try await client.send(request, context).response, self, question, wantsJSON: wantsJSON)
        } catch let error as AuthorizedClient.NoAnswerError { throw error.error }
    }

    /// Sends a request without bytes of the file.
    func perform(
        _ message: FormSettings.Message, _ piece: PartsContext, _ part: PartPlan.Part?,
        _ question: FormVerdict.Question = .probe, wantsJSON: Bool = false
    ) async throws -> ParsedReply {
        let (request, reading) = try await request(message, piece, part, nil)
        var answer = try await exchange(request, question, wantsJSON: wantsJSON)
        // Only requests that change nothing follow a redirect, and only on the same server.
        if question == .probe, [301, 302, 307, 308].contains(answer.response.status),
            let location = answer.response.headers["Location"]
        {
            let target = WebAddress(request.url).resolving(location)
            if target.origin == WebAddress(url).origin {
                var next = request
                next.url = target.description
                answer = try await self.exchange(next, question, wantsJSON: wantsJSON)
            }
        }
        if answer.verdict == .stop(.authenticate) { await secrets.refused(reading) }
        return answer
    }

    /// - Parameter file: The name of the part with the file's bytes; without a `part` there is none.
    /// - Returns: The request, and the reading of its secrets.
    func request(
        _ message: FormSettings.Message, _ piece: PartsContext, _ part: PartPlan.Part?, _ file: FormSettings.FilePart?,
        _ limits: Limits? = nil
    ) async throws -> (request: Request, reading: Int) {
        let templates = message.templates + settings.headers.values + (file?.templates ?? [])
        let (values, reading) = try await values(templates, piece, part)
        var omitted = settings.omitted
        if piece.plan.count == 1 { omitted.formUnion(settings.omittedWhenSingle) }
        if !piece.resumes { omitted.formUnion(settings.onlyWhenResumed) }
        func filled(_ templates: [String: FormTemplate]) -> [(name: String, value: [UInt8])] {
            templates.filter { !omitted.contains($0.key) }.sorted { $0.key < $1.key }
                .map { ($0.key, $0.value.filled(values)) }
        }
        let lines = settings.headers.merging(message.headers) { $1 }
        let headers = try filled(lines).map { name, _ in
            guard let line = lines[name] else { return (name, "") }
            if let text = Self.headerText(line, values) { return (name, text) }
            var plain = values
            plain.secrets = [:]
            guard Self.headerText(line, plain) != nil else {
                throw unfit(name, piece.order)
            }
            throw UploadError(
                failure(
                    .auth, .secretUnfit,
                    "the header `\(name)` cannot carry the secret in it, which has a line end or another character "
                        + "that is not allowed in a header", retryable: true), remedy: .authenticate)
        }
        var request = Request(
            message.method, address(message, values, filled(message.query)), headers: headers,
            limits: limits ?? self.limits.small)
        // Scripts behind forms do not know `Expect: 100-continue`, and each such request would wait a second.
        request.allowsExpectContinue = false
        let fields = filled(message.fields)
        conceal(headers, made: lines, fields + filled(message.query))
        if let file {
            var body = FormBody()
            for (name, value) in fields { body.append(name, value) }
            body.appendFile(
                file.name.filled(values), filename: file.filename.filled(values),
                contentType: file.contentType.filled(values))
            body.close()
            request.headers.append(("Content-Type", body.contentType))
            request.body =
                part.map {
                    .framed(
                        head: body.head, piece.order.file.place, offset: $0.offset, count: $0.length, tail: body.tail)
                } ?? .bytes(body.head + body.tail)
        } else if !fields.isEmpty, message.encoding == .multipart {
            var body = FormBody()
            for (name, value) in fields { body.append(name, value) }
            body.close()
            request.headers.append(("Content-Type", body.contentType))
            request.body = .bytes(body.head + body.tail)
        } else if !fields.isEmpty {
            request.headers.append(("Content-Type", "application/x-www-form-urlencoded"))
            request.body = .bytes(Array(Self.query(fields).utf8))
        }
        return (request, reading)
    }

    private func address(
        _ message: FormSettings.Message, _ values: FormValues, _ query: [(name: String, value: [UInt8])]
    ) -> String {
        let path = message.url.pieces.map { piece in
            // A filled-in value is one component of the path, even if it contains slashes.
            if case .text(let text) = piece { return text }
            return PercentCoding.encode(FormTemplate([piece]).filled(values))
        }.joined()
        var target = path.isEmpty ? WebAddress(url) : WebAddress(url).resolving(path)
        let more = Self.query(query)
        if !more.isEmpty { target.query = (target.query.map { $0 + "&" } ?? "") + more }
        return target.description
    }

    private static func query(_ pairs: [(name: String, value: [UInt8])]) -> String {
        pairs.map { PercentCoding.encode($0.name.utf8) + "=" + PercentCoding.encode($0.value) }.joined(separator: "&")
    }

    // MARK: Values

    private func values(
        _ templates: [FormTemplate], _ piece: PartsContext, _ part: PartPlan.Part?
    ) async throws -> (FormValues, reading: Int) {
        let size = piece.plan.partSize
        var values = FormValues(
            order: piece.order, plan: piece.plan, part: part,
            blockSize: settings.announced == .actual ? min(size, max(1, piece.plan.size)) : size,
            id: piece.checkpoint.form.id ?? "", token: piece.checkpoint.form.token ?? "")
        var reading = 0
        if templates.contains(where: { !$0.secrets.isEmpty || $0.names.contains(.credential) }) {
            do {
                let current = try await secrets.current()
                client.remember(current.headers.map(\.1))
                values.secrets = Dictionary(current.headers) { $1 }
                reading = current.reading
            } catch { throw client.unreadable(error) }
        }
        // The token acts as a secret: a server that repeats it must not have it shown in messages.
        client.rememberForNow(values.token)
        client.conceal(queryOf: url)
        if let part {
            values.digests = try await digests(Set(templates.flatMap(\.names).filter(\.isDigest)), part, piece)
        }
        return (values, reading)
    }

    private func digests(
        _ names: Set<FormName>, _ part: PartPlan.Part, _ piece: PartsContext
    ) async throws -> [FormName: String] {
        if names.isEmpty { return [:] }
        let (path, known) = (piece.order.file.place, blockDigests)
        do { return try await blocking { try known.digests(names, of: path, part.range) } } catch {
            throw UploadError(
                failure(.local, .stagedUnreadable, "\(error)", retryable: true), remedy: .restage(.unreadable))
        }
    }

    // MARK: Headers

    /// - Returns: `nil` for a value that no header can carry: a line end or another control character, invalid UTF-8,
    ///   or a blank at its beginning or end, which is no part of a header's value (RFC 9110, section 5.5).
    private static func headerText(_ template: FormTemplate, _ values: FormValues) -> String? {
        func filled(_ piece: FormTemplate.Piece?) -> [UInt8] {
            if case .name? = piece?.bare { piece?.filled(values) ?? [] } else { [] }
        }
        let blanks: [UInt8?] = [0x20, 0x09]
        if blanks.contains(filled(template.pieces.first).first) || blanks.contains(filled(template.pieces.last).last) {
            return nil
        }
        let bytes = template.filled(values)
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Headers of browsers whose values are words that everybody may read, in lower case.
    private static let openHeaders: Set<String> = [
        "accept", "accept-language", "cache-control", "content-disposition", "content-range", "content-type", "pragma",
        "x-requested-with",
    ]

    /// From now on no message shows what may be a secret among the values that a person has written, also where the
    /// server repeats a part of it: every header that is the same for all files, and what has the name of a secret.
    private func conceal(
        _ headers: [(String, String)], made lines: [String: FormTemplate], _ pairs: [(name: String, value: [UInt8])]
    ) {
        for (name, value) in headers {
            let isSame = lines[name]?.names.allSatisfy { $0 == .credential } ?? false
            if isSame, !Self.openHeaders.contains(name.lowercased()) {
                client.remember(header: name, value)
            } else if isSecretName(name) {
                client.rememberForNow(value)
            }
        }
        for (name, value) in pairs where isSecretName(name) {
            client.rememberForNow(String(decoding: value, as: UTF8.self))
        }
    }

    private func unfit(_ header: String, _ order: UploadOrder) -> UploadError {
        UploadError(
            failure(
                .permanent, .nameUnfit,
                "the header `\(header)` cannot carry its value for `\(order.name.display)`: a line end, a space at "
                    + "its beginning or end, or another character that is not allowed in a header; write "
                    + "`{name:uri}` for the name, and its characters are sent as %0D and %20", retryable: false),
            remedy: .failUpload)
    }

    /// Runs before anything is begun, so that no upload is begun for a file that cannot be sent.
    func checkHeaders(_ order: UploadOrder, _ plan: PartPlan) throws {
        let values = FormValues(order: order, plan: plan, part: plan[0], blockSize: plan.partSize)
        let messages = [settings.open?.message, settings.send, settings.finish?.message].compactMap { $0 }
        for (name, template) in messages.reduce(settings.headers.map { $0 }, { $0 + $1.headers }) {
            if Self.headerText(template, values) == nil { throw unfit(name, order) }
        }
    }

    // MARK: Words

    /// The beginning of a server's message, without secrets.
    func excerpt(_ response: Response) -> String {
        // The text is cut after secrets are removed, so that no half of a secret stays.
        let body = client.withoutSecrets(String(decoding: response.body.prefix(8192), as: UTF8.self)).utf8.prefix(200)
        let end = body.lastIndex { $0 > UInt8(ascii: " ") }.map { body.index(after: $0) } ?? body.startIndex
        return String(decoding: body[..<end], as: UTF8.self)
    }

    func refused(_ what: String, _ answer: ParsedReply) -> UploadError {
        let remedy: Remedy =
            switch answer.verdict {
            case .stop(let remedy): remedy
            // Thrown only after several repeated sends.
            case .damaged: .failUpload
            case .success, .startOver, .gone: .retry(after: nil)
            }
        let (response, isPage) = (answer.response, answer.response.isWebPage)
        let isPortal = isPage && (200..<300).contains(response.status)
        var error = client.refused(
            what, response, remedy,
            words: isPortal
                ? AuthorizedClient.pageWords : isPage ? "a web page" : excerpt(response))
        // The answer may have been a success: the checkpoint of what it began is kept.
        if answer.body == .cut, (200..<300).contains(response.status) { error.failure.http = nil }
        return error
    }
}
