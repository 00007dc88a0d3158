import Core
import Destinations
import Linux
import Receiver
import Synchronization
import TestKit
import Testing
import Transport
import WebServer

/// Small files whose bytes travel with the creation of their upload.
@Suite("tus creations with bytes", .timeLimit(.minutes(Patience.minutes(2))))
struct TusCreationWithBytesTests {
    // MARK: sluice receive

    /// Counts requests, and loses the answers to some of them.
    private final class Line: Transporting {
        struct State {
            var seen: [String] = []
            /// How many answers to POST do not arrive.
            var losses = 0
            /// No answer to OPTIONS arrives.
            var losesOptions = false
        }
        let state = Mutex(State())
        private let transport = Transport()

        func send(_ request: Request) async throws(TransportError) -> Response {
            let count = request.body.count ?? 0
            let answer = try await transport.send(request)
            let isLost = state.withLock { state in
                state.seen.append(count > 0 ? "\(request.method) \(count)" : request.method)
                if request.method == "OPTIONS" { return state.losesOptions }
                guard request.method == "POST", state.losses > 0 else { return false }
                state.losses -= 1
                return true
            }
            if !isLost { return answer }
            throw TransportError(kind: .reset, detail: "lost", url: request.url, delivery: answer.delivery)
        }

        var seen: [String] { state.withLock { $0.seen }.filter { $0 != "OPTIONS" } }
    }

    private func withReceiver(_ body: (_ url: String, _ folder: FilePath) async throws -> Void) async throws {
        let folder = TemporaryFolder()
        let receiver = try await Receiver.start(
            into: folder.path, listen: .tcp(host: "127.0.0.1", port: 0), log: { _ in })
        do { try await body("http://127.0.0.1:\(receiver.port)/files/", folder.path) } catch {
            await receiver.stop()
            throw error
        }
        await receiver.stop()
    }

    @Test("a small file to `sluice receive` takes exactly one request, and is verified by it")
    func one() async throws {
        try await withReceiver { url, folder in
            let line = Line()
            let scenario = try UploadScenario(url, transport: line)
            let object = try await scenario.attempt()
            #expect(line.seen == ["POST 1000"])
            #expect(object.verifiedBy == "offset" && object.warnings.isEmpty)
            #expect(try Files.read(folder.appending("front/clip.mp4"), limit: 1 << 20) == scenario.content)
            #expect(scenario.ledger.book.withLock { $0.sending } == 1000)
        }
    }

    @Test("an upload that ends after a lost answer is not said to be removed: the server may have the file")
    func ended() async throws {
        try await withReceiver { url, folder in
            let line = Line()
            line.state.withLock { $0.losses = 1 }
            let scenario = try UploadScenario(url, transport: line)
            _ = try await scenario.failedAttempt()
            let last = try #require(scenario.ledger.last)
            #expect(try await !scenario.destination.discard(last))
        }
    }

    @Test("a larger file, one above `chunk_size`, an empty one, and any with `false` take the usual requests")
    func usual() async throws {
        try await withReceiver { url, _ in
            for (size, values, seen) in [
                ((1 << 20) + 1, [:], ["POST", "PATCH \((1 << 20) + 1)", "HEAD"]), (0, [:], ["POST", "HEAD"]),
                (1000, ["create_with_bytes": .text("false")], ["POST", "PATCH 1000", "HEAD"]),
                (1001, ["chunk_size": .bytes(1000)], ["POST", "PATCH 1000", "PATCH 1", "HEAD"]),
            ] as [(Int, [String: SettingValue], [String])] {
                let line = Line()
                _ = try await UploadScenario(
                    url, size: size, values: values, name: FilePath("\(size).mp4"), transport: line
                ).attempt()
                #expect(line.seen == seen)
            }
        }
    }

    @Test(
        "after a lost answer the creation carries no bytes, and the receiver says that it has them", arguments: [1, 2])
    func lost(_ losses: Int) async throws {
        try await withReceiver { url, folder in
            let line = Line()
            line.state.withLock { $0.losses = losses }
            let scenario = try UploadScenario(url, transport: line)
            let (object, errors) = try await scenario.arrive()
            #expect(errors.count == losses && object.verifiedBy == "offset")
            #expect(line.seen == ["POST 1000"] + Array(repeating: "POST", count: losses) + ["HEAD"])
            #expect(try Files.names(in: folder.appending("front")).count == 1)
            #expect(object.warnings == [], "nothing is there twice")
        }
    }

    @Test(
        "a creation that the receiver will answer with the same upload again leaves no doubt, with and without bytes",
        arguments: [1000, (1 << 20) + 1])
    func repeated(_ size: Int) async throws {
        try await withReceiver { url, folder in
            let line = Line()
            line.state.withLock { $0.losses = 1 }
            let scenario = try UploadScenario(url, size: size, transport: line)
            _ = try await scenario.failedAttempt()
            // After a restart its answer to OPTIONS is lost as well.
            let again = Line()
            again.state.withLock { $0.losesOptions = true }
            let later = try UploadScenario(url, size: size, transport: again, checkpoint: scenario.ledger.last)
            #expect(try await later.arrive().object.warnings == [])
            #expect(try Files.names(in: folder.appending("front")).count == 1)
        }
    }

    @Test("no byte leaves with a creation after the upload was told to end")
    func draining() async throws {
        try await withReceiver { url, _ in
            let line = Line()
            let scenario = try UploadScenario(url, transport: line)
            scenario.ledger.pauses.withLock { $0 = true }
            await #expect(throws: CancellationError.self) { try await scenario.attempt() }
            #expect(line.seen == ["POST"])
        }
    }

    @Test("a process that was killed in the request continues without bytes too")
    func killed() async throws {
        try await withReceiver { url, folder in
            let scenario = try UploadScenario(url)
            _ = try await scenario.attempt()
            // As it was on disk before the request left.
            let entered = try #require(scenario.ledger.book.withLock { $0.checkpoints.first })
            #expect(entered["creating"] == "1" && entered["reach"] == "1000" && entered["may_be_whole"] == "1")
            let line = Line()
            let later = try UploadScenario(url, transport: line, checkpoint: entered)
            _ = try await later.attempt()
            #expect(line.seen == ["POST", "HEAD"])
            #expect(try Files.names(in: folder.appending("front")).count == 1)
        }
    }

    // MARK: Other servers

    /// A server that keeps the bytes of creations.
    private final class Keeper: Sendable {
        struct State {
            var held: [UInt8] = []
            var bodies: [Int] = []
            var metadata: [String] = []
            var isCut = false
        }
        let state = Mutex(State())
        /// The answer to a creation with bytes: its status, and whether it names the offset.
        private let status: Int
        private let named: Bool
        private let kept: Int

        init(status: Int = 201, named: Bool = true, kept: Int = .max) {
            (self.status, self.named, self.kept) = (status, named, kept)
        }

        func server() throws -> FakeServer {
            try FakeServer { [self] exchange in
                let body = exchange.body()
                switch exchange.method {
                case "OPTIONS":
                    exchange.reply(
                        204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation,creation-with-upload")])
                case "POST": create(exchange, body)
                case "HEAD", "PATCH":
                    let count = state.withLock { state in
                        state.held += body
                        return state.held.count
                    }
                    exchange.reply(exchange.method == "HEAD" ? 200 : 204, [("Upload-Offset", "\(count)")])
                default: exchange.reply(405)
                }
            }
        }

        private func create(_ exchange: Exchange, _ body: [UInt8]) {
            let (count, isCut) = state.withLock { state in
                state.bodies.append(body.count)
                state.metadata.append(exchange.header("upload-metadata") ?? "")
                state.held = status < 300 ? Array(body.prefix(kept)) : []
                defer { state.isCut = false }
                return (state.held.count, state.isCut)
            }
            if isCut { return exchange.cut() }
            if status >= 300, !body.isEmpty { return exchange.reply(status) }
            exchange.reply(
                body.isEmpty ? 201 : status,
                [("Location", "/u")] + (named && !body.isEmpty ? [("Upload-Offset", "\(count)")] : []))
        }

        var bodies: [Int] { state.withLock { $0.bodies } }
    }

    private static let on = ["create_with_bytes": SettingValue.text("true")]

    @Test("another server gets bytes with the creation only if a person has switched it on")
    func others() async throws {
        for (values, bodies, seen) in [
            ([:], [0], ["POST", "PATCH", "HEAD"]), (Self.on, [1000], ["POST", "HEAD"]),
        ] as [([String: SettingValue], [Int], [String])] {
            let keeper = Keeper()
            let server = try keeper.server()
            let scenario = try UploadScenario(server.url + "/files", values: values)
            _ = try await scenario.attempt()
            #expect(keeper.bodies == bodies && verbs(server) == seen)
            #expect(keeper.state.withLock { $0.held } == scenario.content)
        }
    }

    @Test(
        "an answer without the offset, with 204, or with a part of the bytes is followed up",
        arguments: [
            (201, false, 0, ["POST", "HEAD", "PATCH", "HEAD"]), (204, true, 1000, ["POST", "HEAD"]),
            (201, true, 400, ["POST", "PATCH", "HEAD"]),
        ] as [(Int, Bool, Int, [String])])
    func answers(_ status: Int, _ named: Bool, _ kept: Int, _ seen: [String]) async throws {
        let keeper = Keeper(status: status, named: named, kept: kept)
        let server = try keeper.server()
        let scenario = try UploadScenario(server.url + "/files", values: Self.on)
        _ = try await scenario.attempt()
        #expect(keeper.state.withLock { $0.held } == scenario.content)
        #expect(verbs(server) == seen)
    }

    @Test(
        "a server that refuses the bytes gets creations without them from then on, and has made no upload",
        arguments: [400, 403, 405, 413, 415, 422])
    func refused(_ status: Int) async throws {
        let keeper = Keeper(status: status)
        let server = try keeper.server()
        let scenario = try UploadScenario(server.url + "/files", values: Self.on)
        let object = try await scenario.attempt()
        #expect(verbs(server) == ["POST", "POST", "PATCH", "HEAD"] && keeper.bodies == [1000, 0])
        #expect(object.warnings == [])
        #expect(keeper.state.withLock { $0.metadata }.allSatisfy { !$0.contains("possibleDuplicate") })
        let checkpoint = try #require(scenario.ledger.last)
        // 400 and 422 may be about this file, and 403 about its time.
        let isRemembered = [405, 413, 415].contains(status)
        try await scenario.ledger.record(Checkpoint())
        _ = try await scenario.attempt()
        #expect(keeper.bodies.dropFirst(2) == (isRemembered ? [0] : [1000, 0]))
        #expect((checkpoint["creation_body_refused"] == "1") == (isRemembered || status == 403))
    }

    @Test("where every creation is refused, the bytes are sent once, and not with each attempt", arguments: [404, 405])
    func refusedAlways(_ status: Int) async throws {
        let bodies = Mutex<[Int]>([])
        let server = try FakeServer { exchange in
            let count = exchange.body().count
            guard exchange.method == "POST" else {
                return exchange.reply(
                    204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation,creation-with-upload")])
            }
            bodies.withLock { $0.append(count) }
            exchange.reply(status, [("Tus-Resumable", "1.0.0")])
        }
        let scenario = try UploadScenario(server.url + "/files", values: Self.on)
        for _ in 0..<3 { #expect(try await scenario.failedAttempt().remedy == .misconfigured) }
        #expect(bodies.withLock { $0 } == [1000, 0, 0, 0])
    }

    @Test("after a lost answer of another server the file may be there twice, and both sides are told so")
    func doubled() async throws {
        let keeper = Keeper()
        keeper.state.withLock { $0.isCut = true }
        let server = try keeper.server()
        let scenario = try UploadScenario(server.url + "/files", values: Self.on)
        _ = try await scenario.failedAttempt()
        let object = try await scenario.attempt()
        #expect(keeper.bodies == [1000, 0] && verbs(server) == ["POST", "POST", "PATCH", "HEAD"])
        #expect(object.warnings.contains { $0.contains("1 creation(s) got no answer") }, "\(object.warnings)")
        #expect(object.warnings.contains { $0.contains("sent twice") }, "\(object.warnings)")
        #expect(keeper.state.withLock { $0.metadata }.map { $0.contains("possibleDuplicate") } == [false, true])
    }
}
