import Core
import Credentials
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Notices

@Suite("Delivering a notice", .timeLimit(.minutes(Patience.minutes(1))))
struct HookSenderTests {
    private let folder = TemporaryFolder()
    private let notice = Notice(id: "sluice-1-2", body: Array("{\"type\":\"completed\"}\n".utf8))

    private func tell(_ target: Hook.Target, within timeout: Duration = .seconds(20)) async -> DeliveryResult {
        let transport = Transport()
        let sender = HookSender(
            transport: PermittedTransport(transport), secrets: SecretReader(), clocks: SystemClocks())
        let telling = await sender.deliver(notice, by: HookDelivery(target), within: timeout)
        await transport.stop()
        return telling
    }

    private func script(_ text: String) throws -> Hook.Target {
        .command(CommandHook([try folder.writeProgram("hook", text).display, "one two"]))
    }

    @Test("a command gets the event on standard input, its arguments unchanged, and none of our environment")
    func command() async throws {
        let out = folder.path.appending("out")
        let target = try script(
            "cat > \(out.display); echo \"$1\" >> \(out.display); env | cut -d= -f1 >> \(out.display)")
        #expect(await tell(target) == .delivered("it ended with exit status 0"))
        let lines = String(decoding: try Files.read(out), as: UTF8.self).split(separator: "\n")
        #expect(lines.prefix(2) == ["{\"type\":\"completed\"}", "one two"])
        let known = Program.plainEnvironment.map { $0.prefix { $0 != "=" } } + ["PWD", "SHLVL", "_", "OLDPWD"]
        #expect(Set(lines.dropFirst(2)).subtracting(known).isEmpty)
    }

    @Test("a command that does not read causes no failure, however long the event")
    func deaf() async throws {
        let sender = HookSender(
            transport: PermittedTransport(Transport()), secrets: SecretReader(), clocks: SystemClocks())
        let long = Notice(id: "x", body: [UInt8](repeating: 0x61, count: 1 << 20))
        #expect(
            await sender.deliver(long, by: HookDelivery(try script("exit 0")), within: .seconds(30))
                == .delivered("it ended with exit status 0"))
    }

    @Test("another exit status is retried, with the last output and without its password")
    func status() async throws {
        let telling = await tell(try script("echo first >&2; echo 'no way: password=hunter2' >&2; exit 3"))
        #expect(
            telling
                == .retry("it ended with exit status 3: no way: password=***", because: .exitStatus(3), after: nil))
    }

    @Test("the last line of a private key that it prints is not shown")
    func printedKey() async throws {
        let lines = [
            "-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
        ]
        let telling = await tell(try script(lines.map { "echo '\($0)' >&2; " }.joined() + "exit 3"))
        #expect(telling == .retry("it ended with exit status 3: ***", because: .exitStatus(3), after: nil))
    }

    @Test("a hanging command is killed at its time-out, with all its children")
    func hangs() async throws {
        let mark = folder.path.appending("pid")
        let telling = await tell(try script("sleep 1000 & echo $! > \(mark.display); wait"), within: .milliseconds(500))
        #expect(telling == .retry("it did not end within its `timeout` and was stopped", because: .timeout, after: nil))
        let pid = String(decoding: try Files.read(mark), as: UTF8.self).filter { $0 != "\n" }
        try await eventually("the child of the command has ended") {
            guard let stat = try? Files.read(FilePath("/proc/\(pid)/stat")) else { return true }
            return String(decoding: stat, as: UTF8.self).contains(") Z ")
        }
    }

    @Test("a program may be a link, and a path that is no program is named")
    func obstacles() async throws {
        let link = folder.path.appending("link")
        #expect(link.withCString { symlink("/bin/true", $0) } == 0)
        #expect(await HookSender.obstacle(running: [link.display]) == nil)
        let none = folder.path.display
        #expect(await HookSender.obstacle(running: [none]) == "\(none) cannot be run: it is not a program")
    }

    @Test("a missing program is reported")
    func missing() async {
        let telling = await tell(.command(CommandHook(["/nowhere/tell"])))
        #expect(telling == .retry("it cannot be started: No such file or directory", because: .notStarted, after: nil))
    }

    @Test("an address gets the event, its id, the time, the signature of all three, and configured headers")
    func post() async throws {
        struct Seen: Sendable {
            var line = "", type = "", id = "", signature = "", token = "", body: [UInt8] = [], time = ""
        }
        let seen = Mutex(Seen())
        let server = try FakeServer { exchange in
            let now = Seen(
                line: "\(exchange.method) \(exchange.target)", type: exchange.header("content-type") ?? "",
                id: exchange.header("webhook-id") ?? "", signature: exchange.header("webhook-signature") ?? "",
                token: exchange.header("authorization") ?? "", body: exchange.body(),
                time: exchange.header("webhook-timestamp") ?? "")
            seen.withLock { $0 = now }
            exchange.reply(204)
        }
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        let web = WebHook(
            url: server.url + "/hook?a=b", headers: ["Authorization": .literal("Bearer abc")], secret: .literal(secret))
        #expect(await tell(.web(web)) == .delivered("\(server.url) answered 204"))
        let got = seen.withLock { $0 }
        #expect(got.line == "POST /hook?a=b")
        #expect((got.type, got.id, got.token) == ("application/json", "sluice-1-2", "Bearer abc"))
        #expect(got.body == notice.body)
        let moment = try #require(Int64(got.time))
        #expect(abs(moment - SystemClocks().wall().milliseconds / 1000) < 120)
        #expect(try got.signature == Signature(secret: secret).of(id: got.id, moment: moment, body: got.body))
    }

    @Test(
        "the response decides what happens next",
        arguments: [
            (200, "told"), (202, "told"), (301, "again"), (307, "again"), (400, "refused"), (401, "refused"),
            (404, "refused"), (408, "again"), (410, "refused"), (425, "again"), (429, "again"), (500, "again"),
            (503, "again"),
        ])
    func answers(_ status: Int, _ verdict: String) async throws {
        let server = try FakeServer { $0.reply(status, [("Retry-After", "7"), ("Location", "http://127.0.0.1:1/")]) }
        let telling = await tell(.web(WebHook(url: server.url)))
        switch telling {
        case .delivered: #expect(verdict == "told")
        case .refused: #expect(verdict == "refused")
        case .retry(_, _, let after):
            #expect(verdict == "again")
            #expect(after == (status < 400 ? nil : .seconds(7)))
        case .stopped: Issue.record("the delivery was stopped")
        }
        #expect(server.seen.count == 1)
    }

    @Test("https to a server without TLS, and http to one with it, are reported and retried")
    func scheme() async throws {
        let plain = try FakeServer { $0.reply(200) }
        let secure = plain.url.replacing("http://", with: "https://")
        guard case .retry(let text, .wireProtocol(.plain), nil) = await tell(.web(WebHook(url: secure + "/secretpath")))
        else {
            Issue.record("the mistake is not found")
            return
        }
        #expect(text.contains("does not speak TLS") && text.contains("`http://`"), "\(text)")
        #expect(!text.contains("secretpath"))
        let nginx = try FakeServer {
            $0.reply(400, [], "<center>The plain HTTP request was sent to HTTPS port</center>")
        }
        guard case .retry(let words, .wireProtocol(.tls), nil) = await tell(.web(WebHook(url: nginx.url))) else {
            Issue.record("the mistake is not found")
            return
        }
        #expect(words.contains("speaks TLS there") && words.contains("`https://`"), "\(words)")
        #expect(nginx.seen.count == 1)
    }

    @Test("a 401 that a proxy may have sent loses no notice")
    func unauthorized() async throws {
        struct Proxied: Transporting {
            func send(_ request: Request) async throws(TransportError) -> Response {
                var response = Response(status: 401, url: request.url)
                response.possibleProxy = ProxyServer("proxy.lan:3128", origin: .environment(variable: "http_proxy"))
                return response
            }
        }
        let sender = HookSender(
            transport: PermittedTransport(Proxied()), secrets: SecretReader(), clocks: SystemClocks())
        let target = Hook.Target.web(WebHook(url: "http://nas.lan/hook"))
        let telling = await sender.deliver(notice, by: HookDelivery(target), within: .seconds(20))
        guard case .retry(let text, _, nil) = telling else {
            Issue.record("the notice is lost")
            return
        }
        #expect(text.contains("proxy.lan:3128") && text.contains("`http_proxy`"))
    }

    @Test("a refusal that a proxy has given in place of the server loses no notice", arguments: [true, false])
    func refusedByProxy(_ isOfProxy: Bool) async throws {
        struct Proxied: Transporting {
            let headers: Headers

            func send(_ request: Request) async throws(TransportError) -> Response {
                var response = Response(status: 403, headers: headers, url: request.url)
                response.plainProxy = ProxyServer("proxy.lan:3128", origin: .environment(variable: "http_proxy"))
                return response
            }
        }
        let proxied = Proxied(headers: isOfProxy ? ["Server": "tinyproxy/1.11.1"] : [:])
        let sender = HookSender(
            transport: PermittedTransport(proxied), secrets: SecretReader(), clocks: SystemClocks())
        let target = Hook.Target.web(WebHook(url: "http://nas.lan/hook"))
        switch await sender.deliver(notice, by: HookDelivery(target), within: .seconds(20)) {
        case .retry(let text, _, nil):
            #expect(isOfProxy && text.contains("the proxy proxy.lan:3128, as `http_proxy`"), "\(text)")
        case let other: #expect(!isOfProxy, "\(other)")
        }
    }

    @Test(
        "no listener, silence and an unreadable secret are retried; messages show neither path nor secret"
    )
    func trouble() async throws {
        let silent = try FakeServer { $0.hang() }
        let gone = try FakeServer { $0.reply(200) }
        gone.stop()
        for (url, kind) in [(silent.url, TransportError.Kind.timedOut), (gone.url, .connect)] {
            let web = WebHook(
                url: url + "/secretpath", headers: ["X-Key": .literal("hunter2hunter2")], secret: .literal("hunter3"))
            guard case .retry(let text, let failure, nil) = await tell(.web(web), within: .milliseconds(800)) else {
                Issue.record("the delivery is not tried again")
                continue
            }
            #expect(!text.contains("secretpath") && !text.contains("hunter"))
            #expect([kind, .stalled, .reset].map(DeliveryFailure.transport).contains(failure), "\(failure)")
        }
        let web = WebHook(url: silent.url, secret: .file("/nowhere/secret"))
        guard case .retry(let text, .secret, nil) = await tell(.web(web)) else {
            Issue.record("the delivery is not tried again")
            return
        }
        #expect(text.contains("/nowhere/secret"))
        #expect(silent.seen.count == 1)
    }
}
