import Core
import Credentials
import Dispatch
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Forwards requests to a server, and compresses its answers, requested or not.
final class CompressingRelay: Sendable {
    /// The coding of an answer.
    enum Coding: String, Sendable, CaseIterable { case gzip, deflate, rawDeflate }

    private let server: FakeServer
    var url: String { server.url }
    private let count = Shared()

    private final class Shared: Sendable {
        let compressed = Mutex(0)
        let seen = Mutex<[String: Set<String>]>([:])
    }

    /// Number of answers with a body.
    var compressed: Int { count.compressed.withLock { $0 } }
    /// Values of `Accept-Encoding` in requests, by method.
    var seen: [String: Set<String>] { count.seen.withLock { $0 } }

    /// - Parameter isUnreadable: Whether the answer to a request (`POST /me/videos`) has an unknown encoding.
    init(
        to upstream: String, _ way: Coding = .gzip,
        unreadable isUnreadable: @escaping @Sendable (String) -> Bool = { _ in false }
    ) throws {
        let transport = Transport()
        let shared = count
        let own: Set<String> = ["content-length", "transfer-encoding", "connection", "expect", "accept-encoding"]
        server = try FakeServer { exchange in
            let requested = exchange.header("accept-encoding") ?? "nothing"
            shared.seen.withLock { _ = $0[exchange.method, default: []].insert(requested) }
            let body = exchange.body()
            let headers = exchange.headerNames.filter { !own.contains($0) }.compactMap { name in
                exchange.header(name).map { (name, $0) }
            }
            var request = Request(
                exchange.method, upstream + exchange.target, headers: headers,
                body: exchange.header("content-length") == nil || exchange.method == "GET" ? .none : .bytes(body))
            request.allowsExpectContinue = false
            let sent = request
            let answer = try wait { try await transport.send(sent) }
            var lines = answer.headers.lines.filter { !own.contains($0.name.lowercased()) }
                .map { "\($0.name): \($0.value)\r\n" }.joined()
            if exchange.method == "HEAD" {
                // It is not compressed: it was requested uncoded.
                if let length = answer.headers["Content-Length"] { lines += "Content-Length: \(length)\r\n" }
                return exchange.answer(Array("HTTP/1.1 \(answer.status) Yes\r\n\(lines)\r\n".utf8))
            }
            var bytes = answer.body
            if !bytes.isEmpty {
                shared.compressed.withLock { $0 += 1 }
                let (coding, name): (Compressed, String) =
                    switch way {
                    case .gzip: (.gzip, "gzip")
                    case .deflate: (.zlib, "deflate")
                    case .rawDeflate: (.raw, "deflate")
                    }
                let isStrange = isUnreadable("\(exchange.method) \(exchange.target)")
                bytes = isStrange ? bytes : coding(bytes)
                lines += "Content-Encoding: \(isStrange ? "br" : name)\r\nVary: Accept-Encoding\r\n"
            }
            if answer.status != 204 { lines += "Content-Length: \(bytes.count)\r\n" }
            exchange.answer(Array("HTTP/1.1 \(answer.status) Yes\r\n\(lines)\r\n".utf8) + bytes)
        }
    }

    func stop() { server.stop() }
}

/// For a thread of the test's own server.
private func wait<Made: Sendable>(_ work: @escaping @Sendable () async throws -> Made) throws -> Made {
    let made = Mutex<Result<Made, any Error>?>(nil)
    let done = DispatchSemaphore(value: 0)
    Task {
        let result: Result<Made, any Error>
        do { result = .success(try await work()) } catch { result = .failure(error) }
        made.withLock { $0 = result }
        done.signal()
    }
    done.wait()
    guard let result = made.withLock({ $0 }) else { throw CancellationError() }
    return try result.get()
}

@Suite("Unrequested compressed answers", .timeLimit(.minutes(Patience.minutes(5))))
struct CompressedAnswerTests {
    private static let tools = DestinationTools(
        transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in })

    @Test("the API of Vimeo is decoded, and one video is created", arguments: CompressingRelay.Coding.allCases)
    func vimeo(_ way: CompressingRelay.Coding) async throws {
        let end = try VimeoEnd()
        defer { end.server.stop() }
        let relay = try CompressingRelay(to: end.server.url, way)
        defer { relay.stop() }
        let destination = try Vimeo(
            [
                "url": .text(relay.url), "token": .secret(.file(end.tokenFile)), "flow": .text("tus"),
                "chunk_size": .bytes(1000), "allow_origins": .texts([end.server.bytesURL]),
            ], Self.tools)
        let staged = try StagedUpload(2500)
        let object = try await destination.upload(staged.order, reporter: RecordingReporter())
        #expect(object.warnings.isEmpty)
        #expect(end.contents == [staged.content])
        #expect(relay.compressed > 0)
        #expect(relay.seen["POST"] == ["gzip"])
    }

    @Test("a bucket's lists and identifiers are decoded, and sizes and tags are those of its content")
    func bucket() async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        let relay = try CompressingRelay(to: scene.emulator.url, .gzip)
        defer { relay.stop() }
        let behind = try S3Scene(["endpoint": .text(relay.url)], at: scene.emulator)
        let (staged, recorder) = (try StagedUpload(S3Scene.size), RecordingReporter())
        try await staged.sendStopped(to: behind, recorder, accepting: 5 << 20)
        _ = try await staged.send(to: behind, recorder)
        #expect(scene.holds(staged))
        #expect(scene.emulator.requests.filter { $0 == "create" }.count == 1)
        #expect(try await behind.destination.unfinished()?.isEmpty == true)
        #expect(relay.compressed > 2)
        #expect(relay.seen["HEAD"] == ["identity"] && relay.seen["PUT"] == ["identity"])
        #expect(relay.seen["GET"] == ["gzip"])
    }

    @Test("compressed answers of OSS are decoded", arguments: CompressingRelay.Coding.allCases)
    func oss(_ way: CompressingRelay.Coding) async throws {
        try await OSSEnd.open { end in
            let relay = try CompressingRelay(to: end.server.url, way)
            defer { relay.stop() }
            let destination = try OSS.kind.make(OSSEnd.values(relay.url), Self.tools)
            let staged = try StagedUpload(300 << 10)
            #expect(try await destination.upload(staged.order, reporter: RecordingReporter()).verifiedBy == "crc64")
            #expect(try await end.server.unfinished() == [])
            #expect(relay.compressed >= 2)
        }
    }

    @Test(
        "VOD, a service for grants and one for keys are decoded, and one medium is created",
        arguments: ApsaraEnd.Authorization.allCases)
    func vod(_ way: ApsaraEnd.Authorization) async throws {
        try await ApsaraEnd.open(way) { end in
            let relay = try CompressingRelay(to: end.server.url, .gzip)
            defer { relay.stop() }
            var more: [String: SettingValue?] =
                switch way {
                case .key: ["endpoint": .text(relay.url)]
                case .service: ["authorisation.url": .text(relay.url + "/_auth")]
                case .sts: ["endpoint": .text(relay.url), "sts.url": .text(relay.url + "/_sts")]
                }
            more["upload_endpoint"] = .text(end.server.url)
            let staged = try StagedUpload(300 << 10)
            let object = try await end.again(more).upload(staged.order, reporter: RecordingReporter())
            #expect(object.verifiedBy == "crc64" && object.warnings.isEmpty)
            #expect(try await end.media().count == 1)
            #expect(relay.compressed >= 1)
        }
    }

    @Test("compressed answers of forms are decoded", arguments: ["breakpoint", "fineuploader", "plupload"])
    func forms(_ preset: String) async throws {
        let scene = try FormScene(preset)
        let relay = try CompressingRelay(to: scene.server.url.replacing("/upload", with: ""), .gzip)
        defer { relay.stop() }
        let staged = try StagedUpload(2500)
        _ = try await scene.again(["url": .text(relay.url + "/upload")]).upload(
            staged.order, reporter: RecordingReporter())
        #expect(try scene.objects.values.map { $0 } == [staged.content])
        #expect(relay.compressed >= 3)
        try await scene.close()
    }

    @Test("an undecodable answer is its own error and acknowledges nothing, and a refusal stays one")
    func unreadable() async throws {
        let status = Mutex(200)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(status.withLock { $0 }, [("Content-Encoding", "br")], "\u{1}\u{2}")
        }
        let client = AuthorizedClient(
            transport: Transport(), credentials: CredentialProvider([], reader: SecretReader()), origin: server.url,
            clocks: SystemClocks(), name: "archive")
        let error = await #expect(throws: AuthorizedClient.NoAnswerError.self) {
            try await client.ask(Request("POST", server.url))
        }
        #expect(error?.error.failure.code == .unreadableAnswer && error?.error.failure.kind == .protocol)
        #expect(error?.error.failure.message.contains("the encoding `br`") == true)
        #expect(error?.error.leavesNothingBehind == false)
        status.withLock { $0 = 404 }
        let answer = try await client.ask(Request("POST", server.url))
        #expect(answer.response.status == 404 && answer.response.body.isEmpty)
        #expect(client.refused("it", answer.response, .failUpload).failure.message.contains("the encoding `br`"))
    }
}
