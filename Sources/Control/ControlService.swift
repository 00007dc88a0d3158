internal import API
internal import Core
internal import Linux
internal import WebServer

/// Answers requests by calling the daemon. Contains HTTP and no logic of uploads.
final class ControlService: WebService {
    private let operations: any Operations
    private let authorizer: any Authorizer
    private let heartbeat: Duration
    private let log: Log
    private let writer = EventWriter()
    let subscribers: Subscribers

    /// The largest sensible body: 1000 ids, or a context.
    static let bodyLimit = 256 << 10

    init(
        _ operations: any Operations, authorizer: any Authorizer, subscribers: Subscribers = Subscribers(limit: 1024),
        heartbeat: Duration = .seconds(15), log: Log = .silent
    ) {
        self.log = log
        self.subscribers = subscribers
        self.operations = operations
        self.authorizer = authorizer
        self.heartbeat = heartbeat
    }

    func denial(of request: WebRequest) -> WebDenial? { authorizer.denial(of: request) }

    func plan(_ request: WebRequest) -> BodyPlan {
        guard case .receive? = try? APIRoute(method: request.method, path: request.path) else {
            return .collect(limit: Self.bodyLimit)
        }
        // The end of a process on the socket is noticed; another machine may disappear without a sign.
        return .stream(timeout: request.peer.user == nil ? 600 : 0)
    }

    func refusal(_ status: Int, _ text: String) -> WebReply {
        WebReply(json: ErrorReply(code: Refusal.Code.badRequest.rawValue, message: text), status: status)
    }

    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply {
        do {
            let route = try APIRoute(method: request.method, path: request.path)
            if route.changes, !(await authorizer.mayChange(request.peer)) {
                throw Refusal(
                    .forbidden, "only root and members of the daemon's group may change anything; you may only read")
            }
            var content: [UInt8] = []
            if case .collected(let bytes) = body { content = bytes }
            let reply =
                if case .stream(let stream) = body { try await receive(request, stream) } else {
                    try await answer(route, request, content)
                }
            if let saying = AuditEntry(route, request, body: content) {
                log.notice(
                    "a person gave a command",
                    ["verb": saying.verb, "what": saying.what, "by": Self.name(of: request.peer)])
            }
            return reply
        } catch let refusal as Refusal {
            return WebReply(json: ErrorReply(refusal), status: refusal.code.status)
        } catch APIRoute.RoutingError.noSuchPath {
            return WebReply(json: ErrorReply(code: "not_found", message: "no such path: \(request.path)"), status: 404)
        } catch APIRoute.RoutingError.method(let allowed) {
            let message = "\(request.path) does not take \(request.method); it takes \(allowed)"
            var reply = WebReply(json: ErrorReply(code: "bad_request", message: message), status: 405)
            reply.headers.append(("Allow", allowed))
            return reply
        } catch {
            return WebReply(json: ErrorReply(code: "internal", message: redacted("\(error)")), status: 500)
        }
    }

    private func answer(_ route: APIRoute, _ request: WebRequest, _ body: [UInt8]) async throws -> WebReply {
        switch route {
        case .list:
            let page = try await operations.list(try ListQuery(request.query))
            return WebReply { try JSON.bytes(page) }
        case .show(let reference): return WebReply(json: try await operations.show(reference))
        case .why(let reference): return WebReply(json: try await operations.why(reference))
        case .allow:
            let allowed = try Self.read(AllowRequest.self, body)
            return WebReply(json: try await operations.allow(allowed, by: Self.name(of: request.peer)))
        case .setUsage:
            let change = try Self.read(UsageChangeRequest.self, body)
            return WebReply(json: try await operations.setUsage(change, by: Self.name(of: request.peer)))
        case .limit:
            let limit = try Self.read(LimitRequest.self, body)
            return WebReply(json: try await operations.limit(limit, by: Self.name(of: request.peer)))
        case .plan: return WebReply(json: try await operations.plan(try PlanQuery(request.query)))
        case .status: return WebReply(json: try await operations.status())
        case .metrics:
            let text = MetricsText.bytes(try await operations.metrics())
            let headers = [("Content-Type", MetricsText.contentType), ("Cache-Control", "no-store")]
            return WebReply(status: 200, headers: headers, body: .bytes(text))
        case .usage: return WebReply(json: try await operations.usage(try UsageQuery(request.query)))
        case .quota(let destination?):
            guard let view = try await operations.allowances(of: destination).first else {
                throw Refusal(.notFound, "no destination is called `\(printable(destination))`")
            }
            return WebReply(json: view)
        case .quota(nil):
            return WebReply(json: AllowancesReply(destinations: try await operations.allowances(of: nil)))
        case .reload:
            let view = try await operations.reload()
            // 422: understood, and not possible as it is (RFC 9110, section 15.5.21).
            return WebReply(json: view, status: view.applied ? 200 : 422)
        case .rescan:
            let request = body.isEmpty ? RescanRequest() : try Self.read(RescanRequest.self, body)
            let reply = try await operations.rescan(request)
            return WebReply(json: reply, status: reply.done ? 200 : 202)
        case .acceptFolder(let name): return WebReply(json: try await operations.accept(folder: name))
        case .check:
            let request = body.isEmpty ? CheckRequest() : try Self.read(CheckRequest.self, body)
            return WebReply(json: try await operations.check(request))
        case .remote(let name):
            let request = body.isEmpty ? RemoteRequest() : try Self.read(RemoteRequest.self, body)
            return WebReply(json: try await operations.remote(name, request))
        case .orphans(let name):
            let request = body.isEmpty ? OrphansRequest() : try Self.read(OrphansRequest.self, body)
            return WebReply(json: try await operations.orphans(name, request))
        case .tryHook(let name): return WebReply(json: try await operations.tryHook(name))
        case .add:
            return WebReply(json: try await operations.add(try Self.read(AddRequest.self, body)), status: 202)
        // Only for a request without a readable body.
        case .receive: throw Refusal(.badRequest, "the body must be the bytes of the file")
        case .act(let act):
            let selection = body.isEmpty ? Selection() : try Self.read(Selection.self, body)
            return WebReply(json: try await perform(act, selection), status: 202)
        case .actOn(let reference, let act):
            var selection = body.isEmpty ? Selection() : try Self.read(Selection.self, body)
            selection.ids = [reference]
            guard let upload = try await perform(act, selection).uploads.first else {
                throw Refusal(.notFound, "no upload `\(printable(reference))`", id: reference)
            }
            return WebReply(json: upload, status: 202)
        case .remove(let reference):
            _ = try await operations.remove(Selection(ids: [reference]))
            return WebReply(status: 204, headers: [("Cache-Control", "no-store")], body: .none)
        case .flush:
            let request = body.isEmpty ? FlushRequest() : try Self.read(FlushRequest.self, body)
            return WebReply(json: try await operations.flush(request))
        case .events: return try await events(request)
        }
    }

    private func receive(_ request: WebRequest, _ stream: BodyStream) async throws -> WebReply {
        do {
            return WebReply(
                json: try await operations.receive(try ReceiveRequest(request)) { try await stream.next() }, status: 202
            )
        } catch is BodyStream.InterruptedError {
            // The client is no longer there to read it.
            throw Refusal(.badRequest, "the bytes ended too early: nothing was added")
        }
    }

    /// The name of the client for people.
    private static func name(of peer: WebPeer) -> String {
        peer.user.map { UserDatabase.name(of: $0) ?? "user \($0)" } ?? peer.address ?? "unknown"
    }

    private func perform(_ act: APIRoute.Act, _ selection: Selection) async throws -> UploadsReply {
        switch act {
        case .pause: try await operations.pause(selection)
        case .resume: try await operations.resume(selection)
        case .cancel: try await operations.cancel(selection)
        case .retry: try await operations.retry(selection)
        case .remove: try await operations.remove(selection)
        }
    }

    private func events(_ request: WebRequest) async throws -> WebReply {
        // A browser that reconnects repeats its first URL and adds the header, so the header is newer.
        var since: Int64?
        if let written = request.headers["last-event-id"] ?? request.query["since"] {
            guard let number = Int64(written), number >= 0 else {
                throw Refusal(.badRequest, "`\(printable(written))` is not the number of an event")
            }
            since = number
        }
        let filter = try EventSubscriber.Filter(request.query)
        let headers = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")]
        guard request.method != "HEAD" else { return WebReply(status: 200, headers: headers, body: .none) }
        let feed = EventSubscriber(
            try await operations.events(since: since), filter: filter, heartbeat: heartbeat,
            writer: writer)
        guard subscribers.enter(feed) else {
            var reply = WebReply(
                json: ErrorReply(
                    code: Refusal.Code.unavailable.rawValue,
                    message: "\(subscribers.limit) clients follow the events already, which is the maximum; ask "
                        + "again when one has disconnected"), status: 503)
            // The most that it takes to notice that a reader has left.
            reply.headers.append(("Retry-After", String(max(1, heartbeat.components.seconds))))
            return reply
        }
        return WebReply(status: 200, headers: headers, body: .stream(feed.stream))
    }

    private static func read<T: Decodable>(_ type: T.Type, _ body: [UInt8]) throws -> T {
        do { return try JSON.value(type, from: body) } catch let error as DecodingError {
            throw Refusal(.badRequest, "the body is not valid for this path: \(Self.explain(error))")
        }
    }

    private static func explain(_ error: DecodingError) -> String {
        func place(_ context: DecodingError.Context) -> String {
            context.codingPath.map(\.stringValue).joined(separator: ".")
        }
        switch error {
        case .keyNotFound(let key, _): return "`\(printable(key.stringValue))` is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            let place = place(context)
            return place.isEmpty ? "it is not a JSON object" : "`\(printable(place))` has the wrong type"
        case .dataCorrupted(let context):
            let place = place(context)
            return place.isEmpty ? "it is not JSON" : "`\(printable(place))` has an invalid value"
        @unknown default: return "it cannot be read"
        }
    }
}

extension WebReply {
    init(json value: some Encodable, status: Int = 200) {
        self.init(status: status) { try JSON.bytes(value) }
    }

    /// - Parameter json: Makes the answer.
    fileprivate init(status: Int = 200, json: () throws -> [UInt8]) {
        let headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
        do {
            self.init(status: status, headers: headers, body: .bytes(try json() + [UInt8(ascii: "\n")]))
        } catch {
            // Only a number that is not finite leads here, which is a bug of ours.
            let message = #"{"error":{"code":"internal","message":"the answer cannot be written as JSON"}}"#
            self.init(status: 500, headers: headers, body: .bytes(Array(message.utf8)))
        }
    }
}
