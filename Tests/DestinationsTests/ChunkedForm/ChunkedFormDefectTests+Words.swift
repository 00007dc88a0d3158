import Core
import Linux
import TestKit
import Testing

@testable import Destinations

/// Information for others: the server learns of a cancel, people see progress, and secrets are never shown.
extension ChunkedFormDefectTests {
    @Test("D21: the server is told of a cancel if it has a request for it, and no success is claimed otherwise")
    func cancelled() async throws {
        let scene = try FormScene("resumable", FormScene.abort)
        let staged = try StagedUpload(3 * Self.block)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: Self.block)
        let checkpoint = try #require(recorder.last)
        #expect(try await scene.destination.discard(checkpoint))
        #expect(scene.server.unfinished == 0 && scene.server.requests.last == "abort")
        let mute = try FormScene("resumable")
        #expect(try await !mute.again([:]).discard(checkpoint))
    }

    @Test("D22: progress is acknowledged bytes and bytes in flight")
    func progress() async throws {
        let scene = try FormScene("breakpoint", ["block.size": .bytes(1 << 20)])
        scene.server.set { $0.readPause = 500 }
        let size = 5 << 19
        let recorder = RecordingReporter()
        _ = try await StagedUpload(size).send(to: scene, recorder)
        #expect(recorder.sent.allSatisfy { (0...Int64(size)).contains($0) })
        #expect(recorder.sent.contains { $0 % (1 << 20) != 0 && $0 != Int64(size) })
        #expect(recorder.accepted == Int64(size))
    }

    @Test("D23: the original name is sent, with header-breaking characters encoded")
    func names() async throws {
        let name: FilePath = "a \"b\"\r\nc; é.mp4"
        #expect(
            String(decoding: FormBody.escaped(name.bytes), as: UTF8.self) == "a %22b%22%0D%0Ac; é.mp4")
        let scene = try FormScene("breakpoint")
        _ = try await StagedUpload(10, name: "no extension").send(to: scene, RecordingReporter())
        _ = try await StagedUpload(10, name: "front/é.MP4").send(to: scene, RecordingReporter())
        #expect(try Set(scene.objects.keys) == ["no extension", "é.MP4"])
        #expect(scene.server.refused.isEmpty)
        let strange = try FormScene("webuploader")
        _ = try await StagedUpload(10, name: name).send(to: strange, RecordingReporter())
        #expect(try strange.objects.keys.first == name)
    }

    @Test("D24: an acknowledged block is its own row, and rewrites no other")
    func rows() async throws {
        let scene = try FormScene("breakpoint")
        let recorder = RecordingReporter()
        _ = try await StagedUpload(50 * Self.block).send(to: scene, recorder)
        #expect(try await recorder.parts().map(\.index) == Array(0..<50))
        let sizes = recorder.checkpointSizes
        #expect(sizes.count <= 6 && sizes.allSatisfy { $0 < 1000 }, "\(sizes)")
    }

    @Test("D25: the credential is sent, and neither it nor the server's token is ever shown")
    func secrets() async throws {
        let scene = try FormScene("breakpoint", credential: "a-token-that-nobody-may-see")
        let staged = try StagedUpload(2 * Self.block)
        let recorder = RecordingReporter()
        _ = try await staged.send(to: scene, recorder)
        #expect(!recorder.everything.contains("nobody-may-see"))
        // A server that repeats everything.
        let echo = try FakeServer { exchange in
            let body = String(decoding: exchange.body(), as: UTF8.self)
            exchange.reply(400, [("Content-Type", "text/plain")], body)
        }
        let other = try scene.again(["url": .text(echo.url + "/upload")])
        let error = await #expect(throws: UploadError.self) {
            try await other.upload(staged.order, reporter: RecordingReporter())
        }
        #expect(error?.failure.message.contains("nobody-may-see") == false)
        #expect(echo.seen.count == 1)
    }

    @Test("D26: blocks are sent in order, one at a time, unless configured otherwise")
    func inOrder() async throws {
        let scene = try FormScene("breakpoint")
        _ = try await StagedUpload(6 * Self.block).send(to: scene, RecordingReporter())
        #expect(scene.server.maxConcurrent == 1)
        #expect(scene.server.requests == ["open"] + (1...6).map { "block \($0)" })
        for preset in ["plupload", "blueimp"] {
            #expect(throws: UnusableSettingError.self) { try FormScene(preset, ["parallel_blocks": .whole(2)]) }
        }
    }
}
