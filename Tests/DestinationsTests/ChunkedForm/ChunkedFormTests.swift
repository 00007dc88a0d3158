import Core
import Linux
import TestKit
import Testing

@testable import Destinations

@Suite("Chunked form", .timeLimit(.minutes(Patience.minutes(3))))
struct ChunkedFormTests {
    private static let block = Int(FormScene.block)

    @Test("uploads of any size follow every rule of the preset", arguments: FormScene.presets)
    func rules(_ preset: String) async throws {
        let block = Self.block
        let sizes = [
            0, 1, block - 1, block, block + 1, 3 * block / 2, 2 * block - 1, 2 * block, 2 * block + 1, 5 * block / 2,
        ]
        let counts: [Int] =
            ["resumable", "flow", "simple-uploader"].contains(preset)
            ? [1, 1, 1, 1, 1, 1, 1, 2, 2, 2] : [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]
        for (size, count) in zip(sizes, counts) {
            let scene = try FormScene(preset)
            let staged = try StagedUpload(size)
            let object = try await staged.send(to: scene, RecordingReporter())
            #expect(object.warnings.isEmpty)
            #expect(scene.server.refused.isEmpty, "\(preset), \(size) B: \(scene.server.refused)")
            #expect(try scene.objects.values.map { $0 } == [staged.content], "\(preset), \(size) B")
            #expect(
                scene.server.requests.filter { $0.hasPrefix("block") } == (1...count).map { "block \($0)" },
                "\(preset), \(size) B")
            #expect(scene.server.unfinished == 0)
            try await scene.close()
        }
    }

    @Test("stopped after any note and restarted, the file is there once and complete", arguments: FormScene.presets)
    func stopped(_ preset: String) async throws {
        let scene = try FormScene(preset)
        var contents: [[UInt8]] = []
        for note in 1... {
            let staged = try StagedUpload(
                2 * Self.block + 1, id: "\(note)", name: FilePath("at \(note).mp4"), seed: UInt64(note))
            let recorder = RecordingReporter()
            let wasStopped = try await staged.sendStopped(to: scene, recorder) { $0.taken == note }
            _ = try await staged.send(to: scene, recorder)
            contents.append(staged.content)
            if !wasStopped { break }
        }
        #expect(contents.count > 4)
        let held = try Array(scene.objects.values)
        #expect(held.count == contents.count && contents.allSatisfy(held.contains), "\(preset)")
        #expect(scene.server.refused.isEmpty, "\(scene.server.refused)")
        try await scene.close()
    }

    @Test("a lost answer to any block leads to the complete file, once", arguments: FormScene.presets, [1, 2, 3])
    func lostAnswers(_ preset: String, _ block: Int) async throws {
        let scene = try FormScene(preset)
        scene.server.set { $0.lostAnswers = [block] }
        let staged = try StagedUpload(3 * Self.block)
        let (object, errors) = try await scene.deliver(staged)
        #expect(object != nil)
        #expect(errors.count == 1)
        let held = try Array(scene.objects.values)
        // After its last block an appending server may have completed a file already, which no protocol reports.
        let mayBeTwice = block == 3 && (preset == "plupload" || preset == "blueimp")
        #expect(
            held.allSatisfy { $0 == staged.content } && held.count == (mayBeTwice ? 2 : 1), "\(preset): \(held.count)")
        #expect(scene.server.refused.isEmpty)
        try await scene.close()
    }

    @Test(
        "blocks are sent in parallel if allowed, and the last one alone",
        arguments: ["breakpoint", "resumable", "dropzone"])
    func parallel(_ preset: String) async throws {
        let scene = try FormScene(preset, ["parallel_blocks": .whole(4)])
        scene.server.set { $0.readPause = 2000 }
        let staged = try StagedUpload(12 * Self.block)
        _ = try await staged.send(to: scene, RecordingReporter())
        #expect((2...4).contains(scene.server.maxConcurrent), "\(scene.server.maxConcurrent)")
        #expect(scene.server.requests.last == "block 12")
        #expect(try scene.objects.values.map { $0 } == [staged.content])
        try await scene.close()
    }

    @Test("the block list of a server is trusted")
    func listed() async throws {
        // No preset has such a list, so the test has its own server.
        let list = try FakeServer { exchange in
            if exchange.method == "GET" {
                exchange.reply(200, [], #"{"data":{"uploaded":[1,3]}}"#)
            } else {
                _ = exchange.body()
                exchange.reply(200, [], "{}")
            }
        }
        let scene = try FormScene(
            "dropzone",
            [
                "url": .text(list.url + "/upload"), "probe.query": .map(["id": .literal("{id}")]),
                "probe.list": .text("/data/uploaded"),
            ])
        let staged = try StagedUpload(4 * Self.block)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: 3 * Self.block)
        let before = list.seen.count
        _ = try await staged.send(to: scene, recorder)
        // The server has lost the second block and has the third: the missing ones are sent.
        #expect(list.seen.dropFirst(before).map { $0.prefix(4) } == ["GET ", "POST", "POST"])
        try await scene.close()
    }

    @Test("if a request joins the blocks, it is repeated after a lost answer")
    func finishing() async throws {
        let scene = try FormScene("webuploader", FormScene.finish) { $0.wantsFinish = true }
        scene.server.set { $0.lostFinishes = 1 }
        let staged = try StagedUpload(3 * Self.block)
        let (object, errors) = try await scene.deliver(staged)
        #expect(object?.url == "http://files.example/clip.mp4")
        #expect(errors.count == 1)
        #expect(scene.server.requests.suffix(2) == ["finish", "finish"])
        #expect(try scene.objects.values.map { $0 } == [staged.content])
        try await scene.close()
    }

    @Test("a login page is no acknowledgement", arguments: ["resumable", "breakpoint"])
    func portal(_ preset: String) async throws {
        let scene = try FormScene(preset)
        scene.server.set { $0.pages = 1 }
        let staged = try StagedUpload(10)
        let (object, errors) = try await scene.deliver(staged)
        #expect(object != nil && errors.map(\.remedy) == [.misconfigured])
        #expect(errors.first?.failure.message.contains("login portal") == true)
        #expect(try scene.objects.values.map { $0 } == [staged.content])
        try await scene.close()
    }
}
