internal import Core
internal import Credentials
internal import Synchronization
internal import Transport

/// Sends a destination's requests. Adds credentials only where they belong, and turns network errors into remedies.
struct AuthorizedClient: Sendable {
    private let transport: PermittedTransport
    let credentials: CredentialProvider
    /// Only requests to these origins carry credentials.
    let origins: Set<String>
    /// The origins to which requests may go at all; `nil` where no answer names an address.
    let allowed: AllowedOrigins?
    let caFile: FilePath?
    let clocks: any Clocks
    let name: String
    private let sentCredentials = SentCredentials()
    private let protocolProbe = ProtocolProbe()

    init(
        transport: PermittedTransport, credentials: CredentialProvider, origin: String, caFile: FilePath?,
        clocks: any Clocks, name: String
    ) {
        self.init(
            transport: transport, credentials: credentials, origins: [origin], allowed: nil, caFile: caFile,
            clocks: clocks, name: name)
    }

    /// The same destination's client for another service, which has credentials of its own.
    func other(_ credentials: CredentialProvider, origin: String, caFile: FilePath?) -> AuthorizedClient {
        AuthorizedClient(
            transport: transport, credentials: credentials, origin: origin, caFile: caFile, clocks: clocks, name: name)
    }

    /// - Parameter allowed: A request to any other origin is refused before a connection is made.
    init(
        transport: PermittedTransport, credentials: CredentialProvider, origins: Set<String>, allowed: AllowedOrigins?,
        caFile: FilePath?, clocks: any Clocks, name: String
    ) {
        self.transport = transport
        self.credentials = credentials
        self.origins = origins
        self.allowed = allowed
        self.caFile = caFile
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
        if let objection = objection(to: request.url) { throw objection }
        if let place = allowed?.place(of: request.url) { request.url = place.url }
        let given = request.headers
        let isOurs = origins.contains(WebAddress(request.url).origin)
        var isSecondTry = false
        while true {
            request.headers = given
            var reading = 0
            if isOurs {
                let current = try await headers()
                reading = current.reading
                request.headers += current.headers
                add(context.headers, to: &request)
            }
            let response = try await once(request, context.permit, sent)
            guard response.status == 401 || response.status == 403, isOurs else {
                return Answer(response: response, url: request.url)
            }
            // The secret may have been renewed meanwhile. A request with bytes is not repeated here, though: its next
            // attempt queries the upload's progress, and reads the new secret.
            await credentials.refused(reading)
            guard case .none = request.body, !isSecondTry, response.status == 401 else {
                return Answer(response: response, url: request.url)
            }
            isSecondTry = true
        }
    }

    /// Headers that a person gave for this upload replace the destination's headers with the same name.
    private func add(_ headers: [String: String], to request: inout Request) {
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
            sentCredentials.rememberForNow(value)
            request.headers.removeAll { $0.0.lowercased() == name.lowercased() }
            request.headers.append((name, value))
        }
    }

    /// These are secrets too, though they do not travel in headers: no message shows them.
    func remember(_ values: [String]) { values.forEach(sentCredentials.remember) }
    /// The same for a value that a server gave for one upload.
    func rememberForNow(_ value: String) { sentCredentials.rememberForNow(value) }

    private func headers() async throws -> (headers: [(String, String)], reading: Int) {
        do {
            let current = try await credentials.current()
            for (_, value) in current.headers { sentCredentials.remember(value) }
            return current
        } catch {
            throw UploadError(
                failure(.auth, .secretUnreadable, "\(error)", retryable: true), remedy: .authenticate)
        }
    }

    private func once(
        _ request: Request, _ permit: any RequestPermit, _ sent: @escaping @Sendable (Int64) -> Void
    ) async throws -> Response {
        var request = request
        request.onSent = sent
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
            throw BrokenAnswerError(
                error: mistaken(.tls, request, http: response.status), delivery: response.delivery,
                bytesSent: response.bytesSent)
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
    }

    /// No readable answer came: the error to show.
    struct NoAnswerError: Error { let error: UploadError }

    /// The error when the server speaks another protocol than its address says.
    private func mistaken(
        _ speech: ProtocolProbe.WireProtocol, _ request: Request, http: Int? = nil, detail: String? = nil
    ) -> UploadError {
        var error = UploadError(
            failure(
                .config, speech.code,
                "\(request.method) to \(host(request.url)): \(speech.mistake(detail))", http: http, retryable: true),
            remedy: .misconfigured)
        error.contact = .unusable
        return error
    }

    private func problem(_ error: TransportError, _ request: Request) -> UploadError {
        let host = WebAddress(request.url).authority ?? ""
        let what = "\(request.method) to \(host): \(error.detail)"
        switch error.kind {
        case .resolve, .connect, .interface:
            let proxy = request.mayUseProxy ? WebAddress(request.url).proxy : nil
            let through = proxy.map {
                "; connections to it use the proxy \($0), as `\(WebAddress(request.url).scheme ?? "http")_proxy` of the environment "
                    + "says, and that cannot be reached"
            }
            var error = UploadError(
                failure(.transient, .unreachable, what + (through ?? ""), retryable: true),
                remedy: .holdDestination(after: nil))
            error.contact = .none
            return error
        case .tls:
            let hint =
                error.isOfHandshake
                ? "; the server closed the connection before it showed a certificate: it may have no TLS, or none for this name or version"
                : "; a certificate that is not trusted means a wrong address, a missing ca_file, or a portal in between"
            var error = UploadError(failure(.config, .tls, what + hint, retryable: true), remedy: .misconfigured)
            error.contact = .unusable
            return error
        case .proxy:
            return UploadError(
                failure(.config, .proxyRefused, what, retryable: true), remedy: .holdDestination(after: nil))
        case .notTLS: return mistaken(.plain, request, detail: error.detail)
        case .sourceFile:
            return UploadError(
                failure(.local, .stagedUnreadable, error.detail, retryable: true), remedy: .restage(.unreadable))
        case .other:
            return UploadError(failure(.config, .requestImpossible, what, retryable: true), remedy: .misconfigured)
        case .stalled, .timedOut, .reset, .tooLarge, .cancelled:
            return UploadError(
                failure(.transient, error.kind == .reset ? .connectionLost : .noReply, what, retryable: true),
                remedy: .holdDestination(after: nil))
        }
    }

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
        let covered = SecretEncoding.cover(sentCredentials.values, in: Array(text.utf8))
        return String(decoding: covered, as: UTF8.self)
    }
}

extension Request {
    /// A header for requests that are answered in JSON or XML. Requests for an object must not have it: the answer
    /// would describe the object's compressed form.
    static let acceptsGzip = ("Accept-Encoding", "gzip")
}

/// The values of credentials that have left this process.
private final class SentCredentials: Sendable {
    private struct Known {
        /// Credentials of the configuration. Each request adds the present ones; a command may make a new one every
        /// hour.
        var lasting: [String] = []
        /// Values that servers gave for one upload each; the oldest are dropped.
        var passing: [String] = []
    }

    private static let maxLastingSpellings = 512
    private static let maxTransientSpellings = 64
    private let known = Mutex(Known())
    var values: [String] { known.withLock { $0.lasting + $0.passing } }

    func remember(_ value: String) {
        let spellings = Self.spellings(value)
        known.withLock { known in
            // A value that is still in use stays among the newest.
            for spelling in spellings where !known.lasting.suffix(Self.maxLastingSpellings / 2).contains(spelling) {
                known.lasting.removeAll { $0 == spelling }
                known.lasting.append(spelling)
            }
            known.lasting = known.lasting.suffix(Self.maxLastingSpellings)
        }
    }

    func rememberForNow(_ value: String) {
        let spellings = Self.spellings(value)
        known.withLock { known in
            for spelling in spellings where !known.passing.contains(spelling) { known.passing.append(spelling) }
            known.passing = known.passing.suffix(Self.maxTransientSpellings)
        }
    }

    private static func spellings(_ value: String) -> [String] {
        // `Bearer abc` is remembered as a whole and as `abc`; shorter values are not hidden.
        let parts = [value] + value.split(separator: " ", maxSplits: 1).dropFirst().map(String.init)
        return parts.filter { $0.utf8.count >= 8 }.flatMap { part in
            // Base 64 without padding also matches the padded form.
            let coded = base64(Array(part.utf8)).replacing("=", with: "")
            let inAddresses = coded.replacing("+", with: "-").replacing("/", with: "_")
            return [part, coded] + (inAddresses == coded ? [] : [inAddresses])
        }
    }
}
