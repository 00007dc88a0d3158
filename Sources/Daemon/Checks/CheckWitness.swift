internal import API
internal import Core
internal import Linux
internal import Synchronization
internal import Transport

/// Records what the requests of a check have met on their way.
final class CheckWitness: Sendable {
    /// The first request that reached the server, or the last one that did not.
    struct Meeting: Sendable {
        var url: WebAddress
        /// Whether the request carried credentials.
        var isAuthorized: Bool
        var proxy: ProxyServer?
        var interface: String?
        /// `nil` where none came: ``error`` says why.
        var response: Response?
        var error: TransportError?
        var at: WallTime
        /// Returns a text without the secrets that the requests have carried.
        var concealed: @Sendable (String) -> String
    }

    private let clocks: any Clocks
    private let met = Mutex<Meeting?>(nil)

    init(clocks: any Clocks) { self.clocks = clocks }

    var meeting: Meeting? { met.withLock { $0 } }

    /// The same context, whose requests are recorded.
    func witnessing(_ context: RequestContext) -> RequestContext {
        RequestContext(permit: WitnessedPermit(permit: context.permit, witness: self), headers: context.headers)
    }

    fileprivate func record(_ request: Request, _ response: Response?, _ error: TransportError?) {
        let meeting = Meeting(
            url: WebAddress(request.url), isAuthorized: request.headers.contains { $0.0 == "Authorization" },
            proxy: request.proxy,
            interface: request.interface, response: response,
            error: error, at: clocks.wall(), concealed: request.concealed)
        met.withLock { met in
            // A request to another origin, as one that finds out which protocol a server speaks, hides no failure.
            let isOther = met.map { $0.url.origin != meeting.url.origin } ?? false
            if met?.response == nil, response != nil || !isOther { met = meeting }
        }
    }
}

/// A permit whose requests are recorded.
private struct WitnessedPermit: RequestPermit {
    let permit: any RequestPermit
    let witness: CheckWitness

    func send(_ request: Request, over transport: any Transporting) async throws(TransportError) -> Response {
        var request = request
        request.wantsFacts = true
        do throws(TransportError) {
            let response = try await permit.send(request, over: transport)
            witness.record(request, response, nil)
            return response
        } catch {
            witness.record(request, nil, error)
            throw error
        }
    }

    func charging(upload id: String) -> any RequestPermit {
        WitnessedPermit(permit: permit.charging(upload: id), witness: witness)
    }
    func allowance(for count: Int64) -> Int64 { permit.allowance(for: count) }
    func reserve(for count: Int64) async -> Shortage? { await permit.reserve(for: count) }
    func returnReservation(for count: Int64, sent: Int64) { permit.returnReservation(for: count, sent: sent) }
    var rate: Int64? { permit.rate }
}

extension CheckWitness {
    /// The way of the requests in words, up to the step that failed.
    ///
    /// - Parameter result: What the destination made of the answers.
    func steps(_ result: CheckResult) async -> [CheckStep] {
        guard let meeting else { return [] }
        var steps: [CheckStep] = []
        func step(_ name: CheckStep.Name, _ verdict: CheckResult.Verdict, _ detail: String) {
            // A server may repeat a secret in each header, and in the names of its certificate.
            steps.append(CheckStep(step: name, verdict: verdict, detail: printable(meeting.concealed(detail))))
        }
        let target = meeting.proxy.map(\.host) ?? meeting.url.normalHost
        let facts = meeting.response?.facts
        let (failed, problem) = (meeting.error?.kind, meeting.error?.detail ?? "")
        if failed == .resolve {
            step(.name, .failed, problem)
            return steps
        }
        if let peer = facts?.peer, IPAddress(target) == nil { step(.name, .ok, "\(target) is \(peer)") }
        let through = meeting.proxy.map { "; through the proxy \($0.place), as \($0.setting) says" } ?? ""
        let isSilentInTLS = meeting.error?.isOfSilentTLS ?? false
        let isWayless = failed == .connect || failed == .interface || failed == .stalled || failed == .timedOut
        if isWayless, !isSilentInTLS {
            step(.route, .failed, problem + through)
            return steps
        }
        if failed == .proxy || failed == .other {
            step(.route, .failed, problem)
            return steps
        }
        if result.verdict == .failed, let response = meeting.response, let proxy = response.plainProxy,
            response.isOfProxy
        {
            step(
                .route, .failed,
                "the proxy \(proxy.place), as \(proxy.setting) says, answered \(response.status) in place of the "
                    + "server")
            return steps
        }
        step(.route, .ok, await Self.route(facts, meeting) + through)
        if isSilentInTLS {
            step(.tls, .failed, problem)
            return steps
        }
        switch failed {
        case .tls, .notTLS, .pinnedKey, .clientCertificate:
            step(.tls, .failed, problem)
            return steps
        case nil: break
        default:
            step(.server, .failed, problem)
            return steps
        }
        let now = meeting.at
        if let certificate = facts?.certificate {
            let days = certificate.expires.map { ($0.milliseconds - now.milliseconds) / 86_400_000 }
            let end = certificate.expires.map { ", valid until \($0.description.prefix(10))" } ?? ""
            let left = days.map { " (\($0) \($0 == 1 ? "day" : "days"))" } ?? ""
            step(
                .tls, days.map { $0 < Self.shortestLife } ?? false ? .warning : .ok,
                (meeting.url.scheme == "http" ? "to the proxy alone: " : "")
                    + "certificate of \(certificate.subject), signed by \(certificate.issuer)\(end)\(left)")
        } else if meeting.url.scheme == "http" {
            step(.tls, .ok, "no TLS: others on the way can read everything")
        }
        guard let response = meeting.response else { return steps }
        let software = response.headers["Server"].map { "\(meeting.concealed($0).prefix(80)) " } ?? ""
        let time = facts.map { " after \($0.time.inMilliseconds) ms" } ?? ""
        step(.server, .ok, "\(software)answers with \(facts?.protocolName ?? "HTTP")\(time)")
        if let date = response.headers["Date"].flatMap({ httpDate($0) }) {
            // `Date` has whole seconds.
            let ahead = (date.milliseconds - now.milliseconds) / 1000
            let isFar = abs(ahead) > Self.largestDifference
            step(
                .clock, isFar ? .warning : .ok,
                abs(ahead) <= 1
                    ? "as this machine's"
                    : "\(abs(ahead)) s \(ahead > 0 ? "ahead of" : "behind") this machine's"
                        + (isFar ? "; signed requests may be refused, and times of expiry are wrong" : ""))
        }
        let told = result.parts.filter { $0.subject == .credentials }
        for part in told { step(.credentials, part.verdict, part.detail) }
        if told.isEmpty, result.verdict == .failed, response.status == 401 || response.status == 403 {
            step(.credentials, .failed, "refused with \(response.status)")
        } else if told.isEmpty, meeting.isAuthorized {
            step(.credentials, .ok, "sent, and the server did not refuse them")
        }
        if result.verdict != .failed || result.space != nil {
            let isFull = result.space?.left == 0
            step(.room, isFull ? .failed : .ok, result.space?.text ?? "the server does not report its free space")
        }
        for part in result.parts where part.subject == .flow { step(.flow, part.verdict, part.detail) }
        return steps
    }

    /// Days.
    private static let shortestLife: Int64 = 14
    /// Services accept signatures within fifteen minutes; a third of that is worth a look. (s)
    private static let largestDifference: Int64 = 300

    private static func route(_ facts: ConnectionFacts?, _ meeting: Meeting) async -> String {
        guard let local = facts?.local, let peer = facts?.peer else {
            return "to \(meeting.proxy.map(\.place) ?? meeting.url.shownOrigin)"
        }
        if peer.isLoopback { return "to \(peer), on this machine" }
        // Only for the words: a link that cannot be found is left out.
        let links = try? await blocking { try Links.all() }
        let link = links?.first { $0.addresses.contains { $0.address == local } }?.name ?? meeting.interface
        return "to \(peer)" + (link.map { " over \($0)" } ?? "") + ", from \(local)"
    }
}
