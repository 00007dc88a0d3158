package import Core
package import Linux
package import Names

/// One HTTP request, on its way to ``Transporting``.
///
/// What is not said here is the same for all: TLS 1.2 or later, HTTP/1.1 (one connection a transfer, so that a stop can
/// abort it and bytes sent can be counted), redirects are answers like any other, no cookies, no user or password in
/// the address; and unless a header says otherwise, answers are asked for as they are (`Accept-Encoding: identity`). A proxy from the environment (`https_proxy`, `no_proxy` …) is used, but never for a Unix socket or a
/// loopback address.
package struct Request: Sendable {
    package enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// `count` bytes of a file from `offset` on, read while they are sent. None of them leaves before `check` has seen it.
        case file(FilePlace, offset: Int64, count: Int64, check: (any BodyCheck)? = nil)
        /// The same with bytes before and behind it, as a form has them. What was sent of it is told in bytes of the file.
        case framed(head: [UInt8], FilePlace, offset: Int64, count: Int64, tail: [UInt8])
        /// Everything that comes from there until its end, as it comes: of a length that nobody knows. While nothing comes,
        /// no limit of time runs.
        case stream(ByteStream)

        /// Bytes; `nil` where nobody knows.
        package var count: Int64? {
            switch self {
            case .stream: nil
            case .none: 0
            case .bytes(let bytes): Int64(bytes.count)
            case .file(_, _, let count, _): count
            case .framed(let head, _, _, let count, let tail): Int64(head.count) + count + Int64(tail.count)
            }
        }

        /// How much of what it was made for is in its first `sent` bytes: a frame is not counted.
        func content(of sent: Int64) -> Int64 {
            guard case .framed(let head, _, _, let count, _) = self else { return sent }
            return min(max(0, sent - Int64(head.count)), count)
        }
    }

    package var method: String
    /// `http` or `https`.
    package var url: String
    package var headers: [(String, String)]
    package var body: Body
    package var limits: Limits
    /// The body draws from all of these, and the strictest decides. While it waits for them, no limit of time runs.
    package var throttles: [Throttle]
    /// Connects here, whatever the address says; the address gives the path and the `Host` header.
    package var unixSocket: FilePath?
    /// The network interface to leave by: its name, as `ip link` shows it. Without it the request fails (`.interface`), and a connection
    /// that is kept serves requests of the same interface alone.
    package var interface: String?
    /// Who may be asked for the addresses of names, and by which interface; without it the system asks whom it likes.
    package var nameServers: NameServers?
    /// Bytes of the body that the socket has taken so far; of a framed one, those of the file. Called from the transport's thread: must be cheap.
    package var onSent: (@Sendable (Int64) -> Void)?
    /// More bytes that have left on the wire, headers of IP and TCP, TLS, answers' acknowledgements and what was sent again
    /// included: each call tells of those since the last one, and all of them are ``Response/bytesOnWire``. Name
    /// look-ups are not among them, and nothing is over a Unix socket. Called from the transport's thread: must be cheap.
    package var onWire: (@Sendable (Int64) -> Void)?
    /// The same of what has come in, answers, acknowledgements and handshakes: more bytes than the last call told of. What is
    /// still to come when the connection closes is told in advance. Called from the transport's thread: must be cheap.
    package var onArrived: (@Sendable (Int64) -> Void)?
    /// Takes the answer's body piece by piece instead of collecting it; `false` stops the transfer (`.cancelled`).
    /// Called from the transport's thread: must be cheap.
    package var onBody: (@Sendable ([UInt8]) -> Bool)?
    /// The address of this machine that it leaves from is gone, and its connection with it: nothing will come of it, and whoever
    /// is told here is to stop it. Without anybody to tell, it ends (`.reset`). Called from the transport's thread: must be
    /// cheap.
    package var onAddressLost: (@Sendable () -> Void)?
    /// A body above 1 MiB waits for the server's invitation (`Expect: 100-continue`, RFC 9110, section 10.1.1), a second at most.
    package var asksFirst = true
    /// The most bytes of a collected body, as it comes and as it is read; a longer one ends in `.tooLarge`.
    package var answerLimit: Int
    /// What the answer says besides its status does not matter: of a longer one ``answerLimit`` is read, and one that breaks off is no
    /// failure.
    package var wantsStatusAlone = false
    package var verifiesTLS: Bool
    /// What is only for this machine's own ears goes to no proxy of the environment.
    package var mayUseProxy = true
    /// A file of certificates to trust instead of the system's.
    package var caFile: FilePath?

    package init(
        _ method: String, _ url: String, headers: [(String, String)] = [], body: Body = .none,
        limits: Limits = Limits(), throttles: [Throttle] = [], unixSocket: FilePath? = nil, interface: String? = nil,
        onSent: (@Sendable (Int64) -> Void)? = nil, onWire: (@Sendable (Int64) -> Void)? = nil,
        onBody: (@Sendable ([UInt8]) -> Bool)? = nil,
        answerLimit: Int = 1 << 20, verifiesTLS: Bool = true, caFile: FilePath? = nil
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.limits = limits
        self.throttles = throttles
        self.unixSocket = unixSocket
        self.interface = interface
        self.onSent = onSent
        self.onWire = onWire
        self.onBody = onBody
        self.answerLimit = answerLimit
        self.verifiesTLS = verifiesTLS
        self.caFile = caFile
    }
}

/// How long each phase of a request may stand still.
package struct Limits: Hashable, Sendable {
    /// Name, TCP and TLS together.
    package var connect: Duration
    /// No byte of the body taken by the socket.
    package var sendingStall: Duration
    /// The body is sent, and nothing comes back; later, between two pieces of the answer.
    package var replyWait: Duration
    /// From the last byte of the request to the end of the answer, however the pieces of it come.
    package var answer: Duration?
    /// The whole request; for small ones.
    package var whole: Duration?

    package init(
        connect: Duration = .seconds(30), sendingStall: Duration = .seconds(60), replyWait: Duration = .seconds(600),
        answer: Duration? = nil, whole: Duration? = nil
    ) {
        self.connect = connect
        self.sendingStall = sendingStall
        self.replyWait = replyWait
        self.answer = answer
        self.whole = whole
    }
}

/// The header lines of an answer, in their order.
package struct Headers: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    package private(set) var lines: [Line] = []

    package struct Line: Hashable, Sendable {
        package var name: String
        package var value: String
    }

    package init(_ lines: [(String, String)] = []) { for (name, value) in lines { append(name, value) } }
    package init(dictionaryLiteral elements: (String, String)...) { self.init(elements) }

    package mutating func append(_ name: String, _ value: String) { lines.append(Line(name: name, value: value)) }

    /// More of the last line's value. Lost when there is no line yet.
    mutating func continueLast(_ value: String) {
        guard !lines.isEmpty, !value.isEmpty else { return }
        lines[lines.count - 1].value += " " + value
    }

    /// The first line of that name, in any case.
    package subscript(name: String) -> String? {
        let wanted = name.lowercased()
        return lines.first { $0.name.lowercased() == wanted }?.value
    }
}

/// A whole answer, whatever its status.
package struct Response: Sendable {
    /// Never a 1xx.
    package var status: Int
    package var headers: Headers
    /// Empty where the request took the body piece by piece. Else without its `Content-Encoding`: gzip and deflate are undone,
    /// whether they were asked for or not, and what the header says of the coded form (its length, its tag) is left out.
    package var body: [UInt8]
    /// Why there is no ``body`` though one came, in words that follow "its body": in an encoding that is not known, or broken.
    package var unreadable: String?
    /// The address that was asked.
    package var url: String
    /// Bytes of the request's body that the socket took, those of a frame left out; less than all where the answer came
    /// early.
    package var bytesSent: Int64
    /// Bytes that left on the wire for this request, as the kernel counts them; see ``Request/onWire``.
    package var bytesOnWire: Int64
    package var delivery: Delivery

    /// - Parameter delivery: Without it nothing is known but what the socket had taken.
    package init(
        status: Int, headers: Headers = Headers(), body: [UInt8] = [], url: String = "", bytesSent: Int64 = 0,
        bytesOnWire: Int64 = 0, delivery: Delivery? = nil
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.url = url
        self.bytesSent = bytesSent
        self.bytesOnWire = bytesOnWire
        self.delivery = delivery ?? Delivery(atLeast: 0, atMost: bytesSent)
    }
}

/// How much of a request's body has left this machine, as far as the kernel tells. In bytes of the body; of a framed one, of the
/// file. Read before the connection was closed.
package struct Delivery: Hashable, Sendable {
    /// The peer's kernel has acknowledged so many (`SIOCOUTQ`, tcp(7)): they are at the other end of the connection, which may be a
    /// proxy. No proof that a server has taken them.
    package var atLeast: Int64
    /// No more can have left: what was written to the socket, less what never left its buffer (`TCP_INFO`,
    /// `tcpi_notsent_bytes`).
    package var atMost: Int64

    package init(atLeast: Int64, atMost: Int64) {
        self.atLeast = atLeast
        self.atMost = atMost
    }
}

/// Carries requests. ``Transport`` does it over the network; tests bring their own.
package protocol Transporting: Sendable {
    /// - Throws: ``TransportError`` where no answer came; `.cancelled` at once when the task is cancelled.
    func send(_ request: Request) async throws(TransportError) -> Response

    /// How many of the `count` bytes that are left of a file one request may carry: all of them, but where a quota ends first.
    func allowance(for count: Int64) -> Int64

    /// Sets aside what a request takes whose body of `count` bytes is worth nothing if a quota cuts it. To be followed by
    /// ``returnPledge(for:sent:)``.
    ///
    /// - Returns: Why it may not begin now; `nil` when it may.
    func pledge(for count: Int64) -> Shortage?

    /// The request is over, and `sent` bytes of its body have left: what it did not need is free again.
    func returnPledge(for count: Int64, sent: Int64)

    /// Bytes a second that its requests may take at this moment; `nil` without a limit.
    var rate: Int64? { get }
}

/// A quota leaves less than one request takes.
package struct Shortage: Hashable, Sendable {
    /// For people: what is left of which quota, and what it takes.
    package var text: String
    /// When that ends by itself at the latest.
    package var after: Duration

    package init(text: String, after: Duration) {
        self.text = text
        self.after = after
    }
}

extension Transporting {
    package func allowance(for count: Int64) -> Int64 { count }
    package func pledge(for count: Int64) -> Shortage? { nil }
    package func returnPledge(for count: Int64, sent: Int64) {}
    package var rate: Int64? { nil }
}
