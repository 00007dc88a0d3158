internal import Core

/// What a program says before its bytes are carried: an HTTP request to a proxy, or SOCKS version 5 (RFC 1928) with a user
/// and password (RFC 1929). The first byte tells them apart.
///
/// A value: it gets bytes, cut anywhere, and returns what to do. It holds at most ``HTTPProxyHead/limit`` bytes.
struct ClientHandshake: Sendable {
    enum Step: Hashable, Sendable {
        /// Sends these bytes, and continues.
        case reply([UInt8])
        /// The request is complete.
        case request(Request)
        /// Sends these bytes, and closes the connection.
        case refuse(EgressRefusal, [UInt8])
    }

    struct Request: Hashable, Sendable {
        let target: EgressTarget
        let lease: Int
        let dialect: ProxyDialect
        /// Bytes for the server that came already.
        let forwarded: [UInt8]
        /// The rest of the request's body.
        let body: RequestBody
    }

    private enum Phase { case first, http, greeting, login, command, over }

    private var phase = Phase.first
    private var bytes: [UInt8] = []
    private var lease: Int?
    /// Bytes in which the end of the head was looked for.
    private var searched = 0

    /// Accepts bytes.
    ///
    /// - Parameter authenticate: The number of the lease with these credentials; `nil` for none.
    mutating func receive(
        _ more: ArraySlice<UInt8>, authenticate: (ProxyLogin) -> Int?
    ) -> [Step] {
        bytes += more
        var steps: [Step] = []
        while let step = next(authenticate) {
            steps.append(step)
            if case .reply = step { continue }
            phase = .over
            bytes = []
        }
        return steps
    }

    /// `nil`: more bytes are needed, or it is over.
    private mutating func next(_ authenticate: (ProxyLogin) -> Int?) -> Step? {
        switch phase {
        case .first:
            guard let first = bytes.first else { return nil }
            phase = first == Socks.version ? .greeting : .http
            return next(authenticate)
        case .http: return http(authenticate)
        case .greeting: return greeting()
        case .login: return login(authenticate)
        case .command: return command()
        case .over: return nil
        }
    }

    // MARK: HTTP

    private mutating func http(_ authenticate: (ProxyLogin) -> Int?) -> Step? {
        guard let end = headEnd() else {
            return bytes.count >= HTTPProxyHead.limit ? .refuse(.tooLong, EgressRefusal.tooLong.answer) : nil
        }
        do throws(EgressRefusal) {
            var head = try HTTPProxyHead(bytes[..<end])
            // Only a program with a lease learns whether a server may be reached.
            guard let lease = head.login.flatMap(authenticate) else { throw .unauthorized }
            let rest = bytes[end...]
            var forwarded = head.forwarded
            if head.isConnect {
                forwarded = Array(rest)
            } else {
                // A body that is not well coded ends the connection, also where that shows later.
                forwarded += rest.prefix(head.body.take(rest) ?? 0)
            }
            return .request(
                Request(
                    target: head.target, lease: lease, dialect: head.isConnect ? .connect : .forward,
                    forwarded: forwarded, body: head.body))
        } catch { return .refuse(error, error.answer) }
    }

    /// The end of the empty line after the head; `nil` while it is missing. Each byte is looked at once, however the head
    /// is cut.
    private mutating func headEnd() -> Int? {
        let limit = min(bytes.count, HTTPProxyHead.limit)
        while searched < limit {
            searched += 1
            if searched >= 4, bytes[searched - 1] == 0x0A,
                bytes[(searched - 4)..<searched].elementsEqual(Self.emptyLine)
            {
                return searched
            }
        }
        return nil
    }

    private static let emptyLine: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]

    // MARK: SOCKS

    private enum Socks {
        static let version: UInt8 = 5
        static let withPassword: UInt8 = 2
        static let noMethod: UInt8 = 0xFF
        static let loginVersion: UInt8 = 1
        static let connect: UInt8 = 1
        static let (four, name, six): (UInt8, UInt8, UInt8) = (1, 3, 4)
    }

    private mutating func greeting() -> Step? {
        guard bytes.count >= 2, bytes.count >= 2 + Int(bytes[1]) else { return nil }
        let methods = bytes[2..<(2 + Int(bytes[1]))]
        guard methods.contains(Socks.withPassword) else {
            return .refuse(.unauthorized, [Socks.version, Socks.noMethod])
        }
        bytes.removeFirst(2 + methods.count)
        phase = .login
        return .reply([Socks.version, Socks.withPassword])
    }

    private mutating func login(_ authenticate: (ProxyLogin) -> Int?) -> Step? {
        guard let version = bytes.first else { return nil }
        let refused = Step.refuse(.unauthorized, [Socks.loginVersion, 1])
        guard version == Socks.loginVersion else { return refused }
        guard bytes.count >= 2, bytes.count >= 3 + Int(bytes[1]) else { return nil }
        let middle = 2 + Int(bytes[1])
        let end = middle + 1 + Int(bytes[middle])
        guard bytes.count >= end else { return nil }
        let login = ProxyLogin(user: Array(bytes[2..<middle]), password: Array(bytes[(middle + 1)..<end]))
        guard let lease = authenticate(login) else { return refused }
        self.lease = lease
        bytes.removeFirst(end)
        phase = .command
        return .reply([Socks.loginVersion, 0])
    }

    private mutating func command() -> Step? {
        guard bytes.count >= 4, let lease else { return nil }
        func refuse(_ refusal: EgressRefusal, _ reply: UInt8? = nil) -> Step {
            .refuse(refusal, ProxyDialect.socks.answer(to: refusal, reply: reply))
        }
        guard bytes[0] == Socks.version, bytes[2] == 0 else { return refuse(.malformed("it is not SOCKS version 5")) }
        guard bytes[1] == Socks.connect else { return refuse(.unsupported("other commands of SOCKS than CONNECT")) }
        let start: Int
        let count: Int
        switch bytes[3] {
        case Socks.four: (start, count) = (4, 4)
        case Socks.six: (start, count) = (4, 16)
        case Socks.name:
            guard bytes.count >= 5 else { return nil }
            (start, count) = (5, Int(bytes[4]))
        default: return refuse(.unsupported("this kind of address"), 8)
        }
        let end = start + count + 2
        guard bytes.count >= end else { return nil }
        let text = bytes[start..<(start + count)]
        let host: EgressTarget.Host? =
            bytes[3] == Socks.name ? EgressTarget.Host(text) : IPAddress(text).map { .address($0) }
        let port = UInt16(bytes[end - 2]) << 8 | UInt16(bytes[end - 1])
        guard let host, port > 0 else { return refuse(.malformed("it names no valid server")) }
        return .request(
            Request(
                target: EgressTarget(host, port: port), lease: lease, dialect: .socks, forwarded: Array(bytes[end...]),
                body: .unlimited))
    }
}

/// The protocol in which a program has asked.
enum ProxyDialect: Hashable, Sendable {
    case connect, forward, socks

    /// Tells the program that the connection is made; empty where the server's own answer does.
    var success: [UInt8] {
        switch self {
        case .connect: Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8)
        case .forward: []
        case .socks: Self.socksReply(0)
        }
    }

    func answer(to refusal: EgressRefusal, reply: UInt8? = nil) -> [UInt8] {
        self == .socks ? Self.socksReply(reply ?? refusal.socksReply) : refusal.answer
    }

    /// With the address 0.0.0.0 and the port 0: the program has no use for those of the socket.
    private static func socksReply(_ reply: UInt8) -> [UInt8] { [5, reply, 0, 1, 0, 0, 0, 0, 0, 0] }
}
