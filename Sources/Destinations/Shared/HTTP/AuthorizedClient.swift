internal import Core
internal import Credentials
internal import Linux
internal import Transport

/// Sends a destination's requests. Adds credentials only where they belong, and turns network errors into remedies.
struct AuthorizedClient: Sendable {
    private let transport: PermittedTransport
    let credentials: CredentialProvider
    /// `auth: digest`.
    private let digest: DigestAuthorization?
    /// Only requests to these origins carry credentials.
    let origins: Set<String>
    /// The origins to which requests may go at all; `nil` where no answer names an address.
    let allowed: AllowedOrigins?
    /// Certificates for a service that is not the destination itself.
    private let caFile: FilePath?
    /// Its requests go to the destination itself.
    private let isOfDestination: Bool
    /// The addresses of its requests may give a right to an upload: no message shows them.
    private let hidesAddresses: Bool
    /// What a person checks when the server refuses the credentials.
    let right: String
    let clocks: any Clocks
    let name: String
    private let sentCredentials = SentCredentials()
    /// The credentials for proxies.
    private let proxyCredentials: SentCredentials
    private let protocolProbe = ProtocolProbe()

    /// The client of a destination.
    ///
    /// - Parameters:
    ///   - headers: Credentials beside those of the section `http`.
    ///   - allowed: A request to any other origin is refused before a connection is made.
    ///   - hidesAddresses: The server chooses the addresses of its requests, and they may give a right to an upload.
    ///   - own: What a person checks when credentials beside those of the section `http` are refused.
    init(
        _ tools: DestinationTools, headers: [CredentialProvider.Header] = [], origins: Set<String>,
        allowed: AllowedOrigins? = nil, hidesAddresses: Bool = false, own: String? = nil
    ) {
        self.init(
            transport: tools.transport,
            credentials: CredentialProvider(headers + tools.http.ownHeaders, reader: tools.secrets),
            digest: tools.http.digest(tools.secrets), origins: origins, allowed: allowed,
            right: tools.http.right(own: own ?? (headers.isEmpty ? nil : "the token")), hidesAddresses: hidesAddresses,
            proxyCredentials: tools.proxyCredentials, clocks: tools.clocks, name: tools.name)
    }

    /// The same destination's client for another service, which has credentials of its own.
    func other(_ credentials: CredentialProvider, origin: String, caFile: FilePath?) -> AuthorizedClient {
        AuthorizedClient(
            transport: transport, credentials: credentials, origins: [origin], caFile: caFile, isOfDestination: false,
            proxyCredentials: proxyCredentials, clocks: clocks, name: name)
    }

    init(
        transport: PermittedTransport, credentials: CredentialProvider, digest: DigestAuthorization? = nil,
        origins: Set<String>, allowed: AllowedOrigins? = nil, caFile: FilePath? = nil, isOfDestination: Bool = true,
        right: String = "the credentials", hidesAddresses: Bool = false,
        proxyCredentials: SentCredentials = SentCredentials(), clocks: any Clocks, name: String
    ) {
        self.transport = transport
        self.credentials = credentials
        self.digest = digest
        self.origins = origins
        self.allowed = allowed
        self.caFile = caFile
        self.isOfDestination = isOfDestination
        self.hidesAddresses = hidesAddresses
        self.right = right
        self.proxyCredentials = proxyCredentials
        self.clocks = clocks
        self.name = name
    }

    /// An answer, and the address that gave it. It differs from the requested one where a permanent redirect was
    /// followed.
    struct Answer: Sendable {
        var response: Response
        var url: String
    }

    /// The result of a request with bytes of the file, and how many of them left.
    struct Carried: Sendable {
        /// The error is an ``UploadError`` or a `CancellationError`.
        var result: Result<Answer, any Error>
        var delivery: DeliveryBounds
        /// Bytes of the file that the socket accepted.
        var bytesSent: Int64

        /// The request was not sent.
        init(unsent error: any Error) {
            result = .failure(error)
            delivery = DeliveryBounds(atLeast: 0, atMost: 0)
            bytesSent = 0
        }

        fileprivate init(_ result: Result<Answer, any Error>, _ delivery: DeliveryBounds, _ bytesSent: Int64) {
            self.result = result
            self.delivery = delivery
            self.bytesSent = bytesSent
        }
    }

    /// Sends bytes of the file. The number of bytes that left is reported also when there is no answer and when the
    /// request was stopped.
    ///
    /// - Parameter sent: Called with the bytes of this body so far.
    func sendBody(
        _ request: Request, _ context: RequestContext, sent: @escaping @Sendable (Int64) -> Void
    ) async -> Carried {
        do {
            let answer = try await exchange(request, context, sent)
            return Carried(.success(answer), answer.response.delivery, answer.response.bytesSent)
        } catch let broken as BrokenAnswerError {
            return Carried(.failure(broken.error), broken.delivery, broken.bytesSent)
        } catch {
            return Carried(unsent: error)
        }
    }

    /// - Throws: ``UploadError``; ``NoAnswerError``; `CancellationError`.
    func send(_ request: Request, _ context: RequestContext) async throws -> Answer {
        do { return try await exchange(request, context) { _ in } } catch let broken as BrokenAnswerError {
            guard let error = broken.error as? UploadError else { throw broken.error }
            throw NoAnswerError(error: error)
        }
    }

    private func exchange(
        _ request: Request, _ context: RequestContext, _ sent: @escaping @Sendable (Int64) -> Void
    ) async throws -> Answer {
        var request = request
        request.caFile = caFile
        request.showsIdentity = isOfDestination
        if let objection = objection(to: request.url) { throw objection }
        if hidesAddresses { sentCredentials.remember(address: request.url, homes: allowed?.homes ?? []) }
        if let place = allowed?.place(of: request.url) { request.url = place.url }
        let given = request.headers
        let isOurs = origins.contains(WebAddress(request.url).origin)
        if isOurs { try await ensureChallenge(for: request, context) }
        var isSecondTry = false
        while true {
            request.headers = given
            var reading = 0
            var usesDigest = false
            if isOurs {
                let current = try await headers()
                reading = current.reading
                request.headers += current.headers
                usesDigest = try await addDigest(to: &request)
                add(context.headers, to: &request)
            }
            var response = try await once(request, context.permit, sent)
            guard response.status == 401 || response.status == 403, isOurs else {
                return Answer(response: response, url: request.url)
            }
            // The secret may have been renewed meanwhile. A request with bytes is not repeated here, though: its next
            // attempt queries the upload's progress, and reads the new secret.
            await credentials.refused(reading)
            var mayRepeat = if case .none = request.body { true } else { false }
            if response.status == 401, let digest {
                let canAnswer = await digest.learn(response.headers, wasRefused: usesDigest)
                if !canAnswer, let error = unanswerable(response) {
                    throw BrokenAnswerError(error, of: response)
                }
                mayRepeat = canAnswer && !request.body.carriesFile
                // An outdated challenge, or a request without an answer to one, says nothing about the password.
                response.refusesOnlyChallenge =
                    canAnswer && (!usesDigest || DigestChallenge.saysStale(response.headers))
            }
            guard mayRepeat, !isSecondTry, response.status == 401 else {
                return Answer(response: response, url: request.url)
            }
            isSecondTry = true
        }
    }

    /// Asks the server for a challenge before the first bytes of a file leave, which it would refuse.
    private func ensureChallenge(for request: Request, _ context: RequestContext) async throws {
        guard let digest, digest.lacksChallenge, request.body.carriesFile else { return }
        var question = Request("HEAD", request.url, limits: Limits(whole: .seconds(60)))
        question.needsStatusOnly = true
        (question.caFile, question.showsIdentity) = (request.caFile, request.showsIdentity)
        question.headers = try await headers().headers
        add(context.headers, to: &question)
        let response = try await once(question, context.permit) { _ in }
        if response.status == 401, await !digest.learn(response.headers, wasRefused: false),
            let error = unanswerable(response)
        {
            throw BrokenAnswerError(error, of: response)
        }
    }

    /// - Returns: Whether the request answers a challenge.
    private func addDigest(to request: inout Request) async throws -> Bool {
        guard let digest else { return false }
        let nonce = hexadecimal(Random.bytes(16))
        do throws(SecretError) {
            let value = try await digest.value(
                request.method, request.url, clientNonce: nonce, remember: sentCredentials.remember)
            if let value { request.headers.append(("Authorization", value)) }
            return value != nil
        } catch { throw unreadable(error) }
    }

    /// Headers that a person gave for this upload replace the destination's headers with the same name.
    private func add(_ headers: [String: String], to request: inout Request) {
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
            sentCredentials.rememberForNow(header: name, value)
            request.headers.removeAll { $0.0.lowercased() == name.lowercased() }
            request.headers.append((name, value))
        }
    }

    /// These are secrets too, though they do not travel in headers: no message shows them.
    func remember(_ values: [String]) { values.forEach(sentCredentials.remember) }
    /// The same for the value of a header that a destination makes itself.
    func remember(header name: String, _ value: String) { sentCredentials.remember(header: name, value) }
    /// The values in the query of a configured address may be secrets.
    func conceal(queryOf url: String) { sentCredentials.remember(address: url, homes: [WebAddress(url)]) }
    /// A server gave this address for one upload, and it gives a right to it.
    func conceal(addressOfUpload url: String) { sentCredentials.remember(address: url, homes: []) }
    /// The same for a value that a server gave for one upload.
    func rememberForNow(_ value: String) { sentCredentials.rememberForNow(value) }

    private func headers() async throws -> (headers: [(String, String)], reading: Int) {
        do {
            let current = try await credentials.current()
            for (name, value) in current.headers { sentCredentials.remember(header: name, value) }
            current.secrets.forEach(sentCredentials.remember)
            return (current.headers, current.reading)
        } catch { throw unreadable(error) }
    }

    private func once(
        _ request: Request, _ permit: any RequestPermit, _ sent: @escaping @Sendable (Int64) -> Void
    ) async throws -> Response {
        var request = request
        request.onSent = sent
        request.conceal = withoutSecrets
        let response: Response
        do { response = try await transport.send(request, with: permit) } catch {
            if let speech = await protocolProbe.protocolMismatch(error, request, over: transport, with: permit) {
                throw BrokenAnswerError(
                    error: mistaken(speech, request, detail: error.detail), delivery: error.delivery,
                    bytesSent: error.bytesSent)
            }
            let reason: any Error = error.kind == .cancelled ? CancellationError() : problem(error, request)
            throw BrokenAnswerError(error: reason, delivery: error.delivery, bytesSent: error.bytesSent)
        }
        if response.status == 400, await protocolProbe.requiresTLS(response, request, over: transport, with: permit) {
            throw BrokenAnswerError(mistaken(.tls, request, http: response.status), of: response)
        }
        if await protocolProbe.requiresCertificate(response, request, over: transport, with: permit) {
            let error = unusable(
                .clientCertificate,
                "\(host(request.url)) answered \(response.status) to \(request.method): it requires a client certificate, "
                    + "or does not accept this one; set `http.client_certificate` and `http.client_key`")
            throw BrokenAnswerError(error, of: response)
        }
        protocolProbe.recordAnswer()
        // The status of a refusal is enough. A success may have named the object that it made, which is now as good as
        // lost.
        if let words = response.unreadable, (200..<300).contains(response.status) {
            // Without its status, so that it refuses nothing: the requested object may exist.
            let error = UploadError(
                failure(
                    .protocol, .unreadableAnswer,
                    "\(host(request.url)) answered \(response.status) to \(request.method), and its body \(words); "
                        + "gzip and deflate can be read: check the proxy or server that compresses its answers",
                    retryable: true), remedy: .retry(after: nil))
            throw BrokenAnswerError(error: error, delivery: response.delivery, bytesSent: response.bytesSent)
        }
        return response
    }

    /// No readable answer came: an ``UploadError`` or a `CancellationError`, and how far the body got.
    private struct BrokenAnswerError: Error {
        let error: any Error
        let delivery: DeliveryBounds
        let bytesSent: Int64

        init(error: any Error, delivery: DeliveryBounds, bytesSent: Int64) {
            (self.error, self.delivery, self.bytesSent) = (error, delivery, bytesSent)
        }

        /// An answer that cannot be used.
        init(_ error: UploadError, of response: Response) {
            self.init(error: error, delivery: response.delivery, bytesSent: response.bytesSent)
        }
    }

    /// No readable answer came: the error to show.
    struct NoAnswerError: Error { let error: UploadError }

    func failure(
        _ kind: Failure.Class, _ code: Failure.Code, _ message: String, http: Int? = nil, retryable: Bool
    ) -> Failure {
        Failure(
            kind, code: code, message: "\(name): \(withoutSecrets(message))", http: http, at: clocks.wall(),
            retryable: retryable)
    }

    /// Hides the secret in messages from now on.
    func conceal(_ secret: String) { sentCredentials.remember(secret) }

    /// Returns `text` without the credentials that requests have carried: a server may repeat a value that it refuses.
    func withoutSecrets(_ text: String) -> String {
        // By bytes: with a combining accent after it the last letter of a secret would be another `Character`.
        let covered = SecretEncoding.cover(
            sentCredentials.values + proxyCredentials.values, cut: sentCredentials.lasting + proxyCredentials.lasting,
            in: Array(text.utf8))
        return String(decoding: sentCredentials.addresses.cover(covered), as: UTF8.self)
    }
}

extension Request {
    /// A header for requests that are answered in JSON or XML. Requests for an object must not have it: the answer
    /// would describe the object's compressed form.
    static let acceptsGzip = ("Accept-Encoding", "gzip")
}
