internal import CMicroHTTPD
internal import Linux
internal import Synchronization

/// One request and its reply, from the request line to the last byte.
///
/// `@unchecked Sendable`: the plain variables are accessed only by the libmicrohttpd thread that owns the connection
/// (``proceed(_:method:version:body:size:)`` and ``requestEnded()``, which it never calls at once); the state that it shares
/// with the reply's task and the server's stop is in `shared`, protected by a lock.
final class Exchange: @unchecked Sendable {
    private enum Phase {
        case fresh
        /// The body arrives and is handled according to the plan.
        case receiving
        /// The reply is known; this many bytes of the body are discarded first, so that the connection can continue.
        case refusing(WebDenial, left: Int)
        /// The reply is being made, or held back; the connection is suspended. `early`: the body is still arriving.
        case awaitingReply(early: Bool)
        /// The reply was sent in the middle of the body; this many bytes of the rest are discarded, then the connection
        /// is closed.
        case cutShort(left: Int)
        case answered
    }

    /// `@unchecked Sendable`: other threads only resume it, which libmicrohttpd allows from any thread while it is
    /// suspended; and the thread that does so takes it out of `shared` with the lock held.
    private struct Suspended: @unchecked Sendable { let connection: OpaquePointer }

    private struct Shared {
        var suspended: Suspended?
        /// A streamed body is complete, and only the reply is awaited.
        var isComplete = false
        /// The connection of a streamed body that is arriving, for a reply that bypasses libmicrohttpd; until the body
        /// is complete.
        var streaming: Suspended?
        /// Such a reply was sent.
        var isCutShort = false
        var reply: WebReply?
        var feed: StreamFeed?
    }

    let serverState: ServerState
    private let target: String
    private var phase = Phase.fresh
    /// No further request of this connection is read.
    private var endsConnection = false
    /// The request was accepted, and says who sends it.
    private var isKnown = false
    private var request: WebRequest?
    private var collected: [UInt8] = []
    private var limit = 0
    /// Until it has been told of its end.
    private var sink: (any BodySink)?
    private var isBodyInSink = false
    private var stream: BodyStream?
    /// Until the request is over.
    private var place: Connections.Forwarded?
    private let shared = Mutex(Shared())

    init(serverState: ServerState, target: String) {
        self.serverState = serverState
        self.target = target
    }

    /// One step, called by libmicrohttpd: first with the head alone, then with each piece of the body, at the end
    /// without one.
    ///
    /// - Returns: `false` closes the connection.
    func proceed(
        _ connection: OpaquePointer, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>,
        body: UnsafePointer<CChar>?, size: UnsafeMutablePointer<Int>
    ) -> Bool {
        switch phase {
        case .fresh:
            return begin(connection, method: method, version: version)
        case .receiving where size.pointee > 0:
            let piece = UnsafeRawBufferPointer(start: body, count: size.pointee)
            if let stream { return append(piece, into: stream, connection, size) }
            return receiveBody(piece, connection, size)
        case .receiving:
            if let stream { return end(stream, connection) }
            return startReply(connection, early: false)
        case .refusing(let denial, let left):
            return discardBody(before: denial, left: left, connection, size)
        case .awaitingReply(let early):
            // Resumed without a reply: the server stops.
            guard let reply = shared.withLock({ $0.reply }) else { return false }
            return early && size.pointee > 0 ? cutShort(with: reply, connection, size) : queue(reply, connection)
        case .cutShort(let left):
            guard size.pointee > 0, size.pointee <= left else { return false }
            phase = .cutShort(left: left - size.pointee)
            size.pointee = 0
            return true
        case .answered:
            return false
        }
    }

    /// The request is over: answered, or its client or the server has gone.
    func requestEnded() {
        serverState.leave(self)
        if let place { serverState.connections.releasePlace(place) }
        place = nil
        sink?.ended(complete: false)
        sink = nil
        stream?.cut()
        shared.withLock { shared in
            // From here on its socket may belong to another connection.
            shared.streaming = nil
            return shared.feed
        }?.close()
    }

    /// Resumes a suspended connection without a reply. The server stops.
    func release() {
        let feed = shared.withLock { shared in
            if let suspended = shared.suspended { MHD_resume_connection(suspended.connection) }
            shared.suspended = nil
            return shared.feed
        }
        feed?.close()
    }

    // MARK: Head

    private func begin(
        _ connection: OpaquePointer, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>
    ) -> Bool {
        switch RequestHead.read(
            connection, method: method, version: version, target: target, number: serverState.nextRequestNumber())
        {
        case .failure(let refusal) where refusal.closes:
            // When the answer comes before the body, libmicrohttpd reads no more from this connection.
            var reply = serverState.service.refusal(refusal.status, refusal.text)
            reply.headers.append(("Connection", "close"))
            return queue(reply, connection)
        case .failure(let refusal):
            return refuse(
                WebDenial(serverState.service.refusal(refusal.status, refusal.text)), headers: [:], connection)
        case .success(var request):
            if serverState.isClosing { return false }
            // libmicrohttpd accepts lines of chunks that end in LF alone, where a proxy may see another end of the
            // body: so bytes after it are not read as a request.
            endsConnection = request.headers["transfer-encoding"] != nil
            let id = Connections.ID(connection)
            request.peer = serverState.connections.sender(of: id, forwardedFor: request.headers["x-forwarded-for"])
            let denial = serverState.service.denial(of: request)
            let isKnown = denial == nil && serverState.service.isKnown(request)
            guard
                case .reserved(let place) = serverState.connections.reservePlace(
                    id, for: request.peer, isAdmitted: isKnown)
            else {
                var reply = serverState.service.refusal(429, "too many requests from this address are in progress")
                reply.headers.append(("Retry-After", "10"))
                return refuse(WebDenial(reply), headers: request.headers, connection)
            }
            self.place = place
            if let denial { return refuse(denial, headers: request.headers, connection) }
            serverState.connections.recordAccepted(id, isKnown: isKnown)
            self.isKnown = isKnown
            return serve(request, connection)
        }
    }

    /// Starts receiving the body of an accepted request.
    private func serve(_ request: WebRequest, _ connection: OpaquePointer) -> Bool {
        switch serverState.service.plan(request) {
        case .refuse(let reply): return refuse(WebDenial(reply), headers: request.headers, connection)
        case .collect(let limit):
            self.limit = limit
            if let length = request.headers["content-length"].flatMap({ Int($0) }), length > limit {
                return refuse(WebDenial(tooLarge), headers: request.headers, connection)
            }
        case .sink(let sink):
            self.sink = sink
            isBodyInSink = true
        case .stream(let timeout):
            let stream = BodyStream { [weak self] in self?.resumeReading() }
            self.stream = stream
            let streaming = Suspended(connection: connection)
            shared.withLock { $0.streaming = streaming }
            sluice_mhd_set_timeout(connection, timeout)
            _ = serverState.start { self.answer(await self.serverState.reply(to: request, body: .stream(stream))) }
        }
        self.request = request
        phase = .receiving
        return true
    }

    /// Answers without examining the body. A client that waits for an invitation gets the reply at once. A short body
    /// is discarded, so that the connection stays; during a long one the reply is sent in the middle.
    private func refuse(_ denial: WebDenial, headers: [String: String], _ connection: OpaquePointer) -> Bool {
        if headers["expect"] != nil { return send(denial, connection) }
        phase = .refusing(denial, left: swallowed)
        return true
    }

    private func discardBody(
        before denial: WebDenial, left: Int, _ connection: OpaquePointer, _ size: UnsafeMutablePointer<Int>
    ) -> Bool {
        if size.pointee == 0 { return send(denial, connection) }
        if size.pointee > left {
            if denial.delay > .zero { return hold(denial, early: true, connection) }
            return cutShort(with: denial.reply, connection, size)
        }
        phase = .refusing(denial, left: left - size.pointee)
        size.pointee = 0
        return true
    }

    private func send(_ denial: WebDenial, _ connection: OpaquePointer) -> Bool {
        denial.delay > .zero ? hold(denial, early: false, connection) : queue(denial.reply, connection)
    }

    private func hold(_ denial: WebDenial, early: Bool, _ connection: OpaquePointer) -> Bool {
        suspend(connection, early: early) {
            // Ends early when the server stops.
            try? await Alarms.shared.sleep(for: denial.delay)
            return denial.reply
        }
    }

    /// Bytes of a refused body that are read to keep the connection.
    private let swallowed = 64 << 10

    private var tooLarge: WebReply { serverState.service.refusal(413, "the body is longer than \(limit) bytes") }

    // MARK: Body

    private func receiveBody(
        _ piece: UnsafeRawBufferPointer, _ connection: OpaquePointer, _ size: UnsafeMutablePointer<Int>
    ) -> Bool {
        if let sink {
            if sink.receive(piece) {
                size.pointee = 0
                return true
            }
            self.sink = nil
            // The bytes stay unread, so that libmicrohttpd calls again as soon as there is a reply.
            return startReply(connection, early: true)
        }
        guard collected.count + piece.count <= limit else {
            collected = []
            return discardBody(before: WebDenial(tooLarge), left: swallowed, connection, size)
        }
        collected += piece
        size.pointee = 0
        return true
    }

    /// Bytes without space stay unread, and libmicrohttpd calls again with them.
    private func append(
        _ piece: UnsafeRawBufferPointer, into stream: BodyStream, _ connection: OpaquePointer,
        _ size: UnsafeMutablePointer<Int>
    ) -> Bool {
        if serverState.isClosing { return false }
        let suspended = Suspended(connection: connection)
        let count = size.pointee
        // With the lock held, so that neither a reply nor free space in the meantime is missed.
        let (reply, left, isCutShort) = shared.withLock { shared -> (WebReply?, Int, Bool) in
            if let reply = shared.reply { return (reply, count, shared.isCutShort) }
            if stream.add(piece) { return (nil, 0, false) }
            MHD_suspend_connection(suspended.connection)
            shared.suspended = suspended
            return (nil, count, false)
        }
        if isCutShort { return discardBody(size) }
        if let reply, serverState.isEnciphered {
            // At the end of the body, since the reply cannot be sent earlier.
            phase = .refusing(WebDenial(reply), left: .max)
            size.pointee = 0
            return true
        }
        if let reply { return cutShort(with: reply, connection, size) }
        size.pointee = left
        if left > 0, serverState.isClosing { release() }
        return true
    }

    private func end(_ stream: BodyStream, _ connection: OpaquePointer) -> Bool {
        if serverState.isClosing { return false }
        phase = .awaitingReply(early: false)
        let suspended = Suspended(connection: connection)
        let (reply, isCutShort) = shared.withLock { shared -> (WebReply?, Bool) in
            if let reply = shared.reply { return (reply, shared.isCutShort) }
            MHD_suspend_connection(suspended.connection)
            (shared.suspended, shared.isComplete) = (suspended, true)
            return (nil, false)
        }
        // Answered already; the connection cannot be used any more.
        if isCutShort { return false }
        if let reply { return queue(reply, connection) }
        stream.finish()
        if serverState.isClosing { release() }
        return true
    }

    /// There is space for more of a streamed body. Called by the task that reads it.
    private func resumeReading() {
        shared.withLock { shared in
            guard !shared.isComplete, let suspended = shared.suspended else { return }
            shared.suspended = nil
            MHD_resume_connection(suspended.connection)
        }
    }

    private func startReply(_ connection: OpaquePointer, early: Bool) -> Bool {
        guard var request, !serverState.isClosing else { return false }
        request.clientHasLeft = { [weak self] in self?.clientHasLeft ?? true }
        sink?.ended(complete: true)
        sink = nil
        let body: ReceivedBody = isBodyInSink ? .sunk : .collected(collected)
        collected = []
        return suspend(connection, early: early) { [request] in await self.serverState.reply(to: request, body: body) }
    }

    /// While the connection is suspended, libmicrohttpd does not look at it.
    private var clientHasLeft: Bool {
        shared.withLock { shared in
            // Suspended until there is a reply, and its socket open as long: only the stop of the server comes before.
            shared.suspended.map { Sockets.isHungUp(sluice_mhd_socket($0.connection)) } ?? true
        }
    }

    /// Stops processing the connection until there is a reply; one of an unknown client may have to make room earlier.
    private func suspend(
        _ connection: OpaquePointer, early: Bool, until reply: @escaping @Sendable () async -> WebReply
    ) -> Bool {
        if serverState.isClosing { return false }
        phase = .awaitingReply(early: early)
        let suspended = Suspended(connection: connection)
        shared.withLock { shared in
            MHD_suspend_connection(suspended.connection)
            shared.suspended = suspended
        }
        _ = serverState.start { self.answer(await reply()) }
        if !isKnown { serverState.connections.recordHeld(.init(connection)) { [weak self] in self?.release() } }
        // Closing may have begun since the check, and passed this exchange before it was suspended.
        if serverState.isClosing { release() }
        return true
    }

    /// Called by the reply's task.
    private func answer(_ reply: WebReply) {
        shared.withLock { shared in
            shared.reply = reply
            guard let suspended = shared.suspended else {
                // Between two pieces of a streamed body, after which there may be no other; or the server stops, and no
                // reply is awaited. The socket stays this connection's until `requestEnded()` has taken this lock.
                if let streaming = shared.streaming, !serverState.isEnciphered {
                    shared.isCutShort = RawReply.send(reply, to: sluice_mhd_socket(streaming.connection))
                }
                return
            }
            shared.suspended = nil
            MHD_resume_connection(suspended.connection)
        }
    }

    // MARK: Reply

    private func queue(_ reply: WebReply, _ connection: OpaquePointer) -> Bool {
        phase = .answered
        let response: OpaquePointer?
        switch reply.body {
        case .none: response = sluice_mhd_response(nil, 0)
        case .bytes(let bytes): response = sluice_mhd_response(bytes, bytes.count)
        case .stream(let stream):
            let feed = StreamFeed(connection: connection)
            response = feed.response()
            shared.withLock { $0.feed = feed }
            if serverState.isClosing { feed.close() } else { feed.start(serverState, stream) }
        }
        guard let response else { return false }
        defer { MHD_destroy_response(response) }
        if endsConnection, MHD_add_response_header(response, "Connection", "close") != .YES { return false }
        for (name, value) in reply.headers where MHD_add_response_header(response, name, value) != .YES {
            // The name or value is not a valid header: sending the reply without it would change its meaning.
            return false
        }
        return MHD_queue_response(connection, UInt32(reply.status), response) == .YES
    }

    /// libmicrohttpd accepts no reply between the first and the last byte of a body, so it is written directly to the
    /// socket. The client is still sending, and closing now would reset the connection and discard the reply: so its
    /// bytes are read for a while (RFC 9112, section 9.6).
    private func cutShort(
        with reply: WebReply, _ connection: OpaquePointer, _ size: UnsafeMutablePointer<Int>
    ) -> Bool {
        guard !serverState.isEnciphered, RawReply.send(reply, to: sluice_mhd_socket(connection)) else { return false }
        return discardBody(size)
    }

    /// Discards the bytes after a reply that was sent in the middle of a body.
    private func discardBody(_ size: UnsafeMutablePointer<Int>) -> Bool {
        phase = .cutShort(left: 4 << 20)
        size.pointee = 0
        return true
    }
}
