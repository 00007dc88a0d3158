package import Core
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
        if remedy == .authenticate, let error = refusedByProxy(what, response) { return error }
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

    /// The error for a 401 of the proxy or of the server, where nothing in it shows which; `nil` for any other answer.
    /// No upload ends for it.
    func refusedByProxy(_ what: String, _ response: Response) -> UploadError? {
        guard let proxy = response.possibleProxy, !response.isOfService else { return nil }
        var error = UploadError(
            failure(
                .config, .proxyRefused,
                "the proxy \(proxy), or \(host(response.url)) behind it, answered \(response.status) to \(what): "
                    + "if it is the proxy's answer, set `http_proxy` to its address, with USER:PASSWORD@ before the "
                    + "host; if it is the server's, correct the secret of this destination, which is read again",
                http: response.status, retryable: true), remedy: .holdDestination(after: nil))
        error.isOfPath = true
        return error
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
}

extension UploadError {
    /// Describes a failure of `check`, with advice.
    ///
    /// - Parameter right: The name of the access right in the configuration; `nil` when it is mentioned already.
    package func checkDescription(right: String? = "the token") -> String {
        let advice: String? =
            switch remedy {
            case .authenticate: right.map { "check \($0)" }
            case .misconfigured: "check the address"
            case .holdDestination: "uploads wait until it answers"
            case .outOfSpace, .rateLimit, .retry, .refused, .pending, .lackQuota, .restage, .failUpload: nil
            }
        guard let advice else { return failure.message }
        // A server's message may be a whole sentence.
        let found = failure.message.hasSuffix(".") ? failure.message.dropLast() : failure.message[...]
        return "\(found); \(advice)"
    }
}
