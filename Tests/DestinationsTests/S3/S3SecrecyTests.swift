import Core
import Dispatch
import TestKit
import Testing
import Transport

@testable import Destinations

/// A signed address opens its object to every reader: no failure, which `show` and the log contain, has its signature.
@Suite("s3: secrecy of signed addresses", .timeLimit(.minutes(Patience.minutes(2))))
struct S3SecrecyTests {
    private typealias Scene = S3PresignTests.Scene

    private static let canary = "signature-that-nobody-may-see"
    /// No request was sent to it yet, so its secret parts are not remembered.
    private static let address =
        "https://s3.example/bucket/front/clip.mp4?X-Amz-Credential=AK&X-Amz-Signature=\(canary)-0&x-id=PutObject"
    /// As JSON may contain it.
    private static let coded = address.replacing("/", with: "\\/").replacing("&", with: "\\u0026")

    struct Oddity: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let fault: SignerServer.Fault
        /// Text that is shown nevertheless.
        let words: String

        init(_ name: String, _ fault: SignerServer.Fault, _ words: String) {
            (testDescription, self.fault, self.words) = (name, fault, words)
        }
    }

    static let oddities = [
        Oddity("a page", .answer(200, "<a href=\"\(address)\">here</a>"), "something other than JSON with a list"),
        Oddity("the address alone", .answer(200, address), "something other than JSON with a list"),
        Oddity("no list", .answer(200, "{\"signed\":\"\(address)\"}"), "something other than JSON with a list"),
        Oddity("a list of texts", .answer(200, "{\"signed\":[\"\(address)\"]}"), "gives no address for `head`"),
        Oddity("another field", .answer(200, "{\"signed\":[{\"uri\":\"\(address)\"}]}"), "gives no address for `head`"),
        Oddity("another's address", .address { _ in address }, "gives an address at s3.example, which is neither at"),
        Oddity(
            "words for why", .refuse("there was one: \(address), before", isFinal: false), "there was one: https://s3"),
        Oddity("its last words", .refuse("\(address) has ended", isFinal: true), "refuses `head`: https://s3.example"),
        Oddity("403", .answer(403, "\(address) is for another"), "answered 403 to the request for a signed address"),
        Oddity("404", .answer(404, "nothing at \(address)"), "answered 404 to the request for a signed address"),
        Oddity("500", .answer(500, "{\"url\":\"\(coded)\"}"), "answered 500 to the request for a signed address"),
        Oddity("429", .answer(429, "wait, \(address)\n"), "answered 429 to the request for a signed address"),
        Oddity("302", .answer(302, address, headers: [("Location", address)]), "it redirects"),
        Oddity("307", .answer(307, headers: [("Location", address)]), "it redirects"),
    ]

    @Test("a key returned as an error code is never shown")
    func code() async throws {
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        emulator.script(.put, .error(403, Self.canary))
        let destination = try S3(
            [
                "endpoint": .text(emulator.url), "bucket": .text("bucket"), "access_key": .secret(.literal("AK")),
                "secret_key": .secret(.literal(Self.canary)),
            ], Scene.tools)
        let staged = try StagedUpload(900)
        let error = try #require(
            await #expect(throws: UploadError.self) {
                try await destination.upload(staged.order, reporter: RecordingReporter())
            })
        #expect(!"\(error)".contains(Self.canary) && error.failure.code.rawValue.contains("***"), "\(error)")
    }

    @Test("an invalid answer of the signer is reported without it", arguments: oddities)
    func odd(_ oddity: Oddity) async throws {
        let scene = try Scene()
        scene.signer.script(oddity.fault)
        let error = try await StagedUpload(900).failure(to: scene)
        #expect(error.failure.message.contains(oddity.words), "\(error)")
        #expect(!"\(error)".contains(Self.canary), "\(error)")
        #expect(scene.emulator.requests.isEmpty)
    }

    private static let lines = [
        "echo '\(address)'", "echo '\(address)' >&2; exit 1", "echo '{\"signed\":[\"\(address)\"]}'",
        "echo '{\"signed\":[{\"error\":\"no more of \(address)\"}]}'",
        "echo '{\"signed\":[{\"url\":\"\(address)\"}]}'", "echo '\(address)'; kill -9 $$",
    ]

    @Test(
        "invalid output of a program, and its errors, are reported without it",
        arguments: lines)
    func program(_ line: String) async throws {
        let temporary = TemporaryFolder()
        let script = try temporary.writeProgram("sign", "cat > /dev/null; \(line)")
        let emulator = try S3Emulator()
        defer { emulator.stop() }
        let destination = try S3(
            [
                "endpoint": .text(emulator.url), "bucket": .text("bucket"),
                "presign.command": .texts([script.display]),
            ], Scene.tools)
        let staged = try StagedUpload(900)
        let error = try #require(
            await #expect(throws: UploadError.self) {
                try await destination.upload(staged.order, reporter: RecordingReporter())
            })
        #expect(error.failure.message.contains("the signer \(script.display) "), "\(error)")
        #expect(!"\(error)".contains(Self.canary), "\(error)")
        #expect(emulator.requests.isEmpty)
    }

    /// The bucket's answer at a signed address, which it repeats in the text.
    enum Answer: Sendable, CaseIterable {
        case redirect, lastingRedirect, text, error, failure, end

        func give(_ exchange: Exchange, _ elsewhere: String) {
            let address = "\(elsewhere)\(exchange.target)"
            let coded = address.replacing("&", with: "&amp;")
            let xml = "<Error><Code>TemporaryRedirect</Code><Message>to \(coded)</Message></Error>"
            switch self {
            case .redirect: exchange.reply(302, [("Location", address)], "go to \(address)")
            case .lastingRedirect: exchange.reply(307, [("Location", address)], xml)
            case .text: exchange.reply(400, [], "what is \(address)?")
            case .error: exchange.reply(403, [("Content-Type", "application/xml")], xml)
            case .failure: exchange.reply(500, [], "no backend for \(exchange.target)")
            case .end: exchange.cut()
            }
        }
    }

    @Test(
        "a bucket that redirects or repeats a signed address is not followed, and reported without it",
        arguments: ["HEAD", "PUT", "POST"], Answer.allCases)
    func bucket(_ method: String, _ answer: Answer) async throws {
        let elsewhere = try FakeServer { $0.reply(200) }
        let url = elsewhere.url
        let bucket = try FakeServer { exchange in
            _ = exchange.body()
            if exchange.method == method { return answer.give(exchange, url) }
            exchange.reply(404)
        }
        defer { for server in [elsewhere, bucket] { server.stop() } }
        let scene = try Scene(["endpoint": .text(bucket.url)])
        let error = try await StagedUpload(method == "POST" ? S3PresignTests.size : 900).failure(to: scene)
        #expect(!"\(error)".contains(Self.canary), "\(error)")
        #expect(error.failure.message.hasPrefix("archive: "), "\(error)")
        if case .redirect = answer { #expect(error.failure.message.contains("it redirects"), "\(error)") }
        #expect(bucket.seen.contains { $0.hasPrefix(method) && $0.contains(Self.canary) }, "\(bucket.seen)")
        #expect(elsewhere.seen.isEmpty, "\(elsewhere.seen)")
    }

    @Test("a signature in another spelling is shown in neither")
    func spelled() async throws {
        let bucket = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(exchange.method == "HEAD" ? 404 : 400, [], "what is \(exchange.target)?")
        }
        defer { bucket.stop() }
        let scene = try Scene(["endpoint": .text(bucket.url)])
        // Like signatures in Base64.
        scene.signer.script(.address { $0 }, .address { $0.replacing("signature-that", with: "signature%2Bthat%2F") })
        let error = try await StagedUpload(900).failure(to: scene)
        #expect(error.failure.message.contains("answered 400 to the file: what is /bucket/front/clip.mp4?"), "\(error)")
        #expect(!error.failure.message.contains("nobody-may-see"), "\(error)")
    }

    @Test("a late answer is reported without its signature, however many were issued meanwhile")
    func late() async throws {
        let gate = DispatchSemaphore(value: 0)
        let bucket = try FakeServer { exchange in
            _ = exchange.body()
            if exchange.method == "HEAD" { return exchange.reply(404) }
            if exchange.target.contains("first") { gate.wait() }
            exchange.reply(400, [], "what is \(exchange.target)?")
        }
        defer {
            gate.signal()
            bucket.stop()
        }
        let scene = try Scene(["endpoint": .text(bucket.url)])
        let first = Task { try await StagedUpload(900, id: "first", name: "first.mp4").failure(to: scene) }
        try await eventually("the first request is in flight") { bucket.seen.contains { $0.hasPrefix("PUT") } }
        for number in 0..<50 {
            _ = try await StagedUpload(900, id: "\(number)", name: FilePath("\(number).mp4")).failure(to: scene)
        }
        gate.signal()
        let error = try await first.value
        #expect(error.failure.message.contains("what is /bucket/first.mp4?"), "\(error)")
        #expect(!error.failure.message.contains(Self.canary), "\(error)")
    }
}
