package import Core
internal import Linux
internal import Synchronization
internal import WebServer

/// Who makes a request over TCP, and what they may do.
package struct ControlClientIdentity: Hashable, Sendable {
    /// Of the token, or of the user who ran `sluice web`.
    package var name: String
    package var role: ControlRole

    package init(name: String, role: ControlRole) {
        self.name = name
        self.role = role
    }
}

/// For an address that other machines reach: clients with a token, and browsers that have signed in.
///
/// A web page may make a browser send requests to this address under a name that temporarily resolves to it (DNS
/// rebinding). Such a request has that name in `Host`, and not an address and port on which we listen, or one of our
/// names. Requests of other pages have a foreign `Origin`, and are refused. A browser's cookie is good for reading
/// alone: every change needs a token, which no browser adds by itself. The one exception is signing out, which a page
/// that was loaded again has to do without its token: it changes nothing but the browser's own session, and only a
/// request that the browser itself marks as one of our page may do it.
final class TokenAuthorizer: Authorizer {
    private let listen: ListenAddress
    private let isTLS: Bool
    /// The port on which we listen; 0 until the kernel has chosen one.
    private let port: Atomic<Int>
    /// With any port: a proxy may have another one.
    private let names: Set<String>
    private let tokens: ControlTokens
    /// `nil`: the address serves no page.
    private let sessions: WebSessions?

    /// The header of the page's token.
    static let pageTokenHeader = "x-sluice-token"

    init(
        listen: ListenAddress, isTLS: Bool = false, names: [String], tokens: ControlTokens, sessions: WebSessions?
    ) {
        self.listen = listen
        self.isTLS = isTLS
        port = Atomic(listen.port)
        self.names = Set(names)
        self.tokens = tokens
        self.sessions = sessions
    }

    /// Tells the port that the kernel has chosen.
    func listens(on port: Int) { self.port.store(port, ordering: .relaxed) }

    func denial(of request: WebRequest) -> WebDenial? {
        if let denial = misdirection(of: request) { return denial }
        if let origin = request.headers["origin"], !Self.isSame(origin, request.headers["host"]) {
            return .make(403, "forbidden", "web pages of other origins may send no requests here")
        }
        if isPublic(request) { return nil }
        // A browser names the site of a page that makes it send something (Fetch Metadata Request Headers, section 2.3);
        // another port of this machine is the same site.
        if let site = request.headers["sec-fetch-site"], site != "same-origin", site != "none" {
            return .make(403, "forbidden", "web pages of other origins may send no requests here")
        }
        if client(of: request) != nil { return nil }
        if request.bearer != nil { return Self.wrongToken("the token is wrong") }
        if request.headers[Self.pageTokenHeader] == nil {
            return Self.missing("this address needs a token: `Authorization: Bearer …`")
        }
        // Nothing is said about the token itself, which was not compared.
        guard isOfPage(request) else {
            return Self.missing(
                "`X-Sluice-Token` needs `Sec-Fetch-Site: same-origin`, or an `Origin` equal to `Host`: it is for the "
                    + "web page alone. Programs send a token of `control.tokens` as `Authorization: Bearer …`")
        }
        return Self.wrongToken(
            "the page's token is wrong or no longer good; a token of `control.tokens` belongs in "
                + "`Authorization: Bearer …`")
    }

    private static func missing(_ message: String) -> WebDenial {
        .make(401, "unauthorized", message, [("WWW-Authenticate", "Bearer realm=\"sluice\"")])
    }

    private static func wrongToken(_ message: String) -> WebDenial {
        .make(
            401, "unauthorized", message,
            [("WWW-Authenticate", "Bearer realm=\"sluice\", error=\"invalid_token\"")], delay: WebDenial.wrongToken)
    }

    func denialByNow(of request: WebRequest) async -> WebDenial? {
        if isPublic(request) { return nil }
        await tokens.refresh()
        return denial(of: request)
    }

    func isKnown(_ request: WebRequest) -> Bool { client(of: request) != nil }

    func changeDenial(of request: WebRequest) async -> String? {
        // A code of `sluice web` is its own credential.
        if isPublic(request) { return nil }
        guard let client = client(of: request) else { return "a change needs a token" }
        guard client.role == .operate else {
            return "`\(client.name)` may only view (role: view)"
        }
        return nil
    }

    func name(of request: WebRequest) -> String {
        let address = request.peer.address ?? "unknown"
        return client(of: request).map { "\($0.name) (\(address))" } ?? address
    }

    func key(of request: WebRequest) -> String { name(of: request) }

    /// The client of a request, by the strongest of its credentials.
    func client(of request: WebRequest) -> ControlClientIdentity? {
        if let bearer = request.bearer { return tokens.client(bearer) }
        let isEnd = request.method == "DELETE" && request.path == "/v1/session" && isOfPage(request)
        if let given = request.headers[Self.pageTokenHeader] {
            if isOfPage(request), let session = session(.page, given) { return session.client }
            // A page whose token is no longer good signs out as well.
            guard isEnd else { return nil }
        }
        guard request.method == "GET" || request.method == "HEAD" || isEnd else { return nil }
        return cookieSession(request)?.client
    }

    /// Whether a browser says that our own page sends a request; `Origin` was compared before. On an address without
    /// TLS browsers send only that one, and they send it with each request but GET and HEAD.
    private func isOfPage(_ request: WebRequest) -> Bool {
        request.headers["sec-fetch-site"] == "same-origin" || request.headers["origin"] != nil
    }

    /// The session of the cookie.
    func cookieSession(_ request: WebRequest) -> WebSessions.Session? { cookieSessions(request).first }

    /// A browser may send several cookies of our name, of which others have set some.
    private func cookieSessions(_ request: WebRequest) -> [WebSessions.Session] {
        guard let sessions else { return [] }
        return request.cookies(named: sessions.cookieName).compactMap { session(.cookie, $0) }
    }

    /// The sessions whose texts a request has.
    func givenSessions(_ request: WebRequest) -> [WebSessions.Session] {
        let ofPage = request.headers[Self.pageTokenHeader].flatMap { session(.page, $0) }
        let ofCookies = cookieSessions(request)
        return ofPage.map { page in [page] + ofCookies.filter { $0 != page } } ?? ofCookies
    }

    /// The session of a cookie or of a page's token, as long as the token that it began with is valid.
    func session(_ purpose: WebSessions.Purpose, _ text: String) -> WebSessions.Session? {
        guard let sessions, let session = sessions.session(purpose, text) else { return nil }
        guard session.origin == .token else { return session }
        return tokens.secret(of: session.client).flatMap { sessions.matches(session, secret: $0) ? session : nil }
    }

    /// The session that a configured token begins; `nil` where a request has none.
    func beginSession(_ request: WebRequest) -> WebSessions.Session? {
        guard let sessions, let bearer = request.bearer, let client = tokens.client(bearer) else { return nil }
        return sessions.begin(client, secret: bearer)
    }

    /// Whether a request needs no token: the page's own files hold no secret, and signing in brings its own.
    private func isPublic(_ request: WebRequest) -> Bool {
        guard sessions != nil else { return false }
        switch request.method {
        case "GET", "HEAD": return PageAssets.isPage(request.path)
        case "POST": return request.path == "/v1/session" && request.bearer == nil
        default: return false
        }
    }

    /// Why a request is for another server: by the name, address and port in its `Host`.
    private func misdirection(of request: WebRequest) -> WebDenial? {
        guard let host = request.host else { return .misdirected("the request names no host") }
        if names.contains(host) || IPAddress(host).map({ names.contains($0.description) }) == true { return nil }
        let shown = "`\(printable(host))`"
        guard isListenedOn(host) else { return .misdirected("\(shown) is not a name of this daemon") }
        let (given, own) = (request.hostPort ?? (isTLS ? 443 : 80), port.load(ordering: .relaxed))
        if own == 0 || given == own { return nil }
        return .misdirected("this daemon listens on port \(own), and not on port \(given), of \(shown)")
    }

    private func isListenedOn(_ host: String) -> Bool {
        let own = IPAddress(listen.host)
        if own == nil, host == comparableHostName(listen.host) { return true }
        if host == "localhost" { return own.map { $0.isUnspecified || $0.isLoopback } ?? false }
        guard let address = IPAddress(host) else { return false }
        // A server that listens on all addresses has all of this machine's; a name may lead to any of them.
        if let own, !own.isUnspecified { return address == own }
        return own != nil && address.isLoopback || OwnAddresses.contains(address)
    }

    /// After the scheme, an origin has the same form as `Host` (RFC 6454, section 6.1).
    private static func isSame(_ origin: String, _ host: String?) -> Bool {
        guard let scheme = origin.firstIndex(of: ":"), let host else { return false }
        return origin[scheme...].lowercased() == "://" + host.lowercased()
    }
}

extension WebDenial {
    /// For a request that is for another server.
    fileprivate static func misdirected(_ reason: String) -> WebDenial {
        make(421, "misdirected", reason + "; add names under `control.hosts`")
    }
}

extension WebRequest {
    /// The values of the cookies with a name, at most 16 (RFC 6265, sections 4.2.1 and 4.2.2).
    func cookies(named name: String) -> [String] {
        let pairs = (headers["cookie"] ?? "").split(separator: ";").lazy.map { $0.drop { $0 == " " } }
        return pairs.filter { $0.hasPrefix(name + "=") }.prefix(16).map { String($0.dropFirst(name.count + 1)) }
    }
}
