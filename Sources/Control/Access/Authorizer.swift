internal import Core
internal import WebServer

/// Decides which requests are accepted, and which may make changes.
protocol Authorizer: Sendable {
    /// `nil`: accepted. Must not wait.
    func denial(of request: WebRequest) -> WebDenial?
    /// The same for a request that was accepted, after what that depends on was read again. May wait.
    func denialByNow(of request: WebRequest) async -> WebDenial?
    /// Whether an accepted request says who sends it; the page's own files and the way to sign in need no name.
    func isKnown(_ request: WebRequest) -> Bool
    /// Why an accepted request may not change anything; `nil`: it may.
    func changeDenial(of request: WebRequest) async -> String?
    /// The client of an accepted request, for the log. May wait.
    func name(of request: WebRequest) async -> String
    /// Distinguishes the client of an accepted request from others. Must not wait.
    func key(of request: WebRequest) -> String
}

extension Authorizer {
    func isKnown(_ request: WebRequest) -> Bool { true }
    func denialByNow(of request: WebRequest) async -> WebDenial? { nil }
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
