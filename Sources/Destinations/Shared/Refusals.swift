package import Core
internal import Credentials
internal import Transport

// Descriptions of a server's refusals, for a person.

extension AuthorizedClient {
    /// Describes the refusal in an answer: the status, and the body if it is a text.
    ///
    /// - Parameter words: The message, where the caller has read it already.
    func refused(
        _ what: String, _ response: Response, _ remedy: Remedy, words text: String? = nil,
        code: Failure.Code? = nil
    )
        -> UploadError
    {
        if response.refusesOnlyChallenge, remedy == .authenticate { return outdated(what, response) }
        if remedy == .authenticate || response.isOfProxy, let error = refusedByProxy(what, response) { return error }
        let status = response.status
        var message = "\(host(response.url)) answered \(status) to \(what)"
        // A plain-text answer ends with a line end, which would be shown as an escape. It is cut only after that, so
        // that no half of a secret stays.
        let body = withoutSecrets(String(decoding: response.body.prefix(8192), as: UTF8.self)).utf8.prefix(200)
        let end = body.lastIndex { $0 > UInt8(ascii: " ") }.map { body.index(after: $0) } ?? body.startIndex
        let words = text ?? String(decoding: body[..<end], as: UTF8.self)
        // A caller that read the message does not depend on the type.
        let isPage = text == nil && response.headers["Content-Type"]?.lowercased().hasPrefix("text/html") == true
        if let unreadable = response.unreadable {
            message += "; the reason is not known, because its body \(unreadable)"
        } else if isPage {
            message += " with a web page"
        } else if !words.isEmpty {
            message += ": " + FilePath(words).display
        }
        message += orProxy(response)
        if case .outOfSpace = remedy { message += "; there is no free space, or a quota is used up there" }
        if (300..<400).contains(status) { message += "; it redirects: a login portal, or the wrong address" }
        let kind: Failure.Class
        switch remedy {
        case .authenticate: kind = .auth
        case .misconfigured: kind = .config
        case .failUpload: kind = .permanent
        case .restage: kind = .local
        case .outOfSpace, .lackQuota: kind = .quota
        case .holdDestination, .rateLimit, .retry, .refused, .pending: kind = .transient
        }
        var error = UploadError(
            failure(kind, code ?? .http(status), message, http: status, retryable: remedy != .failUpload),
            remedy: remedy)
        // A login portal redirects, and answers every request with its page and a success.
        error.isOfPath = response.mayBeOfPath || (200..<400).contains(status) && remedy == .misconfigured
        return error
    }

    /// The error for a 401 that refuses no credentials, but an old answer to a challenge: the next request has another.
    private func outdated(_ what: String, _ response: Response) -> UploadError {
        var error = UploadError(
            failure(
                .transient, .http(response.status),
                "\(host(response.url)) answered \(response.status) to \(what) with a new challenge for "
                    + "`http.auth: digest`, which the next request answers: the user and the password are not refused",
                http: response.status, retryable: true), remedy: .retry(after: .zero))
        // It says nothing about the file.
        error.isOfPath = true
        return error
    }

    /// The error for an answer that the proxy has given in place of the server, and for a 401 of the proxy or of the
    /// server, where nothing in it shows which; `nil` for any other answer. No upload ends for it.
    func refusedByProxy(_ what: String, _ response: Response) -> UploadError? {
        if response.isOfProxy, !response.isOfService, let proxy = response.plainProxy {
            let verb = response.status == 403 ? "refuses requests to" : "does not reach"
            var error = UploadError(
                failure(
                    .config, .proxyRefused,
                    "the proxy \(proxy.place), as \(proxy.setting) says, answered \(response.status) to \(what) "
                        + "itself: it \(verb) \(host(response.url)); correct that at the proxy, or except this server "
                        + "in `http.no_proxy`", http: response.status, retryable: true),
                remedy: .holdDestination(after: retryAfter(response.headers, now: clocks.wall())))
            error.isOfPath = true
            return error
        }
        guard let proxy = response.possibleProxy, !response.isOfService else { return nil }
        var error = UploadError(
            failure(
                .config, .proxyRefused,
                "the proxy \(proxy.place), or \(host(response.url)) behind it, answered \(response.status) to \(what): "
                    + "if it is the proxy's answer, \(proxy.credentialsHint); if it is the server's, correct the "
                    + "secret of this destination, which is read again",
                http: response.status, retryable: true), remedy: .holdDestination(after: nil))
        error.isOfPath = true
        return error
    }

    /// Names the proxy that may have given a refusal in place of the server, where nothing in the answer shows which: a
    /// text that follows the refusal, empty for none.
    func orProxy(_ response: Response) -> String {
        guard response.mayBeOfProxy, !response.isOfService, let proxy = response.plainProxy else { return "" }
        return ", or the proxy \(proxy.place) \(response.status == 403 ? "refuses it" : "does not reach the server")"
    }

    /// The error for an answer with ``Response/isWebPage`` and a success status: it acknowledges nothing, and a person
    /// has to look.
    func answeredByPage(_ what: String, _ response: Response) -> UploadError {
        var error = refused(what, response, .misconfigured, words: Self.pageWords, code: .webPage)
        error.isOfPath = true
        return error
    }

    static let pageWords = "a web page: a login portal, or the wrong address"

    /// An upload's address is a capability, so only its host is ever shown.
    func host(_ url: String) -> String { FilePath(WebAddress(url).authority ?? "the server").display }

    // MARK: Requests without an answer

    /// The error when the server speaks another protocol than its address says.
    func mistaken(
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

    /// The error for a request without an answer.
    func problem(_ error: TransportError, _ request: Request) -> UploadError {
        let host = WebAddress(request.url).authority ?? ""
        let what = "\(request.method) to \(host): \(error.detail)"
        // Policy may end a request that was received.
        let kind = error.kind == .interface && error.wasSent ? .reset : error.kind
        switch kind {
        case .resolve, .connect, .interface:
            let through = error.proxy.map {
                "; connections to it use the proxy \($0.place), as \($0.setting) says"
                    + (error.hasPeer ? "" : ", and that cannot be reached")
            }
            var error = UploadError(
                failure(.transient, .unreachable, what + (through ?? ""), retryable: true),
                remedy: .holdDestination(after: nil))
            error.contact = .none
            return error
        case .tls: return unusable(.tls, what + error.distrustAdvice)
        case .pinnedKey:
            let hint =
                "; its public key is none of `http.pinned_keys`: it has a new key, the address is wrong, or another party "
                + "answers in its place"
            return unusable(.pinnedKey, what + hint)
        case .clientCertificate: return unusable(.clientCertificate, what + error.certificateAdvice)
        case .secret:
            return UploadError(
                failure(.auth, .secretUnreadable, error.detail, retryable: true), remedy: .authenticate)
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
            let through = error.proxy.map { "; the request used the proxy \($0.place), as \($0.setting) says" }
            var lost = UploadError(
                failure(
                    .transient, kind == .reset ? .connectionLost : .noReply, what + (through ?? ""),
                    retryable: true),
                remedy: .holdDestination(after: nil))
            lost.statusOfBrokenAnswer = error.status
            return lost
        }
    }

    /// Runs requests whose caller records no cancellation: questions and removals.
    func stoppable<Answer>(
        _ what: String = "the request", _ body: () async throws -> Answer
    ) async throws(UploadError) -> Answer {
        do { return try await body() } catch let error as UploadError { throw error } catch {
            throw UploadError(
                failure(.cancelled, .cancelled, "\(what) was stopped", retryable: true), remedy: .retry(after: nil))
        }
    }

    /// The error where a secret cannot be read, or may not be read now.
    func unreadable(_ error: any Error) -> UploadError {
        let isHeld = (error as? SecretError)?.isHeld ?? false
        return UploadError(
            failure(isHeld ? .transient : .auth, .secretUnreadable, "\(error)", retryable: true),
            remedy: isHeld ? .holdDestination(after: nil) : .authenticate)
    }

    /// The error for a 401 whose challenges `auth: digest` cannot answer; `nil` where it has none, or may be a proxy's.
    func unanswerable(_ response: Response) -> UploadError? {
        guard let words = DigestChallenge.objection(to: response.headers), response.possibleProxy == nil else {
            return nil
        }
        return UploadError(
            failure(
                .auth, .http(response.status), "\(host(response.url)) answered \(response.status) with \(words)",
                http: response.status, retryable: true), remedy: .authenticate)
    }

    /// The error of a server that cannot be trusted, or that does not trust this client.
    func unusable(_ code: Failure.Code, _ message: String) -> UploadError {
        var error = UploadError(failure(.config, code, message, retryable: true), remedy: .misconfigured)
        error.contact = .unusable
        return error
    }
}

extension UploadError {
    /// Describes a failure of `check`, with advice.
    ///
    /// - Parameter right: The name of the access right in the configuration; `nil` when it is mentioned already.
    package func checkDescription(right: String? = "the credentials") -> String {
        let advice: String? =
            switch remedy {
            // The message about a secret that cannot be read says what to do about it.
            case .authenticate: failure.code == .secretUnreadable ? nil : right.map { "check \($0)" }
            case .misconfigured:
                [.tls, .pinnedKey, .clientCertificate, .requestImpossible].contains(failure.code)
                    ? nil : "check the address"
            case .holdDestination: "uploads wait until it answers"
            case .outOfSpace, .rateLimit, .retry, .refused, .pending, .lackQuota, .restage, .failUpload: nil
            }
        guard let advice else { return failure.message }
        // A server's message may be a whole sentence.
        let found = failure.message.hasSuffix(".") ? failure.message.dropLast() : failure.message[...]
        return "\(found); \(advice)"
    }
}
