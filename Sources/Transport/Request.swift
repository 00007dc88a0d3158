package import Core
package import Linux
package import Names

/// One HTTP request, to be sent by ``Transporting``.
///
/// All requests have in common: TLS 1.2 or later; one connection for each transfer, so that a stop can abort it and sent
/// bytes can be counted; redirects are ordinary answers; no cookies; no user or password in the address; and unless a
/// header says otherwise, uncoded answers (`Accept-Encoding: identity`). ``connection`` says the rest; without it, it is
/// HTTP/1.1, through a proxy of the environment (`https_proxy`, `no_proxy` …) where that names one, but never for a Unix
/// socket or a loopback address.
package struct Request: Sendable {
    package enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// `count` bytes of a file from `offset` on, read while they are sent. None of them leaves before `check` has
        /// accepted it.
        case file(FilePlace, offset: Int64, count: Int64, check: (any BodyCheck)? = nil)
        /// The same with bytes before and after it, as in a form. Progress is reported in bytes of the file.
        case framed(head: [UInt8], FilePlace, offset: Int64, count: Int64, tail: [UInt8])
        /// All bytes of a stream until its end, with unknown length. While no bytes come, no time limit runs.
        case stream(ByteStream)

        /// In bytes; `nil` where it is unknown.
        package var count: Int64? {
            switch self {
            case .stream: nil
            case .none: 0
            case .bytes(let bytes): Int64(bytes.count)
            case .file(_, _, let count, _): count
            case .framed(let head, _, _, let count, let tail): Int64(head.count) + count + Int64(tail.count)
            }
        }

        /// Whether it has bytes of a file or of a stream.
        package var carriesFile: Bool {
            switch self {
            case .none, .bytes: false
            case .file, .framed, .stream: true
            }
        }

        /// How much of the actual content is in its first `sent` bytes: a frame is not counted.
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
    /// The body draws from all of these, and the strictest decides. While it waits for them, no time limit runs.
    package var throttles: [Throttle]
    /// The socket to connect to, regardless of the host in the address; the address gives the path and the `Host`
    /// header.
    package var unixSocket: FilePath?
    /// The network interface for the request: its name, as `ip link` shows it. If it cannot be used, the request fails
    /// (`.interface`). A kept connection only serves requests of the same interface.
    package var interface: String?
    /// How its packets are marked for routers; `nil`: not at all.
    package var trafficClass: TrafficClass?
    /// The permitted DNS servers, with their interfaces; without them the system chooses.
    package var nameServers: NameServers?
    /// Called with the bytes of the body that the socket has accepted so far; for a framed body, those of the file.
    /// Runs on the transport's thread: must be cheap.
    package var onSent: (@Sendable (Int64) -> Void)?
    /// Called with the number of further bytes that were sent on the wire, including headers of IP and TCP, TLS,
    /// acknowledgements of answers and retransmissions. Each call reports the bytes since the last one, and their sum
    /// is ``Response/bytesOnWire``. Name look-ups are not included, and there are none over a Unix socket. Runs on the
    /// transport's thread: must be cheap.
    package var onWire: (@Sendable (Int64) -> Void)?
    /// The same for received bytes: answers, acknowledgements and handshakes. Bytes that will come when the connection
    /// closes are reported in advance. Runs on the transport's thread: must be cheap.
    package var onArrived: (@Sendable (Int64) -> Void)?
    /// Takes the answer's body piece by piece instead of collecting it; `false` stops the transfer (`.cancelled`). Runs
    /// on the transport's thread: must be cheap.
    package var onBody: (@Sendable ([UInt8]) -> Bool)?
    /// Called when the local address of its connection is gone, and the connection with it: there will be no answer,
    /// and the callback has to stop the request. Without a callback, the request ends (`.reset`). Runs on the
    /// transport's thread: must be cheap.
    package var onAddressLost: (@Sendable () -> Void)?
    /// A body above 1 MiB waits for the server's invitation (`Expect: 100-continue`, RFC 9110, section 10.1.1), at most
    /// a second.
    package var allowsExpectContinue = true
    /// Whether it is sent with `Expect: 100-continue`.
    var expectsContinue: Bool { allowsExpectContinue && body.count ?? 0 > 1 << 20 }
    /// The maximum size of a collected body, before and after decoding; a longer one ends in `.tooLarge`.
    package var answerLimit: Int
    /// Only the status of the answer matters: of a longer body ``answerLimit`` bytes are read, and an interrupted body
    /// is no failure.
    package var needsStatusOnly = false
    package var verifiesTLS: Bool
    /// The answer has ``Response/facts``. It takes a connection of its own.
    package var wantsFacts = false
    /// `false` for a request that must not leave this machine or link: it uses no proxy.
    package var mayUseProxy = true
    /// A file of certificates that are trusted instead of the system's, and instead of those of ``connection``.
    package var caFile: FilePath?
    /// How it connects.
    package var connection = ConnectionSettings()
    /// `false` for a request to a service that is not the destination itself: it shows no client certificate, and the
    /// service may have any key.
    package var showsIdentity = true
    /// Returns a text without the secrets that requests like this one have carried; `nil` where none are known.
    package var conceal: (@Sendable (String) -> String)?

    /// A text of the answer, or of the connection, without secrets: the server may repeat what it was sent.
    package func concealed(_ text: String) -> String { conceal?(text) ?? text }

    /// Whether the connection to the first machine uses TLS.
    var isEncrypted: Bool { WebAddress(url).scheme == "https" || proxy?.scheme == .https }

    /// The proxy that it goes through; `nil` for none.
    package var proxy: ProxyServer? {
        mayUseProxy && unixSocket == nil ? connection.proxy(for: WebAddress(url)) : nil
    }

    /// Why the environment's proxy cannot be used; `nil` where there is none, or it can.
    var proxyObjection: String? {
        mayUseProxy && unixSocket == nil ? connection.proxy.objection(to: WebAddress(url)) : nil
    }

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

/// How long each phase of a request may make no progress.
package struct Limits: Hashable, Sendable {
    /// Name, TCP and TLS together.
    package var connect: Duration
    /// Time without the socket accepting a byte of the body.
    package var sendingStall: Duration
    /// Time between the end of the body and the first byte of the answer; later, between two pieces of the answer.
    package var replyWait: Duration
    /// Time from the last byte of the request to the end of the answer, regardless of progress.
    package var answer: Duration?
    /// Time of the whole request; for small ones.
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

    /// Continues the value of the last line. Ignored when there is no line yet.
    mutating func continueLast(_ value: String) {
        guard !lines.isEmpty, !value.isEmpty else { return }
        lines[lines.count - 1].value += " " + value
    }

    /// The first line with that name, in any case.
    package subscript(name: String) -> String? {
        let wanted = name.lowercased()
        return lines.first { $0.name.lowercased() == wanted }?.value
    }
}

/// A whole answer, with any status.
package struct Response: Sendable {
    /// Never a 1xx.
    package var status: Int
    package var headers: Headers
    /// Empty where the request took the body piece by piece. Otherwise without its `Content-Encoding`: gzip and deflate
    /// are decoded, whether they were requested or not, and headers about the coded form (its length, its tag) are
    /// removed.
    package var body: [UInt8]
    /// Why ``body`` is empty although there was one, as a text that follows "its body": its encoding is unknown, or it
    /// is damaged.
    package var unreadable: String?
    /// The requested address.
    package var url: String
    /// Bytes of the request's body that the socket accepted, without those of a frame; fewer than all where the answer
    /// came early.
    package var bytesSent: Int64
    /// Bytes that were sent for this request, as counted by the kernel; see ``Request/onWire``.
    package var bytesOnWire: Int64
    package var delivery: DeliveryBounds
    /// The proxy that may have given this answer in place of the server, for lack of a user; `nil` for none.
    package var possibleProxy: ProxyServer?
    /// The HTTP proxy that the request went to as it is, without a connection of its own to the server (`CONNECT`): any
    /// answer may be the proxy's. `nil` for none.
    package var plainProxy: ProxyServer?
    /// It refuses an old answer to a challenge (RFC 7616, section 3.3), or asks for the first one: the credentials are
    /// not judged.
    package var refusesOnlyChallenge = false
    /// What the connection shows; `nil` unless the request asked for it.
    package var facts: ConnectionFacts?

    /// - Parameter delivery: Without it only the bytes that the socket accepted are known.
    package init(
        status: Int, headers: Headers = Headers(), body: [UInt8] = [], url: String = "", bytesSent: Int64 = 0,
        bytesOnWire: Int64 = 0, delivery: DeliveryBounds? = nil
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.url = url
        self.bytesSent = bytesSent
        self.bytesOnWire = bytesOnWire
        self.delivery = delivery ?? DeliveryBounds(atLeast: 0, atMost: bytesSent)
    }

    /// Whether its headers show that ``plainProxy`` has given it in place of the server.
    package var isOfProxy: Bool { plainProxy != nil && Proxies.haveAnswered(status, headers) }
    /// Whether ``plainProxy`` may have given it, by its status.
    package var mayBeOfProxy: Bool { plainProxy != nil && Proxies.ownStatuses.contains(status) }
}

/// How much of a request's body has left this machine, as far as the kernel reports it. In bytes of the body; for a
/// framed body, of the file. Read before the connection was closed.
package struct DeliveryBounds: Hashable, Sendable {
    /// The peer's kernel has acknowledged this many (`SIOCOUTQ`, tcp(7)): they are at the other end of the connection,
    /// which may be a proxy. That is no proof that a server has received them.
    package var atLeast: Int64
    /// No more than this can have left: the bytes written to the socket, without those that never left its buffer
    /// (`TCP_INFO`, `tcpi_notsent_bytes`).
    package var atMost: Int64

    package init(atLeast: Int64, atMost: Int64) {
        self.atLeast = atLeast
        self.atMost = atMost
    }
}

/// Sends requests. ``Transport`` does it over the network; tests have their own.
package protocol Transporting: Sendable {
    /// - Throws: ``TransportError`` where no answer came; `.cancelled` at once when the task is cancelled.
    func send(_ request: Request) async throws(TransportError) -> Response
}

/// A quota leaves less than one request needs.
package struct Shortage: Hashable, Sendable {
    /// For people: the rest of the quota, and the needed amount.
    package var text: String
    /// The latest time when that ends without an event.
    package var after: Duration

    package init(text: String, after: Duration) {
        self.text = text
        self.after = after
    }
}
