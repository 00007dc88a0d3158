internal import API
internal import Core
internal import WebServer

/// The operation that a request asks for, from its method and path. This function implements the table in the manual.
enum APIRoute: Hashable, Sendable {
    /// An operation on uploads.
    enum Act: String, Sendable, CaseIterable { case pause, resume, cancel, retry, remove, priority }

    case list
    case add
    case receive
    case show(String)
    case why(String)
    /// The picture of an upload.
    case thumbnail(String)
    case plan
    case routes
    case failures
    /// On one upload, whose reference is in the path.
    case actOn(String, Act)
    /// On a selection in the body.
    case act(Act)
    case remove(String)
    case flush
    case allow
    case limit
    case setUsage
    case status
    case metrics
    case usage
    /// For one destination, or for all.
    case quota(String?)
    case events
    case reload
    case rescan
    /// A folder, by its name.
    case acceptFolder(String)
    case check
    /// A hook, by its name.
    case tryHook(String)
    /// The objects that a destination holds.
    case remote(String)
    case orphans(String)
    /// The requests of a destination.
    case trace(String)
    /// The sign-in of a browser: asked for, begun, ended.
    case session, signIn, signOut
    /// A link to the web page, with a code to sign in.
    case webLink

    /// The path does not exist, or does not support the method.
    enum RoutingError: Error, Hashable, Sendable {
        case noSuchPath
        case method(allowed: String)
    }

    var changes: Bool {
        switch self {
        case .list, .show, .why, .thumbnail, .plan, .routes, .failures, .status, .metrics, .usage, .quota, .events,
            .session,
            .signIn,
            .signOut:
            false
        case .add, .receive, .actOn, .act, .remove, .flush, .reload, .rescan, .acceptFolder, .allow, .limit, .setUsage,
            .check,
            .tryHook,
            .remote,
            .orphans,
            .trace, .webLink:
            true
        }
    }

    /// - Parameter path: Decoded. A reference may contain slashes, as keys and paths do.
    init(method: String, path: String) throws(RoutingError) {
        /// A path with GET also supports HEAD; `also` names further methods.
        func only(_ wanted: String, _ route: APIRoute, also: String = "") throws(RoutingError) -> APIRoute {
            if method == wanted || method == "HEAD" && wanted == "GET" { return route }
            throw .method(allowed: (wanted == "GET" ? "GET, HEAD" : wanted) + also)
        }
        // The path that every scraper expects, without a version: the text format has a version of its own.
        if path == "/metrics" {
            self = try only("GET", .metrics)
            return
        }
        guard path.hasPrefix("/v1/") else { throw .noSuchPath }
        let rest = String(path.dropFirst(4))
        switch rest {
        case "uploads": self = method == "POST" ? .add : try only("GET", .list, also: ", POST")
        case "bytes": self = try only("POST", .receive)
        case "session":
            self =
                method == "POST"
                ? .signIn : method == "DELETE" ? .signOut : try only("GET", .session, also: ", POST, DELETE")
        case "web-link": self = try only("POST", .webLink)
        case "status": self = try only("GET", .status)
        case "flush": self = try only("POST", .flush)
        case "allow": self = try only("POST", .allow)
        case "limit": self = try only("POST", .limit)
        case "usage": self = method == "POST" ? .setUsage : try only("GET", .usage, also: ", POST")
        case "quota": self = try only("GET", .quota(nil))
        case "failures": self = try only("GET", .failures)
        case "routes": self = try only("GET", .routes)
        case "plan": self = try only("GET", .plan)
        case "reload": self = try only("POST", .reload)
        case "check": self = try only("POST", .check)
        case "rescan": self = try only("POST", .rescan)
        case "events": self = try only("GET", .events)
        case _ where rest.hasPrefix("why/") && rest.count > 4: self = try only("GET", .why(String(rest.dropFirst(4))))
        case _ where rest.hasPrefix("thumbnails/") && rest.count > 11:
            self = try only("GET", .thumbnail(String(rest.dropFirst(11))))
        case _ where rest.hasPrefix("quota/") && rest.count > 6:
            self = try only("GET", .quota(String(rest.dropFirst(6))))
        case _ where rest.hasPrefix("hooks/") && rest.hasSuffix("/test") && rest.count > 11:
            self = try only("POST", .tryHook(String(rest.dropFirst(6).dropLast(5))))
        case _ where rest.hasPrefix("folders/") && rest.hasSuffix("/accept") && rest.count > 15:
            self = try only("POST", .acceptFolder(String(rest.dropFirst(8).dropLast(7))))
        case _ where rest.hasPrefix("remote/") && rest.count > 7:
            self = try only("POST", .remote(String(rest.dropFirst(7))))
        case _ where rest.hasPrefix("orphans/") && rest.count > 8:
            self = try only("POST", .orphans(String(rest.dropFirst(8))))
        case _ where rest.hasPrefix("trace/") && rest.count > 6:
            self = try only("POST", .trace(String(rest.dropFirst(6))))
        case _ where rest.hasPrefix("uploads/"):
            let reference = String(rest.dropFirst("uploads/".count))
            guard !reference.isEmpty else { throw .noSuchPath }
            guard let cut = reference.lastIndex(of: "/"), cut > reference.startIndex,
                let act = Act(rawValue: String(reference[cut...].dropFirst()))
            else {
                self = method == "DELETE" ? .remove(reference) : try only("GET", .show(reference), also: ", DELETE")
                return
            }
            // A key may end in the name of an operation, so such a reference is possible here.
            self =
                method == "POST"
                ? .actOn(String(reference[..<cut]), act) : try only("GET", .show(reference), also: ", POST")
        default:
            guard let act = Act(rawValue: rest) else { throw .noSuchPath }
            self = try only("POST", .act(act))
        }
    }
}

extension ListQuery {
    /// From the query of a URL.
    init(_ query: [String: String]) throws(Refusal) {
        self.init()
        let known = ["list", "state", "destination", "folder", "text", "since", "until", "after", "limit"]
        context = contextPairs(in: query)
        let strange = query.keys.filter { !known.contains($0) && !$0.hasPrefix(contextPrefix) }
        if let strange = strange.min() {
            throw Refusal(
                .badRequest,
                "no filter `\(strange)`; there are: " + known.joined(separator: ", ") + ", context.NAME")
        }
        if let list = query["list"], !Self.lists.contains(list) {
            throw Refusal(.badRequest, "no list `\(list)`; there are: " + Self.lists.joined(separator: ", "))
        }
        list = query["list"]
        state = query["state"]
        destination = query["destination"]
        folder = query["folder"]
        text = query["text"]
        since = try wallTime("since", in: query)
        until = try wallTime("until", in: query)
        after = query["after"]
        if let written = query["limit"] {
            guard let number = Int(written), (1...1000).contains(number) else {
                throw Refusal(.badRequest, "limit is `\(written)`; it must be from 1 to 1000")
            }
            limit = number
        }
    }

    /// As a URL's query.
    var pairs: [(String, String)] {
        let all: [(String, String?)] = [
            ("list", list), ("state", state), ("destination", destination), ("folder", folder), ("text", text),
            ("since", since?.description), ("until", until?.description), ("after", after), ("limit", String(limit)),
        ]
        let pairs = context.sorted { $0.key < $1.key }.map { (contextPrefix + $0.key, $0.value) }
        return all.compactMap { pair in pair.1.map { (pair.0, $0) } } + pairs
    }
}

extension ReceiveRequest {
    /// Prefix of the name of a further request header, which may be a secret and must not be in a URL.
    static let headerPrefix = "sluice-header-"
    /// The address of an upload that exists is a secret too.
    static let uploadURLHeader = "sluice-upload-url"

    /// From the head of a request.
    init(_ request: WebRequest) throws(Refusal) {
        let query = request.query
        let known = ["name", "to", "key", "once", "url"]
        let strange = query.keys.filter { !known.contains($0) && !$0.hasPrefix(contextPrefix) }
        if let strange = strange.min() {
            throw Refusal(
                .badRequest,
                "no key `\(printable(strange))`; there are: " + known.joined(separator: ", ") + ", context.NAME")
        }
        guard let name = query["name"] else { throw Refusal(.badRequest, "`name` is missing") }
        let once = query["once"].map { Bool($0) } ?? false
        guard let once else { throw Refusal(.badRequest, "`once` is true or false") }
        if once, query["key"] == nil { throw Refusal(.badRequest, "`once` needs a `key`") }
        self.init(
            name: name, to: query["to"].map { $0.split(separator: ",").map(String.init) } ?? [], key: query["key"],
            context: contextPairs(in: query), url: query["url"],
            uploadURL: request.headers[Self.uploadURLHeader],
            size: request.headers["content-length"].flatMap { Int64($0) })
        isKeyOnce = once
        for (name, value) in request.headers where name.hasPrefix(Self.headerPrefix) {
            headers[String(name.dropFirst(Self.headerPrefix.count))] = value
        }
    }

    /// As a URL's query.
    var pairs: [(String, String)] {
        let all: [(String, String?)] = [
            ("name", name), ("to", to.isEmpty ? nil : to.joined(separator: ",")), ("key", key),
            ("once", isKeyOnce ? "true" : nil), ("url", url),
        ]
        return all.compactMap { pair in pair.1.map { (pair.0, $0) } }
            + context.sorted { $0.key < $1.key }.map { (contextPrefix + $0.key, $0.value) }
    }
}

/// Prefix of the name of a pair: `context.camera=door`.
private let contextPrefix = "context."

private func contextPairs(in query: [String: String]) -> [String: String] {
    var context: [String: String] = [:]
    for (name, value) in query where name.hasPrefix(contextPrefix) {
        context[String(name.dropFirst(contextPrefix.count))] = value
    }
    return context
}

extension UsageQuery {
    /// From the query of a URL.
    init(_ query: [String: String]) throws(Refusal) {
        self.init()
        let known = ["days", "months", "minutes", "by", "destination", "folder"]
        if let strange = query.keys.filter({ !known.contains($0) }).min() {
            throw Refusal(
                .badRequest, "usage takes no `\(printable(strange))`; it takes: " + known.joined(separator: ", "))
        }
        days = try Self.number("days", query) ?? days
        months = try Self.number("months", query) ?? months
        minutes = try Self.number("minutes", query) ?? minutes
        by = query["by"]
        destination = query["destination"]
        folder = query["folder"]
    }

    private static func number(_ name: String, _ query: [String: String]) throws(Refusal) -> Int? {
        guard let written = query[name] else { return nil }
        guard let number = Int(written) else {
            throw Refusal(.badRequest, "\(name) is `\(printable(written))`; it takes a whole number")
        }
        return number
    }

    /// As a URL's query.
    var pairs: [(String, String)] {
        let all: [(String, String?)] = [
            ("days", String(days)), ("months", String(months)),
            ("minutes", minutes == 0 ? nil : String(minutes)), ("by", by), ("destination", destination),
            ("folder", folder),
        ]
        return all.compactMap { pair in pair.1.map { (pair.0, $0) } }
    }
}

extension PlanQuery {
    private static let names = [
        "until", "rate", "from", "on", "interface", "ssid", "gateway", "metered", "roaming", "lan",
    ]

    /// From the query of a URL.
    init(_ query: [String: String]) throws(Refusal) {
        self.init()
        if let strange = query.keys.filter({ !Self.names.contains($0) }).min() {
            throw Refusal(.badRequest, "no key `\(strange)`; there are: \(Self.names.joined(separator: ", "))")
        }
        until = try wallTime("until", in: query)
        from = try wallTime("from", in: query)
        if let written = query["rate"] {
            guard let number = Int64(written), number > 0 else {
                throw Refusal(.badRequest, "rate is `\(printable(written))`; it must be bytes a second, like 2000000")
            }
            rate = number
        }
        on = query["on"]
        var facts = NetworkRule(interface: query["interface"], ssid: query["ssid"])
        if let written = query["gateway"] {
            guard let address = HardwareAddress(written) else {
                throw Refusal(
                    .badRequest,
                    "gateway is `\(printable(written))`; it must be a hardware address like 0c:5b:8f:27:9a:64")
            }
            facts.gateway = address
        }
        facts.isMetered = try flag("metered", in: query)
        facts.isRoaming = try flag("roaming", in: query)
        if facts != NetworkRule() { self.facts = facts }
        isLAN = try flag("lan", in: query)
    }

    /// As a URL's query.
    var pairs: [(String, String)] {
        let all: [(String, String?)] = [
            ("until", until?.description), ("rate", rate.map(String.init)), ("from", from?.description), ("on", on),
            ("interface", facts?.interface), ("ssid", facts?.ssid), ("gateway", facts?.gateway?.description),
            ("metered", facts?.isMetered.map(String.init)), ("roaming", facts?.isRoaming.map(String.init)),
            ("lan", isLAN.map(String.init)),
        ]
        return all.compactMap { pair in pair.1.map { (pair.0, $0) } }
    }
}

private func flag(_ name: String, in query: [String: String]) throws(Refusal) -> Bool? {
    guard let written = query[name] else { return nil }
    guard let flag = Bool(written) else {
        throw Refusal(.badRequest, "\(name) is `\(printable(written))`; it must be true or false")
    }
    return flag
}

/// A time of RFC 3339; fractions of a second are ignored. `+` in a query is a space.
private func wallTime(_ name: String, in query: [String: String]) throws(Refusal) -> WallTime? {
    guard let written = query[name] else { return nil }
    if let time = WallTime(rfc3339: written.replacing(" ", with: "+")) { return time }
    throw Refusal(.badRequest, "\(name) is `\(printable(written))`; it must be a time like 2026-11-25T17:00:00Z")
}
