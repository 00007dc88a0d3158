import Core
import Digests
import Linux
import TestKit
import TestTraits
import Testing

@testable import Destinations

/// The destination against third-party servers.
@Suite("s3 with third-party servers", .needsPackages, .timeLimit(.minutes(Patience.minutes(5))))
struct S3ServersTests {
    private static let part = Int(S3End.part)

    @Test(
        "files of any size arrive, in one request or in parts, and are looked up",
        arguments: Tier.sample(S3Maker.here), [0, 1, 1 << 20, (1 << 20) + 1, 5 << 20, (10 << 20) + 1])
    func sizes(_ maker: S3Maker, _ size: Int) async throws {
        try await S3End.open(maker) { end in
            let staged = try StagedUpload(size)
            #expect(try await end.destination.find(staged.order) == .absent)
            let recorder = RecordingReporter()
            let object = try await staged.send(to: end, recorder)
            #expect(object.id == "front/clip.mp4")
            #expect(object.warnings.isEmpty)
            let isWhole = try await end.content("front/clip.mp4") == staged.content
            #expect(isWhole)
            #expect(try await end.unfinished() == 0)
            #expect(!recorder.everything.contains(S3Server.secretKey))
            guard case .found = try await end.destination.find(staged.order) else {
                Issue.record("the file is not found again")
                return
            }
            // The same file once more needs no upload.
            #expect(try await staged.send(to: end, RecordingReporter()).verifiedBy == "held")
            #expect(try await end.keys() == ["front/clip.mp4"])
        }
    }

    @Test("stopped after any note, an upload resumes with the server's state", arguments: Tier.sample(S3Maker.here))
    func stops(_ maker: S3Maker) async throws {
        try await S3End.open(maker, ["parallel": .whole(1)]) { end in
            let staged = try StagedUpload(2 * Self.part + 1)
            for note in 1... {
                let name = FilePath("\(note).mp4")
                let staged = try StagedUpload(2 * Self.part + 1, id: "\(note)", name: name, seed: UInt64(note))
                let recorder = RecordingReporter()
                let wasStopped = try await staged.sendStopped(to: end, recorder) { $0.taken == note }
                let accepted = recorder.accepted
                _ = try await end.sendAnew(staged, recorder, ["parallel": .whole(1)])
                // An existing object is found by its name, without sending a byte.
                #expect(recorder.sent.allSatisfy { $0 >= accepted }, "note \(note)")
                let isWhole = try await end.content(name) == staged.content
                #expect(isWhole, "stopped at note \(note)")
                if !wasStopped { break }
                #expect(note < 40, "the upload does not end")
            }
            #expect(staged.content.count > 0)
            // If the answer to the creation was lost, the upload is found in a list.
            #expect(try await end.unfinished() == 0)
        }
    }

    @Test("unusual names are kept", arguments: Tier.sample(S3Maker.here))
    func names(_ maker: S3Maker) async throws {
        let names: [FilePath] = [
            "a b+c.mp4", "100%.mp4", "%2F.mp4", "é視頻/日本.mp4", "q?x=1&y#z.mp4", "(1) '!*~.mp4", "a;b=c@d:e$f.mp4",
            "plus + and space.mp4", "a//b///c.mp4", "//begins.mp4",
        ]
        try await S3End.open(maker, ["single_up_to": .bytes(100)]) { end in
            // In one request, and in parts.
            for size in [100, 101] {
                var kept: Set<String> = []
                for (number, name) in names.filter(maker.keeps).enumerated() {
                    let name = FilePath("\(name.display)-\(size)")
                    let staged = try StagedUpload(size, id: "\(number)", name: name, seed: UInt64(number))
                    _ = try await staged.send(to: end, RecordingReporter())
                    let isWhole = try await end.content(name) == staged.content
                    #expect(isWhole, "\(name.display)")
                    guard case .found = try await end.destination.find(staged.order) else {
                        Issue.record("\(name.display) is not found")
                        continue
                    }
                    kept.insert(name.display)
                }
                #expect(try await end.keys().filter { $0.hasSuffix("-\(size)") } == kept)
            }
            #expect(try await end.unfinished() == 0)
        }
    }

    @Test("the bucket is found by the host name", arguments: S3Maker.here.filter(\.knowsHosts))
    func virtual(_ maker: S3Maker) async throws {
        try await S3End.open(maker, isVirtual: true) { end in
            for (number, size) in [1000, Self.part + 1].enumerated() {
                let name = FilePath("a b/\(number).mp4")
                let staged = try StagedUpload(size, id: "\(number)", name: name)
                let object = try await staged.send(to: end, RecordingReporter())
                #expect(object.url?.contains("/\(end.bucket).") == true, "\(object)")
                let isWhole = try await end.content(name) == staged.content
                #expect(isWhole)
            }
            #expect(await end.destination.check().verdict == .ok)
            #expect(try await end.keys() == ["a b/0.mp4", "a b/1.mp4"])
        }
    }

    @Test("other content under the same name gets a number, replaces it, or fails", arguments: S3Maker.here)
    func taken(_ maker: S3Maker) async throws {
        try await S3End.open(maker) { end in
            let first = try StagedUpload(1000, seed: 1)
            let second = try StagedUpload(1000, id: "2", seed: 2)
            _ = try await first.send(to: end, RecordingReporter())
            let object = try await second.send(to: end, RecordingReporter())
            #expect(object.id == "front/clip (2).mp4")
            let isThere = try await end.content("front/clip (2).mp4") == second.content
            #expect(isThere)
            let third = try StagedUpload(1000, id: "3", seed: 3)
            let failing = try end.destination(["taken": .text("fail")])
            let error = await #expect(throws: UploadError.self) {
                _ = try await failing.upload(third.order, reporter: RecordingReporter())
            }
            #expect(error?.failure.code == .nameTaken && error?.remedy == .failUpload)
            let replacing = try end.destination(["taken": .text("replace")])
            _ = try await replacing.upload(third.order, reporter: RecordingReporter())
            let isReplaced = try await end.content("front/clip.mp4") == third.content
            #expect(isReplaced)
            #expect(try await end.keys() == ["front/clip.mp4", "front/clip (2).mp4"])
        }
    }

    @Test(
        "with conditional writes, an existing name is detected by the single request",
        arguments: S3Maker.here.filter(\.hasConditions))
    func conditions(_ maker: S3Maker) async throws {
        try await S3End.open(maker, ["preset": .text(maker == .ceph ? "ceph" : "minio")]) { end in
            let first = try StagedUpload(1000, seed: 1)
            _ = try await first.send(to: end, RecordingReporter())
            // For this upload the first answer was lost: it is the same file.
            #expect(try await first.send(to: end, RecordingReporter()).verifiedBy == "held")
            let object = try await StagedUpload(1000, id: "2", seed: 2).send(to: end, RecordingReporter())
            #expect(object.id == "front/clip (2).mp4")
            let isFirst = try await end.content("front/clip.mp4") == first.content
            #expect(isFirst)
        }
    }

    @Test(
        "with conditional writes, the end of a multipart upload also detects a concurrent one",
        arguments: Tier.sample(S3Maker.here.filter(\.guardsEnds)))
    func faster(_ maker: S3Maker) async throws {
        try await S3End.open(maker, ["preset": .text("minio"), "parallel": .whole(1)]) { end in
            let slow = try StagedUpload(2 * Self.part, id: "2", seed: 2)
            let recorder = RecordingReporter()
            try await slow.sendStopped(to: end, recorder, accepting: Self.part)
            let fast = try StagedUpload(1000, seed: 1)
            _ = try await fast.send(to: end, RecordingReporter())
            let object = try await end.sendAnew(slow, recorder, ["preset": .text("minio")])
            for checkpoint in recorder.left { #expect(try await end.destination.discard(checkpoint)) }
            #expect(object.id == "front/clip (2).mp4")
            let contents = [try await end.content("front/clip.mp4"), try await end.content("front/clip (2).mp4")]
            let areBoth = contents == [fast.content, slow.content]
            #expect(areBoth)
            #expect(try await end.unfinished() == 0)
        }
    }

    @Test("a wrong key is reported, and holds the destination", arguments: S3Maker.here.filter(\.checksKeys))
    func wrongKey(_ maker: S3Maker) async throws {
        try await S3End.open(maker, ["parallel": .whole(1)]) { end in
            let staged = try StagedUpload(2 * Self.part)
            let recorder = RecordingReporter()
            try await staged.sendStopped(to: end, recorder, accepting: Self.part)
            for (key, value) in [("secret_key", "not-the-secret-at-all"), ("access_key", "AKNOBODY0000000000001")] {
                let wrong = try end.destination([key: .secret(.literal(value))])
                for (staged, reporter) in [
                    (staged, recorder), (try StagedUpload(10, name: "small.mp4"), RecordingReporter()),
                ] {
                    var order = staged.order
                    order.checkpoint = reporter.last
                    let error = await #expect(throws: UploadError.self) {
                        _ = try await wrong.upload(order, reporter: reporter)
                    }
                    #expect(error?.remedy == .authenticate, "\(key)")
                }
                let check = await wrong.check()
                #expect(check.verdict == .failed)
                #expect(!check.detail.contains("not-the-secret"))
            }
            #expect(await end.destination.check().verdict == .ok)
            // With the correct key it continues.
            _ = try await end.sendAnew(staged, recorder)
            #expect(recorder.sent.allSatisfy { $0 >= Self.part })
            let isWhole = try await end.content("front/clip.mp4") == staged.content
            #expect(isWhole)
        }
    }

    @Test("a clock that is hours off is corrected by the server's", arguments: S3Maker.here.filter(\.checksClocks))
    func clocks(_ maker: S3Maker) async throws {
        try await S3End.open(maker) { end in
            for hours in [-3, 3] {
                let now = SystemClocks().wall().advanced(by: .seconds(hours * 3600))
                let clocks = ManualClocks(wall: now)
                let name = FilePath("\(hours).mp4")
                let staged = try StagedUpload(1000, id: "\(hours)", name: name)
                _ = try await end.destination([:], clocks: clocks).upload(staged.order, reporter: RecordingReporter())
                let isWhole = try await end.content(name) == staged.content
                #expect(isWhole, "\(hours) h")
            }
        }
    }

    @Test(
        "an upload cancelled in progress leaves no remains",
        arguments: Tier.sample(S3Maker.here.filter(\.hasUploadList)))
    func aborts(_ maker: S3Maker) async throws {
        try await S3End.open(maker, ["parallel": .whole(1)]) { end in
            let staged = try StagedUpload(2 * Self.part)
            let recorder = RecordingReporter()
            try await staged.sendStopped(to: end, recorder, accepting: Self.part)
            #expect(try await end.unfinished() == 1)
            let last = try #require(recorder.last)
            #expect(try await end.destination.discard(last))
            #expect(try await end.unfinished() == 0)
            #expect(try await end.destination.discard(last), "a missing upload counts as discarded")
            // When it is resumed anyway, it starts again.
            _ = try await staged.send(to: end, recorder)
            let isWhole = try await end.content("front/clip.mp4") == staged.content
            #expect(isWhole)
        }
    }
}
