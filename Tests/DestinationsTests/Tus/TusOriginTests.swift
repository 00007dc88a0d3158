import Core
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// A server that gives an upload an address at another origin, by mistake or on purpose.
@Suite("tus at other origins", .timeLimit(.minutes(Patience.minutes(2))))
struct TusOriginTests {
    private let script = ScriptedTusServer()
    private static let token = "Zq7canaryX9k2"

    /// Answers each creation with this address, and everything else correctly.
    private func front(_ location: @escaping @Sendable () -> String) throws -> FakeServer {
        try FakeServer { [script] exchange in
            guard exchange.method == "POST" else { return script.serve(exchange) }
            script.state.withLock { state in
                state.length = exchange.header("upload-length").flatMap { Int64($0) } ?? -1
                state.exists = true
            }
            exchange.reply(201, [("Location", location()), ("Tus-Resumable", "1.0.0")])
        }
    }

    private func journey(
        _ url: String, named: [String] = [], size: Int = 1000, ledger: CountingReporter = CountingReporter(),
        checkpoint: Checkpoint? = nil
    ) throws -> UploadScenario {
        try UploadScenario(
            url, size: size,
            values: [
                "token": .secret(.literal(Self.token)), "http.headers": .map(["X-Key": .literal("key-" + Self.token)]),
                "allow_origins": .texts(named),
            ], ledger: ledger, checkpoint: checkpoint)
    }

    private func check(_ error: UploadError, _ silent: SilentPort) {
        #expect(error.remedy == .misconfigured)
        #expect(error.failure.kind == .config && error.failure.retryable)
        #expect(error.failure.message.contains("`allow_origins: [\(silent.url)]`"), "\(error)")
        #expect(error.failure.message.contains("nothing was sent there"), "\(error)")
        #expect(!error.failure.message.contains("hunter2"), "\(error)")
        #expect(!silent.hasCaller)
    }

    @Test(
        "an address elsewhere gets no connection, is recorded, and its setting suggested",
        arguments: ["absolute", "without a scheme", "a file without a byte"])
    func refused(_ form: String) async throws {
        let silent = try SilentPort()
        let address = silent.url + "/hunter2?signature=hunter2"
        let server = try front { form == "without a scheme" ? String(address.dropFirst(5)) : address }
        let journey = try journey(server.url + "/files", size: form == "a file without a byte" ? 0 : 1000)
        for _ in 0..<3 {
            let error = try await journey.failedAttempt()
            #expect(error.failure.code == .otherOrigin)
            check(error, silent)
            #expect(error.failure.message.contains("another origin than \(server.url)"), "\(error)")
        }
        #expect(verbs(server) == ["POST"], "one creation, and no byte elsewhere")
        #expect(journey.ledger.last?["url"] == address)
        #expect(journey.ledger.last?["creating"] == nil)
        #expect(journey.ledger.last?["may_be_whole"] == nil && journey.ledger.last?["reach"] == "0")
    }

    @Test("with that setting the same upload continues there, with credentials, and no second one is created")
    func allowed() async throws {
        let seen = Mutex<[[String?]]>([])
        let storage = try FakeServer { [script] exchange in
            seen.withLock {
                $0.append([exchange.header("authorization"), exchange.header("x-key"), exchange.header("x-own")])
            }
            script.serve(exchange)
        }
        let server = try front { storage.url + "/u" }
        let first = try journey(server.url + "/files")
        let error = try await first.failedAttempt()
        #expect(storage.seen.isEmpty)
        #expect(error.failure.message.contains("`allow_origins: [\(storage.url)]`"), "\(error)")
        let second = try journey(server.url + "/files", named: [storage.url], ledger: first.ledger)
        _ = try await second.attempt(headers: ["X-Own": "own"])
        #expect(script.held == second.content)
        #expect(verbs(server) == ["POST"])
        #expect(verbs(storage) == ["HEAD", "PATCH", "HEAD"] || verbs(storage) == ["HEAD", "PATCH"], "\(storage.seen)")
        for headers in seen.withLock({ $0 }) {
            #expect(headers == ["Bearer " + Self.token, "key-" + Self.token, "own"])
        }
        #expect(first.ledger.last?["restarts"] == nil)
    }

    @Test(
        "an address at the configured origin is used, in any spelling",
        arguments: ["/u", "u", "//HOST/u", "http://HOST/u", "HTTP://127.0.0.1.:PORT/u", "http://127.0.0.1:0PORT/u"])
    func same(_ form: String) async throws {
        let port = Mutex(0)
        let server = try front {
            let port = port.withLock { $0 }
            return form.replacing("HOST", with: "127.0.0.1:\(port)").replacing("PORT", with: "\(port)")
        }
        port.withLock { $0 = server.port }
        let journey = try journey(server.url + "/files")
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(verbs(server).filter { $0 == "POST" }.count == 1)
    }

    @Test("https on the same host is tried, because it is the same server")
    func encrypted() async throws {
        let address = Mutex("")
        let server = try front { address.withLock { $0 } }
        address.withLock { $0 = server.url.replacing("http://", with: "https://") + "/u" }
        let journey = try journey(server.url + "/files")
        // The server has no TLS, and closes.
        let error = try await journey.failedAttempt()
        #expect(error.failure.code != .otherOrigin, "\(error)")
        #expect(server.connectionCount >= 2)
        #expect(script.held.isEmpty, "no byte was sent unencrypted")
    }

    @Test("a user name in an address is refused, as before", arguments: ["me@", "me:pw@", "127.0.0.1:80@"])
    func user(_ user: String) async throws {
        let silent = try SilentPort()
        let server = try front { "http://\(user)\(silent.url.dropFirst(7))/u" }
        let error = try await journey(server.url + "/files").failedAttempt()
        #expect(error.remedy == .misconfigured && error.failure.code == .badLocation)
        #expect(!silent.hasCaller)
    }

    @Test("an earlier upload started elsewhere waits as well, and is not started again")
    func resumed() async throws {
        let silent = try SilentPort()
        let server = try front { "/u" }
        let checkpoint = Checkpoint([
            "url": silent.url + "/hunter2", "server": WebAddress(server.url).origin, "offset": "500", "reach": "500",
        ])
        let journey = try journey(server.url + "/files", checkpoint: checkpoint)
        check(try await journey.failedAttempt(), silent)
        #expect(verbs(server).isEmpty)
        // No other server is asked to remove it either.
        #expect(try await journey.destination.discard(checkpoint) == false)
        #expect(!silent.hasCaller && verbs(server).isEmpty)
    }

    @Test("an upload whose last byte was accepted before the setting was removed waits as well")
    func shortened() async throws {
        let silent = try SilentPort()
        let checkpoint = Checkpoint([
            "url": silent.url + "/u", "offset": "1000", "taken": "1000", "reach": "1000", "answered": "1",
        ])
        let server = try front { "/u" }
        check(try await journey(server.url + "/files", checkpoint: checkpoint).failedAttempt(), silent)
        #expect(verbs(server).isEmpty)
    }

    @Test(
        "a redirect elsewhere is not followed, and its setting suggested", arguments: ["POST", "HEAD", "PATCH"],
        [307, 308])
    func redirected(_ verb: String, _ status: Int) async throws {
        let silent = try SilentPort()
        let server = try FakeServer { [script] exchange in
            guard exchange.method == verb else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(status, [("Location", silent.url + "/hunter2?s=hunter2"), ("Tus-Resumable", "1.0.0")])
        }
        let checkpoint = Checkpoint(["url": server.url + "/u", "offset": "0", "reach": "0"])
        let journey = try journey(server.url + "/files", checkpoint: verb == "HEAD" ? checkpoint : nil)
        let error = try await journey.failedAttempt()
        check(error, silent)
        #expect(error.failure.message.contains("it redirects"), "\(error)")
        if verb != "POST" { #expect(journey.ledger.last.map { $0["url"] == server.url + "/u" } ?? true) }
    }

    @Test("a redirect to a configured origin is followed", arguments: ["POST", "HEAD", "PATCH"])
    func followed(_ verb: String) async throws {
        let other = try FakeServer { [script] exchange in script.serve(exchange) }
        let server = try FakeServer { [script] exchange in
            guard exchange.method == verb else { return script.serve(exchange) }
            _ = exchange.body()
            exchange.reply(308, [("Location", other.url + (verb == "POST" ? "/files" : "/u"))])
        }
        let checkpoint = Checkpoint(["url": server.url + "/u", "offset": "0", "reach": "0"])
        if verb == "HEAD" {
            script.state.withLock { state in
                state.length = 1000
                state.exists = true
            }
        }
        let journey = try journey(
            server.url + "/files", named: [other.url], checkpoint: verb == "HEAD" ? checkpoint : nil)
        _ = try await journey.attempt()
        #expect(script.held == journey.content)
        #expect(journey.ledger.last?["url"] == other.url + "/u")
    }

    @Test("neither the lookup of a file by name nor the check follows a redirect elsewhere")
    func asked() async throws {
        let silent = try SilentPort()
        let server = try FakeServer { exchange in
            if exchange.method == "OPTIONS", exchange.target == "/files" {
                return exchange.reply(
                    204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation"), ("Sluice-Lookup", "1")])
            }
            exchange.reply(307, [("Location", silent.url + "/hunter2")])
        }
        let journey = try journey(server.url + "/files")
        let error = await #expect(throws: UploadError.self) { try await journey.destination.find(journey.order) }
        check(try #require(error), silent)
        #expect(await (try self.journey(server.url + "/other")).destination.check().verdict == .failed)
        #expect(!silent.hasCaller)
    }

    @Test("a removal that is redirected elsewhere is not repeated there")
    func removed() async throws {
        let silent = try SilentPort()
        let server = try FakeServer { $0.reply(307, [("Location", silent.url + "/hunter2")]) }
        let journey = try journey(server.url + "/files")
        let error = await #expect(throws: UploadError.self) {
            try await journey.destination.discard(Checkpoint(["url": server.url + "/u"]))
        }
        check(try #require(error), silent)
    }
}
