internal import Core
internal import Glibc
package import Synchronization

/// A server like Vimeo's: an API, and another host for bytes, distinguished by their ports. Its rules are from the
/// service's API description and from its own clients; faults are scripted by the kind of request.
package final class VimeoServer: Sendable {
    /// The kind of a request.
    package enum Kind: Hashable, Sendable {
        case create, ticket, complete, settings, video, removal, me, verify, list
        case head, patch, put, question
        case picture, image, choice, pictureQuestion, pictureRemoval
    }

    /// A fault instead of an answer, once.
    package enum Fault: Sendable {
        /// The request is carried out, and the answer is lost.
        case loseReply
        case answer(Int, [(String, String)] = [], String = "")
        /// The connection is closed after this many bytes of the body.
        case cut(after: Int)
        /// Reports this many bytes less than it has, in an answer to bytes.
        case claims(fewer: Int)
        /// Waits after each piece, in ms.
        case slow(Int)
        /// The request is carried out, and answered after ``VimeoServer/answerHeld()``, or never.
        case held
        /// The bytes are kept, and the answer to them is this status.
        case refused(Int)
        /// The request is carried out, and the answer cannot be read.
        case garbled(Garbling)
    }

    /// The content that replaces a successful answer.
    package enum Garbling: Sendable, CaseIterable {
        case html, empty, half, coded, fields
    }

    /// The result of an interrupted request: its bytes are kept, only the earlier bytes are kept, or nothing at all.
    package enum KeptBytes: Sendable { case bytes, none, nothing }
    /// The meaning of the number in `Range`.
    package enum RangeMeaning: Sendable { case count, lastIndex }
    /// The form in which an answer to too many calls gives the end of the limit.
    package enum Reset: Sendable { case date, seconds, nothing }

    package struct Account: Sendable {
        package var token = "vimeo-token-1"
        package var scopes = ["public", "private", "upload", "edit", "delete"]
        package var hasUser = true
        /// `nil`: the answer has no quota.
        package var quota: (free: Int64, max: Int64, isCount: Bool)? = (1 << 40, 1 << 40, false)
        package var reset: String?
        /// Whether the tighter quota is that of the whole storage.
        package var isLifetime = false
        package var largest = Int64.max
        /// Whether the two older flows are offered.
        package var isLegacy = true
        /// The approach in the answer of `POST /me/videos`, where it differs from the requested one.
        package var otherApproach: String?
        package var hasNoLink = false
        /// Values of `privacy.view` that this kind of account may not use: `disable` and `unlisted` for the smallest
        /// one.
        package var forbiddenViews: Set<String> = []
    }

    package struct Behaviour: Sendable {
        package var keeps = KeptBytes.bytes
        /// Whether bytes are counted and dropped, for a measurement.
        package var discards = false
        /// The status of the answer to a creation.
        package var created = 201
        package var range = RangeMeaning.count
        /// The states of a video when all of its bytes are there, one for each query; the last stays.
        package var states = ["available"]
        /// The difference of its clock from this machine's, in ms.
        package var ahead: Int64 = 0
        /// The status of the answer for a link that does not exist any more.
        package var gone = 404
        /// The maximum number of API calls in a number of ms.
        package var rate: (calls: Int, in: Int64, reset: Reset)?
        /// The age that a new video needs before it appears in the list, in ms.
        package var showsAfter: Int64 = 0
    }

    package struct Upload: Sendable {
        package enum Flow: Sendable { case tus, streaming, ticket }
        package let number: Int
        package let flow: Flow
        /// Less than 0 for a ticket whose creation gave no size, until its first bytes do.
        package internal(set) var size: Int64
        package var bytes: [UInt8] = []
        /// Whether it has a page: from its creation on, except for a ticket, which has none until it is completed.
        package var isVideo: Bool
        package var isDeleted = false
        /// Whether its link has expired.
        package var isExpired = false
        /// ms since 1970; `nil`: now.
        package var created: Int64?
        package var fields: [String: String] = [:]
        package var questions = 0
        /// Bytes that were received and dropped.
        package var discarded: Int64 = 0
        var held: Int64 { Int64(bytes.count) + discarded }
        /// An upload of no bytes is never complete.
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
        /// Faults of every request.
        package var always: [Kind: Fault] = [:]
        /// `create`, `patch 1000`: each request, with its offset.
        package var requests: [String] = []
        /// Requests to the host for bytes that carried a token.
        package var tokensAtBytes = 0
        package var agents: Set<String> = []
        /// Bytes of bodies that came to the host for bytes.
        package var received: Int64 = 0
        /// The times of API calls, in ms.
        var calls: [Int64] = []
        /// `POST /me/videos 3.4`: each call of the API, with its requested version.
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
    /// A separate lock: links are made while the state's is held.
    private let linkHost = Mutex<String?>(nil)
    private let permits = Mutex(0)

    package var url: String { api.url }
    package var port: Int { api.port }

    package init() throws {
        // The two know each other only through this box, since each is made before the server is.
        let box = Box()
        api = try FakeServer { try box.server?.answer($0) }
        bytes = try FakeServer { try box.server?.receiveBytes($0) }
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

    /// The address for the bytes of an upload.
    package func link(_ number: Int) -> String {
        "\(linkHost.withLock { $0 } ?? bytes.url)/upload/\(number)?signature=s\(number)"
    }

    /// Sends the answer to one request with the fault `held`.
    package func answerHeld() { permits.withLock { $0 += 1 } }

    /// The origin of that host, which differs from the API's.
    package var bytesURL: String { bytes.url }
    /// The port of the host for bytes.
    package var bytesPort: Int { bytes.port }
    /// Makes links to videos lead to this address, to a server before the host for bytes.
    package func redirectLinks(to url: String) { linkHost.withLock { $0 = url } }

    /// The address for the bytes of a thumbnail.
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
        if case .held? = fault {
            exchange.hold {
                permits.withLock { permits in
                    defer { permits = max(0, permits - 1) }
                    return permits > 0
                }
            }
        }
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

    /// The error for an invalid token or version of the request.
    private func refusal(_ exchange: Exchange, _ kind: Kind) -> Reply? {
        let account = state.withLock { $0.account }
        // The name of the scheme has no case (RFC 9110, section 11.1).
        let words = (exchange.header("authorization") ?? "").split(separator: " ", maxSplits: 1)
        guard words.count == 2, words[0].lowercased() == "bearer", words[1] == account.token else {
            var reply = Self.refused(401, 8003, "a valid user token must be passed")
            if kind == .verify {
                // Answers about tokens have their own form, without a number.
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
        // An application without a user may only query public data, and its token.
        if !account.hasUser, ![.verify, .video, .pictureQuestion].contains(kind) {
            return Self.refused(401, 8002, "no user credentials were provided")
        }
        // A refused call counts as well.
        if let limited = tooMany() { return limited }
        if let scope = needed[kind], !account.scopes.contains(scope) {
            return Self.refused(403, 3200, "the token lacks the scope \(scope)")
        }
        let hasBody = (exchange.header("content-length") ?? "0") != "0"
        return hasBody && !Self.isJSON(exchange) ? Self.refused(400, 2205, "the body is not of JSON's type") : nil
    }

    /// The service's API description has a separate content type for the fields of a video.
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
