import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Each of these creations makes something, and its answer is unusable.
@Suite("Unusable answers to creations make them rare", .timeLimit(.minutes(Patience.minutes(5))))
struct UnusableCreationTests {
    /// Four files, each of them tried every five minutes for five hours.
    private func fourFiles(
        _ destination: any Destination, _ clocks: ManualClocks, name: FilePath = "front/clip.mp4", size: Int = 3000
    ) async throws -> [RecordingReporter] {
        let stagedUploads = try (0..<4).map {
            (try StagedUpload(size, id: "0\($0)", name: name, seed: UInt64($0)), RecordingReporter())
        }
        for _ in 0..<60 {
            for (staged, recorder) in stagedUploads {
                var order = staged.order
                order.checkpoint = recorder.last
                recorder.beginAttempt()
                await #expect(throws: UploadError.self) { try await destination.upload(order, reporter: recorder) }
            }
            clocks.advance(by: .seconds(300))
        }
        return stagedUploads.map(\.1)
    }

    private func tools(_ clocks: ManualClocks) -> DestinationTools {
        DestinationTools(
            transport: Transport(), secrets: SecretReader(), clocks: clocks, name: "archive", log: { _ in })
    }

    @Test(
        "Vimeo is asked for fewer uploads while its answers to creations have an unknown encoding",
        arguments: Tier.sample(VimeoFlow.allCases))
    func vimeo(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd()
        defer { end.server.stop() }
        end.server.change { $0.account.scopes = ["upload", "delete"] }
        let relay = try CompressingRelay(to: end.server.url) { $0.hasPrefix("POST /me/videos") }
        defer { relay.stop() }
        let clocks = ManualClocks()
        let destination = try Vimeo(
            ["url": .text(relay.url), "token": .secret(.file(end.tokenFile)), "flow": .text(flow.rawValue)],
            tools(clocks))
        _ = try await fourFiles(destination, clocks)
        let created = end.server.state.withLock { $0.uploads.count }
        #expect((2...12).contains(created), "\(created) videos in five hours")
    }

    @Test("at S3, with a key that cannot list unfinished uploads: creations are counted, and no other upload is held")
    func s3() async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { state in
            state.judge = { $0.target.contains("max-uploads") ? (403, "AccessDenied", "no list") : nil }
        }
        let isUnreadable = Mutex(true)
        let relay = try CompressingRelay(to: scene.emulator.url) { request in
            request.hasPrefix("POST ") && request.contains("uploads=") && isUnreadable.withLock { $0 }
        }
        defer { relay.stop() }
        let behind = try S3Scene(["endpoint": .text(relay.url)], at: scene.emulator)
        let recorders = try await fourFiles(behind.destination, behind.clocks)
        let created = scene.emulator.requests.filter { $0 == "create" }.count
        #expect((2...12).contains(created), "\(created) uploads in five hours")
        let orphans = recorders.compactMap { $0.last?["orphans"].flatMap { Int64($0) } }.reduce(0, +)
        #expect((created - 4...created).contains(Int(orphans)), "\(orphans) of \(created) are counted")
        isUnreadable.withLock { $0 = false }
        behind.clocks.advance(by: .seconds(6 * 3600))
        let staged = try StagedUpload(3000, id: "00", seed: 0)
        let object = try await staged.send(to: behind, recorders[0])
        #expect(object.warnings.contains { $0.contains("got no answer") }, "\(object.warnings)")
    }

    @Test("at S3, if lost answers cannot be looked for either")
    func lostAtS3() async throws {
        let scene = try S3Scene()
        defer { scene.emulator.stop() }
        scene.emulator.change { state in
            state.judge = { $0.target.contains("max-uploads") ? (403, "AccessDenied", "no list") : nil }
            state.faults[.create] = Array(repeating: .loseReply, count: 100)
        }
        _ = try await fourFiles(scene.destination, scene.clocks)
        let created = scene.emulator.requests.filter { $0 == "create" }.count
        #expect((5...16).contains(created), "\(created) uploads in five hours")
    }

    @Test(
        "a tus server is asked for fewer uploads while its answers to creations are unusable, or break off",
        arguments: [
            "Location: /u\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
            "Location: /u\r\nContent-Length: 10\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            "Location: /u\r\nContent-Length: -5\r\n\r\n",
        ])
    func tus(_ answer: String) async throws {
        let created = Mutex(0)
        let server = try FakeServer { exchange in
            if exchange.method == "OPTIONS" { return exchange.reply(204, [("Tus-Version", "1.0.0")]) }
            created.withLock { $0 += 1 }
            exchange.raw("HTTP/1.1 201 Created\r\n" + answer)
            exchange.cut()
        }
        defer { server.stop() }
        let clocks = ManualClocks()
        _ = try await fourFiles(try Tus(["url": .text(server.url + "/files")], tools(clocks)), clocks)
        let count = created.withLock { $0 }
        #expect((2...12).contains(count), "\(count) uploads in five hours")
    }

    @Test(
        "a form that opens uploads is asked for fewer uploads while its answers are unusable",
        arguments: ["{}", "", "{\"data\": {\"tok", "OK", "br"])
    func form(_ body: String) async throws {
        let created = Mutex(0)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            created.withLock { $0 += 1 }
            exchange.reply(200, body == "br" ? [("Content-Encoding", "br")] : [], body)
        }
        defer { server.stop() }
        let clocks = ManualClocks()
        let destination = try ChunkedForm.kind.make(
            ["url": .text(server.url), "preset": .text("breakpoint")], tools(clocks))
        _ = try await fourFiles(destination, clocks)
        let count = created.withLock { $0 }
        #expect((2...12).contains(count), "\(count) uploads in five hours")
    }

    @Test(
        "VOD is asked for fewer uploads while its answers to creations are unusable",
        arguments: Tier.sample([ApsaraEnd.Authorization.key, .service]), ["clip.mp4", "clip.png"])
    func vod(_ way: ApsaraEnd.Authorization, _ name: String) async throws {
        try await ApsaraEnd.open(way) { end in
            let relay = try CompressingRelay(to: end.server.url) { _ in true }
            defer { relay.stop() }
            let clocks = ManualClocks(wall: SystemClocks().wall())
            let key = way == .key ? "endpoint" : "authorisation.url"
            let values = ApsaraEnd.values(
                end.server.url, way, [key: .text(relay.url + (way == .key ? "" : "/_auth"))])
            _ = try await fourFiles(try Apsara(values, tools(clocks)), clocks, name: FilePath(name))
            let media = try await end.media().count
            #expect((2...12).contains(media), "\(media) media in five hours")
        }
    }

    @Test(
        "a picture whose token is refused at every part creates few media",
        arguments: [ApsaraEnd.Authorization.key, .service])
    func refusedPicture(_ way: ApsaraEnd.Authorization) async throws {
        let clocks = ManualClocks(wall: SystemClocks().wall())
        try await ApsaraEnd.open(way, clocks: clocks) { end in
            try await end.server.control(
                "faults",
                #"[{"do": "error", "status": 403, "code": "InvalidSecurityToken", "times": 0, "match": {"operation": "PutObject"}}]"#
            )
            let (staged, recorder) = (try StagedUpload(3000, name: "a.png"), RecordingReporter())
            var waits: [Duration] = []
            for _ in 0..<30 {
                let error = try await staged.failure(to: end, recorder)
                if case .holdDestination(let wait?) = error.remedy { waits.append(wait) }
                clocks.advance(by: .seconds(2))
            }
            let media = try await end.media().count
            #expect((2...4).contains(media), "\(media) media in a minute")
            #expect(!waits.isEmpty)
        }
    }
}
