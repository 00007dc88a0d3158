internal import API
internal import Core
internal import Linux
internal import WebServer

/// Serves the web page's own files, and signs browsers in and out.
struct PageService: Sendable {
    private let sessions: WebSessions
    private let authorizer: TokenAuthorizer
    private let log: Log
    private let logMessage: @Sendable (String) -> Void

    /// - Parameters:
    ///   - log: Told of each browser that signs in or out.
    ///   - say: Writes a line about a problem to the log.
    init(
        _ sessions: WebSessions, _ authorizer: TokenAuthorizer, log: Log, say: @escaping @Sendable (String) -> Void
    ) {
        self.sessions = sessions
        self.authorizer = authorizer
        self.log = log
        logMessage = say
    }

    /// A file of the page; `nil` for any other request.
    func asset(for request: WebRequest) -> WebReply? {
        guard request.method == "GET" || request.method == "HEAD", PageAssets.isPage(request.path) else { return nil }
        return PageAssets.reply(to: request)
    }

    /// The session of the cookie.
    func session(_ request: WebRequest) throws -> WebReply {
        guard let session = authorizer.cookieSession(request) else {
            throw Refusal(.notFound, "this browser is not signed in")
        }
        return WebReply(json: view(session))
    }

    /// Begins a session, by a code or a token, and sets the cookie.
    func signIn(_ request: WebRequest, _ body: [UInt8]) async throws -> WebReply {
        let wanted = body.isEmpty ? SignInRequest() : try JSONRequest.read(SignInRequest.self, body)
        var session = authorizer.beginSession(request)
        if session == nil, let code = wanted.code, let client = sessions.redeem(code) {
            session = sessions.begin(client, secret: nil)
        }
        guard let session else {
            // Not logged: strangers must not fill the log.
            var reply = WebReply(
                json: ErrorReply(
                    code: "unauthorized",
                    message: "this link was used already, or is more than a minute old: `sluice web` makes another one"),
                status: 401)
            reply.delay = WebDenial.wrongToken
            return reply
        }
        logCommand("sign in", session.client, request)
        var view = view(session)
        view.token = sessions.text(.page, of: session)
        var reply = WebReply(json: view)
        reply.headers.append(
            (
                "Set-Cookie",
                cookie(
                    sessions.text(.cookie, of: session), seconds: WebSessions.lifetime.components.seconds, request)
            ))
        return reply
    }

    /// Ends the session of the cookie, and that of the page's token if the request has one.
    func signOut(_ request: WebRequest) async throws -> WebReply {
        let (sessions, given) = (sessions, authorizer.givenSessions(request))
        for client in Set(given.map(\.client)) { logCommand("sign out", client, request) }
        do { try await blocking { for session in given { try sessions.end(session) } } } catch let error as SystemError
        {
            logMessage("a sign-in that has ended would be good again after a restart: \(error)")
        }
        return WebReply(
            status: 204,
            headers: [("Set-Cookie", cookie("", seconds: 0, request))] + WebReply.privateHeaders, body: .none)
    }

    private func logCommand(_ verb: String, _ client: ControlClientIdentity, _ request: WebRequest) {
        log.notice(
            "a person gave a command",
            [
                "verb": verb, "what": "web page", "role": client.role.rawValue,
                "by": "\(client.name) (\(request.peer.address ?? "unknown"))",
            ])
    }

    private func view(_ session: WebSessions.Session) -> SessionView {
        SessionView(name: session.client.name, role: session.client.role, until: session.until.description)
    }

    /// RFC 6265, section 4.1; SameSite is of its successor (draft-ietf-httpbis-rfc6265bis, section 5.6.7).
    ///
    /// Behind a proxy that has the certificate, the browser's `Origin` says that it uses TLS.
    private func cookie(_ value: String, seconds: Int64, _ request: WebRequest) -> String {
        let isSecure =
            sessions.cookieName.hasPrefix("__Host-")
            || request.headers["origin"]?.lowercased().hasPrefix("https://") == true
        return "\(sessions.cookieName)=\(value); Path=/; HttpOnly; SameSite=Strict; Max-Age=\(seconds)"
            + (isSecure ? "; Secure" : "")
    }
}
