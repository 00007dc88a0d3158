internal import CCurl
internal import Core
internal import Linux
internal import Synchronization

/// One running request: its easy handle, and the memory that libcurl uses meanwhile.
///
/// `@unchecked Sendable`: created by the caller, then accessed by the loop's thread alone, except `isCancelled`
/// (atomic) and `request` (constant).
final class CurlTransfer: @unchecked Sendable {
    let request: Request
    let isCancelled = Atomic(false)
    var waiting: CheckedContinuation<Outcome, Never>?
    private(set) var easy: UnsafeMutableRawPointer?
    /// Receives the sockets that libcurl opens; its thread outlives every transfer.
    weak var loop: CurlLoop?

    /// libcurl writes its message here for as long as the handle lives, so it is allocated, not borrowed.
    private let message = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    var lists: [UnsafeMutablePointer<curl_slist>] = []

    var source: BodySource?
    var answer: Answer
    /// The objection of one of our own callbacks; more precise than libcurl's "aborted by callback".
    var objection: (kind: TransportError.Kind, detail: String)?

    private var throttleWait = ThrottleWait()
    /// The addresses of a name that libcurl must not look up itself.
    var resolved: ResolvedName?

    /// That of the connection that is being made.
    private(set) var way: ConnectionWay

    private var times = TransferTimes()
    var stage = ConnectionStage()
    private var body: SentBody
    private var hasAnswered = false
    /// The bytes that it was charged with.
    private var bytesOnWire: Int64 = 0
    /// The last charge: the bytes of the body sent by then, and the time.
    private var charged: (sent: Int64, at: ContinuousClock.Instant) = (0, .now)
    /// The received bytes of those, and the size of the answer at the last charge.
    private var arrived: (onWire: Int64, answer: Int64) = (0, 0)

    init(_ request: Request) {
        self.request = request
        answer = Answer(limit: request.answerLimit)
        body = SentBody(isFramed: request.connection.http2 != .never)
        way = ConnectionWay(usesLocalProxy: request.proxy?.isHere ?? false)
        message[0] = 0
    }

    deinit {
        if let easy { curl_easy_cleanup(easy) }  // first: it may still write to `message`
        for list in lists { curl_slist_free_all(list) }
        message.deallocate()
    }

    var cancelled: TransportError { error(.cancelled, 0, "stopped") }
    /// The error when this machine lacks a resource, and the network is not at fault.
    func unable(_ reason: SystemError) -> TransportError { error(.other, 0, "nothing can be sent: \(reason)") }

    /// Resumes the caller, once, and frees libcurl's part.
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
            bytesSent: request.body.content(of: body.maxSent), bytesOnWire: bytesOnWire, delivery: delivery,
            wasSent: stage.isConnected
        ).through(request.proxy, isTunneled: hasTunnel, showsCertificate: request.connection.clientCertificate != nil)
    }

    // Events on the way; called by the callbacks.

    /// Whether the requested interface leads to an address, by a route that is equal to the kernel's own.
    func mayConnect(to address: IPAddress, port: UInt16) -> Bool {
        if let proxy = request.proxy, let problem = proxy.objection(to: address, isHere: way.usesLocalProxy) {
            objection = (.interface, problem)
            return false
        }
        if way.usesLocalProxy {
            // The proxy sends the same bytes on, over the network that policy has judged.
            (way.overhead, way.leavesMachine) = (0, true)
        } else if request.onWire != nil {
            do throws(SystemError) {
                let added = try Encapsulation.overhead(to: address, port: port, over: request.interface)
                (way.overhead, way.leavesMachine) = (added ?? 0, added != nil)
            } catch {
                // If the kernel cannot be queried, the largest overhead is assumed.
                (way.overhead, way.leavesMachine) = (Encapsulation.maxOverhead, true)
            }
        }
        guard let interface = request.interface, !address.isLoopback, !way.usesLocalProxy else { return true }
        do throws(SystemError) {
            if try RouteCandidates.leads(interface, to: address, port: port) { return true }
            objection = (
                .interface,
                "the route to \(address) does not use the interface `\(interface)`, and no other one may be used"
            )
        } catch {
            objection = (
                .interface, "the interface `\(interface)` cannot be used (\(error.reason)), and no other one may"
            )
        }
        return false
    }

    /// Binds a fresh socket to the requested interface.
    ///
    /// - Returns: `false` when it cannot be bound, and so must not be used. (libcurl's own option continues without
    ///   binding.)
    func bindToInterface(_ socket: CInt) -> Bool {
        guard let interface = request.interface, request.unixSocket == nil, !way.usesLocalProxy else { return true }
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

    /// Called when the request is about to leave.
    ///
    /// - Returns: `false` to stop it. libcurl repeats a request when a kept connection turns out to be
    ///   closed, and the server's handling of the first one is unknown. A second creation would leave an orphan, and
    ///   the offset must be queried from the server before bytes are sent. So only requests that change nothing are
    ///   repeated.
    func connected() -> Bool {
        if stage.isConnected, !hasAnswered, !["GET", "HEAD", "OPTIONS", "DELETE"].contains(request.method) {
            objection = (.reset, "the connection was closed without an answer")
            return false
        }
        stage.isConnected = true
        hasAnswered = false
        times.sent()
        return true
    }

    func progressed(sent now: Int64, received: Int64 = 0) {
        // As often as for sent bytes.
        if received - arrived.answer >= 64 << 10, request.onArrived != nil {
            arrived.answer = received
            loop?.connections.charge(self)
        }
        // The answer is awaited: an acknowledgement may come before the connection breaks.
        if now == body.sent, now > 0, now == request.body.count, !hasAnswered { loop?.connections.observe(self) }
        guard body.progressed(to: now) else { return }
        times.sent()
        request.onSent?(request.body.content(of: now))
        guard request.onWire != nil else { return }
        // Often enough to keep a limit to within a send buffer, rarely enough to cost nothing.
        if body.maxSent - charged.sent >= 128 << 10 || charged.at.duration(to: times.moved) > .milliseconds(250) {
            charged = (body.maxSent, times.moved)
            loop?.connections.charge(self)
        }
    }

    /// Charges sent bytes.
    func charge(_ more: Int64) {
        bytesOnWire += more
        request.onWire?(more)
    }

    /// Charges received bytes.
    func chargeArrived(_ more: Int64) {
        arrived.onWire += more
        request.onArrived?(more)
    }

    /// Whether it ends in the middle of its answer, while more of it may be in flight.
    var isBrokenOff: Bool { hasAnswered && (isCancelled.load(ordering: .relaxed) || objection != nil) }

    /// Records the kernel's present counters of the connection.
    func observe(_ counts: SocketCounts, isSecure: Bool, at end: SocketCounts.End?) {
        body.observe(counts, isSecure: isSecure, at: end)
    }

    /// Called when writing has ended and all written bytes are counted.
    private var delivery: DeliveryBounds {
        let bounds = body.delivered(given: source?.bytesRead ?? 0)
        return DeliveryBounds(
            atLeast: request.body.content(of: bounds.lowerBound), atMost: request.body.content(of: bounds.upperBound))
    }

    /// For a kernel without counters: the bytes that libcurl has sent, and 3 % for lower layers.
    func chargeEstimate() {
        var headers = 0
        if let easy { sluice_get_long(easy, CURLINFO_REQUEST_SIZE, &headers) }
        // With packets of 1,200 bytes.
        let total = ((Int64(headers) + body.maxSent) * (103 + way.overhead / 12) + 99) / 100
        if total > bytesOnWire { charge(total - bytesOnWire) }
        // An acknowledgement of each segment, and the answer.
        var (header, content) = (0, 0)
        if let easy {
            sluice_get_long(easy, CURLINFO_HEADER_SIZE, &header)
            sluice_get_off(easy, CURLINFO_SIZE_DOWNLOAD_T, &content)
        }
        let came = ((Int64(header + content)) * 103 + body.maxSent * 5 + 99) / 100
        if came > arrived.onWire { chargeArrived(came - arrived.onWire) }
    }

    func received() {
        hasAnswered = true
        throttleWait.answered()
        times.moved = .now
    }

    // Throttles.

    /// Part of the answer came while it waits.
    var isAnsweredInLine: Bool { throttleWait.isAnsweredInLine }

    /// How many bytes of the body may be sent now; 0: none before ``resume(with:)``.
    func grant(upTo wanted: Int) -> Int {
        // Called again while it waits in line: libcurl has started again.
        guard var count = throttleWait.take(upTo: wanted) else { return 0 }
        if count == 0, let loop { count = loop.acquire(upTo: wanted, for: self) }
        if count == 0 { throttleWait.wait(from: .now) }
        return count
    }

    /// Continues to send, first `count` bytes, which its throttles have granted.
    func resume(with count: Int) {
        times.resumed(waitingSince: throttleWait.resume(with: count))
        if let easy { curl_easy_pause(easy, CURLPAUSE_CONT) }
    }

    /// Returns granted bytes that were not sent to the shared limits.
    func returnGranted() { request.throttles.returnBytes(throttleWait.takeAll()) }

    private var isSending: Bool { request.body.count.map { body.sent < $0 } ?? (source?.stream != nil) }

    // Streams.

    /// The stream that it waits for; `nil` while it waits for none.
    var awaited: ByteStream? { throttleWait.isWaiting ? source?.stream : nil }

    /// Whether its body has bytes to send now, or its end. If not, it waits for ``resume(with:)``.
    func hasBytes() -> Bool {
        guard let stream = source?.stream, !stream.isReady else { return true }
        throttleWait.wait(from: .now)
        return false
    }

    /// How long this transfer may continue without progress, and the error when that is over.
    func timeLeft(at now: ContinuousClock.Instant) -> (Duration, () -> TransportError) {
        // A transfer that is held back is not late. The peer or the caller may end it.
        if throttleWait.isWaiting { return (.seconds(60), { self.error(.stalled, 0, "held back") }) }
        let phase: TransferTimes.Phase =
            !stage.isConnected ? .connecting : isSending && !hasAnswered ? .sending : .answering
        let (left, kind, words) = times.left(request.limits, phase, at: now)
        return (left, { self.late(kind, words) })
    }

    /// Takes the last bytes before its handle releases the connection.
    func readFinalCount() {
        var uploaded: Int = 0
        if let easy, sluice_get_off(easy, CURLINFO_SIZE_UPLOAD_T, &uploaded) == CURLE_OK {
            progressed(sent: Int64(uploaded))
        }
    }

    /// The result, from libcurl's final code.
    func outcome(_ code: CURLcode) -> Outcome {
        if let objection { return outcome(of: error(objection.kind, Int32(code.rawValue), objection.detail)) }
        if let refusal = refusalOfProxy(code) {
            // It may refuse the second connection of a request that the server has received over the first one.
            let kind = code != CURLE_OK && stage.isConnected ? TransportError.Kind.reset : .proxy
            return .failure(error(kind, Int32(code.rawValue), refusal))
        }
        guard code == CURLE_OK else {
            var code = code
            var words = message[0] == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: message)
            if code == CURLE_SSL_CONNECT_ERROR, let problem = stage.sentAlert.flatMap(TLSAlert.problem(bySent:)) {
                code = CURLE_PEER_FAILED_VERIFICATION
                words = "the certificate of the \(hasTunnel ? "server" : "proxy") is refused: \(problem)"
            }
            words = Proxies.withoutAddress(TLSAlert.revealed(words, code))
            let kind = TransportError.Kind(
                code, isConnected: stage.isConnected, words: words,
                hasCertificate: request.connection.clientCertificate != nil)
            if kind == .proxy, let proxy = request.proxy { words = Proxies.failure(words, of: proxy) }
            if kind == .reset, request.isEncrypted { words = TransportError.explained(words) }
            // libcurl 7.88 uses this code for a limit of its own.
            if code == CURLE_OUT_OF_MEMORY, stage.isConnected, !answer.isHeaderWhole {
                words = "the headers of the answer are too large"
            }
            return outcome(of: error(kind, Int32(code.rawValue), words))
        }
        // A server that dies between an interim answer and its real one leaves only the interim one.
        guard status >= 200, answer.isHeaderWhole else {
            let words = status >= 200 ? "in the header of the answer" : "without an answer"
            return outcome(of: error(.reset, 0, "the connection ended \(words)"))
        }
        return .success(response)
    }

    /// The refusal of a proxy, of a connection to the server (`CONNECT`) or of a request; `nil` where there is none.
    private func refusalOfProxy(_ code: CURLcode) -> String? {
        var connecting = 0
        if let easy { sluice_get_long(easy, CURLINFO_HTTP_CONNECTCODE, &connecting) }
        if code == CURLE_OK || connecting < 300 {
            let asksForProxy =
                answer.headers["Proxy-Authenticate"] != nil && answer.headers["WWW-Authenticate"] == nil
            // 401 is the server's own, except with proxies that confuse the two.
            guard status == 407 || status == 401 && asksForProxy else { return nil }
            connecting = status
        }
        return Proxies.refusal(connecting, of: request.proxy, scheme: WebAddress(request.url).scheme)
    }

    /// A refusal counts by its status, even if its body was interrupted or had no end; so does the answer to a request
    /// that only needs the status.
    func outcome(of error: TransportError) -> Outcome {
        let failedWhileReading = [.reset, .timedOut, .stalled, .tooLarge, .other].contains(error.kind)
        let isAnswered = status >= 400 || request.needsStatusOnly && status >= 200 && answer.isHeaderWhole
        return failedWhileReading && isAnswered ? .success(response) : .failure(error.after(status: status))
    }

    private var status: Int {
        var status = 0
        if let easy { sluice_get_long(easy, CURLINFO_RESPONSE_CODE, &status) }
        return status
    }

    private var response: Response {
        var response = Response(
            status: status, headers: answer.headers, body: answer.body, url: request.url,
            bytesSent: request.body.content(of: body.maxSent), bytesOnWire: bytesOnWire, delivery: delivery)
        if request.wantsFacts, let easy { response.facts = ConnectionFacts(easy) }
        let scheme = WebAddress(request.url).scheme
        if let proxy = request.proxy, proxy.speaksHTTP, scheme == "http" {
            response.plainProxy = proxy
            if Proxies.mayHaveAnswered(status, answer.headers, scheme: scheme) { response.possibleProxy = proxy }
        }
        return response
    }

    // Setting up.

    /// Builds the easy handle, on the loop's thread.
    func prepare(on loop: CurlLoop) throws(TransportError) -> UnsafeMutableRawPointer {
        guard let easy = curl_easy_init() else { throw error(.other, 0, "libcurl: out of memory") }
        self.easy = easy
        sluice_set_pointer(easy, CURLOPT_ERRORBUFFER, message)
        guard loop.setPool(of: request, easy) else { throw error(.other, 0, "libcurl: out of memory") }
        try CurlConnectionOptions(transfer: self, easy: easy).set()
        try setHeaders(easy)
        try setBody(easy)
        setCallbacks(easy, loop)
        return easy
    }
}
