internal import Core
internal import Synchronization
internal import Transport

/// Requests to the API's own host: with the token, the version, and one ban that all of them respect.
struct VimeoAPI: Sendable {
    /// The version of the API. A request without one gets the application's own default, which turns a correct request
    /// into error 3116.
    enum Version: String, Sendable {
        case current = "3.4"
        /// The last one that has the four-step flow: from 3.4 on a top-level `type` is refused with 3116.
        case ofTickets = "3.3"
    }

    let client: AuthorizedClient
    let base: String
    private let limits: Limits
    /// The time until which the service accepts no requests.
    private let backoff = VimeoBackoff()
    private let clock = ServiceClock()
    let creations = CreationBackoff()
    /// Videos of uploads that are in progress.
    let known: VimeoVideos

    /// `asking` adds the token.
    init(_ client: AuthorizedClient, base: String, limits: Limits) {
        self.client = client
        self.base = base
        self.limits = limits
        known = .at(base)
    }

    /// The time by the clock of the service, as far as an answer contained it; ms since 1970.
    var now: Int64 { client.clocks.wall().advanced(by: clock.ahead).milliseconds }

    /// How far that clock is ahead of this machine's, in ms; 0 until an answer contained it.
    var ahead: Int64 { clock.ahead.inMilliseconds }
    var isTimeKnown: Bool { clock.isKnown }

    /// - Parameters:
    ///   - path: The path below the base, as the service names it: `/videos/123`.
    ///   - what: A description of the request, for error messages.
    ///   - allowing: Statuses besides 2xx that the caller handles.
    ///   - version: Version of the API; the flow of tickets has one of its own.
    /// - Throws: ``UploadError``; `CancellationError`.
    func call(
        _ method: String, _ path: String, _ body: JSONValue? = nil, _ what: String, _ context: RequestContext,
        allowing: Set<Int> = [], version: Version = .current
    ) async throws -> (response: Response, json: JSONValue?) {
        if let left = backoff.left(client.clocks.monotonic()) {
            throw UploadError(
                client.failure(
                    .transient, .rateLimit,
                    "the API asked to be left alone for \(Int(left.inSeconds.rounded(.up))) s more",
                    http: 429, retryable: true), remedy: .rateLimit(after: left))
        }
        var response = try await once(method, path, body, version, context)
        // The service has done nothing: the token has ended, and may have been renewed meanwhile. 8002 has another
        // meaning.
        if response.status == 401, body != nil, !VimeoVerdict(response, wait: { _ in .zero }).numbers.contains(8002) {
            response = try await once(method, path, body, version, context)
        }
        if (200..<300).contains(response.status) {
            // Callers of requests that change something do not always read the answer; callers of questions do.
            if method != "GET", response.isWebPage { throw client.answeredByPage(what, response) }
            backoff.ended()
            return (response, JSONValue.read(response.body))
        }
        if allowing.contains(response.status) { return (response, JSONValue.read(response.body)) }
        throw refusal(response, what)
    }

    private func once(
        _ method: String, _ path: String, _ body: JSONValue?, _ version: Version, _ context: RequestContext
    ) async throws -> Response {
        var headers = [
            ("Accept", "application/vnd.vimeo.*+json;version=\(version.rawValue)"), Request.acceptsGzip,
        ]
        var content = Request.Body.none
        if let body {
            headers.append(("Content-Type", "application/json"))
            content = .bytes(try body.bytes)
        }
        do {
            let response = try await client.send(
                Request(
                    method, base + (path.hasPrefix("/") ? "" : "/") + path, headers: headers, body: content,
                    limits: limits), context
            ).response
            if let date = response.headers["Date"].flatMap({ httpDate($0) }) {
                clock.ahead = .milliseconds(date.milliseconds - client.clocks.wall().milliseconds)
            }
            return response
        } catch let error as AuthorizedClient.NoAnswerError { throw error.error }
    }

    func verdict(_ response: Response) -> VimeoVerdict {
        VimeoVerdict(response) { backoff.begin(rateLimit($0), client.clocks.monotonic()) }
    }

    func refusal(_ response: Response, _ what: String) -> UploadError {
        let verdict = verdict(response)
        var words = client.withoutSecrets(verdict.words)
        if verdict.isOfFlow { words += "; set `flow: tus`, which is the one that the service offers" }
        return client.refused(what, response, verdict.remedy, words: words, code: verdict.code)
    }

    /// Whether an unsuccessful answer has the form of the service's errors: a portal or a proxy says nothing about the
    /// video.
    func isServiceError(_ response: Response) -> Bool {
        !VimeoVerdict(response, wait: { _ in .zero }).numbers.isEmpty
            || JSONValue.read(response.body)?["error"]?.text != nil
    }

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        client.failure(kind, code, message, retryable: retryable)
    }

    /// How long the service accepts no requests: `X-RateLimit-Reset` as a date or in seconds since 1970, since both
    /// forms are documented; otherwise `Retry-After`; `nil` where it has neither, or an impossible value.
    private func rateLimit(_ response: Response) -> Duration? {
        let now = client.clocks.wall()
        if let text = response.headers["X-RateLimit-Reset"] {
            let then =
                plainInteger(text).map { WallTime(milliseconds: 0).advanced(by: .seconds($0)) }
                ?? WallTime(rfc3339: text)
            // Compared with the answer's own clock, since this machine's may be unset.
            let base = response.headers["Date"].flatMap { httpDate($0) } ?? now
            if let then, then > base, then <= base.advanced(by: .seconds(86_400)) {
                return .milliseconds(then.milliseconds - base.milliseconds)
            }
        }
        return retryAfter(response.headers, now: now)
    }
}

/// The wait that a service has requested, shared by all uploads to an account. It doubles where the service names none.
private final class VimeoBackoff: Sendable {
    private struct State {
        var until: MonotonicTime?
        var guesses = 0
    }

    private let state = Mutex(State())

    func left(_ now: MonotonicTime) -> Duration? {
        state.withLock { state in
            guard let until = state.until, until > now else { return nil }
            return until.since(now)
        }
    }

    func begin(_ asked: Duration?, _ now: MonotonicTime) -> Duration {
        state.withLock { state in
            let wait: Duration
            if let asked {
                wait = asked
            } else {
                wait = min(.seconds(60) * (1 << min(state.guesses, 4)), .seconds(900))
                state.guesses += 1
            }
            state.until = now.advanced(by: wait)
            return wait
        }
    }

    func ended() { state.withLock { $0 = State() } }
}
