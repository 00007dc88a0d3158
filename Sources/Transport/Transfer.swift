internal import CCurl
internal import Core
internal import Linux
internal import Synchronization

/// One request under way: its easy handle, and the memory that libcurl reads and writes meanwhile.
///
/// `@unchecked Sendable`: made by the caller, then touched by the loop's thread alone, but for `isCancelled` (atomic)
/// and `request` (constant).
final class Transfer: @unchecked Sendable {
    let request: Request
    let isCancelled = Atomic(false)
    var waiting: CheckedContinuation<Outcome, Never>?
    private(set) var easy: UnsafeMutableRawPointer?
    /// Hears of the sockets that libcurl opens; its thread outlives every transfer.
    weak var loop: Loop?

    /// libcurl writes its sentence here for as long as the handle lives, so it is allocated, not lent.
    private let message = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    var lists: [UnsafeMutablePointer<curl_slist>] = []

    var source: BodySource?
    var answer: Answer
    /// What one of our own callbacks objected to; more to the point than libcurl's "aborted by callback".
    var objection: (kind: TransportError.Kind, detail: String)?

    /// Bytes of the body that its throttles have granted and libcurl has not fetched yet.
    private var granted = 0
    /// Since when its throttles have let nothing through.
    private var waitsSince: ContinuousClock.Instant?
    /// Something of the answer came while it waits.
    private(set) var isAnsweredInLine = false

    /// The addresses of a name, which libcurl is not to look up by itself.
    var resolved: ResolvedName?

    /// What tunnels and IPsec add to each packet of the connection that is being made.
    private(set) var overhead: Int64 = 0
    /// That goes to another machine.
    private(set) var leavesMachine = true

    private var times = TransferTimes()
    private var isConnected = false
    private var sent: Int64 = 0
    /// `sent` falls back to 0 when libcurl begins again; what has left has left.
    private var mostSent: Int64 = 0
    private var hasAnswered = false
    /// Bytes of the body that the peer's kernel has acknowledged, at least.
    private var acknowledged: Int64 = 0
    /// The end of the connection that carried the body, as it was seen last; `nil` where the kernel does not tell.
    private var tail: ConnectionTail?
    /// What it was charged with.
    private var bytesOnWire: Int64 = 0
    /// When it was charged last: how much of the body had gone by then, and the time.
    private var charged: (sent: Int64, at: ContinuousClock.Instant) = (0, .now)
    /// What of that came in, and how much of the answer had come when it was charged last.
    private var arrived: (onWire: Int64, answer: Int64) = (0, 0)

    init(_ request: Request) {
        self.request = request
        answer = Answer(limit: request.answerLimit)
        message[0] = 0
    }

    deinit {
        if let easy { curl_easy_cleanup(easy) }  // first: it may still write to `message`
        for list in lists { curl_slist_free_all(list) }
        message.deallocate()
    }

    var cancelled: TransportError { error(.cancelled, 0, "stopped") }
    /// The machine, not the network, is what is short.
    func unable(_ reason: SystemError) -> TransportError { error(.other, 0, "nothing can be sent: \(reason)") }

    /// Answers the one who waits, once, and lets go of libcurl's part.
    func finish(_ outcome: Outcome) {
        if let easy {
            curl_easy_cleanup(easy)
            self.easy = nil
        }
        waiting?.resume(returning: outcome)
        waiting = nil
    }

    func error(_ kind: TransportError.Kind, _ code: Int32, _ detail: String) -> TransportError {
        TransportError(
            kind: kind, code: code, detail: detail, url: request.url,
            bytesSent: request.body.content(of: mostSent), bytesOnWire: bytesOnWire, delivery: delivery)
    }

    // What happens on the way; called by the callbacks.

    /// Whether the interface that the request asks for leads to an address, by a way that is as good as the kernel's own.
    func mayConnect(to address: IPAddress, port: UInt16) -> Bool {
        if request.onWire != nil {
            do throws(SystemError) {
                let added = try Encapsulation.overhead(to: address, port: port, over: request.interface)
                (overhead, leavesMachine) = (added ?? 0, added != nil)
            } catch {
                // Where the kernel cannot be asked, what adds the most.
                (overhead, leavesMachine) = (Encapsulation.most, true)
            }
        }
        guard let interface = request.interface, !address.isLoopback else { return true }
        do throws(SystemError) {
            if try Ways.leads(interface, to: address, port: port) { return true }
            objection = (
                .interface,
                "the way to \(address) does not lead over the interface `\(interface)`, and no other one may be used"
            )
        } catch {
            objection = (
                .interface, "the interface `\(interface)` cannot be used (\(error.reason)), and no other one may"
            )
        }
        return false
    }

    /// Holds a fresh socket to the interface that the request asks for.
    ///
    /// - Returns: `false` when it cannot be held, and so must not be used. (libcurl's own option goes on without.)
    func pin(_ socket: CInt) -> Bool {
        guard let interface = request.interface, request.unixSocket == nil else { return true }
        do throws(SystemError) { try Sockets.bind(socket, to: interface) } catch {
            objection = (
                .interface, "the interface `\(interface)` cannot be used (\(error.reason)), and no other one may"
            )
            return false
        }
        // An address before this one may have failed.
        if objection?.kind == .interface { objection = nil }
        return true
    }

    /// The request is about to leave.
    ///
    /// - Returns: `false` to stop it: libcurl sends a request again by itself when a kept connection turns out to be
    ///   closed, and what the server made of the first one is unknown. A second creation leaves an orphan, and bytes
    ///   go nowhere before the server was asked where it stands; so only what changes nothing is repeated.
    func connected() -> Bool {
        if isConnected, !hasAnswered, !["GET", "HEAD", "OPTIONS", "DELETE"].contains(request.method) {
            objection = (.reset, "the connection was closed without an answer")
            return false
        }
        isConnected = true
        hasAnswered = false
        times.sent()
        return true
    }

    func progressed(sent now: Int64, received: Int64 = 0) {
        // As often as what is sent.
        if received - arrived.answer >= 64 << 10, request.onArrived != nil {
            arrived.answer = received
            loop?.connections.charge(self)
        }
        // The answer is awaited: an acknowledgement may come before the connection breaks.
        if now == sent, now > 0, now == request.body.count, !hasAnswered { loop?.connections.observe(self) }
        guard now != sent else { return }
        sent = now
        mostSent = max(mostSent, now)
        times.sent()
        request.onSent?(request.body.content(of: now))
        guard request.onWire != nil else { return }
        // Often enough for a limit to be kept to a send buffer, seldom enough to cost nothing.
        if mostSent - charged.sent >= 128 << 10 || charged.at.duration(to: times.moved) > .milliseconds(250) {
            charged = (mostSent, times.moved)
            loop?.connections.charge(self)
        }
    }

    /// Bytes that have left for it.
    func charge(_ more: Int64) {
        bytesOnWire += more
        request.onWire?(more)
    }

    /// Bytes that have come in for it.
    func chargeArrived(_ more: Int64) {
        arrived.onWire += more
        request.onArrived?(more)
    }

    /// It ends in the middle of its answer, of which more may be on its way.
    var isBrokenOff: Bool { hasAnswered && (isCancelled.load(ordering: .relaxed) || objection != nil) }

    /// What the kernel says of the connection now. A body is the last that is written to it, but for the farewell of TLS.
    func observe(_ counts: SocketCounts, isSecure: Bool, at end: SocketCounts.End?) {
        acknowledged = max(acknowledged, mostSent - counts.queued)
        let kept: Int64 =
            switch end {
            // Timers may still send three segments: see ``SocketCounts/onWire(isSecure:at:)``.
            case .reset: max(0, counts.unsent - 3 * counts.largest)
            case .orderly, nil: counts.isOver ? counts.unsent : 0
            }
        tail = ConnectionTail(queued: counts.queued, kept: kept, isSecure: isSecure)
    }

    /// Called when nothing is written any more and everything that was is counted.
    private var delivery: Delivery {
        let given = source?.given ?? 0
        let body = request.body
        guard let tail else { return Delivery(atLeast: 0, atMost: body.content(of: max(given, mostSent))) }
        // In what is encrypted there are fewer bytes of the body than bytes that wait: that holds for the lower bound alone.
        let least = max(acknowledged, mostSent - tail.queued, 0)
        let most = tail.isSecure ? max(given, mostSent) : mostSent - tail.kept
        return Delivery(atLeast: body.content(of: least), atMost: body.content(of: max(least, most)))
    }

    /// For a kernel that does not count: what libcurl has sent, and 3 % for what carries it.
    func chargeEstimate() {
        var headers = 0
        if let easy { sluice_get_long(easy, CURLINFO_REQUEST_SIZE, &headers) }
        // Of packets of 1,200 bytes.
        let total = ((Int64(headers) + mostSent) * (103 + overhead / 12) + 99) / 100
        if total > bytesOnWire { charge(total - bytesOnWire) }
        // An acknowledgement of each segment, and the answer.
        var (answer, body) = (0, 0)
        if let easy {
            sluice_get_long(easy, CURLINFO_HEADER_SIZE, &answer)
            sluice_get_off(easy, CURLINFO_SIZE_DOWNLOAD_T, &body)
        }
        let came = ((Int64(answer + body)) * 103 + mostSent * 5 + 99) / 100
        if came > arrived.onWire { chargeArrived(came - arrived.onWire) }
    }

    func received() {
        hasAnswered = true
        isAnsweredInLine = waitsSince != nil
        times.moved = .now
    }

    // Throttles.

    /// How many bytes of the body may go now; 0: none before ``resume(with:)``.
    func allowed(upTo wanted: Int) -> Int {
        // Asked again while it stands in line: libcurl has begun again.
        if waitsSince != nil { return 0 }
        var count = min(granted, wanted)
        granted -= count
        if count == 0, let loop { count = loop.take(upTo: wanted, for: self) }
        if count == 0 { waitsSince = .now }
        return count
    }

    /// Goes on sending, `count` bytes at first, which its throttles have let through.
    func resume(with count: Int) {
        times.wentOn(waitingSince: waitsSince)
        waitsSince = nil
        isAnsweredInLine = false
        granted += count
        if let easy { curl_easy_pause(easy, CURLPAUSE_CONT) }
    }

    /// What it was granted and did not send goes back to those who share the limit.
    func giveBack() {
        request.throttles.giveBack(granted)
        granted = 0
    }

    private var isSending: Bool { request.body.count.map { sent < $0 } ?? (source?.stream != nil) }

    // Streams.

    /// Where the bytes come from that it waits for; `nil` while it waits for none.
    var awaited: ByteStream? { waitsSince == nil ? nil : source?.stream }

    /// Whether its body has bytes to send now, or its end. If not, it waits for ``resume(with:)``.
    func hasBytes() -> Bool {
        guard let stream = source?.stream, !stream.isReady else { return true }
        if waitsSince == nil { waitsSince = .now }
        return false
    }

    /// How long this transfer may go on without anything happening, and what it is called when that is over.
    func timeLeft(at now: ContinuousClock.Instant) -> (Duration, () -> TransportError) {
        // Nobody is late who is made to wait. The peer may end it, and whoever asked for it.
        if waitsSince != nil { return (.seconds(60), { self.error(.stalled, 0, "held back") }) }
        let phase: TransferTimes.Phase =
            !isConnected ? .connecting : isSending && !hasAnswered ? .sending : .answering
        let (left, kind, words) = times.left(request.limits, phase, at: now)
        return (left, { self.error(kind, 0, words) })
    }

    /// Hears of the last bytes before its handle lets go of the connection.
    func ends() {
        var uploaded: Int = 0
        if let easy, sluice_get_off(easy, CURLINFO_SIZE_UPLOAD_T, &uploaded) == CURLE_OK {
            progressed(sent: Int64(uploaded))
        }
    }

    /// What has come of it, by libcurl's last word.
    func outcome(_ code: CURLcode) -> Outcome {
        if let objection { return outcome(of: error(objection.kind, Int32(code.rawValue), objection.detail)) }
        if let refusal = refusalOfProxy(code) { return .failure(error(.proxy, Int32(code.rawValue), refusal)) }
        guard code == CURLE_OK else {
            let words = message[0] == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: message)
            return outcome(
                of: error(
                    TransportError.Kind(code, isConnected: isConnected, words: words), Int32(code.rawValue), words))
        }
        // A server that dies between an interim and its real answer leaves the interim one behind.
        guard status >= 200, answer.isHeaderWhole else {
            let words = status >= 200 ? "in the header of the answer" : "without an answer"
            return outcome(of: error(.reset, 0, "the connection ended \(words)"))
        }
        return .success(response)
    }

    /// What a proxy refuses, whether it was to connect to the server (`CONNECT`) or to pass on a request; `nil` where none does.
    private func refusalOfProxy(_ code: CURLcode) -> String? {
        var connecting = 0
        if let easy { sluice_get_long(easy, CURLINFO_HTTP_CONNECTCODE, &connecting) }
        if code == CURLE_OK || connecting < 300 {
            let asksForProxy =
                answer.headers["Proxy-Authenticate"] != nil && answer.headers["WWW-Authenticate"] == nil
            // 401 is the server's own, but for proxies that mix the two up.
            guard status == 407 || status == 401 && asksForProxy else { return nil }
            connecting = status
        }
        let proxy = request.mayUseProxy ? WebAddress(request.url).proxy : nil
        let who = proxy.map { "the proxy \($0)" } ?? "a proxy on the way"
        let text = "\(who) answered \(connecting)"
        guard connecting == 407 || connecting == 401 else { return "\(text), and does not connect to the server" }
        let variable = "\(WebAddress(request.url).scheme ?? "http")_proxy"
        return
            "\(text): it wants a user and a password, or others than it was given: set `\(variable)` to its address, with USER:PASSWORD@ before the host"
    }

    /// A refusal is told by its status, though the text behind it broke off or had no end; and so is what only a status was asked of.
    func outcome(of error: TransportError) -> Outcome {
        let isOfAnswer = [.reset, .timedOut, .stalled, .tooLarge, .other].contains(error.kind)
        let isTold = status >= 400 || request.wantsStatusAlone && status >= 200 && answer.isHeaderWhole
        return isOfAnswer && isTold ? .success(response) : .failure(error)
    }

    private var status: Int {
        var status = 0
        if let easy { sluice_get_long(easy, CURLINFO_RESPONSE_CODE, &status) }
        return status
    }

    private var response: Response {
        Response(
            status: status, headers: answer.headers, body: answer.body, url: request.url,
            bytesSent: request.body.content(of: mostSent), bytesOnWire: bytesOnWire, delivery: delivery)
    }

    // Setting up.

    /// Builds the easy handle, on the loop's thread.
    func prepare(on loop: Loop) throws(TransportError) -> UnsafeMutableRawPointer {
        guard let easy = curl_easy_init() else { throw error(.other, 0, "libcurl: out of memory") }
        self.easy = easy
        sluice_set_pointer(easy, CURLOPT_ERRORBUFFER, message)
        if let interface = request.interface {
            guard let pool = loop.pool(of: interface) else { throw error(.other, 0, "libcurl: out of memory") }
            sluice_set_pointer(easy, CURLOPT_SHARE, pool)
        }
        try setAddress(easy)
        try setHeaders(easy)
        try setBody(easy)
        setCallbacks(easy, loop)
        return easy
    }

    private func setAddress(_ easy: UnsafeMutableRawPointer) throws(TransportError) {
        try set(easy, CURLOPT_URL, request.url)
        sluice_set_long(easy, CURLOPT_NOSIGNAL, 1)
        // Dots in a path stay as they are: an upload's address is the server's business.
        sluice_set_long(easy, CURLOPT_PATH_AS_IS, 1)
        try set(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        sluice_set_long(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        sluice_set_long(easy, CURLOPT_FOLLOWLOCATION, 0)
        sluice_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        sluice_set_long(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        sluice_set_long(easy, CURLOPT_SSL_VERIFYPEER, request.verifiesTLS ? 1 : 0)
        sluice_set_long(easy, CURLOPT_SSL_VERIFYHOST, request.verifiesTLS ? 2 : 0)
        // libcurl's own clock is a second safety: the loop ends a transfer that has not connected in time.
        sluice_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(request.limits.connect.inMilliseconds) + 1000)
        sluice_set_long(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, 1000)
        if let file = request.caFile { _ = file.withCString { sluice_set_string(easy, CURLOPT_CAINFO, $0) } }
        if let resolved { try set(easy, CURLOPT_RESOLVE, curl_slist_append(nil, resolved.entry)) }
        if let socket = request.unixSocket {
            _ = socket.withCString { sluice_set_string(easy, CURLOPT_UNIX_SOCKET_PATH, $0) }
        }
        // What stays on this machine goes through no proxy, whatever the environment says.
        let staysHere = request.unixSocket != nil || WebAddress(request.url).isLoopback
        if staysHere || !request.mayUseProxy { try set(easy, CURLOPT_PROXY, "") }
    }
}
