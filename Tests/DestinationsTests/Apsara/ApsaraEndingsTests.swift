import Core
import Credentials
import Glibc
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Lost answers, and removals or queries long afterwards.
@Suite("apsara-vod: ends of uploads", .timeLimit(.minutes(Patience.minutes(5))))
struct ApsaraEndingsTests {
    @Test(
        "a lost answer to the request for a medium creates no second one",
        arguments: [ApsaraEnd.Authorization.key, .service])
    func lostCreation(_ way: ApsaraEnd.Authorization) async throws {
        try await ApsaraEnd.open(way) { end in
            let operation = way == .key ? "CreateUploadVideo" : "Auth"
            try await end.server.control(
                "faults", #"[{"do": "lose_answer", "match": {"operation": "\#(operation)"}}]"#)
            let (staged, recorder) = (try StagedUpload(3 * ApsaraTests.part), RecordingReporter())
            let error = try await staged.failure(to: end, recorder)
            guard case .holdDestination = error.remedy else { throw error }
            #expect(try await staged.send(to: end, recorder).warnings.isEmpty)
            #expect(try await end.media().count == 1)
            let isWhole = try await end.objects["front/clip.mp4"] == staged.content
            #expect(isWhole)
        }
    }

    @Test(
        "a lost answer to the completion is resolved, without a new grant for a complete object",
        arguments: [ApsaraEnd.Authorization.key, .service], Tier.sample([100, 3 * ApsaraTests.part]))
    func lostEnd(_ way: ApsaraEnd.Authorization, _ size: Int) async throws {
        try await ApsaraEnd.open(way) { end in
            let operation = size == 100 ? "PutObject" : "CompleteMultipartUpload"
            try await end.server.control(
                "faults", #"[{"do": "lose_answer", "match": {"operation": "\#(operation)"}}]"#)
            let (staged, recorder) = (try StagedUpload(size), RecordingReporter())
            _ = try await staged.failure(to: end, recorder)
            var order = staged.order
            order.checkpoint = recorder.last
            recorder.beginAttempt()
            // As after a crash.
            #expect(try await end.again().upload(order, reporter: recorder).verifiedBy == "held")
            #expect(recorder.sent.isEmpty)
            #expect(try await end.media().map(\.lateRefreshes) == [0])
            #expect(try await end.media().count == 1)
        }
    }

    @Test("for a possibly complete file, VOD is queried when the check meets an expired credential")
    func endedLook() async throws {
        try await ApsaraEnd.open(.key) { end in
            try await end.server.control(
                "faults",
                #"[{"do": "lose_answer", "match": {"operation": "CompleteMultipartUpload"}}, {"do": "expire", "match": {"operation": "HeadObject"}}]"#
            )
            let (staged, recorder) = (try StagedUpload(3 * ApsaraTests.part), RecordingReporter())
            var object: RemoteObject?
            for _ in 0..<3 where object == nil {
                do { object = try await staged.send(to: end, recorder) } catch is UploadError {}
            }
            #expect(object?.verifiedBy == "held")
            #expect(try await end.media().map(\.refreshes) == [0])
            #expect(try await end.partsTaken() == [1, 2, 3])
        }
    }

    @Test("an answer of VOD about another medium is not applied to our file", arguments: ["a.mp4", "a.png"])
    func otherMedium(_ name: String) async throws {
        try await ApsaraEnd.open(.key, ["parallel": .whole(1)]) { end in
            try await end.server.control(
                "faults",
                #"[{"do": "error", "status": 500, "code": "InternalError", "match": {"operation": "CompleteMultipartUpload"}}, {"do": "error", "status": 403, "code": "AccessDenied", "times": 0, "match": {"operation": "HeadObject"}}]"#
            )
            let (staged, recorder) = (try StagedUpload(3 * ApsaraTests.part, name: FilePath(name)), RecordingReporter())
            try await end.server.control(
                "settings", "{\"info_names\": \"somebody-elses\", \"info_size\": \(3 * ApsaraTests.part)}")
            var object: RemoteObject?
            for _ in 0..<3 where object == nil {
                do { object = try await staged.send(to: end, recorder) } catch is UploadError {}
                let isThere = try await end.objects.values.contains(staged.content)
                #expect(object == nil || isThere)
            }
        }
    }

    @Test("the request for removal names the file like the request for upload did")
    func removalQuestion() async throws {
        let asked = Mutex("")
        let server = try FakeServer { exchange in
            let question = String(decoding: exchange.body(), as: UTF8.self)
            asked.withLock { $0 = question }
            exchange.reply(500)
        }
        let apsara = try Apsara(
            ["authorisation.url": .text("\(server.url)/auth")],
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in })
        )
        let digest = String(repeating: "5a", count: 32)
        let checkpoint = Checkpoint([
            "begun": "1", "sort": "video", "media": "m", "media_endpoint": server.url, "bucket": "outin",
            "key": "0a1b.mp4",
            "upload": "1", "file": "front/clip.mp4", "size": "500", "sha256": digest,
        ])
        await #expect(throws: UploadError.self) { try await apsara.discard(checkpoint) }
        let question = try #require(JSONValue.read(Array(asked.withLock { $0 }.utf8)))
        #expect(question["operation"]?.string == "refresh" && question["media"]?.string == "m")
        #expect(question["file"]?.string == "front/clip.mp4" && question["size"]?.whole == 500)
        #expect(question["sha256"]?.string == digest)
    }

    @Test(
        "a picture with an expired credential keeps its parts, and no other picture is created",
        arguments: [ApsaraEnd.Authorization.key, .service])
    func pictureRemains(_ way: ApsaraEnd.Authorization) async throws {
        try await ApsaraEnd.open(way, ["parallel": .whole(1)]) { end in
            let (staged, recorder) = (try StagedUpload(4 * ApsaraTests.part, name: "a.png"), RecordingReporter())
            try await staged.sendStopped(to: end, recorder, accepting: 2 * ApsaraTests.part)
            let checkpoint = try #require(recorder.last)
            try await end.server.control("expire", "{}")
            let before = try await end.media().count
            #expect(try await end.destination.discard(checkpoint) == false)
            #expect(try await end.media().count == before)
        }
    }

    @Test(
        "a started upload is removed even if its credential has expired",
        arguments: [ApsaraEnd.Authorization.key, .service])
    func lateRemoval(_ way: ApsaraEnd.Authorization) async throws {
        try await ApsaraEnd.open(way, ["parallel": .whole(1)]) { end in
            let (staged, recorder) = (try StagedUpload(4 * ApsaraTests.part), RecordingReporter())
            try await staged.sendStopped(to: end, recorder, accepting: 2 * ApsaraTests.part)
            var checkpoint = try #require(recorder.last)
            try await end.server.control("expire", "{}")
            #expect(try await end.destination.discard(checkpoint) == true)
            #expect(try await end.server.unfinished() == [])
            // Also long afterwards, and when nothing is left.
            checkpoint["grant_until"] = "1"
            #expect(try await end.again().discard(checkpoint) == true)
        }
    }

    @Test(
        "for a possibly complete file, VOD is queried when the credential has expired", arguments: ["a.mp4", "a.png"])
    func lateEnd(_ name: String) async throws {
        try await ApsaraEnd.open(.key) { end in
            try await end.server.control(
                "faults", #"[{"do": "lose_answer", "match": {"operation": "CompleteMultipartUpload"}}]"#)
            let (staged, recorder) = (try StagedUpload(3 * ApsaraTests.part, name: FilePath(name)), RecordingReporter())
            _ = try await staged.failure(to: end, recorder)
            var order = staged.order
            order.checkpoint = recorder.last
            order.checkpoint?["grant_until"] = "1"
            recorder.beginAttempt()
            #expect(try await end.again().upload(order, reporter: recorder).verifiedBy == "held")
            #expect(recorder.sent.isEmpty)
            #expect(try await end.media().map(\.refreshes) == [0])
        }
    }
}
