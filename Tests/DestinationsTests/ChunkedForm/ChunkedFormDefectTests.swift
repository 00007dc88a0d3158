import Core
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Mistakes of a widespread client of the block protocol, one by one, and this program's behaviour instead.
@Suite("Defects of other clients, avoided", .timeLimit(.minutes(Patience.minutes(3))))
struct ChunkedFormDefectTests {
    static let block = Int(FormScene.block)

    func delivered(_ scene: FormScene, _ staged: StagedUpload) throws {
        #expect(try scene.objects.values.map { $0 } == [staged.content])
        #expect(scene.server.unfinished == 0)
    }

    @Test(
        "D1: a failure is evaluated, and not answered with the same block at once",
        arguments: [401, 404, 413, 429, 503])
    func hotLoop(_ status: Int) async throws {
        let scene = try FormScene("breakpoint")
        let recorder = RecordingReporter()
        let staged = try StagedUpload(2 * Self.block)
        try await staged.sendStopped(to: scene, recorder, accepting: Self.block)
        let before = scene.server.requests.count
        scene.server.set { $0.refusals = (status, 2, status == 429 ? 7 : nil) }
        let error = try await staged.failure(to: scene, recorder)
        // One request for a refusal; for an unknown upload one more, which starts it again.
        #expect(scene.server.requests.count == before)
        switch status {
        case 401: #expect(error.remedy == .authenticate)
        case 413: #expect(error.remedy == .failUpload)
        case 429: #expect(error.remedy == .rateLimit(after: .seconds(7)))
        case 503: #expect(error.remedy == .holdDestination(after: nil))
        default: #expect(error.remedy == .misconfigured)
        }
        scene.server.set { $0.refusals = nil }
        _ = try await staged.send(to: scene, recorder)
        // The upload that a proxy called unknown still exists, and its name is no longer recorded.
        if status == 404 { #expect(recorder.last?["remains"] == nil) }
        #expect(try scene.objects.values.map { $0 } == [staged.content])
        #expect(scene.server.unfinished == (status == 404 ? 1 : 0))
    }

    @Test(
        "D2: a stopped transfer ends at once, sends no more bytes, and its late end is no failure", arguments: [1, 4])
    func cancelling(_ parallel: Int) async throws {
        let scene = try FormScene("breakpoint", ["parallel_blocks": .whole(parallel), "block.size": .bytes(1 << 20)])
        scene.server.set { $0.readPause = 20_000 }
        let staged = try StagedUpload(8 << 20)
        let recorder = RecordingReporter()
        let sending = Task { try await staged.send(to: scene, recorder) }
        try await eventually("the transfer has sent bytes") { !recorder.sent.isEmpty }
        scene.server.set { $0.isStuck = true }
        sending.cancel()
        await #expect(throws: CancellationError.self) { try await sending.value }
        let requests = scene.server.requests.count
        scene.server.set { ($0.readPause, $0.isStuck) = (0, false) }
        _ = try await staged.send(to: scene, recorder)
        #expect(scene.server.requests.count >= requests)
        try delivered(scene, staged)
    }

    @Test("D3: a block damaged in transit is detected by its digest, and sent again")
    func digest() async throws {
        let scene = try FormScene("breakpoint")
        scene.server.set { $0.damaged = 2 }
        let staged = try StagedUpload(2 * Self.block)
        _ = try await staged.send(to: scene, RecordingReporter())
        #expect(scene.server.refused == ["crc", "crc"])
        try delivered(scene, staged)
        scene.server.set { $0.damaged = 3 }
        #expect(try await staged.failure(to: scene).remedy == .failUpload)
    }

    @Test("D3: an old server gets an empty digest if configured, and other forms of it")
    func emptyDigest() async throws {
        let scene = try FormScene("breakpoint", ["send.fields": .map(["crc": .literal("")])])
        let staged = try StagedUpload(2 * Self.block)
        _ = try await staged.send(to: scene, RecordingReporter())
        try delivered(scene, staged)
        let values = FormValues(
            order: staged.order, plan: try #require(PartPlan(size: 9, partSize: 9)), blockSize: 9,
            digests: [.crc32: "cbf43926", .crc32Upper: "CBF43926", .crc32Decimal: "3421780262"])
        #expect(try FormTemplate("{crc32} {crc32:HEX} {crc32:dec}").text(values) == "cbf43926 CBF43926 3421780262")
    }

    @Test("D4: number, offset and length are consistent, for the first, a middle and the last block")
    func numbers() throws {
        let plan = try #require(PartPlan(size: 2500, partSize: 1000))
        let staged = try StagedUpload(0)
        let texts = try [0, 1, 2].map { index in
            var values = FormValues(order: staged.order, plan: plan, blockSize: plan.partSize)
            values.part = plan[index]
            return try FormTemplate("{index0} {index1} {count} {offset} {end} {last} {length} {is_last}").text(values)
        }
        #expect(
            texts == [
                "0 1 3 0 1000 999 1000 false", "1 2 3 1000 2000 1999 1000 false", "2 3 3 2000 2500 2499 500 true",
            ])
    }

    @Test("D4: a resumed upload skips and repeats no block")
    func resumedNumbers() async throws {
        let scene = try FormScene("breakpoint")
        let staged = try StagedUpload(5 * Self.block)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: 3 * Self.block)
        _ = try await staged.send(to: scene, recorder)
        #expect(scene.server.requests == ["open"] + (1...5).map { "block \($0)" })
        try delivered(scene, staged)
    }

    @Test("D5: a last block without the file's address is queried once more, and then reported")
    func unconfirmed() async throws {
        let scene = try FormScene("breakpoint")
        scene.server.set { $0.omitsURL = true }
        let staged = try StagedUpload(2 * Self.block)
        let error = try await staged.failure(to: scene)
        #expect(error.failure.code == .notConfirmed && error.remedy == .failUpload)
        #expect(error.failure.message.contains("did not confirm"))
        #expect(scene.server.requests == ["open", "block 1", "block 2", "block 2"])
        // When a person retries it, the server is asked again.
        let recorder = RecordingReporter()
        _ = try await staged.failure(to: scene, recorder)
        scene.server.set { $0.omitsURL = false }
        #expect(try await staged.send(to: scene, recorder).url?.hasPrefix("http://files.example/clip") == true)
        let late = try FormScene("breakpoint")
        late.server.set { $0.lateURLs = 1 }
        #expect(try await staged.send(to: late, RecordingReporter()).url == "http://files.example/clip.mp4")
    }

    @Test("D6: the last block is the short one, and a file below one block may be announced with its size")
    func shortBlocks() async throws {
        let nominal = try FormScene("breakpoint")
        let staged = try StagedUpload(Self.block / 2)
        _ = try await staged.send(to: nominal, RecordingReporter())
        try delivered(nominal, staged)
        let values = ["block.announce": SettingValue.text("actual"), "block.size": .bytes(10 * FormScene.block)]
        let actual = try FormScene("breakpoint", values) { $0.block = 500 }
        _ = try await staged.send(to: actual, RecordingReporter())
        try delivered(actual, staged)
        var announced = FormReading(values.mergedOver(FormPreset.named("breakpoint")?.values ?? [:]))
        #expect(announced.settings().announced == .actual)
    }

    @Test("D7: an empty file is sent as one block without a byte")
    func empty() async throws {
        for preset in FormScene.presets {
            let scene = try FormScene(preset)
            let staged = try StagedUpload(0)
            _ = try await staged.send(to: scene, RecordingReporter())
            #expect(scene.server.requests.filter { $0.hasPrefix("block") } == ["block 1"])
            #expect(try scene.objects.values.map { $0 } == [[]])
        }
    }

    @Test("D8: a block is streamed from the file, and not held in memory")
    func streaming() async throws {
        let scene = try FormScene("breakpoint", ["block.size": .bytes(48 << 20)])
        let seen = Mutex<[Request.Body]>([])
        let watched = try scene.watched { request in seen.withLock { $0.append(request.body) } }
        let staged = try StagedUpload(1 << 20)
        _ = try await watched.upload(staged.order, reporter: RecordingReporter())
        let blocks = seen.withLock { $0 }.dropFirst()
        #expect(blocks.count == 1)
        guard case .framed(let head, staged.order.file.place, 0, 1 << 20, let tail)? = blocks.first else {
            Issue.record("\(blocks.count) blocks")
            return
        }
        #expect(head.count < 4096 && tail.count < 200)
    }

    @Test("D9: the announced size is that of the staged file, which must match the record")
    func stagedSize() async throws {
        let scene = try FormScene("breakpoint")
        let staged = try StagedUpload(2 * Self.block)
        try staged.restage(staged.content + [1])
        #expect(try await staged.failure(to: scene).remedy == .restage(.changed))
        #expect(scene.server.requests.isEmpty)
    }

    @Test("D10, D11: two files of one name in the same second do not collide, here or there")
    func sameName() async throws {
        for preset in FormScene.presets {
            let scene = try FormScene(preset)
            let stagedUploads = try [1, 2].map { try StagedUpload(2 * Self.block, id: "\($0)", seed: UInt64($0)) }
            for staged in stagedUploads { _ = try await staged.send(to: scene, RecordingReporter()) }
            let held = try Array(scene.objects.values)
            #expect(held.count == 2 && stagedUploads.allSatisfy { held.contains($0.content) }, "\(preset)")
        }
    }

    @Test("D12: another file under the staged name is detected before the next block")
    func otherFile() async throws {
        let scene = try FormScene("breakpoint")
        let staged = try StagedUpload(3 * Self.block)
        let recorder = RecordingReporter()
        recorder.stop { pages in
            // The file has the same size, so that only its identity differs.
            if pages.accepted == FormScene.block { try? staged.restage(noise(3 * Self.block, seed: 9)) }
            return false
        }
        let error = try await staged.failure(to: scene, recorder)
        #expect(error.remedy == .restage(.changed))
        #expect(scene.server.requests == ["open", "block 1"])
        #expect(try scene.objects.isEmpty)
    }

    @Test("D13: a removed or truncated file sends nothing", arguments: [nil, 1500])
    func removed(_ size: Int?) async throws {
        let scene = try FormScene("breakpoint")
        let staged = try StagedUpload(3 * Self.block)
        let recorder = RecordingReporter()
        recorder.stop { pages in
            if pages.accepted == FormScene.block { try? staged.restage(size.map { Array(staged.content.prefix($0)) }) }
            return false
        }
        #expect(try await staged.failure(to: scene, recorder).remedy.restages)
        #expect(scene.server.requests == ["open", "block 1"])
    }

    @Test("D14: the blocks of a file use one connection")
    func connections() async throws {
        let scene = try FormScene("breakpoint")
        _ = try await StagedUpload(9 * Self.block).send(to: scene, RecordingReporter())
        #expect(scene.server.requests.count == 10)
        #expect(scene.server.connectionCount == 1)
    }

    @Test("D15: an error in the body of a 200 is an error, and so is one without the token")
    func errorsInBodies() async throws {
        for preset in ["plupload", "fineuploader", "breakpoint"] {
            let scene = try FormScene(preset)
            scene.server.set { $0.errorsIn200 = 1 }
            let staged = try StagedUpload(10)
            let (object, errors) = try await scene.deliver(staged)
            #expect(object != nil && errors.count == 1, "\(preset): \(errors)")
            #expect(errors.first?.failure.message.contains("Failed to open input stream") == true, "\(errors)")
            try delivered(scene, staged)
        }
        let garbled = try FormScene("breakpoint")
        garbled.server.set { $0.garbled = 1 }
        #expect(try await StagedUpload(10).failure(to: garbled).remedy == .refused(after: nil))
    }

    @Test("D16: a block with a lost answer is sent again, without harm")
    func lostAnswer() async throws {
        let scene = try FormScene("breakpoint")
        scene.server.set { $0.lostAnswers = [2, 3] }
        let staged = try StagedUpload(3 * Self.block)
        let (object, errors) = try await scene.deliver(staged)
        #expect(object?.url == "http://files.example/clip.mp4" && errors.count == 2)
        try delivered(scene, staged)
    }

    @Test("D16: an upload that the server forgot starts again, at most twice an attempt and with growing waits")
    func forgotten() async throws {
        let scene = try FormScene("breakpoint")
        scene.server.set { $0.forgets = (after: 2, times: 1) }
        let staged = try StagedUpload(4 * Self.block)
        _ = try await staged.send(to: scene, RecordingReporter())
        #expect(scene.server.requests.count { $0 == "open" } == 2)
        try delivered(scene, staged)
        let worse = try FormScene("breakpoint")
        worse.server.set { $0.forgets = (after: 2, times: .max) }
        let (object, errors) = try await worse.deliver(staged, attempts: 20)
        #expect(object == nil && errors.first?.remedy == .pending(after: .seconds(60)))
        #expect(
            errors.last?.remedy == .pending(after: .seconds(3600)), "the server is at fault, and no attempt is the last"
        )
        #expect(worse.server.requests.count { $0 == "open" } == 40)
    }

    @Test("D17: an upload resumes with its original parts, whatever the present settings")
    func otherSettings() async throws {
        let scene = try FormScene("breakpoint")
        let staged = try StagedUpload(4 * Self.block)
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: 2 * Self.block)
        let later = try scene.again(["block.size": .bytes(1500), "block.rule": .text("merge")])
        var order = staged.order
        order.checkpoint = recorder.last
        _ = try await later.upload(order, reporter: recorder)
        #expect(scene.server.refused.isEmpty)
        #expect(scene.server.requests == ["open"] + (1...4).map { "block \($0)" })
        try delivered(scene, staged)
    }

    @Test("D18: a failed opening leaves no remains, or reported ones")
    func failedOpening() async throws {
        let scene = try FormScene("breakpoint")
        scene.server.set { $0.refusals = (503, 1, nil) }
        let recorder = RecordingReporter()
        let staged = try StagedUpload(Self.block)
        _ = try await staged.failure(to: scene, recorder)
        #expect(recorder.last?["creating"] == "1")
        scene.server.set { $0.lostOpenings = 1 }
        _ = try await staged.failure(to: scene, recorder)
        let object = try await staged.send(to: scene, recorder)
        #expect(object.warnings.contains { $0.contains("unfinished uploads") })
        #expect(try scene.objects.count == 1)
    }

    @Test("D19: the data needed to resume is recorded before the first byte is sent")
    func notesFirst() async throws {
        for preset in FormScene.presets {
            let scene = try FormScene(preset)
            let recorder = RecordingReporter()
            _ = try await StagedUpload(3 * Self.block).send(to: scene, recorder)
            #expect(!recorder.wasEarly, "\(preset)")
            let dead = try FormScene(preset)
            await #expect(throws: RecordingReporter.Dead.self) {
                try await StagedUpload(10).send(to: dead, RecordingReporter(refusing: 1))
            }
            #expect(dead.server.requests.isEmpty)
        }
    }

    @Test("D20: the staged copy is never changed here, whatever the result")
    func copyStays() async throws {
        let scene = try FormScene("breakpoint")
        let staged = try StagedUpload(Self.block)
        scene.server.set { $0.refusals = (413, 1, nil) }
        _ = try await staged.failure(to: scene)
        _ = try await staged.send(to: scene, RecordingReporter())
        #expect(try Files.read(staged.order.file.path, limit: 1 << 20) == staged.content)
    }
}
