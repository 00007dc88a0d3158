internal import Core
internal import Glibc
package import Synchronization

/// A server as Vimeo's: an API, and another host for bytes, told apart by their ports. What it takes and refuses is from the
/// service's API description and from its own clients; faults are scripted by the kind of request.
package final class VimeoServer: Sendable {
    /// What a request is about.
    package enum Kind: Hashable, Sendable {
        case create, ticket, complete, settings, video, removal, me, verify, list
        case head, patch, put, question
        case picture, image, choice, pictureQuestion, pictureRemoval
    }

    /// What happens in place of an answer, once.
    package enum Fault: Sendable {
        /// It is done, and nobody hears of it.
        case loseReply
        case answer(Int, [(String, String)] = [], String = "")
        /// The connection ends when so many bytes of the body have come.
        case cut(after: Int)
        /// Says that it has so many bytes less than it has, in an answer to bytes.
        case claims(fewer: Int)
        /// Takes its time with each piece, in ms.
        case slow(Int)
        /// The bytes are kept, and the answer to them is this status.
        case refused(Int)
        /// It is done, and the answer cannot be read.
        case garbled(Garbling)
    }

    /// What stands in the place of an answer of success.
    package enum Garbling: Sendable, CaseIterable {
        case html, empty, half, coded, fields
    }

    /// What an interrupted request leaves: its bytes, what was there before it, or nothing at all.
    package enum Keeping: Sendable { case bytes, none, nothing }
    /// What the number in `Range` is.
    package enum RangeMeaning: Sendable { case count, lastIndex }
    /// How an answer to too many calls says when that ends.
    package enum Reset: Sendable { case date, seconds, nothing }

    package struct Account: Sendable {
        package var token = "vimeo-token-1"
        package var scopes = ["public", "private", "upload", "edit", "delete"]
        package var hasUser = true
        /// `nil`: the answer has no block of it.
        package var quota: (free: Int64, max: Int64, isCount: Bool)? = (1 << 40, 1 << 40, false)
        package var reset: String?
        /// The tighter quota is that of the whole storage.
        package var isLifetime = false
        package var largest = Int64.max
        /// The two older ways are offered.
        package var isLegacy = true
        /// What `POST /me/videos` answers as the approach, where it is not what was asked for.
        package var otherApproach: String?
        package var hasNoLink = false
        /// Of `privacy.view`, what this kind of account may not use: `disable` and `unlisted` of the least one.
        package var forbiddenViews: Set<String> = []
    }

    package struct Behaviour: Sendable {
        package var keeps = Keeping.bytes
        /// Bytes are counted and thrown away, for a measurement.
        package var discards = false
        /// What a creation is answered with.
        package var created = 201
        package var range = RangeMeaning.count
        /// What a video's state is when all of its bytes are there, one for each question; the last stays.
        package var states = ["available"]
        /// Its clock, before or behind that of this machine, in ms.
        package var ahead: Int64 = 0
        /// What a link is answered with that is no more.
        package var gone = 404
        /// The most calls of the API in so many ms.
        package var rate: (calls: Int, in: Int64, reset: Reset)?
        /// A video that is made does not show in the list before it is so old, in ms.
        package var showsAfter: Int64 = 0
    }

    package struct Upload: Sendable {
        package enum Flow: Sendable { case tus, streaming, ticket }
        package let number: Int
        package let flow: Flow
        /// Less than 0: a ticket whose creation named none, until its first bytes do.
        package internal(set) var size: Int64
        package var bytes: [UInt8] = []
        /// It has a page: from its creation on, but for a ticket, which has none until it is ended.
        package var isVideo: Bool
        package var isDeleted = false
        /// Its link has ended.
        package var isExpired = false
        /// ms since 1970; `nil`: now.
        package var created: Int64?
        package var fields: [String: String] = [:]
        package var questions = 0
        /// Bytes that came and were thrown away.
        package var discarded: Int64 = 0
        var held: Int64 { Int64(bytes.count) + discarded }
        /// One of no bytes never is.
        package var isComplete: Bool { size > 0 && held == size }

        package init(
            number: Int, flow: Flow, size: Int64, isVideo: Bool, fields: [String: String] = [:], created: Int64? = nil
        ) {
            self.created = created
            self.number = number
            self.flow = flow
            self.size = size
            self.isVideo = isVideo
            self.fields = fields
        }
    }

    package struct State: Sendable {
        package var account = Account()
        package var behaviour = Behaviour()
        package var uploads: [Upload] = []
        package var pictures: [Picture] = []
        package var faults: [Kind: [Fault]] = [:]
        /// What happens each time.
        package var always: [Kind: Fault] = [:]
        /// `create`, `patch 1000`: each request, with the offset that it named.
        package var requests: [String] = []
        /// Requests to the host for bytes that carried a token.
        package var tokensAtBytes = 0
        package var agents: Set<String> = []
        /// Bytes of bodies that came to the host for bytes.
        package var received: Int64 = 0
        /// When calls of the API came, in ms.
        var calls: [Int64] = []
        /// `POST /me/videos 3.4`: each call of the API, with the version that it wants.
        package var versions: [String] = []

        /// ms since 1970.
        package var now: Int64 {
            var time = timespec()
            clock_gettime(CLOCK_REALTIME, &time)
            return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000 + behaviour.ahead
        }
    }

    package let state = Mutex(State())
    private let api: FakeServer
    private let bytes: FakeServer
    /// A lock of its own: links are made while the state's is held.
    private let door = Mutex<String?>(nil)

    package var url: String { api.url }
    package var port: Int { api.port }

    package init() throws {
        // The two know each other only through this box, since each is made before the server is.
        let box = Box()
        api = try FakeServer { try box.server?.answer($0) }
        bytes = try FakeServer { try box.server?.take($0) }
        box.set(self)
    }

    package func stop() {
        api.stop()
        bytes.stop()
    }

    private final class Box: Sendable {
        private struct Weak: Sendable { weak var server: VimeoServer? }
        private let held = Mutex(Weak())
        var server: VimeoServer? { held.withLock { $0.server } }
        func set(_ server: VimeoServer) { held.withLock { $0.server = server } }
    }

    package func script(_ kind: Kind, _ faults: Fault...) { state.withLock { $0.faults[kind, default: []] += faults } }
    package func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }
    package var requests: [String] { state.withLock { $0.requests } }
    /// Videos that a person sees in the account.
    package var videos: [Upload] { state.withLock { $0.uploads.filter { $0.isVideo && !$0.isDeleted } } }

    /// Where the bytes of an upload go.
    package func link(_ number: Int) -> String {
        "\(door.withLock { $0 } ?? bytes.url)/upload/\(number)?signature=s\(number)"
    }

    /// The origin of that host, which is another than the API's.
    package var bytesURL: String { bytes.url }
    /// Where the host for bytes listens.
    package var bytesPort: Int { bytes.port }
    /// Links to videos lead here, to what stands before the host for bytes.
    package func lead(to url: String) { door.withLock { $0 = url } }

    /// Where the bytes of a thumbnail go.
    func pictureLink(_ number: Int) -> String { "\(bytes.url)/picture/\(number)?signature=p\(number)" }

    // MARK: The API

    private func answer(_ exchange: Exchange) throws {
        let path = String(exchange.target.prefix { $0 != "?" })
        let kind = Self.kind(exchange.method, path)
        let version = Self.version(exchange)
        state.withLock {
            $0.requests.append(kind.map { "\($0)" } ?? "\(exchange.method) \(path)")
            $0.versions.append("\(exchange.method) \(path) \(version ?? "-")")
        }
        guard let kind else { return error(exchange, 404, 5000, "no such address") }
        let body = exchange.body()
        let fault = next(kind)
        if case .answer(let status, let headers, let text)? = fault { return exchange.reply(status, headers, text) }
        let refusal = refusal(exchange, kind)
        var reply = refusal ?? perform(kind, exchange.target, body, version)
        if let fields = Self.query(exchange.target)["fields"], reply.status < 300 {
            reply.body = VimeoTree.trimmed(reply.body, to: fields)
        }
        if case .loseReply? = fault { return exchange.cut() }
        if case .slow(let milliseconds)? = fault { usleep(UInt32(milliseconds) * 1000) }
        let date = ("Date", Self.httpDate(state.withLock { $0.now }))
        if case .garbled(let garbling)? = fault, reply.status < 300 { return Self.garble(exchange, garbling, reply) }
        exchange.reply(reply.status, [date] + reply.headers, reply.body)
    }

    /// The version of the API that a request names.
    private static func version(_ exchange: Exchange) -> String? {
        guard let accept = exchange.header("accept")?.filter({ $0 != " " }), accept.hasPrefix("application/vnd.vimeo.")
        else { return nil }
        return accept.split(separator: ";").lazy.compactMap {
            $0.hasPrefix("version=") ? String($0.dropFirst(8)) : nil
        }.first
    }

    static func query(_ target: String) -> [String: String] {
        var query: [String: String] = [:]
        for pair in target.drop(while: { $0 != "?" }).dropFirst().split(separator: "&") {
            let words = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            query[words[0]] = words.count > 1 ? PercentCoding.text(decoding: words[1]) ?? words[1] : ""
        }
        return query
    }

    func next(_ kind: Kind) -> Fault? {
        state.withLock { state in
            guard let first = state.faults[kind]?.first else { return state.always[kind] }
            state.faults[kind]?.removeFirst()
            return first
        }
    }

    private static func kind(_ method: String, _ path: String) -> Kind? {
        // `/videos/1`, and nothing below it.
        let isVideo = path.hasPrefix("/videos/") && path.split(separator: "/").count == 2
        return switch (method, path) {
        case ("POST", "/me/videos"): .create
        case ("GET", "/me/videos"): .list
        case ("GET", "/me"): .me
        case ("GET", "/oauth/verify"): .verify
        case ("DELETE", _) where path.hasPrefix("/users/1/uploads/"): .complete
        case (_, _) where path.hasPrefix("/videos/") && path.contains("/pictures"): pictureKind(method)
        case ("GET", _) where isVideo: .video
        case ("PATCH", _) where isVideo: .settings
        case ("DELETE", _) where isVideo: .removal
        default: nil
        }
    }

    struct Reply {
        var status: Int
        var headers: [(String, String)] = [("Content-Type", "application/vnd.vimeo.video+json")]
        var body = ""
    }

    static func refused(_ status: Int, _ code: Int, _ words: String, field: (String, Int)? = nil) -> Reply {
        let said = #""error": "\#(words)", "developer_message": "\#(words)""#
        let more = field.map { name, code in
            #", "invalid_parameters": [{"field": "\#(name)", "error_code": \#(code), \#(said)}]"#
        }
        let tail = more ?? ""
        return Reply(
            status: status, headers: [("Content-Type", "application/vnd.vimeo.error+json")],
            body: #"{\#(said), "link": null, "error_code": \#(code)\#(tail)}"#)
    }

    private func error(_ exchange: Exchange, _ status: Int, _ code: Int, _ words: String) {
        let reply = Self.refused(status, code, words)
        exchange.reply(reply.status, reply.headers, reply.body)
    }

    /// What is wrong with the request's token or version.
    private func refusal(_ exchange: Exchange, _ kind: Kind) -> Reply? {
        let account = state.withLock { $0.account }
        // The name of the scheme has no case (RFC 9110, section 11.1).
        let words = (exchange.header("authorization") ?? "").split(separator: " ", maxSplits: 1)
        guard words.count == 2, words[0].lowercased() == "bearer", words[1] == account.token else {
            var reply = Self.refused(401, 8003, "a valid user token must be passed")
            if kind == .verify {
                // The answers about tokens have a shape of their own, without a number.
                reply.headers = [("Content-Type", "application/vnd.vimeo.auth+json")]
                reply.body = #"{"error": "invalid_token", "error_description": "the token is not valid"}"#
            }
            reply.headers.append(("WWW-Authenticate", "Bearer error=\"invalid_token\""))
            return reply
        }
        let needed: [Kind: String] = [
            .create: "upload", .complete: "upload", .settings: "edit", .removal: "delete", .list: "private",
            .picture: "upload", .choice: "edit", .pictureRemoval: "edit",
        ]
        // An application of its own may ask for what is public, and what its token is.
        if !account.hasUser, ![.verify, .video, .pictureQuestion].contains(kind) {
            return Self.refused(401, 8002, "no user credentials were provided")
        }
        // Who is refused has called as well.
        if let limited = tooMany() { return limited }
        if let scope = needed[kind], !account.scopes.contains(scope) {
            return Self.refused(403, 3200, "the token lacks the scope \(scope)")
        }
        let hasBody = (exchange.header("content-length") ?? "0") != "0"
        return hasBody && !Self.isJSON(exchange) ? Self.refused(400, 2205, "the body is not of JSON's type") : nil
    }

    /// The service's own description has a type of its own for what is said of a video.
    private static func isJSON(_ exchange: Exchange) -> Bool {
        let type = (exchange.header("content-type") ?? "").prefix { $0 != ";" }.lowercased()
        return type == "application/json" || type.hasPrefix("application/vnd.vimeo.") && type.hasSuffix("+json")
    }

    private func perform(_ kind: Kind, _ target: String, _ body: [UInt8], _ version: String?) -> Reply {
        let path = String(target.prefix { $0 != "?" })
        let number = Int(path.split(separator: "/").last ?? "")
        return state.withLock { state in
            switch kind {
            case .create: create(body, version, &state)
            case .me: Self.me(state)
            case .verify: Self.verify(state)
            case .complete: Self.complete(number, Self.query(target), &state)
            case .list: list(target, state)
            case .video, .settings, .removal: video(kind, number, body, &state)
            case .picture, .choice, .pictureQuestion, .pictureRemoval: picture(kind, path, body, &state)
            case .ticket, .head, .patch, .put, .question, .image: Reply(status: 500)
            }
        }
    }
}
