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
    }

    /// What an interrupted request leaves.
    package enum Keeping: Sendable { case bytes, none }
    /// What the number in `Range` is.
    package enum RangeMeaning: Sendable { case count, lastIndex }

    package struct Account: Sendable {
        package var token = "vimeo-token-1"
        package var scopes = ["public", "private", "upload", "edit", "delete"]
        package var hasUser = true
        /// `nil`: the answer has no block of it.
        package var quota: (free: Int64, max: Int64, isCount: Bool)? = (1 << 40, 1 << 40, false)
        package var reset: String?
        package var largest = Int64.max
        /// The two older ways are offered.
        package var isLegacy = true
        /// What `POST /me/videos` answers as the approach, where it is not what was asked for.
        package var otherApproach: String?
        package var hasNoLink = false
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
    }

    package struct Upload: Sendable {
        package enum Flow: Sendable { case tus, streaming, ticket }
        package let number: Int
        package let flow: Flow
        package let size: Int64
        package var bytes: [UInt8] = []
        /// It has a page: from its creation on, but for a ticket, which has none until it is ended.
        package var isVideo: Bool
        package var isDeleted = false
        package var fields: [String: String] = [:]
        package var questions = 0
        /// Bytes that came and were thrown away.
        package var discarded: Int64 = 0
        var held: Int64 { Int64(bytes.count) + discarded }
        package var isComplete: Bool { held == size }

        package init(number: Int, flow: Flow, size: Int64, isVideo: Bool, fields: [String: String] = [:]) {
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
        /// `create`, `patch 1000`: each request, with the offset that it named.
        package var requests: [String] = []
        /// Requests to the host for bytes that carried a token.
        package var tokensAtBytes = 0
        package var agents: Set<String> = []
        /// Bytes of bodies that came to the host for bytes.
        package var received: Int64 = 0
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
        state.withLock { $0.requests.append(kind.map { "\($0)" } ?? "\(exchange.method) \(path)") }
        guard let kind else { return error(exchange, 404, 5000, "no such address") }
        let body = exchange.body()
        let fault = next(kind)
        if case .answer(let status, let headers, let text)? = fault { return exchange.reply(status, headers, text) }
        let refusal = refusal(exchange, kind)
        let reply = refusal ?? perform(kind, path, body)
        if case .loseReply? = fault { return exchange.cut() }
        if case .slow(let milliseconds)? = fault { usleep(UInt32(milliseconds) * 1000) }
        exchange.reply(reply.status, reply.headers, reply.body)
    }

    func next(_ kind: Kind) -> Fault? {
        state.withLock { state in
            guard let first = state.faults[kind]?.first else { return nil }
            state.faults[kind]?.removeFirst()
            return first
        }
    }

    private static func kind(_ method: String, _ path: String) -> Kind? {
        switch (method, path) {
        case ("POST", "/me/videos"): .create
        case ("GET", "/me/videos"): .list
        case ("GET", "/me"): .me
        case ("GET", "/oauth/verify"): .verify
        case ("DELETE", _) where path.hasPrefix("/users/1/uploads/"): .complete
        case (_, _) where path.hasPrefix("/videos/") && path.contains("/pictures"): pictureKind(method)
        case ("GET", _) where path.hasPrefix("/videos/"): .video
        case ("PATCH", _) where path.hasPrefix("/videos/"): .settings
        case ("DELETE", _) where path.hasPrefix("/videos/"): .removal
        default: nil
        }
    }

    struct Reply {
        var status: Int
        var headers: [(String, String)] = [("Content-Type", "application/vnd.vimeo.video+json")]
        var body = ""
    }

    static func refused(_ status: Int, _ code: Int, _ words: String, field: (String, Int)? = nil) -> Reply {
        let more = field.map {
            ", \"invalid_parameters\": [{\"field\": \"\($0.0)\", \"error_code\": \($0.1), \"error\": \"\(words)\"}]"
        }
        return Reply(
            status: status, headers: [("Content-Type", "application/vnd.vimeo.error+json")],
            body:
                "{\"error\": \"\(words)\", \"link\": null, \"developer_message\": \"\(words)\", \"error_code\": \(code)\(more ?? "")}"
        )
    }

    private func error(_ exchange: Exchange, _ status: Int, _ code: Int, _ words: String) {
        let reply = Self.refused(status, code, words)
        exchange.reply(reply.status, reply.headers, reply.body)
    }

    /// What is wrong with the request's token or version.
    private func refusal(_ exchange: Exchange, _ kind: Kind) -> Reply? {
        let account = state.withLock { $0.account }
        guard exchange.header("authorization") == "Bearer \(account.token)" else {
            var reply = Self.refused(401, 8003, "a valid user token must be passed")
            reply.headers.append(("WWW-Authenticate", "Bearer error=\"invalid_token\""))
            return reply
        }
        let needed: [Kind: String] = [
            .create: "upload", .complete: "upload", .settings: "edit", .removal: "delete", .list: "private",
            .picture: "edit", .choice: "edit", .pictureRemoval: "edit",
        ]
        if !account.hasUser, kind == .create { return Self.refused(401, 8002, "no user credentials were provided") }
        if let scope = needed[kind], !account.scopes.contains(scope) {
            return Self.refused(403, 3200, "the token lacks the scope \(scope)")
        }
        guard exchange.header("accept")?.contains("version=3.4") == true || kind != .create else {
            return Self.refused(400, 3116, "the version is missing")
        }
        return nil
    }

    private func perform(_ kind: Kind, _ path: String, _ body: [UInt8]) -> Reply {
        let number = Int(path.split(separator: "/").last ?? "")
        return state.withLock { state in
            switch kind {
            case .create: create(body, &state)
            case .me: Self.me(state)
            case .verify:
                Reply(
                    status: 200,
                    body: "{\"token_type\": \"bearer\", \"scope\": \"\(state.account.scopes.joined(separator: " "))\"}")
            case .complete: Self.complete(number, &state)
            case .list: Self.list(state)
            case .video, .settings, .removal: video(kind, number, body, &state)
            case .picture, .choice, .pictureQuestion, .pictureRemoval: picture(kind, path, body, &state)
            case .ticket, .head, .patch, .put, .question, .image: Reply(status: 500)
            }
        }
    }

    private static func me(_ state: State) -> Reply {
        guard let quota = state.account.quota, state.account.scopes.contains("private") else {
            return Reply(status: 200, body: "{\"upload_quota\": null}")
        }
        let unit = quota.isCount ? "video_count" : "video_size"
        let counts =
            "\"free\": \(quota.free), \"max\": \(quota.max), \"used\": \(quota.max - quota.free), \"unit\": \"\(unit)\""
        let reset = state.account.reset.map { "\"\($0)\"" } ?? "null"
        return Reply(
            status: 200,
            body: "{\"upload_quota\": {\"space\": {\(counts), \"showing\": \"periodic\"}, "
                + "\"periodic\": {\"period\": \"week\", \(counts), \"reset_date\": \(reset)}}}")
    }

    private static func complete(_ number: Int?, _ state: inout State) -> Reply {
        guard let index = state.uploads.firstIndex(where: { $0.number == number && $0.flow == .ticket }) else {
            return refused(404, 8400, "bad signature")
        }
        if state.uploads[index].isVideo { return refused(404, 5006, "no such upload") }
        guard state.uploads[index].isComplete else { return refused(400, 2502, "the file is not valid") }
        state.uploads[index].isVideo = true
        return Reply(status: 201, headers: [("Location", "/videos/\(state.uploads[index].number)")])
    }

    private static func list(_ state: State) -> Reply {
        let videos = state.uploads.filter { $0.isVideo && !$0.isDeleted }.reversed().map { upload in
            "{\"uri\": \"/videos/\(upload.number)\", \"name\": \(Self.quoted(upload.fields["name"] ?? "Untitled")), "
                + "\"created_time\": \"\(stamp)\", \"link\": \"https://vimeo.example/\(upload.number)\", "
                + "\"status\": \"\(upload.isComplete ? "available" : "uploading")\", \"upload\": {\"size\": \(upload.size)}}"
        }
        return Reply(
            status: 200,
            body:
                "{\"total\": \(videos.count), \"paging\": {\"next\": null}, \"data\": [\(videos.joined(separator: ", "))]}"
        )
    }

    /// A text as JSON writes it.
    private static func quoted(_ text: String) -> String {
        let inner = text.unicodeScalars.map { scalar in
            switch scalar {
            case "\"", "\\": "\\\(scalar)"
            case _ where scalar.value < 0x20:
                "\\u" + String(repeating: "0", count: scalar.value < 16 ? 3 : 2) + String(scalar.value, radix: 16)
            default: String(scalar)
            }
        }
        return "\"\(inner.joined())\""
    }

    private static var stamp: String { "2099-01-01T00:00:00+00:00" }

    private func video(_ kind: Kind, _ number: Int?, _ body: [UInt8], _ state: inout State) -> Reply {
        guard let index = state.uploads.firstIndex(where: { $0.number == number && $0.isVideo && !$0.isDeleted }) else {
            return Self.refused(404, 5000, "the video was not found")
        }
        switch kind {
        case .removal:
            state.uploads[index].isDeleted = true
            return Reply(status: 204)
        case .settings:
            switch Self.read(body) {
            case .failure(let refusal): return refusal.reply
            case .success(let wish):
                state.uploads[index].fields.merge(wish.said) { $1 }
                return Reply(status: 200, body: "{\"uri\": \"/videos/\(state.uploads[index].number)\"}")
            }
        default:
            let upload = state.uploads[index]
            var status = "uploading"
            if upload.isComplete {
                let states = state.behaviour.states
                status = states[min(upload.questions, states.count - 1)]
                state.uploads[index].questions += 1
            }
            let part = upload.isComplete ? "complete" : "in_progress"
            return Reply(
                status: 200,
                body: "{\"uri\": \"/videos/\(upload.number)\", \"link\": \"https://vimeo.example/\(upload.number)\", "
                    + "\"status\": \"\(status)\", \"upload\": {\"status\": \"\(part)\"}, "
                    + "\"metadata\": {\"connections\": {\"pictures\": {\"uri\": \"/videos/\(upload.number)/pictures\"}}}, "
                    + "\"transcode\": {\"status\": \"\(status == "available" ? "complete" : "in_progress")\"}}")
        }
    }
}
