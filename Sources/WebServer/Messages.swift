package import Core

/// The address on which a server listens.
package enum ServerEndpoint: Hashable, Sendable {
    /// A Unix socket, created with exactly these permission bits and removed on stop.
    case unix(FilePath, mode: UInt32)
    /// A name or numeric address of this machine. Port 0: the kernel chooses one, see ``WebServer/port``.
    case tcp(host: String, port: Int)
}

/// A server's certificate with its key (RFC 8446, section 4.4).
package struct TLSIdentity: Sendable {
    /// PEM: its certificate, followed by those that lead to the authority.
    package var certificate: String
    /// PEM: the private key.
    package var key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// The client of a request.
package struct WebPeer: Hashable, Sendable {
    /// Effective user and group of the process at the other end of a Unix socket (`SO_PEERCRED`, unix(7)).
    package var user: UInt32?
    package var group: UInt32?
    /// The numeric address of a TCP peer, without its port; behind a trusted proxy the address that the proxy names.
    package var address: String?

    package init(user: UInt32? = nil, group: UInt32? = nil, address: String? = nil) {
        self.user = user
        self.group = group
        self.address = address
    }
}

/// The head of a request: everything but its body.
package struct WebRequest: Sendable {
    /// As sent; methods are case-sensitive (RFC 9110, section 9.1).
    package var method: String
    /// Percent-decoded, without the query. Begins with a slash; `.` and `..` stay as they are.
    package var path: String
    /// Path and query as the client wrote them.
    package var rawTarget: String
    /// Percent-decoded. Of equal names the first counts; a name without `=` has an empty value. `+` is a plus.
    package var query: [String: String]
    /// Names in lower case; the values of equal names are joined with `, ` (RFC 9110, section 5.3).
    package var headers: [String: String]
    package var peer: WebPeer
    /// Identifies a request of this server: `plan` and `reply` get the same number.
    package var number: UInt64
    /// Whether the client has closed its end: some work is not worth doing then.
    package var clientHasLeft: @Sendable () -> Bool = { false }

    package init(
        method: String, path: String, rawTarget: String, query: [String: String], headers: [String: String],
        peer: WebPeer, number: UInt64 = 0
    ) {
        self.number = number
        self.method = method
        self.path = path
        self.rawTarget = rawTarget
        self.query = query
        self.headers = headers
        self.peer = peer
    }
}

extension WebRequest {
    /// The token of `Authorization: Bearer …` (RFC 6750, section 2.1); `nil` without one.
    package var bearer: [UInt8]? {
        guard let given = headers["authorization"], given.lowercased().hasPrefix("bearer ") else { return nil }
        return Array(given.utf8.dropFirst(7))
    }

    /// The name or address in `Host`, in lower case and without brackets, port and a dot at its end; `nil` if it is
    /// invalid (RFC 9110, section 7.2).
    package var host: String? {
        guard var host = headers["host"]?.lowercased(), !host.isEmpty else { return nil }
        if host.hasPrefix("[") {
            guard let end = host.firstIndex(of: "]") else { return nil }
            return String(host[..<end].dropFirst())
        }
        if let cut = host.lastIndex(of: ":") { host = String(host[..<cut]) }
        return host.isEmpty || host.contains(":") ? nil : comparableHostName(host)
    }

    /// The port in `Host`; `nil` if it has none, which means that of the scheme, and -1 if it is no number.
    package var hostPort: Int? {
        guard let host = headers["host"], let cut = host.lastIndex(of: ":"), !host[cut...].contains("]") else {
            return nil
        }
        let digits = host[cut...].dropFirst()
        if digits.isEmpty { return nil }
        return digits.utf8.allSatisfy(\.isDigit) ? Int(digits) ?? -1 : -1
    }
}

/// The reply to a request.
package struct WebReply: Sendable {
    package enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// Sent chunk by chunk as it comes, and ends with the stream. The task that reads the stream is cancelled when
        /// the client disconnects, which is noticed at the next write: so send something every 15 s or so.
        case stream(AsyncStream<[UInt8]>)
    }

    package var status: Int
    /// Without `Content-Length`, `Transfer-Encoding`, `Connection` and `Date`, which the server sets.
    package var headers: [(String, String)]
    package var body: Body
    /// Only this reply is held back for this long.
    package var delay: Duration = .zero

    package init(status: Int, headers: [(String, String)] = [], body: Body = .none) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// One line of plain text, for a person.
    package static func text(
        _ status: Int, _ text: String, headers: [(String, String)] = []
    ) -> WebReply {
        WebReply(
            status: status, headers: headers + [("Content-Type", "text/plain; charset=utf-8")],
            body: .bytes(Array((text + "\n").utf8)))
    }
}

/// The treatment of a request's body, decided from its head.
package enum BodyPlan: Sendable {
    /// Collect it in memory; more than `limit` bytes are answered with 413.
    case collect(limit: Int)
    /// Pass on each piece as it comes.
    case sink(any BodySink)
    /// Request the reply at once, and let it read the body while that arrives. A reply that is ready before the end of
    /// the body is sent in the middle of it. Until the end the client may be silent for `timeout` seconds, 0: without
    /// limit.
    case stream(timeout: UInt32)
    /// Answer now, without the body.
    case refuse(WebReply)
}

/// The refusal of a request that is not let in.
package struct WebDenial: Sendable {
    package var reply: WebReply
    /// Only this reply is held back for this long.
    package var delay: Duration

    package init(_ reply: WebReply, delay: Duration = .zero) {
        self.reply = reply
        self.delay = delay
    }

    /// For the reply to a wrong token: guessing gets one answer a second on each connection.
    package static let wrongToken = Duration.seconds(1)
}

/// Takes a body piece by piece, on the server's thread: it may write to a disk, and must not wait for anything else.
package protocol BodySink: AnyObject, Sendable {
    /// Called with the next bytes, lent for the call. `false`: no more; the service is asked for its reply at once, the
    /// rest of the body is discarded, and ``ended(complete:)`` is not called.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool
    /// - Parameter complete: `false` when the client disconnected or the server stops; then no reply is requested.
    func ended(complete: Bool)
}

package enum ReceivedBody: Sendable {
    case collected([UInt8])
    case sunk
    case stream(BodyStream)
}

/// The service that answers a server's requests.
package protocol WebService: Sendable {
    /// Checks the head of a request, with its token; `nil`: it is accepted. Called on the server's thread, before
    /// ``plan(_:)``; must not wait.
    func denial(of request: WebRequest) -> WebDenial?
    /// Whether an accepted request proves who sends it. A connection without such a request is the first to be closed
    /// for others, and each of its requests has to be over within the time for a head. Must not wait.
    func isKnown(_ request: WebRequest) -> Bool
    /// Called on the server's thread for an accepted request; must not wait.
    func plan(_ request: WebRequest) -> BodyPlan
    /// The reply. Its task is cancelled when the server stops, and must then end soon.
    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply
    /// The reply for a refusal by the server itself, in the service's form: 400 for an invalid request, 413, 429, 431.
    /// Must not wait.
    func refusal(_ status: Int, _ text: String) -> WebReply
}

extension WebService {
    package func denial(of request: WebRequest) -> WebDenial? { nil }
    package func isKnown(_ request: WebRequest) -> Bool { true }
    package func refusal(_ status: Int, _ text: String) -> WebReply { .text(status, text) }
}

/// Why a server could not start.
package struct WebServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Place, problem and, where there is one, the remedy.
    package let description: String

    package init(_ description: String) { self.description = description }
}
