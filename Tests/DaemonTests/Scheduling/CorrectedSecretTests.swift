import API
import Core
import Destinations
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// Secrets that were wrong, and were corrected in place: without a reload.
@Suite("Secrets that are corrected after a refusal", .timeLimit(.minutes(Patience.minutes(3))))
struct CorrectedSecretTests {
    static let wrong = "wrong-secret-0001"
    static let right = "right-secret-0001"

    /// A destination, and its server's answer to a wrong secret.
    struct Place: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let type: String
        var values: [String: SettingValue] = [:]
        /// The key whose secret is wrong.
        let key: String
        let status: Int
        var headers: [(String, String)] = []
        var answer = ""

        static func xml(_ code: String) -> String {
            "<Error><Code>\(code)</Code><Message>no</Message></Error>"
        }
    }

    private static let bucket: [String: SettingValue] = [
        "bucket": .text("bucket"), "secret_key": .secret(.literal("a-secret-of-no-interest")),
    ]
    private static let oss = bucket.merging(["region": .text("cn-shanghai"), "addressing": .text("path")]) { $1 }

    static let places = [
        Place(testDescription: "tus", type: "tus", key: "token", status: 401),
        Place(testDescription: "tus, 400", type: "tus", key: "token", status: 400, answer: "no such token"),
        Place(
            testDescription: "vimeo", type: "vimeo", key: "token", status: 401, answer: #"{"error_code": 8003}"#),
        Place(
            testDescription: "vimeo, 400", type: "vimeo", key: "token", status: 400, answer: #"{"error_code": 8003}"#),
        Place(
            testDescription: "a form", type: "chunked-form", values: ["preset": .text("plupload")], key: "header",
            status: 403),
        Place(
            testDescription: "s3, AccessDenied", type: "s3", values: bucket, key: "access_key", status: 403,
            answer: Place.xml("AccessDenied")),
        Place(
            testDescription: "s3, malformed", type: "s3", values: bucket, key: "access_key", status: 400,
            answer: Place.xml("AuthorizationHeaderMalformed")),
        Place(
            testDescription: "s3, the signer's token", type: "s3",
            values: ["bucket": .text("bucket"), "endpoint": .text("http://127.0.0.1:9")], key: "presign.token",
            status: 200, answer: #"{"signed": [{"error": "no such token"}]}"#),
        Place(
            testDescription: "oss", type: "oss", values: oss, key: "access_key", status: 403,
            answer: Place.xml("SignatureDoesNotMatch")),
        Place(
            testDescription: "apsara-vod", type: "apsara-vod",
            values: ["secret_key": .secret(.literal("a-secret-of-no-interest"))], key: "access_key", status: 403,
            answer: #"{"Code": "Forbidden.RAM", "Message": "no"}"#),
        Place(
            testDescription: "apsara-vod, its service", type: "apsara-vod", key: "authorisation.token", status: 200,
            answer: #"{"error": "no such token"}"#),
    ]

    /// Records the secret of each request, and accepts none.
    private final class Server: Sendable {
        private let heard: Received
        let server: FakeServer

        private final class Received: Sendable { let all = Mutex<[Bool]>([]) }

        init(_ place: Place) throws {
            let heard = Received()
            self.heard = heard
            server = try FakeServer { exchange in
                let words = exchange.headerNames.compactMap { exchange.header($0) }
                let isRight = words.contains { $0.contains(CorrectedSecretTests.right) }
                heard.all.withLock { $0.append(isRight) }
                // The answer to the right one does not matter here.
                if isRight { return exchange.reply(500) }
                let isHead = exchange.method == "HEAD"
                exchange.reply(place.status, place.headers, isHead ? "" : place.answer)
            }
        }

        var all: [Bool] { heard.all.withLock { $0 } }
    }

    private func scene(
        _ place: Place, _ server: Server, _ file: FilePath, _ clocks: ManualClocks
    ) async throws -> DaemonScene {
        try await DaemonScene(clocks: clocks) { settings in
            var values = place.values
            let secret = SecretSource.file(file)
            switch place.key {
            case "header": values["http.headers"] = .map(["X-Token": secret])
            default: values[place.key] = .secret(secret)
            }
            let section = place.key.split(separator: ".").first.map(String.init) ?? ""
            let address = place.key.contains(".") ? "\(section).url" : "endpoint"
            let isPlain = ["tus", "vimeo", "chunked-form"].contains(place.type)
            values[isPlain ? "url" : address] = .text(server.server.url)
            settings.destinations = [
                DestinationSettings(
                    name: "nas", type: place.type, values: values, policy: PolicyOverrides(), place: "")
            ]
        }
    }

    /// With the same length and the same times as the content before.
    private static func correct(_ file: FilePath) throws {
        var before = stat()
        #expect(stat(file.display, &before) == 0)
        let descriptor = open(file.display, O_WRONLY | O_TRUNC)
        defer { close(descriptor) }
        #expect(write(descriptor, right, right.utf8.count) == right.utf8.count)
        var times = [before.st_atim, before.st_mtim]
        #expect(futimens(descriptor, &times) == 0)
    }

    enum Next { case resume, probe }

    @Test(
        "the next attempt and `resume` read the corrected secret", arguments: Tier.sample(places, 4),
        [Next.resume, .probe])
    func corrected(_ place: Place, _ next: Next) async throws {
        let temporary = TemporaryFolder()
        let file = try temporary.write("secret", Array(Self.wrong.utf8))
        let server = try Server(place)
        defer { server.server.stop() }
        let clocks = ManualClocks(wall: SystemClocks().wall())
        let scene = try await scene(place, server, file, clocks)
        let id = try await scene.add("a.mp4")
        let isHeld = place.type != "tus" || place.status != 400
        try await eventually("the wrong secret has been refused") {
            if isHeld { return await scene.daemon.scheduler.shown().hold(of: "nas") != nil }
            return try await scene.state(id) == .failed
        }
        let before = server.all
        #expect(!before.isEmpty && !before.contains(true))
        try Self.correct(file)
        switch next {
        case _ where !isHeld: _ = try await scene.daemon.retry(Selection(ids: [id]))
        case .resume: _ = try await scene.daemon.resume(Selection(destination: "nas"))
        default:
            try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
            clocks.advance(by: .seconds(15 * 60 + 2))
            scene.daemon.signals.scheduling.signal()
        }
        try await eventually("another request has arrived") { server.all.count > before.count }
        #expect(server.all[before.count], "the first request carries the corrected secret: \(server.all)")
        try await scene.stop()
    }

    @Test("a secret that was not refused is read once")
    func once() async throws {
        let temporary = TemporaryFolder()
        let log = temporary.path.appending("log")
        let server = try FakeServer { $0.reply(500) }
        defer { server.stop() }
        let scene = try await DaemonScene { settings in
            let words = ["sh", "-c", "echo read >> \(log.display); echo a-token"]
            settings.destinations = [
                DestinationSettings(
                    name: "nas", type: "tus",
                    values: ["url": .text(server.url), "token": .secret(.command(words))], policy: PolicyOverrides(),
                    place: "")
            ]
        }
        _ = try await scene.add("a.mp4")
        try await eventually("several requests have arrived") { server.seen.count > 3 }
        #expect(try Files.read(log, limit: 100) == Array("read\n".utf8))
        try await scene.stop()
    }
}
