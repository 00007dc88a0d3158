internal import Core
internal import WebServer

/// Decides which requests are accepted, and which may make changes.
protocol Authorizer: Sendable {
    /// `nil`: accepted. Must not wait.
    func denial(of request: WebRequest) -> WebDenial?
    /// Whether an accepted request says who sends it; the page's own files and the way to sign in need no name.
    func isKnown(_ request: WebRequest) -> Bool
    /// Why an accepted request may not change anything; `nil`: it may.
    func changeDenial(of request: WebRequest) async -> String?
    /// The client of an accepted request, for the log.
    func name(of request: WebRequest) -> String
}

extension Authorizer {
    func isKnown(_ request: WebRequest) -> Bool { true }
}

extension WebDenial {
    static func make(
        _ status: Int, _ code: String, _ message: String, _ headers: [(String, String)] = [], delay: Duration = .zero
    ) -> WebDenial {
        var reply = WebReply(json: ErrorReply(code: code, message: message), status: status)
        reply.headers += headers
        return WebDenial(reply, delay: delay)
    }
}
