package import API
package import Core
internal import Glibc
package import Linux
package import Transport

/// The client of ``ControlServer``: sends requests to a running daemon.
///
/// Every function throws ``Refusal`` when the daemon refuses, and ``ControlError`` when it does not answer.
package struct ControlClient: Sendable {
    package let socket: FilePath
    private let transport: any Transporting

    package init(socket: FilePath, transport: any Transporting) {
        self.socket = socket
        self.transport = transport
    }

    package func list(_ query: ListQuery) async throws -> UploadPage {
        let pairs = query.pairs.map { "\($0.0)=\(PercentCoding.encode($0.1.utf8))" }
        return try await get("uploads?" + pairs.joined(separator: "&"))
    }

    package func show(_ reference: String) async throws -> UploadDetail {
        try await get("uploads/" + PercentCoding.encode(reference.utf8))
    }

    package func why(_ reference: String) async throws -> WhyView {
        try await get("why/" + PercentCoding.encode(reference.utf8))
    }

    package func plan(_ query: PlanQuery) async throws -> PlanView {
        let pairs = query.pairs.map { "\($0.0)=\(PercentCoding.encode($0.1.utf8))" }
        return try await get("plan" + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&")))
    }

    package func failures() async throws -> FailuresView { try await get("failures") }
    package func routes() async throws -> RoutesView { try await get("routes") }

    package func status() async throws -> StatusView { try await get("status") }

    /// The text in the format of Prometheus.
    package func metrics() async throws -> [UInt8] {
        try await send(Request("GET", "http://sluice/metrics"))
    }

    package func usage(_ query: UsageQuery) async throws -> UsageView {
        try await get(
            "usage?" + query.pairs.map { "\($0.0)=\(PercentCoding.encode($0.1.utf8))" }.joined(separator: "&"))
    }

    /// - Parameter destination: `nil` for all.
    package func allowances(of destination: String?) async throws -> [AllowanceView] {
        if let destination { return [try await get("quota/" + PercentCoding.encode(destination.utf8))] }
        let reply: AllowancesReply = try await get("quota")
        return reply.destinations
    }

    /// A wrong configuration is an answer, not an error.
    package func reload() async throws -> ReloadView {
        try await send(Request("POST", url("reload")), as: ReloadView.self, also: 422)
    }

    package func add(_ request: AddRequest) async throws -> UploadsReply { try await post("uploads", request) }
    /// Hands over all bytes until the end of `bytes`.
    package func receive(_ request: ReceiveRequest, from bytes: ByteStream) async throws -> UploadsReply {
        let query = request.pairs.map { "\($0.0)=\(PercentCoding.encode($0.1.utf8))" }.joined(separator: "&")
        let headers =
            request.headers.map { (ReceiveRequest.headerPrefix + $0.key, $0.value) }
            + (request.uploadURL.map { [(ReceiveRequest.uploadURLHeader, $0)] } ?? [])
        return try await send(
            Request("POST", url("bytes?" + query), headers: headers, body: .stream(bytes)), as: UploadsReply.self,
            within: .seconds(3600))
    }
    package func pause(_ selection: Selection) async throws -> UploadsReply { try await post("pause", selection) }
    package func resume(_ selection: Selection) async throws -> UploadsReply { try await post("resume", selection) }
    package func cancel(_ selection: Selection) async throws -> UploadsReply { try await post("cancel", selection) }
    package func retry(_ selection: Selection) async throws -> UploadsReply { try await post("retry", selection) }
    package func prioritize(_ selection: Selection) async throws -> UploadsReply {
        try await post("priority", selection)
    }
    package func remove(_ selection: Selection) async throws -> UploadsReply { try await post("remove", selection) }
    package func flush(_ request: FlushRequest) async throws -> UploadsReply { try await post("flush", request) }
    package func rescan(_ request: RescanRequest) async throws -> RescanReply { try await post("rescan", request) }
    package func accept(folder name: String) async throws -> RescanReply {
        try await send(
            Request("POST", url("folders/\(PercentCoding.encode(name.utf8))/accept")), as: RescanReply.self,
            within: .seconds(3600))
    }
    package func check(_ request: CheckRequest) async throws -> CheckReport { try await post("check", request) }
    package func tryHook(_ name: String) async throws -> HookTestResult {
        // A program may take as long as its time-out, which is at most 10 minutes.
        try await send(
            Request("POST", url("hooks/\(PercentCoding.encode(name.utf8))/test")), as: HookTestResult.self,
            within: .seconds(660))
    }
    package func remote(_ name: String, _ request: RemoteRequest) async throws -> RemoteReply {
        try await post("remote/\(PercentCoding.encode(name.utf8))", request)
    }
    package func orphans(_ name: String, _ request: OrphansRequest) async throws -> OrphansReply {
        try await post("orphans/\(PercentCoding.encode(name.utf8))", request)
    }
    package func trace(_ name: String, _ request: TraceRequest) async throws -> TraceReply {
        try await post("trace/\(PercentCoding.encode(name.utf8))", request)
    }
    package func webLink(_ request: WebLinkRequest) async throws -> WebLinkView {
        try await post("web-link", request)
    }
    package func allow(_ request: AllowRequest) async throws -> OverridesReply { try await post("allow", request) }
    package func limit(_ request: LimitRequest) async throws -> OverridesReply { try await post("limit", request) }

    package func setUsage(_ request: UsageChangeRequest) async throws -> UsageChangeView {
        try await post("usage", request)
    }

    /// Events after `since`, or from now on, until the caller stops reading or the daemon stops
    /// (``ControlError/ended``). When the daemon found this reader too slow, the request is repeated from the last
    /// event.
    package func events(since: Int64?) -> AsyncThrowingStream<EventView, any Error> {
        // Bounded: a reader that stands still makes the daemon hold back, then end the stream, and no event is lost.
        let (stream, out) = AsyncThrowingStream.makeStream(
            of: EventView.self, bufferingPolicy: .bufferingOldest(10_000))
        let task = Task {
            var last = since
            do {
                while try await readEvents(&last, out) { try await Alarms.shared.sleep(for: .milliseconds(200)) }
                throw ControlError.ended(last: last)
            } catch {
                out.finish(throwing: error)
            }
        }
        out.onTermination = { _ in task.cancel() }
        return stream
    }

    /// The events of one connection.
    ///
    /// - Returns: Whether to repeat the request from `last`.
    private func readEvents(
        _ last: inout Int64?, _ out: AsyncThrowingStream<EventView, any Error>.Continuation
    ) async throws -> Bool {
        let reading = EventReading(last: last, out)
        var request = Request("GET", url("events" + (last.map { "?since=\($0)" } ?? "")), unixSocket: socket)
        // The daemon sends a comment every 15 s, so a longer silence is a dead connection.
        request.limits = Limits(connect: .seconds(5), sendingStall: .seconds(10), replyWait: .seconds(60))
        request.onBody = { reading.receive($0) }
        do {
            let response = try await transport.send(request)
            guard response.status == 200 else { throw failure(response.status, reading.head) }
        } catch let error as TransportError {
            // A daemon that was killed, or stopped in haste, leaves the stream without its end.
            if error.kind == .reset, reading.hasBegun { throw ControlError.ended(last: reading.last) }
            guard error.kind == .cancelled, !Task.isCancelled else { throw explain(error) }
        }
        if let fault = reading.fault { throw fault }
        last = reading.last
        return reading.wasTooSlow
    }

    private func get<Reply: Decodable>(_ path: String) async throws -> Reply {
        try await send(Request("GET", url(path)), as: Reply.self)
    }

    private func post<Reply: Decodable>(_ path: String, _ body: some Encodable) async throws -> Reply {
        let headers = [("Content-Type", "application/json")]
        let request = Request("POST", url(path), headers: headers, body: .bytes(try JSON.bytes(body)))
        // Ending a million uploads takes minutes. A daemon that stops closes the connection, so the wait ends.
        return try await send(request, as: Reply.self, within: .seconds(3600))
    }

    private func send<Reply: Decodable>(
        _ request: Request, as type: Reply.Type, also: Int? = nil, within time: Duration = .seconds(60)
    ) async throws -> Reply {
        let body = try await send(request, also: also, within: time)
        do { return try JSON.value(type, from: body) } catch {
            throw ControlError.protocolFault("its answer to \(request.method) is not what this version expects")
        }
    }

    private func send(
        _ request: Request, also: Int? = nil, within time: Duration = .seconds(60)
    ) async throws -> [UInt8] {
        var request = request
        request.unixSocket = socket
        request.limits = Limits(
            connect: .seconds(5), sendingStall: .seconds(30), replyWait: time, whole: time * 5)
        if case .stream = request.body {
            // As long as its bytes need. If the disk at the other end is slow, it accepts none for a while.
            (request.limits.whole, request.limits.sendingStall) = (nil, .seconds(600))
        }
        request.answerLimit = 64 << 20
        let response: Response
        do { response = try await transport.send(request) } catch {
            // The daemon disconnected in the middle.
            if case .stream = request.body, error.kind == .reset { throw ControlError.ended(last: nil) }
            throw explain(error)
        }
        guard (200..<300).contains(response.status) || response.status == also else {
            throw failure(response.status, response.body)
        }
        return response.body
    }

    private func url(_ path: String) -> String { "http://sluice/v1/" + path }

    private func failure(_ status: Int, _ body: [UInt8]) -> any Error {
        // If the body is not in our form, the status is the answer.
        guard let reply = try? JSON.value(ErrorReply.self, from: body) else {
            return ControlError.protocolFault("HTTP status \(status)")
        }
        if let code = Refusal.Code(rawValue: reply.error.code) {
            return Refusal(code, printable(reply.error.message), id: reply.error.id)
        }
        return ControlError.protocolFault(printable(reply.error.message))
    }

    /// libcurl only reports that it could not connect; the socket itself shows why.
    private func explain(_ error: TransportError) -> any Error {
        switch error.kind {
        case .cancelled: return CancellationError()
        // The bytes to be sent are at fault, and not the daemon.
        case .sourceFile: return error
        case .connect: break
        default: return ControlError.protocolFault(error.detail)
        }
        do {
            guard try FileStatus.ifPresent(at: socket) != nil else {
                return ControlError.notRunning(socket: socket, reason: "there is no such socket")
            }
        } catch {
            return error.isDenied ? denied : ControlError.notRunning(socket: socket, reason: error.reason)
        }
        guard socket.withCString({ access($0, R_OK | W_OK) }) == 0 else { return denied }
        return ControlError.notRunning(socket: socket, reason: "the socket exists, but no daemon listens on it")
    }

    /// The group of the socket, or of the first directory on the way that denies access.
    private var denied: ControlError {
        let group =
            UserDatabase.groupToJoin(for: socket, writes: true)
            ?? UserDatabase.groupToJoin(for: socket.parent, writes: false)
        return .denied(socket: socket, group: group)
    }
}
