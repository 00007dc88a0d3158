import Core
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// The emulator refuses the same requests as the service, row by row of the service's description.
@Suite("Vimeo emulator", .timeLimit(.minutes(Patience.minutes(3))))
struct VimeoServerTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        var method = "POST"
        var path = "/me/videos"
        var version: String? = "3.4"
        var token = "vimeo-token-1"
        var type = "application/json"
        var body: String?
        let status: Int
        var code: Int64?
        var inner: Int64?
        var change: @Sendable (inout VimeoServer.State) -> Void = { _ in }
        var testDescription: String { name }
    }

    private static let rows = [
        Row(name: "a wrong token", token: "x", body: "{}", status: 401, code: 8003),
        Row(
            name: "a token without a user", body: tus, status: 401, code: 8002, change: { $0.account.hasUser = false }),
        Row(
            name: "a list without a user", method: "GET", status: 401, code: 8002,
            change: { $0.account.hasUser = false }),
        Row(name: "no scope", body: tus, status: 403, change: { $0.account.scopes = [] }),
        Row(name: "upload in 3.3", version: "3.3", body: tus, status: 400, code: 3116),
        Row(name: "upload without a version", version: nil, body: tus, status: 400, code: 3116),
        Row(name: "type in 3.4", body: ticket, status: 400, code: 3116),
        Row(name: "type without a version", version: nil, body: ticket, status: 400, code: 3116),
        Row(name: "type in 3.3", version: "3.3", body: ticket, status: 201),
        Row(name: "type in 3.0", version: "3.0", body: ticket, status: 201),
        Row(name: "a ticket without a size", version: "3.3", body: "{\"type\": \"streaming\"}", status: 201),
        Row(
            name: "tickets are off", version: "3.3", body: ticket, status: 400, code: 2204, inner: 2552,
            change: { $0.account.isLegacy = false }),
        Row(
            name: "streaming is off", body: tus.replacing("tus", with: "streaming"), status: 400, code: 2204,
            inner: 2552, change: { $0.account.isLegacy = false }),
        Row(name: "another approach", body: tus.replacing("tus", with: "carrier"), status: 400, code: 2230),
        Row(name: "no size", body: "{\"upload\": {\"approach\": \"tus\"}}", status: 400, code: 2204, inner: 2254),
        Row(name: "a negative size", body: tus.replacing("10", with: "-1"), status: 400, code: 2204, inner: 2254),
        Row(
            name: "a size beside it", body: "{\"upload\": {\"approach\": \"tus\"}, \"size\": 10}", status: 400,
            code: 2204, inner: 2254),
        Row(name: "half a byte", body: tus.replacing("10", with: "1.5"), status: 400, code: 2204, inner: 2254),
        Row(name: "a size in decimal", body: tus.replacing("10", with: "\"10\""), status: 201),
        Row(name: "no bytes", body: tus.replacing("10", with: "0"), status: 200),
        Row(name: "no JSON", body: "{", status: 400, code: 2205),
        Row(name: "JSON that does not say so", type: "text/plain", body: tus, status: 400, code: 2205),
        Row(
            name: "a privacy that is none",
            body: tus.replacing("{\"upload", with: "{\"privacy\": {\"view\": \"public\"}, \"upload"), status: 400,
            code: 2204, inner: 2232),
        said("a password that is missing", "\"privacy\": {\"view\": \"password\"}", 2233),
        said("a password of no letter", "\"password\": \"\", \"privacy\": {\"view\": \"password\"}", 2273),
        said("users who are missing", "\"privacy\": {\"view\": \"users\"}", 2244),
        said("an empty list of users", "\"users\": [], \"privacy\": {\"view\": \"users\"}", 2245),
        said("users without their privacy", "\"users\": [{\"uri\": \"/users/1\"}]", 2247),
        said("a licence that is none", "\"license\": \"mine\"", 2234),
        said("a place that is none", "\"privacy\": {\"embed\": \"all\"}", 2239),
        said("comments by an unknown value", "\"privacy\": {\"comments\": \"all\"}", 2240),
        said("a name that is no text", "\"name\": 5", 2252),
        Row(
            name: "a privacy of better accounts",
            body: tus.replacing("{\"upload", with: "{\"privacy\": {\"view\": \"disable\"}, \"upload"), status: 403,
            code: 2411, change: { $0.account.forbiddenViews = ["disable", "unlisted"] }),
        Row(
            name: "the period's quota", body: tus, status: 403, code: 4102,
            change: { $0.account.quota = (5, 100, false) }),
        Row(
            name: "the whole storage", body: tus, status: 403, code: 4101,
            change: {
                $0.account.quota = (5, 100, false)
                $0.account.isLifetime = true
            }),
        Row(name: "the count", body: tus, status: 403, code: 4104, change: { $0.account.quota = (0, 2, true) }),
        Row(name: "too large", body: tus, status: 403, code: 3428, change: { $0.account.largest = 9 }),
        Row(name: "too many calls", body: tus, status: 429, change: { $0.behaviour.rate = (0, 60_000, .date) }),
        Row(
            name: "an unknown ticket", method: "DELETE", path: "/users/1/uploads/9?video_file_id=1009&signature=c9",
            status: 404, code: 8400),
        Row(
            name: "a wrong signature", method: "DELETE", path: "/users/1/uploads/1?video_file_id=1001&signature=x",
            status: 404, code: 8400),
        Row(
            name: "no signature", method: "DELETE", path: "/users/1/uploads/1?video_file_id=1001", status: 404,
            code: 5007),
        Row(name: "no file", method: "DELETE", path: "/users/1/uploads/1?signature=c1", status: 404, code: 5006),
        Row(name: "no video", method: "GET", path: "/videos/9", status: 404, code: 5000),
    ]
    /// A creation with this field of its video, which is refused with that number.
    private static func said(_ name: String, _ words: String, _ inner: Int64) -> Row {
        Row(name: name, body: "{\(words), \(tus.dropFirst())", status: 400, code: 2204, inner: inner)
    }
    private static let tus = "{\"upload\": {\"approach\": \"tus\", \"size\": 10}}"
    private static let ticket = "{\"type\": \"streaming\", \"size\": 10}"

    @Test("the emulator refuses and accepts like the service", arguments: rows)
    func row(_ row: Row) async throws {
        let server = try VimeoServer()
        defer { server.stop() }
        server.change(row.change)
        let response = try await Self.ask(server, row)
        #expect(response.status == row.status)
        let json = JSONValue.read(response.body)
        if let code = row.code { #expect(json?["error_code"]?.whole == code) }
        if let inner = row.inner {
            #expect(json?["invalid_parameters"]?.items.first?["error_code"]?.whole == inner)
        }
        if row.status == 401, row.code == 8003 { #expect(response.headers["WWW-Authenticate"]?.isEmpty == false) }
        if row.status >= 400 {
            #expect(server.state.withLock { $0.uploads.isEmpty }, "a refused request creates nothing")
        }
        if row.status == 429 { #expect(response.headers["X-RateLimit-Reset"].flatMap { WallTime(rfc3339: $0) } != nil) }
        if row.name == "no bytes" { #expect(json?["upload"] == .object([:])) }
    }

    private static func ask(_ server: VimeoServer, _ row: Row) async throws -> Response {
        let headers = [
            ("Authorization", "Bearer \(row.token)"), ("Content-Type", row.type),
            ("Accept", "application/vnd.vimeo.*+json" + (row.version.map { "; version=\($0)" } ?? "")),
        ]
        let body: Request.Body = row.body.map { .bytes(Array($0.utf8)) } ?? .none
        return try await Transport().send(Request(row.method, server.url + row.path, headers: headers, body: body))
    }

    @Test("the emulator shows a video consistently: failed stays failed, and an empty one never finishes")
    func shown() async throws {
        let server = try VimeoServer()
        defer { server.stop() }
        let body = Self.tus.replacing("10", with: "0").replacing("{\"upload", with: "{\"name\": \"dawn\", \"upload")
        let made = JSONValue.read(try await Self.ask(server, Row(name: "", body: body, status: 200)).body)
        #expect(made?["name"]?.text == "dawn")
        let question = Row(name: "", method: "GET", path: "/videos/1", status: 200)
        let empty = JSONValue.read(try await Self.ask(server, question).body)
        #expect(empty?["status"]?.text == "uploading" && empty?["is_playable"]?.flag == false)
        server.change { state in
            state.uploads = [VimeoServer.Upload(number: 1, flow: .tus, size: 1, isVideo: true)]
            state.uploads[0].bytes = [1]
        }
        for (status, upload, transcode) in [
            ("available", "complete", "complete"), ("transcoding_error", "complete", "error"),
            ("uploading_error", "error", "in_progress"), ("transcoding", "complete", "in_progress"),
        ] {
            server.change { $0.behaviour.states = [status] }
            for (method, path) in [("GET", "/videos/1"), ("PATCH", "/videos/1"), ("GET", "/me/videos")] {
                let row = Row(name: "", method: method, path: path, body: method == "PATCH" ? "{}" : nil, status: 200)
                let json = JSONValue.read(try await Self.ask(server, row).body)
                let video = path == "/me/videos" ? json?["data"]?.items.first : json
                #expect(video?["status"]?.text == status)
                #expect(video?["upload"]?["status"]?.text == upload)
                #expect(video?["transcode"]?["status"]?.text == transcode)
            }
        }
    }

    @Test("the emulator omits fields not named in `fields`, expires links, and accepts an end once")
    func wholes() async throws {
        let server = try VimeoServer()
        defer { server.stop() }
        let made = try await Self.ask(
            server, Row(name: "", path: "/me/videos?fields=uri,upload.upload_link", body: Self.tus, status: 201))
        let json = JSONValue.read(made.body)
        #expect(json?["link"] == nil && json?["uri"]?.text == "/videos/1")
        guard case .object(let upload)? = json?["upload"] else {
            return #expect(Bool(false), "the answer has no upload")
        }
        #expect(upload.keys.sorted() == ["upload_link"])
        let head = Request("HEAD", server.link(1), headers: [("Tus-Resumable", "1.0.0")])
        #expect(try await Transport().send(head).status == 200)
        server.change {
            $0.uploads[0].isExpired = true
            $0.behaviour.gone = 410
        }
        #expect(try await Transport().send(head).status == 410)
        let ticket = Row(name: "", version: "3.3", body: "{\"type\": \"streaming\"}", status: 201)
        #expect(try await Self.ask(server, ticket).status == 201)
        let path = "/users/1/uploads/2?video_file_id=1002&signature=c2"
        let end = Row(name: "", method: "DELETE", path: path, status: 400)
        #expect(try await Self.ask(server, end).status == 400, "the upload has no bytes yet")
        let put = Request(
            "PUT", server.link(2), headers: [("Content-Range", "bytes 0-1/2")], body: .bytes([1, 2]))
        #expect(try await Transport().send(put).status == 200)
        #expect(try await Self.ask(server, end).headers["Location"] == "/videos/2")
        #expect(JSONValue.read(try await Self.ask(server, end).body)?["error_code"]?.whole == 5006)
    }
}
