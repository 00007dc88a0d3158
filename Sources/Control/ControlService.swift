internal import API
internal import Core
internal import Linux
internal import WebServer

/// Answers requests by calling the daemon. Contains HTTP and no logic of uploads.
final class ControlService: WebService {
    private let operations: any Operations
    private let authorizer: any Authorizer
    /// The web page; `nil` where it is not served.
    private let page: PageService?
    /// Makes links to the page; `nil` where it is not served, and for a client that is not on this machine.
    private let links: PageLinks?
    /// The most event streams of one client.
    private let mostStreams: Int
    private let heartbeat: Duration
    private let log: Log
    private let writer = EventWriter()
    let subscribers: Subscribers

    /// The largest sensible body: 1000 ids, or a context.
    static let bodyLimit = 256 << 10
    /// A client that is not known may only sign in.
    static let unknownBodyLimit = 4 << 10

    init(
        _ operations: any Operations, authorizer: any Authorizer, page: PageService? = nil, links: PageLinks? = nil,
        subscribers: Subscribers = Subscribers(limit: 1024), mostStreams: Int = .max,
        heartbeat: Duration = .seconds(15), log: Log = .silent
    ) {
        self.log = log
        self.subscribers = subscribers
        self.operations = operations
        self.authorizer = authorizer
        self.page = page
        self.links = links
        self.mostStreams = mostStreams
        self.heartbeat = heartbeat
    }

    func denial(of request: WebRequest) -> WebDenial? { authorizer.denial(of: request) }
    func isKnown(_ request: WebRequest) -> Bool { authorizer.isKnown(request) }

    func plan(_ request: WebRequest) -> BodyPlan {
        guard case .receive? = try? APIRoute(method: request.method, path: request.path) else {
            return .collect(limit: authorizer.isKnown(request) ? Self.bodyLimit : Self.unknownBodyLimit)
        }
        // The end of a process on the socket is noticed; another machine may disappear without a sign.
        return .stream(timeout: request.peer.user == nil ? 600 : 0)
    }

    func refusal(_ status: Int, _ text: String) -> WebReply {
        WebReply(json: ErrorReply(code: Refusal.Code.badRequest.rawValue, message: text), status: status)
    }

    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply {
        if let reply = page?.asset(for: request) { return reply }
        if let denial = await authorizer.denialByNow(of: request) {
            var reply = denial.reply
            reply.delay = denial.delay
            return reply
        }
        do {
            let route = try APIRoute(method: request.method, path: request.path)
            if route.changes, let reason = await authorizer.changeDenial(of: request) {
                throw Refusal(.forbidden, reason)
            }
            var content: [UInt8] = []
            if case .collected(let bytes) = body { content = bytes }
            let reply =
                if case .stream(let stream) = body { try await receive(request, stream) } else {
                    try await answer(route, request, content)
                }
            if reply.status < 400, let saying = AuditEntry(route, request, body: content) {
                let name = await authorizer.name(of: request)
                log.notice("a person gave a command", ["verb": saying.verb, "what": saying.what, "by": name])
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
        case .thumbnail(let reference): return try await thumbnail(of: reference, request)
        case .allow:
            let allowed = try JSONRequest.read(AllowRequest.self, body)
            return WebReply(json: try await operations.allow(allowed, by: await authorizer.name(of: request)))
        case .setUsage:
            let change = try JSONRequest.read(UsageChangeRequest.self, body)
            return WebReply(json: try await operations.setUsage(change, by: await authorizer.name(of: request)))
        case .limit:
            let limit = try JSONRequest.read(LimitRequest.self, body)
            return WebReply(json: try await operations.limit(limit, by: await authorizer.name(of: request)))
        case .plan: return WebReply(json: try await operations.plan(try PlanQuery(request.query)))
        case .failures: return WebReply(json: try await operations.failures())
        case .routes: return WebReply(json: try await operations.routes())
        case .status: return WebReply(json: try await operations.status())
        case .metrics:
            let text = MetricsText.bytes(try await operations.metrics())
            let headers = [("Content-Type", MetricsText.contentType)] + WebReply.privateHeaders
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
            let request = body.isEmpty ? RescanRequest() : try JSONRequest.read(RescanRequest.self, body)
            let reply = try await operations.rescan(request)
            return WebReply(json: reply, status: reply.done ? 200 : 202)
        case .acceptFolder(let name): return WebReply(json: try await operations.accept(folder: name))
        case .check:
            let request = body.isEmpty ? CheckRequest() : try JSONRequest.read(CheckRequest.self, body)
            return WebReply(json: try await operations.check(request))
        case .remote(let name):
            let request = body.isEmpty ? RemoteRequest() : try JSONRequest.read(RemoteRequest.self, body)
            return WebReply(json: try await operations.remote(name, request))
        case .orphans(let name):
            let request = body.isEmpty ? OrphansRequest() : try JSONRequest.read(OrphansRequest.self, body)
            return WebReply(json: try await operations.orphans(name, request))
        case .trace(let name):
            let request = body.isEmpty ? TraceRequest() : try JSONRequest.read(TraceRequest.self, body)
            return WebReply(json: try await operations.trace(name, request))
        case .tryHook(let name): return WebReply(json: try await operations.tryHook(name))
        case .add:
            return WebReply(json: try await operations.add(try JSONRequest.read(AddRequest.self, body)), status: 202)
        // Only for a request without a readable body.
        case .receive: throw Refusal(.badRequest, "the body must be the bytes of the file")
        case .act(let act):
            let selection = body.isEmpty ? Selection() : try JSONRequest.read(Selection.self, body)
            return WebReply(json: try await perform(act, selection), status: 202)
        case .actOn(let reference, let act):
            var selection = body.isEmpty ? Selection() : try JSONRequest.read(Selection.self, body)
            selection.ids = [reference]
            guard let upload = try await perform(act, selection).uploads.first else {
                throw Refusal(.notFound, "no upload `\(printable(reference))`", id: reference)
            }
            return WebReply(json: upload, status: 202)
        case .remove(let reference):
            _ = try await operations.remove(Selection(ids: [reference]))
            return WebReply(status: 204, headers: WebReply.privateHeaders, body: .none)
        case .flush:
            let request = body.isEmpty ? FlushRequest() : try JSONRequest.read(FlushRequest.self, body)
            return WebReply(json: try await operations.flush(request))
        case .events: return try await events(request)
        case .session: return try requirePage().session(request)
        case .signIn: return try await requirePage().signIn(request, body)
        case .signOut: return try await requirePage().signOut(request)
        case .webLink:
            guard let links else { throw noLinks(request) }
            let wanted = body.isEmpty ? WebLinkRequest() : try JSONRequest.read(WebLinkRequest.self, body)
            return WebReply(json: links.make(wanted, by: await authorizer.name(of: request)))
        }
    }

    /// Why no link to the page is made.
    private func noLinks(_ request: WebRequest) -> Refusal {
        // With its token, a client could otherwise sign in under another name.
        if request.peer.user == nil {
            return Refusal(
                .forbidden,
                "a link is given only over the daemon's socket, to users of its machine: `sluice web`")
        }
        return Refusal(
            .conflict, "no web page is served: set `control.listen` and `control.tokens`, and do not set `web: false`")
    }

    /// - Throws: For a client that needs no sign-in.
    private func requirePage() throws(Refusal) -> PageService {
        guard let page else { throw Refusal(.notFound, "no web page is served here") }
        return page
    }

    private func thumbnail(of reference: String, _ request: WebRequest) async throws -> WebReply {
        do {
            return .picture(
                try await operations.thumbnail(of: reference, hasLeft: request.clientHasLeft), for: request)
        } catch let refusal as Refusal where refusal.code == .unavailable {
            var reply = WebReply(json: ErrorReply(refusal), status: refusal.code.status)
            reply.headers.append(("Retry-After", "30"))
            return reply
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

    private func perform(_ act: APIRoute.Act, _ selection: Selection) async throws -> UploadsReply {
        switch act {
        case .pause: try await operations.pause(selection)
        case .resume: try await operations.resume(selection)
        case .cancel: try await operations.cancel(selection)
        case .retry: try await operations.retry(selection)
        case .remove: try await operations.remove(selection)
        case .priority: try await operations.prioritize(selection)
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
        // nginx would keep events back until its buffer is full.
        let headers = [("Content-Type", "text/event-stream"), ("X-Accel-Buffering", "no")] + WebReply.privateHeaders
        guard request.method != "HEAD" else { return WebReply(status: 200, headers: headers, body: .none) }
        let feed = EventSubscriber(
            try await operations.events(since: since), filter: filter, heartbeat: heartbeat, writer: writer,
            isAllowed: { [authorizer] in authorizer.denial(of: request) == nil })
        if let limit = subscribers.enter(feed, of: authorizer.key(of: request), most: mostStreams) {
            var reply = WebReply(
                json: ErrorReply(
                    code: Refusal.Code.unavailable.rawValue,
                    message: limit == subscribers.limit
                        ? "\(limit) clients follow the events already, which is the maximum; ask again when one has "
                            + "disconnected"
                        : "this client follows the events \(limit) times already, which is the maximum; ask again when "
                            + "it has closed a connection"), status: 503)
            // The most that it takes to notice that a reader has left.
            reply.headers.append(("Retry-After", String(max(1, heartbeat.components.seconds))))
            return reply
        }
        return WebReply(status: 200, headers: headers, body: .stream(feed.stream))
    }
}

extension WebReply {
    /// No cache keeps an answer of the API, no browser takes it for another type, and none gives it to a page of another
    /// origin (Fetch, sections 3.6 and 3.7).
    static let privateHeaders = [
        ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]

    init(json value: some Encodable, status: Int = 200) {
        self.init(status: status) { try JSON.bytes(value) }
    }

    /// - Parameter json: Makes the answer.
    fileprivate init(status: Int = 200, json: () throws -> [UInt8]) {
        let headers = [("Content-Type", "application/json")] + Self.privateHeaders
        do {
            self.init(status: status, headers: headers, body: .bytes(try json() + [UInt8(ascii: "\n")]))
        } catch {
            // Only a number that is not finite leads here, which is a bug of ours.
            let message = #"{"error":{"code":"internal","message":"the answer cannot be written as JSON"}}"#
            self.init(status: 500, headers: headers, body: .bytes(Array(message.utf8)))
        }
    }
}
