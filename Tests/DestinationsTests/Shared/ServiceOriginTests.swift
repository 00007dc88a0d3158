import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Services that name the host for the bytes themselves: the host must be one of theirs, or nothing is sent to it.
@Suite("Hosts named by a service", .timeLimit(.minutes(Patience.minutes(3))))
struct ServiceOriginTests {
    private func check(_ error: UploadError, _ line: String) {
        #expect(error.failure.code == .otherOrigin && error.remedy == .misconfigured, "\(error)")
        #expect(error.failure.kind == .config && error.failure.retryable)
        #expect(error.failure.message.contains(line), "\(error)")
        #expect(error.failure.message.contains("nothing was sent there"), "\(error)")
        #expect(!error.failure.message.contains("signature"), "\(error)")
    }

    // MARK: Vimeo

    @Test(
        "Vimeo: another host gets no byte, and the same video is filled when it is configured",
        arguments: VimeoFlow.allCases
    )
    func vimeo(_ flow: VimeoFlow) async throws {
        let end = try VimeoEnd(flow, ["allow_origins": .texts([])])
        defer { end.server.stop() }
        let (staged, recorder) = (try StagedUpload(2500), RecordingReporter())
        for _ in 0..<2 {
            let error = try await staged.failure(to: end, recorder)
            check(error, "`allow_origins: [\(end.server.bytesURL)]`")
            #expect(error.failure.message.contains("below vimeo.com"), "\(error)")
        }
        #expect(end.server.state.withLock { $0.received } == 0)
        #expect(end.server.state.withLock { $0.uploads.count } == 1)
        let allowed = try VimeoEnd(flow, server: end.server)
        try await allowed.bring(staged, recorder)
        #expect(end.server.videos.map(\.bytes) == [staged.content])
        #expect(end.server.state.withLock { $0.uploads.count } == 1)
    }

    @Test("Vimeo: no connection is made to another host, and a cancel removes the video without one")
    func vimeoSilent() async throws {
        let silent = try SilentPort()
        let end = try VimeoEnd()
        defer { end.server.stop() }
        end.server.redirectLinks(to: silent.url)
        let (staged, recorder) = (try StagedUpload(2500), RecordingReporter())
        check(try await staged.failure(to: end, recorder), "[\(end.server.bytesURL), \(silent.url)]`")
        #expect(end.server.videos.count == 1)
        #expect(try await end.destination.discard(try #require(recorder.last)))
        #expect(end.server.videos.isEmpty)
        #expect(!silent.hasCaller)
    }

    @Test("Vimeo: an earlier upload on another host waits, and no second video is created")
    func vimeoResumed() async throws {
        let silent = try SilentPort()
        let end = try VimeoEnd()
        defer { end.server.stop() }
        let (staged, recorder) = (try StagedUpload(2500), RecordingReporter())
        try await recorder.record(
            Checkpoint([
                "url": silent.url + "/upload/1?signature=s", "video": "/videos/1", "flow": "tus", "offset": "1000",
                "reach": "1000", "server": WebAddress(end.server.url).origin, "video_size": "2500",
            ]))
        check(try await staged.failure(to: end, recorder), silent.url)
        #expect(end.server.videos.isEmpty && !silent.hasCaller)
    }

    @Test("Vimeo: a thumbnail is not sent to another host either")
    func picture() async throws {
        let end = try VimeoEnd()
        defer { end.server.stop() }
        let video = try await end.bring(try StagedUpload(2000))
        let on: [String: SettingValue] = ["video.thumbnail": .flag(true)]
        let strict = try VimeoEnd(.tus, on.merging(["allow_origins": .texts([])]) { $1 }, server: end.server)
        let image = try StagedUpload(3000, id: "01JP", name: "front/clip.jpg", mediaType: "image/jpeg", seed: 2)
        let recorder = RecordingReporter()
        recorder.accompany([Companion(mediaType: "video/mp4", state: .completed, remote: video)])
        for _ in 0..<2 {
            check(try await image.failure(to: strict, recorder), "`allow_origins: [\(end.server.bytesURL)]`")
        }
        #expect(end.server.pictures.map(\.bytes.isEmpty) == [true])
        try await VimeoEnd(.tus, on, server: end.server).bring(image, recorder)
        #expect(end.server.pictures.map(\.bytes) == [image.content])
    }

    // MARK: VOD

    @Test(
        "VOD: a storage host outside the service gets no byte, and the same medium is filled when that is corrected",
        arguments: Tier.sample(ApsaraEnd.Authorization.allCases))
    func vod(_ way: ApsaraEnd.Authorization) async throws {
        let silent = try SilentPort()
        try await ApsaraEnd.open(way) { end in
            try await end.server.control("settings", "{\"vod_endpoint\": \"\(silent.url)\"}")
            let (staged, recorder) = (try StagedUpload(1000), RecordingReporter())
            for _ in 0..<2 {
                let error = try await staged.failure(to: end, recorder)
                check(error, "set `upload_endpoint`")
                #expect(error.failure.message.contains("\(silent.url), which"), "\(error)")
                #expect(error.failure.message.contains("below aliyuncs.com"), "\(error)")
            }
            #expect(!silent.hasCaller)
            // Either a person configures where the bytes go, or the service names its own storage again.
            let mended = try end.again(way == .key ? ["upload_endpoint": .text(end.server.url)] : [:])
            if way != .key { try await end.server.control("settings", "{\"vod_endpoint\": null}") }
            var order = staged.order
            order.checkpoint = recorder.last
            recorder.beginAttempt()
            _ = try await mended.upload(order, reporter: recorder)
            #expect(try await end.media().count == 1)
            #expect(try await end.objects.values.map { $0 } == [staged.content])
            #expect(!silent.hasCaller)
        }
    }

    @Test("VOD: an upload started elsewhere is neither resumed nor removed there")
    func vodResumed() async throws {
        let silent = try SilentPort()
        try await ApsaraEnd.open { end in
            let (staged, recorder) = (try StagedUpload(3 * ApsaraTests.part), RecordingReporter())
            try await end.server.control("settings", "{\"vod_endpoint\": \"\(silent.url)\"}")
            _ = try await staged.failure(to: end, recorder)
            var checkpoint = try #require(recorder.last)
            checkpoint["upload"] = "of-before"
            checkpoint["begun"] = "1"
            try await recorder.record(checkpoint)
            check(try await staged.failure(to: end, recorder), "set `upload_endpoint`")
            #expect(try await end.destination.discard(checkpoint) == false)
            #expect(!silent.hasCaller)
        }
    }

    // MARK: Forms

    @Test("a form's block query follows a redirect on its own server, and to no other", arguments: [302, 307])
    func form(_ status: Int) async throws {
        let silent = try SilentPort()
        for isHome in [true, false] {
            let server = try FakeServer { exchange in
                _ = exchange.body()
                if exchange.method == "POST" || exchange.target.contains("moved") {
                    return exchange.reply(exchange.method == "GET" ? 404 : 200)
                }
                exchange.reply(status, [("Location", (isHome ? "" : silent.url) + "/moved?signature=s")])
            }
            defer { server.stop() }
            let destination = try ChunkedForm.kind.make(
                ["url": .text(server.url), "preset": .text("flow"), "block.size": .bytes(1000)],
                DestinationTools(
                    transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive",
                    log: { _ in }))
            let staged = try StagedUpload(3000)
            _ = try? await destination.upload(staged.order, reporter: RecordingReporter())
            #expect(server.seen.contains { $0.hasPrefix("GET ") && !$0.contains("moved") }, "\(server.seen)")
            #expect(server.seen.contains { $0.contains("moved") } == isHome, "\(server.seen)")
        }
        #expect(!silent.hasCaller)
    }

    // MARK: Buckets

    @Test(
        "a redirect of a bucket is never followed to its address",
        arguments: [(301, "PermanentRedirect"), (307, "TemporaryRedirect")], [nil, "eu-west-2", "evil.test/x"])
    func bucket(_ answer: (status: Int, code: String), _ region: String?) async throws {
        let silent = try SilentPort()
        let bucket = try FakeServer { exchange in
            _ = exchange.body()
            let place = String(silent.url.dropFirst(7))
            let headers = [("Location", silent.url + exchange.target)]
            exchange.reply(
                answer.status, headers + (region.map { [("x-amz-bucket-region", $0)] } ?? []),
                "<Error><Code>\(answer.code)</Code><Endpoint>\(place)</Endpoint></Error>")
        }
        defer { bucket.stop() }
        for kind in ["s3", "oss"] {
            var values: [String: SettingValue] = [
                "endpoint": .text(bucket.url), "bucket": .text("bucket"), "access_key": .secret(.literal("AK")),
                "secret_key": .secret(.literal("secret-of-the-test")), "region": .text("eu-west-1"),
            ]
            if kind == "oss" { values["addressing"] = .text("path") }
            let made = try #require(DestinationTable.builtIn.first { $0.type.name == kind })
            let transport = Transport()
            let destination = try made.make(
                values,
                DestinationTools(
                    transport: transport, secrets: SecretReader(), clocks: ManualClocks(wall: SystemClocks().wall()),
                    name: "archive", log: { _ in }))
            let staged = try StagedUpload(900)
            let error = await #expect(throws: UploadError.self) {
                _ = try await destination.upload(staged.order, reporter: RecordingReporter())
            }
            #expect(error?.remedy == .misconfigured, "\(kind): \(String(describing: error))")
            await transport.stop()
        }
        #expect(!silent.hasCaller)
    }

    @Test(
        "a region named by a bucket leads only to hosts of the service",
        arguments: [
            ("eu-west-2", "https://bucket.s3.eu-west-2.amazonaws.com"), ("evil.test/", nil), ("evil.test?", nil),
            ("evil.test#", nil), ("x@evil.test/", nil), ("evil.test:443/", nil), ("evil\\", nil), ("", nil),
            (".", nil), ("a.b", "https://bucket.s3.a.b.amazonaws.com"), (String(repeating: "a", count: 64), nil),
        ] as [(String, String?)])
    func region(_ name: String, _ origin: String?) throws {
        let region = S3Verdict.region(name)
        #expect((region == nil) == (origin == nil))
        let settings = try #require(
            S3.settings(["bucket": .text("bucket"), "region": .text("eu-west-1"), "preset": .text("aws")]))
        let url = settings.place(of: "a.mp4", in: region ?? settings.region).url
        #expect(url.hasPrefix((origin ?? "https://bucket.s3.eu-west-1.amazonaws.com") + "/"), "\(url)")
    }
}
