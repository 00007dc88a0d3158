import Core
import Credentials
import Destinations
import Digests
import Synchronization
import TestKit
import Testing
import Transport

/// `preset`: video services that take tus. What only the services themselves can show is not tested.
@Suite("tus presets", .timeLimit(.minutes(Patience.minutes(2))))
struct TusPresetTests {
    // MARK: Cloudflare Stream

    @Test("Cloudflare Stream: requests are multiples of 256 KiB, the name is set, and the id of the video is known")
    func cloudflare() async throws {
        let sizes = Mutex<[Int]>([])
        let metadata = Mutex("")
        let script = ScriptedTusServer()
        let server = try FakeServer { exchange in
            switch exchange.method {
            case "POST":
                metadata.withLock { $0 = exchange.header("upload-metadata") ?? "" }
                script.state.withLock { state in
                    state.length = exchange.header("upload-length").flatMap { Int64($0) } ?? -1
                    state.exists = true
                }
                exchange.reply(201, [("Location", "/u"), ("stream-media-id", "media1"), ("Tus-Resumable", "1.0.0")])
            case "PATCH":
                let body = exchange.body()
                sizes.withLock { $0.append(body.count) }
                let held = script.state.withLock { state in
                    state.held += body
                    return state.held.count
                }
                exchange.reply(204, [("Upload-Offset", "\(held)")])
            default: script.serve(exchange)
            }
        }
        let journey = try UploadScenario(
            server.url + "/stream", size: (11 << 20) + 5, chunk: 5 << 20,
            values: ["preset": .text("cloudflare-stream"), "token": .secret(.literal("token-of-12"))],
            metadata: ["requiresignedurls": "true"])
        _ = try await journey.attempt()
        #expect(sizes.withLock { $0 } == [5 << 20, 5 << 20, (1 << 20) + 5])
        #expect(journey.ledger.book.withLock { $0.names } == ["media1"])
        let words = metadata.withLock { $0 }
        #expect(words.contains(",name \(base64(Array("clip.mp4".utf8)))") && words.contains(",requiresignedurls "))
    }

    // MARK: Bunny Stream

    private static let key = "bunny-key-123456"

    /// The service: its API, and its tus server, which accepts only signed requests.
    private final class Bunny: Sendable {
        struct State {
            var videos: [String: [UInt8]] = [:]
            var removed: [String] = []
            var unsigned = 0
            var length = 0
        }
        let state = Mutex(State())

        func serve(_ exchange: Exchange) {
            if exchange.target.hasPrefix("/library/42/videos") { return serveAPI(exchange) }
            if exchange.method == "OPTIONS" {
                return exchange.reply(204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation")])
            }
            guard let video = exchange.header("videoid"), isSigned(exchange, video) else {
                state.withLock { $0.unsigned += 1 }
                return exchange.reply(401)
            }
            switch exchange.method {
            case "POST":
                state.withLock { $0.length = exchange.header("upload-length").flatMap { Int($0) } ?? -1 }
                exchange.reply(201, [("Location", "/tusupload/\(video)"), ("Tus-Resumable", "1.0.0")])
            case "PATCH":
                let body = exchange.body()
                let held = state.withLock { state in
                    state.videos[video, default: []] += body
                    return state.videos[video]?.count ?? 0
                }
                exchange.reply(204, [("Upload-Offset", "\(held)")])
            default:
                let (held, length) = state.withLock { ($0.videos[video]?.count ?? 0, $0.length) }
                exchange.reply(200, [("Upload-Offset", "\(held)"), ("Upload-Length", "\(length)")])
            }
        }

        private func serveAPI(_ exchange: Exchange) {
            guard exchange.header("accesskey") == TusPresetTests.key else { return exchange.reply(401) }
            if exchange.method == "DELETE" {
                let video = String(exchange.target.dropFirst("/library/42/videos/".count))
                state.withLock { state in
                    state.videos[video] = nil
                    state.removed.append(video)
                }
                return exchange.reply(200, [], "{}")
            }
            guard exchange.method == "POST" else { return exchange.reply(200, [], #"{"items":[]}"#) }
            _ = exchange.body()
            let id = state.withLock { state in
                let id = "video-\(state.videos.count + state.removed.count + 1)"
                state.videos[id] = []
                return id
            }
            exchange.reply(200, [("Content-Type", "application/json")], #"{"guid":"\#(id)","title":"clip.mp4"}"#)
        }

        private func isSigned(_ exchange: Exchange, _ video: String) -> Bool {
            guard exchange.header("libraryid") == "42", exchange.header("accesskey") == nil,
                let end = exchange.header("authorizationexpire")
            else { return false }
            let text = "42\(TusPresetTests.key)\(end)\(video)"
            return exchange.header("authorizationsignature")
                == hexadecimal(Hasher.digest(.sha256, of: Array(text.utf8)))
        }
    }

    private func scenario(_ server: FakeServer) throws -> UploadScenario {
        try UploadScenario(
            server.url + "/tusupload", chunk: 400,
            values: [
                "preset": .text("bunny-stream"), "library": .text("42"), "api_key": .secret(.literal(Self.key)),
            ])
    }

    @Test("Bunny Stream: a video is created first, and each request for its bytes is signed for it")
    func bunny() async throws {
        let bunny = Bunny()
        let server = try FakeServer { bunny.serve($0) }
        let journey = try scenario(server)
        let object = try await journey.attempt()
        #expect(object.verifiedBy == "offset")
        #expect(bunny.state.withLock { $0.videos } == ["video-1": journey.content])
        #expect(bunny.state.withLock { $0.unsigned } == 0)
        #expect(journey.ledger.book.withLock { $0.names } == ["video-1"])
        #expect(await journey.destination.check(context: .open).verdict == .ok)
    }

    @Test("Bunny Stream: where the upload of a new video is not created, the video is removed")
    func unusedVideo() async throws {
        let bunny = Bunny()
        let times = Mutex(0)
        let server = try FakeServer { exchange in
            let isFirst = exchange.method == "POST" && exchange.target == "/tusupload"
            guard isFirst,
                times.withLock({
                    $0 += 1; return $0 == 1
                })
            else { return bunny.serve(exchange) }
            exchange.reply(500)
        }
        let journey = try scenario(server)
        _ = try await journey.failedAttempt()
        let left = try #require(journey.ledger.book.withLock { $0.left.first })
        #expect(try await journey.destination.discard(left, context: .open))
        #expect(bunny.state.withLock { $0.removed } == ["video-1"])
        _ = try await journey.attempt()
        #expect(bunny.state.withLock { $0.videos } == ["video-2": journey.content])
    }

    @Test("Bunny Stream: a lost answer to the creation of a video is counted")
    func lostVideo() async throws {
        let bunny = Bunny()
        let times = Mutex(0)
        let server = try FakeServer { exchange in
            let isFirst = exchange.method == "POST" && exchange.target.hasPrefix("/library")
            guard isFirst,
                times.withLock({
                    $0 += 1; return $0 == 1
                })
            else { return bunny.serve(exchange) }
            exchange.cut()
        }
        let journey = try scenario(server)
        let (object, errors) = try await journey.arrive()
        #expect(errors.count == 1)
        #expect(object.warnings.contains { $0.contains("1 creation(s) got no answer") })
    }

    // MARK: Settings

    @Test(
        "a preset needs its own keys, and no other one has them",
        arguments: [
            (["url": "https://a.example"], []), ([:], ["url"]),
            (["preset": "cloudflare-stream"], ["account"]), (["preset": "cloudflare-stream", "account": "a1"], []),
            (["preset": "cloudflare-stream", "account": "a/1"], ["account"]),
            (["preset": "bunny-stream"], ["library", "api_key"]),
            (["preset": "bunny-stream", "library": "1", "api_key": "k", "account": "a"], ["account"]),
            (["url": "https://a.example", "library": "1"], ["library"]),
        ] as [([String: String], [String])])
    func keys(_ values: [String: String], _ objections: [String]) throws {
        let kind = try #require(DestinationTable.builtIn.first { $0.type.name == "tus" })
        #expect(kind.type.objections(values.mapValues { .text($0) }).map(\.key) == objections)
    }

    @Test("Cloudflare Stream: sizes that it refuses are refused here", arguments: [0, 4 << 20, 6_000_000, 201 << 20])
    func sizes(_ chunk: Int64) throws {
        let kind = try #require(DestinationTable.builtIn.first { $0.type.name == "tus" })
        let values: [String: SettingValue] = [
            "preset": .text("cloudflare-stream"), "account": .text("a"), "chunk_size": .bytes(chunk),
        ]
        #expect(kind.type.objections(values).map(\.key) == ["chunk_size"])
    }
}
