import API
import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Transport
import WebServer

@testable import Control
@testable import Daemon

/// Server and client over a real Unix socket, with the real transport between them.
final class ControlPair: Sendable {
    let folder = TemporaryFolder()
    let daemon: FakeDaemon
    let server: ControlServer
    let transport = Transport()
    let client: ControlClient
    var socket: FilePath { client.socket }

    init(_ uploads: [UploadView] = [.sample()], heartbeat: Duration = .seconds(15)) async throws {
        daemon = FakeDaemon(uploads)
        let socket = folder.path.appending("run/control.sock")
        server = try await ControlServer.start(socket: socket, operations: daemon, heartbeat: heartbeat)
        client = ControlClient(socket: socket, transport: transport)
    }

    func stop() async {
        await transport.stop()
        await server.stop()
    }

    func ask(_ method: String, _ target: String, headers: [(String, String)] = [], _ body: String = "") async throws
        -> (status: Int, headers: Headers, text: String)
    {
        let response = try await transport.send(
            Request(
                method, "http://sluice" + target, headers: headers,
                body: body.isEmpty ? .none : .bytes(Array(body.utf8)),
                unixSocket: socket))
        return (response.status, response.headers, String(decoding: response.body, as: UTF8.self))
    }
}

func withLine<R>(
    _ uploads: [UploadView] = [.sample()], heartbeat: Duration = .seconds(15), _ body: (ControlPair) async throws -> R
) async throws -> R {
    let line = try await ControlPair(uploads, heartbeat: heartbeat)
    do {
        let result = try await body(line)
        await line.stop()
        return result
    } catch {
        await line.stop()
        throw error
    }
}

@Suite("Control", .timeLimit(.minutes(Patience.minutes(1))))
struct ControlTests {
    @Test("values arrive as the daemon sent them")
    func roundTrip() async throws {
        try await withLine { line in
            var query = ListQuery()
            query.list = "ongoing"
            query.folder = "front & back"
            query.text = "ü/50%"
            query.context = ["a.b": "c&d=e+f"]
            query.since = WallTime(milliseconds: 1_795_161_600_000)
            query.limit = 5
            let page = try await line.client.list(query)
            #expect(page.uploads == [.sample()])
            #expect(page.seq == 7)
            #expect(try await line.client.status() == .sample)
            #expect(try await line.client.show("cam1/0001").upload == .sample())
            #expect(
                line.daemon.asked == [
                    "list ongoing|||front & back|ü/50%||5|a.b=c&d=e+f|2026-11-20T08:00:00.000Z", "status",
                    "show cam1/0001",
                ])
        }
    }

    @Test("a page written in pieces equals the whole text", arguments: [0, 1, 3])
    func page(uploads: Int) throws {
        let page = UploadPage(
            uploads: Array(repeating: .sample(), count: uploads), counts: Counts(), seq: 7, next: "[]}")
        #expect(String(decoding: try JSON.bytes(page), as: UTF8.self) == (try JSON.text(page)))
    }

    @Test("every changing command carries its whole selection")
    func verbs() async throws {
        try await withLine { line in
            let selection = Selection(ids: ["a", "b"], all: true, folder: "f", destination: "d", duration: 7200)
            #expect(try await line.client.pause(selection).uploads == [.sample()])
            _ = try await line.client.pause(Selection(folder: "f", afterPart: true))
            _ = try await line.client.resume(Selection())
            _ = try await line.client.cancel(Selection(ids: ["x"]))
            _ = try await line.client.retry(Selection(all: true))
            _ = try await line.client.add(
                AddRequest(
                    path: hexadecimal([0x2F, 0xFF, 0x0A]), to: ["d"], key: "k", context: ["A_b": "c"],
                    uploadURL: "http://a/u", again: true))
            #expect(
                line.daemon.asked == [
                    "pause a,b|all|f|d|7200", "pause ||f|||after part", "resume ||||", "cancel x||||", "retry |all|||",
                    #"add /\xff\x0a|["d"]|k|["A_b": "c"]|true|http://a/u"#,
                ])
        }
    }

    @Test(
        "values with a default may be omitted, and an unknown key is refused",
        arguments: [
            ("/v1/pause", #"{"destination":"nas"}"#, "pause |||nas|", ""),
            ("/v1/retry", "{}", "retry ||||", ""),
            ("/v1/uploads", #"{"path":"2f61"}"#, "add /a|[]||[:]|false", ""),
            ("/v1/uploads", #"{"path":"2f61","upload_url":"http://a/u"}"#, "add /a|[]||[:]|false|http://a/u", ""),
            ("/v1/pause", #"{"destinaton":"nas"}"#, nil, "no key `destinaton`; there are: ids, all"),
            ("/v1/uploads", #"{"path":"2f61","agan":true}"#, nil, "no key `agan`; there are: path, to"),
            ("/v1/uploads", "{}", nil, "`path` is missing"),
        ])
    func writtenByHand(_ path: String, _ body: String, _ asked: String?, _ words: String) async throws {
        try await withLine { line in
            let (status, _, text) = try await line.ask("POST", path, body)
            #expect(status == (asked == nil ? 400 : 202))
            #expect(text.contains(words) || asked != nil)
            #expect(line.daemon.asked == (asked.map { [$0] } ?? []))
        }
    }

    @Test("an endlessly nested body is refused, and the daemon continues", arguments: [512, 513, 514, 5000])
    func nested(depth: Int) async throws {
        try await withLine { line in
            for opening in ["[", "{\"a\":", "{\"ids\":["] {
                let (status, _, text) = try await line.ask(
                    "POST", "/v1/pause", String(repeating: opening, count: depth))
                #expect(status == 400)
                #expect(text.contains("it is not JSON"))
            }
            #expect(try await line.client.status() == .sample)
        }
    }

    @Test("names match the manual")
    func names() async throws {
        try await withLine { line in
            let (status, headers, text) = try await line.ask("GET", "/v1/uploads/01JD3K")
            #expect(status == 200)
            #expect(headers["content-type"] == "application/json")
            #expect(text.contains(#""settled_by":"lease""#))
            // Names that a person chose are not changed.
            #expect(text.contains(#""context":{"Camera_Name":"door"}"#))
        }
    }

    @Test(
        "a refusal has its status on the wire and is the same at the other end",
        arguments: [
            (Refusal.Code.notFound, 404), (.ambiguous, 409), (.conflict, 409), (.duplicate, 409), (.sourceMissing, 409),
            (.badRequest, 400), (.forbidden, 403), (.destination, 502), (.unavailable, 503),
        ])
    func refusals(_ code: Refusal.Code, _ status: Int) async throws {
        try await withLine { line in
            let refusal = Refusal(code, "not so: “ü”", id: "01JD")
            line.daemon.refuse(refusal)
            let reply = try await line.ask("POST", "/v1/uploads/01JD/pause")
            #expect(reply.status == status)
            let error = await #expect(throws: Refusal.self) { try await line.client.status() }
            #expect(error == refusal)
        }
    }

    @Test("an unexpected error is reported without secrets")
    func fault() async throws {
        struct Odd: Error, CustomStringConvertible { let description = "GET https://a:b@h/ failed" }
        try await withLine { line in
            line.daemon.state.withLock { $0.fault = Odd() }
            let (status, _, text) = try await line.ask("GET", "/v1/status")
            #expect(status == 500)
            #expect(text == #"{"error":{"code":"internal","message":"GET https://***@h/ failed"}}"# + "\n")
            await #expect(throws: ControlError.protocolFault("GET https://***@h/ failed")) {
                try await line.client.status()
            }
        }
    }

    @Test(
        "an invalid request is refused and never reaches the daemon",
        arguments: [
            ("GET", "/", "", 404), ("GET", "/v1/nothing", "", 404), ("DELETE", "/v1/status", "", 405),
            ("GET", "/v1/pause", "", 405), ("POST", "/v1/uploads/a/explode", "", 405),
            ("POST", "/v1/uploads/a", "", 405),
            ("POST", "/v1/pause", "{", 400), ("POST", "/v1/uploads", "{}", 400),
            ("GET", "/v1/uploads?limit=0", "", 400),
            ("GET", "/v1/uploads?list=all", "", 400), ("GET", "/v1/uploads?lsit=x", "", 400),
            ("GET", "/v1/events?since=x", "", 400),
        ])
    func nonsense(_ method: String, _ target: String, _ body: String, _ status: Int) async throws {
        try await withLine { line in
            let reply = try await line.ask(method, target, body)
            #expect(reply.status == status)
            #expect(reply.text.hasPrefix(#"{"error":{"code":""#))
            #expect(line.daemon.asked == [])
        }
    }

    @Test(
        "a method that a path does not support is answered with the supported ones",
        arguments: [
            ("/v1/status", "GET, HEAD"), ("/v1/events", "GET, HEAD"), ("/v1/uploads", "GET, HEAD, POST"),
            ("/v1/uploads/a", "GET, HEAD, DELETE"), ("/v1/uploads/a/pause", "GET, HEAD, POST"), ("/v1/pause", "POST"),
            ("/v1/reload", "POST"), ("/v1/rescan", "POST"), ("/v1/folders/front/accept", "POST"), ("/v1/check", "POST"),
            ("/v1/hooks/web/test", "POST"),
            ("/v1/usage", "GET, HEAD, POST"),
        ])
    func allowed(_ path: String, _ methods: String) throws {
        #expect(throws: APIRoute.RoutingError.method(allowed: methods)) { try APIRoute(method: "PUT", path: path) }
        for method in methods.split(separator: ", ") { _ = try APIRoute(method: String(method), path: path) }
    }

    @Test("a command on one upload answers with that upload, with or without slashes in its key")
    func item() async throws {
        try await withLine { line in
            let reply = try await line.ask(
                "POST", "/v1/uploads/cam1%2F0001/pause", #"{"ids":[],"all":false,"duration":60}"#)
            #expect(reply.status == 202)
            #expect(reply.text.hasPrefix(#"{"attempt":1"#))
            let gentle = try await line.ask("POST", "/v1/uploads/cam1%2F0001/pause", #"{"after_part":true}"#)
            #expect(gentle.status == 202)
            #expect(line.daemon.asked == ["pause cam1/0001||||60", "pause cam1/0001|||||after part"])
        }
    }

    @Test("only owner and group may connect")
    func mode() async throws {
        try await withLine { line in
            let status = try FileStatus(at: line.socket)
            #expect(status.mode & 0o777 == 0o660)
        }
    }

    @Test("a user who is neither root nor in the daemon's group may read but not change")
    func access() async throws {
        let access = SocketAccess(user: 100, group: 200) { user, group in user == 300 && group == 200 }
        #expect(try await access.mayChange(.init(user: 0, group: 0)))
        #expect(try await access.mayChange(.init(user: 100, group: 1)))
        #expect(try await access.mayChange(.init(user: 5, group: 200)))
        #expect(try await access.mayChange(.init(user: 300, group: 1)))
        #expect(try await access.mayChange(.init(user: 301, group: 1)) == false)
        #expect(try await access.mayChange(.init(address: "127.0.0.1")) == false)

        let daemon = FakeDaemon([.sample()])
        let service = ControlService(daemon, authorizer: access)
        func status(_ method: String, _ path: String) async -> Int {
            await service.reply(
                to: .init(
                    method: method, path: path, rawTarget: path, query: [:], headers: [:],
                    peer: .init(user: 9, group: 9)),
                body: .collected([])
            ).status
        }
        #expect(await status("GET", "/v1/status") == 200)
        #expect(await status("POST", "/v1/pause") == 403)
        #expect(daemon.asked == ["status"])
    }

    @Test("an event stream over the socket asks for no account; a command asks for the name of its user")
    func accountNames() async throws {
        let asked = Mutex<[UInt32]>([])
        var access = SocketAccess(user: 100, group: 200) { _, _ in false }
        access.accountName = { user in
            asked.withLock { $0.append(user) }
            return user == 100 ? "camera" : nil
        }
        let service = ControlService(FakeDaemon(), authorizer: access)
        func request(_ method: String, _ path: String, user: UInt32) -> WebRequest {
            WebRequest(
                method: method, path: path, rawTarget: path, query: [:], headers: [:],
                peer: WebPeer(user: user, group: 200))
        }
        for user: UInt32 in [100, 101] {
            let reply = await service.reply(to: request("GET", "/v1/events", user: user), body: .collected([]))
            #expect(reply.status == 200)
        }
        #expect(asked.withLock(\.count) == 0)
        let command = request("POST", "/v1/pause", user: 100)
        #expect(await service.reply(to: command, body: .collected(Array(#"{"all":true}"#.utf8))).status == 202)
        #expect(asked.withLock { $0 } == [100])
        #expect(await access.name(of: command) == "camera")
        #expect(await access.name(of: request("GET", "/", user: 101)) == "user 101")
        service.subscribers.end()
    }

    @Test("accounts that do not answer keep no command from its answer: a number is the name, and a change is refused")
    func hangingAccounts() async throws {
        let isReleased = ConditionLock(false)
        @Sendable func hang() { isReleased.wait { $0 ? () : nil } }
        defer { isReleased.changeForAll { $0 = true } }
        let access = SocketAccess(
            user: 100, group: 200,
            isMember: { _, _ in
                hang()
                return true
            },
            accountName: { _ in
                hang()
                return "camera"
            }, memberships: SlowDisk(timeout: .milliseconds(20)), names: SlowDisk(timeout: .milliseconds(20)))
        let service = ControlService(FakeDaemon(), authorizer: access)
        func status(group: UInt32) async -> Int {
            let request = WebRequest(
                method: "POST", path: "/v1/pause", rawTarget: "/v1/pause", query: [:], headers: [:],
                peer: WebPeer(user: 101, group: group))
            return await service.reply(to: request, body: .collected(Array(#"{"all":true}"#.utf8))).status
        }
        // The second of each finds a lookup that has not returned.
        for _ in 0..<2 {
            #expect(await status(group: 200) == 202)
            #expect(await status(group: 1) == 403)
        }
        let peer = WebPeer(user: 101, group: 1)
        let request = WebRequest(method: "GET", path: "/", rawTarget: "/", query: [:], headers: [:], peer: peer)
        #expect(await access.name(of: request) == "user 101")
    }

    @Test("group membership is read from the accounts of the machine")
    func accounts() {
        #expect(UserDatabase.isMember(0, of: 0))
        #expect(!UserDatabase.isMember(0, of: 4_000_000_000))
        #expect(!UserDatabase.isMember(4_000_000_000, of: 0))
    }
}
