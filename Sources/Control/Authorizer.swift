internal import Core
internal import Digests
internal import Linux
internal import Synchronization
internal import WebServer

/// Decides which requests are accepted, and which may make changes.
protocol Authorizer: Sendable {
    /// `nil`: accepted. Must not wait.
    func denial(of request: WebRequest) -> WebDenial?
    func mayChange(_ peer: WebPeer) async -> Bool
}

/// For the socket: its mode has already refused all others.
extension Access: Authorizer {
    func denial(of request: WebRequest) -> WebDenial? { nil }
}

/// For an address that other machines reach: a client with the token may do everything, and any other client nothing.
///
/// A web page may make a browser send requests to this address under a name that temporarily resolves to it (DNS
/// rebinding). Such a request has that name in `Host`, and not an address or one of our names. Requests of other pages
/// have a foreign `Origin`, and are refused.
final class TokenAuthorizer: Authorizer {
    private let read: @Sendable () async throws -> String
    private let names: Set<String>
    private let clocks: any Clocks
    private let logMessage: @Sendable (String) -> Void

    private struct State {
        var token: [UInt8] = []
        var readAt: MonotonicTime
        var isReading = false
        var isBroken = false
    }
    private let state: Mutex<State>

    /// A token that was changed or revoked stays valid for at most this long.
    static let freshness: Duration = .seconds(30)

    /// - Parameters:
    ///   - read: Reads the token from its source.
    ///   - say: Writes a line to the log.
    init(
        names: [String], clocks: any Clocks, say: @escaping @Sendable (String) -> Void,
        read: @escaping @Sendable () async throws -> String
    ) async throws {
        self.names = Set(names).union(["localhost"])
        self.clocks = clocks
        self.logMessage = say
        self.read = read
        let token = Array(try await read().utf8)
        state = Mutex(State(token: token, readAt: clocks.monotonic()))
        if let complaint = complaint(aboutToken: token) { say(complaint) }
    }

    func mayChange(_ peer: WebPeer) async -> Bool { true }

    func denial(of request: WebRequest) -> WebDenial? {
        guard let host = request.host, IPAddress(host) != nil || names.contains(host) else {
            return Self.makeDenial(
                421, "misdirected",
                "\(request.host.map { "`\(printable($0))`" } ?? "no name") is not a name of this daemon; add names "
                    + "under `control.hosts`")
        }
        if let origin = request.headers["origin"], !Self.isSame(origin, request.headers["host"]) {
            return Self.makeDenial(403, "forbidden", "web pages of other origins may send no requests here")
        }
        renewIfOld()
        guard let given = request.bearer else {
            return Self.makeDenial(
                401, "unauthorized", "this address needs a token: `Authorization: Bearer …`",
                [("WWW-Authenticate", "Bearer realm=\"sluice\"")])
        }
        guard isSameSecret(given, state.withLock(\.token)) else {
            return Self.makeDenial(
                401, "unauthorized", "the token is wrong",
                [("WWW-Authenticate", "Bearer realm=\"sluice\", error=\"invalid_token\"")],
                delay: WebDenial.wrongToken)
        }
        return nil
    }

    /// After the scheme, an origin has the same form as `Host` (RFC 6454, section 6.1).
    private static func isSame(_ origin: String, _ host: String?) -> Bool {
        guard let scheme = origin.firstIndex(of: ":"), let host else { return false }
        return origin[scheme...].lowercased() == "://" + host.lowercased()
    }

    private func renewIfOld() {
        let now = clocks.monotonic()
        let isDue = state.withLock { state in
            guard !state.isReading, now.since(state.readAt) >= Self.freshness else { return false }
            state.isReading = true
            return true
        }
        if isDue { Task { await renew() } }
    }

    private func renew() async {
        let result: Result<String, any Error>
        do { result = .success(try await read()) } catch { result = .failure(error) }
        let message = state.withLock { state -> String? in
            state.isReading = false
            state.readAt = clocks.monotonic()
            switch result {
            case .success(let token):
                let (old, new) = (state.token, Array(token.utf8))
                state.token = new
                defer { state.isBroken = false }
                if new != old, let complaint = complaint(aboutToken: new) { return complaint }
                return state.isBroken ? "the token of the control address can be read again" : nil
            case .failure(let error):
                defer { state.isBroken = true }
                return state.isBroken ? nil : "the token of the control address stays as it was: \(error)"
            }
        }
        if let message { logMessage(message) }
    }

    private static func makeDenial(
        _ status: Int, _ code: String, _ message: String, _ headers: [(String, String)] = [], delay: Duration = .zero
    ) -> WebDenial {
        var reply = WebReply(json: ErrorReply(code: code, message: message), status: status)
        reply.headers += headers
        return WebDenial(reply, delay: delay)
    }
}
