import Core
import Credentials
import Glibc
import Linux
import TestKit
import TestTraits
import Testing

@testable import Destinations

/// The destination against an emulator that checks each signature with the vendor's own packages.
@Suite("apsara-vod", .needsPackages, .timeLimit(.minutes(Patience.minutes(5))))
struct ApsaraTests {
    static let part = 128 << 10

    @Test(
        "videos, audio and pictures of any size are uploaded by every flow and signature, verified by CRC-64",
        arguments: Tier.sample(
            [
                (ApsaraEnd.Authorization.key, "acs3", "v4"), (.key, "rpc", "v1"), (.service, nil, nil),
                (.sts, "rpc", "v4"),
                (.sts, "acs3", nil),
            ] as [(ApsaraEnd.Authorization, String?, String?)], 2))
    func sizes(_ way: ApsaraEnd.Authorization, _ calls: String?, _ storage: String?) async throws {
        let more = ["call_signature": calls.map { SettingValue.text($0) }, "signature": storage.map { .text($0) }]
        try await ApsaraEnd.open(way, more) { end in
            let files: [(String, Int)] = [
                ("a b+%é/1.mp4", 1), ("2.MP3", 100 << 10), ("3.jpg", 50_000), ("4.mov", (100 << 10) + 1),
                ("5.png", 4 * Self.part + 1), ("6.mkv", 3 * Self.part),
            ]
            for (number, (name, size)) in files.enumerated() {
                let staged = try StagedUpload(size, id: "\(number)", name: FilePath(name), seed: UInt64(number))
                let recorder = RecordingReporter()
                let object = try await staged.send(to: end, recorder)
                #expect(object.verifiedBy == "crc64")
                #expect(object.warnings.isEmpty, "\(object.warnings)")
                #expect(recorder.names == [object.id])
                #expect(name.hasSuffix("g") == (object.url != nil), "\(String(describing: object.url))")
                let isWhole = try await end.objects[FilePath(name)] == staged.content
                #expect(isWhole, "\(name), \(size) bytes")
                #expect(!recorder.everything.contains(OSSServer.secretKey))
            }
            #expect(try await end.media().count == files.count)
            #expect(try await end.server.unfinished() == [])
            #expect(await end.destination.check().verdict == .ok)
        }
    }

    @Test("stopped after any note, an upload resumes with the storage's state, with one medium for each file")
    func stops() async throws {
        try await ApsaraEnd.open(.key, ["parallel": .whole(1)]) { end in
            for note in 1... {
                let staged = try StagedUpload(
                    2 * Self.part + 1, id: "\(note)", name: FilePath("\(note).mp4"), seed: UInt64(note))
                let recorder = RecordingReporter()
                let wasStopped = try await staged.sendStopped(to: end, recorder) { $0.taken == note }
                let accepted = recorder.accepted
                var order = staged.order
                order.checkpoint = recorder.last
                recorder.beginAttempt()
                _ = try await end.again(["parallel": .whole(1)]).upload(order, reporter: recorder)
                #expect(recorder.sent.allSatisfy { $0 >= accepted }, "note \(note)")
                let isWhole = try await end.objects[FilePath("\(note).mp4")] == staged.content
                #expect(isWhole, "stopped at note \(note)")
                if !wasStopped { break }
                #expect(note < 40, "the upload does not end")
            }
            let (media, count) = (try await end.media(), try await end.objects.count)
            #expect(media.count == count)
            #expect(media.allSatisfy { $0.lateRefreshes == 0 }, "\(media)")
            let operations = try await end.server.operations()
            #expect(operations.filter { $0 == "InitiateMultipartUpload" }.count == count, "\(operations)")
        }
    }

    // MARK: Credentials

    @Test(
        "a credential that expires between or inside parts is renewed once, for the same medium, and every part stays",
        arguments: Tier.sample([ApsaraEnd.Authorization.key, .service]), [false, true])
    func expiry(_ way: ApsaraEnd.Authorization, _ isInside: Bool) async throws {
        try await ApsaraEnd.open(way, ["parallel": .whole(isInside ? 1 : 4)]) { end in
            let inside = isInside ? #", "bytes": 70000"# : ""
            try await end.server.control(
                "faults", #"[{"do": "expire"\#(inside), "match": {"operation": "UploadPart", "part": 3}}]"#)
            let (staged, recorder) = (try StagedUpload(12 * Self.part), RecordingReporter())
            #expect(try await staged.send(to: end, recorder).verifiedBy == "crc64")
            let isWhole = try await end.objects["front/clip.mp4"] == staged.content
            #expect(isWhole)
            let medium = try #require(try await end.media().first)
            #expect(try await end.media().count == 1)
            #expect(medium.refreshes == 1)
            #expect(recorder.credentials.map(\.reason) == [.refused])
            let operations = try await end.server.operations()
            #expect(operations.filter { $0 == "InitiateMultipartUpload" }.count == 1)
            #expect(try await end.partsTaken() == Array(1...12))
        }
    }

    @Test("a renewed credential serves the next attempt too")
    func renewedBefore() async throws {
        try await ApsaraEnd.open(.key, ["parallel": .whole(1)]) { end in
            try await end.server.control(
                "faults", #"[{"do": "expire", "match": {"operation": "UploadPart", "part": 2}}]"#)
            let (staged, recorder) = (try StagedUpload(4 * Self.part), RecordingReporter())
            try await staged.sendStopped(to: end, recorder, accepting: 3 * Self.part)
            #expect(try await staged.send(to: end, recorder).verifiedBy == "crc64")
            #expect(try await end.media().map(\.refreshes) == [1])
            #expect(try await end.partsTaken() == [1, 2, 3, 4])
        }
    }

    @Test("a part refused for another reason than expiry renews nothing")
    func otherRefusals() async throws {
        for code in ["AccessDenied", "SignatureDoesNotMatch", "UserDisable"] {
            try await ApsaraEnd.open(.key, ["parallel": .whole(1)]) { end in
                try await end.server.control(
                    "faults",
                    #"[{"do": "error", "status": 403, "code": "\#(code)", "times": 0, "match": {"operation": "UploadPart", "part": 2}}]"#
                )
                let (staged, recorder) = (try StagedUpload(3 * Self.part), RecordingReporter())
                _ = try await staged.failure(to: end, recorder)
                #expect(try await end.media().map(\.refreshes) == [0], "\(code)")
                try await end.server.control("faults", "[]")
                #expect(try await staged.send(to: end, recorder).verifiedBy == "crc64")
                #expect(recorder.sent.allSatisfy { $0 >= Self.part })
            }
        }
    }

    @Test("an upload whose medium is gone at renewal starts again with another one")
    func goneMedium() async throws {
        try await ApsaraEnd.open(.key, ["parallel": .whole(1)]) { end in
            let (staged, recorder) = (try StagedUpload(3 * Self.part), RecordingReporter())
            try await staged.sendStopped(to: end, recorder, accepting: Self.part)
            let first = try #require(try await end.media().first)
            try await end.server.control("forget", #"["videos"]"#)
            try await end.server.control("expire", "{}")
            var object: RemoteObject?
            for _ in 0..<3 where object == nil {
                do { object = try await staged.send(to: end, recorder) } catch let error as UploadError {
                    #expect(error.failure.code == .service("InvalidVideo.NotFound"))
                }
            }
            #expect(object?.verifiedBy == "crc64")
            #expect(object?.id != first.id)
            #expect(recorder.names.last == object?.id)
            #expect(recorder.left.compactMap { $0["media"] } == [first.id])
            #expect(try await end.media().count == 1)
        }
    }

    @Test("an upload that gets another address half-way starts again there, in the same medium")
    func movedMedium() async throws {
        try await ApsaraEnd.open(.service, ["parallel": .whole(1)]) { end in
            let (staged, recorder) = (try StagedUpload(3 * Self.part), RecordingReporter())
            try await end.server.control(
                "faults",
                #"[{"do": "expire", "match": {"operation": "UploadPart", "part": 2}}, {"do": "move", "times": 0}]"#)
            let error = try await staged.failure(to: end, recorder)
            #expect(error.failure.code == .mediaMoved)
            try await end.server.control("faults", "[]")
            #expect(try await staged.send(to: end, recorder).verifiedBy == "crc64")
            let isWhole = try await end.objects["front/clip.mp4"] == staged.content
            #expect(isWhole)
            #expect(try await end.media().count == 1)
            #expect(recorder.left.count == 1)
            // The credential for the old address has ended with the address.
            #expect(try await end.destination.discard(#require(recorder.left.first)) == false)
        }
    }

    @Test("a picture with an expired credential gets another medium, because its own cannot be renewed")
    func picture() async throws {
        try await ApsaraEnd.open(.key, ["parallel": .whole(1)]) { end in
            let (staged, recorder) = (try StagedUpload(3 * Self.part, name: "a.png"), RecordingReporter())
            try await staged.sendStopped(to: end, recorder, accepting: Self.part)
            try await end.server.control("expire", "{}")
            var object: RemoteObject?
            for _ in 0..<3 where object == nil {
                do { object = try await staged.send(to: end, recorder) } catch let error as UploadError {
                    #expect(error.failure.code == .mediaMoved)
                }
            }
            #expect(object?.verifiedBy == "crc64")
            let isWhole = try await end.objects.values.contains(staged.content)
            #expect(isWhole)
            // The medium is replaced once only; a person is told of the empty one.
            #expect(try await end.media().count == 2)
            #expect(
                object?.warnings.filter { $0.contains("1 medium is left empty") }.count == 1,
                "\(String(describing: object))")
        }
    }

    @Test(
        "a picture is sent with an expiring credential, and no other picture is created",
        arguments: ApsaraEnd.Authorization.allCases)
    func shortPicture(_ way: ApsaraEnd.Authorization) async throws {
        for name in ["a.png", "a.mp4"] {
            let clocks = ManualClocks(wall: SystemClocks().wall())
            try await ApsaraEnd.open(way, ["parallel": .whole(1)], clocks: clocks) { end in
                let (staged, recorder) = (try StagedUpload(4 * Self.part, name: FilePath(name)), RecordingReporter())
                let reporter = ActingReporter(recorder) {
                    // Time has passed while the wall clock has not changed: signatures use the wall clock.
                    clocks.advance(by: .seconds(2900))
                    clocks.step(by: .seconds(-2900))
                }
                let object = try await end.destination.upload(staged.order, reporter: reporter)
                #expect(reporter.hasHappened && object.warnings.isEmpty)
                let media = try await end.media()
                #expect(media.count == 1)
                // For comparison: a video's credential has been renewed by then.
                #expect(media.first?.refreshes == (name == "a.mp4" ? 1 : 0))
            }
        }
    }

    @Test("a picture that gets another address half-way accepts it, and requests no third")
    func movedPicture() async throws {
        try await ApsaraEnd.open(.service, ["parallel": .whole(1)]) { end in
            let (staged, recorder) = (try StagedUpload(3 * Self.part, name: "a.png"), RecordingReporter())
            try await end.server.control(
                "faults", #"[{"do": "expire", "match": {"operation": "UploadPart", "part": 2}}]"#)
            let error = try await staged.failure(to: end, recorder)
            #expect(error.failure.code == .mediaMoved)
            let object = try await staged.send(to: end, recorder)
            #expect(object.verifiedBy == "crc64")
            #expect(try await end.media().count == 2)
            #expect(object.warnings.contains { $0.contains("1 medium is left empty") })
        }
    }

    @Test(
        "a cancelled upload that is retried is sent to its own medium",
        arguments: Tier.sample(ApsaraEnd.Authorization.allCases),
        ["a.mp4", "a.png"])
    func afterCancel(_ way: ApsaraEnd.Authorization, _ name: String) async throws {
        for isAfterRestart in [false, true] {
            try await ApsaraEnd.open(way, ["parallel": .whole(1)]) { end in
                let (staged, recorder) = (try StagedUpload(4 * Self.part, name: FilePath(name)), RecordingReporter())
                try await staged.sendStopped(to: end, recorder, accepting: 2 * Self.part)
                let cancelled = try #require(recorder.last)
                _ = try await end.destination.discard(cancelled)
                #expect(try await end.server.unfinished() == [])
                // Like a new attempt of the daemon without a stored checkpoint.
                var order = staged.order
                order.checkpoint = nil
                order.generation += 1
                let destination = isAfterRestart ? try end.again() : end.destination
                let object = try await destination.upload(order, reporter: RecordingReporter())
                #expect(object.verifiedBy == "crc64")
                let isWhole = try await end.objects.values.contains(staged.content)
                #expect(isWhole)
                // A picture has no reference with which it could be found again.
                #expect(try await end.media().count == (name == "a.png" ? 2 : 1), "\(way) \(name)")
            }
        }
    }

    @Test(
        "an existing reference is recognised by the prefix of the code",
        arguments: [ApsaraEnd.Authorization.key, .sts])
    func takenReference(_ way: ApsaraEnd.Authorization) async throws {
        try await ApsaraEnd.open(way) { end in
            let (staged, recorder) = (try StagedUpload(4 * Self.part), RecordingReporter())
            try await staged.sendStopped(to: end, recorder, accepting: Self.part)
            _ = try await end.destination.discard(#require(recorder.last))
            try await end.server.control(
                "faults",
                #"[{"do": "error", "status": 400, "code": "InvalidParameter.ReferenceIdAlreadyExist", "#
                    + #""message": "exists", "match": {"operation": "CreateUploadVideo"}}]"#)
            #expect(try await staged.send(to: end, RecordingReporter()).verifiedBy == "crc64")
            #expect(try await end.media().count == 1)
        }
    }

    @Test("temporary keys that expire are requested again, also during an upload")
    func temporaryKeys() async throws {
        try await ApsaraEnd.open(.sts, ["parallel": .whole(1)]) { end in
            _ = try await StagedUpload(100).send(to: end, RecordingReporter())
            let (staged, recorder) = (try StagedUpload(3 * Self.part, id: "2", name: "b.mp4"), RecordingReporter())
            try await staged.sendStopped(to: end, recorder, accepting: Self.part)
            // Both of them: the keys, and the credential of the upload.
            try await end.server.control("expire", "{}")
            #expect(try await staged.send(to: end, recorder).verifiedBy == "crc64")
            #expect(try await end.media().count == 2)
            #expect(try await end.server.operations().filter { $0 == "Sts" }.count == 2)
        }
    }

    @Test("a daemon that lost the lease meanwhile is told so, and no key is reported unreadable")
    func lostLease() async throws {
        try await ApsaraEnd.open(.key, ["parallel": .whole(1)]) { end in
            try await end.server.control(
                "faults", #"[{"do": "expire", "match": {"operation": "UploadPart", "part": 2}}]"#)
            let (staged, recorder) = (try StagedUpload(3 * Self.part), RecordingReporter(refusingCredentials: true))
            await #expect(throws: RecordingReporter.Dead.self) { try await staged.send(to: end, recorder) }
        }
    }

    // MARK: Answers that are lost

    @Test("the same file in two simultaneous uploads is sent once")
    func twins() async throws {
        try await ApsaraEnd.open(.key, ["parallel": .whole(1)]) { end in
            try await end.server.control(
                "faults", #"[{"do": "slow", "seconds": 2, "match": {"operation": "UploadPart", "part": 1}}]"#)
            let (first, second) = (try StagedUpload(2 * Self.part, id: "1"), try StagedUpload(2 * Self.part, id: "2"))
            let (running, recorder) = (RecordingReporter(), RecordingReporter())
            async let object = first.send(to: end, running)
            try await eventually("the first upload has been opened", within: .seconds(10), every: .milliseconds(10)) {
                try await end.server.operations().contains("InitiateMultipartUpload")
            }
            let error = try await second.failure(to: end, recorder)
            #expect(error.failure.code == .nameInUse)
            guard case .pending = error.remedy else { throw error }
            let id = try await object.id
            let twin = try await second.send(to: end, recorder)
            #expect(twin.id == id && twin.verifiedBy == "held")
            #expect(try await end.partsTaken() == [1, 2])
            #expect(try await end.media().map(\.lateRefreshes) == [0])
        }
    }

    @Test("a grant that does not cover checks is no failure, and unknown results are reported")
    func hidden() async throws {
        for way in [ApsaraEnd.Authorization.key, .service] {
            try await ApsaraEnd.open(way) { end in
                let denial =
                    #"{"do": "error", "status": 403, "code": "AccessDenied", "times": 0, "match": {"operation": ["HeadObject", "ListMultipartUploads"]}}"#
                try await end.server.control("faults", "[\(denial)]")
                #expect(
                    try await StagedUpload(3 * Self.part, id: "1", name: "1.mp4").send(to: end, RecordingReporter())
                        .verifiedBy
                        == "crc64")
                try await end.server.control(
                    "faults",
                    "[\(denial), {\"do\": \"lose_answer\", \"match\": {\"operation\": \"CompleteMultipartUpload\"}}]")
                let (staged, recorder) = (
                    try StagedUpload(3 * Self.part, id: "2", name: "2.mp4", seed: 2), RecordingReporter()
                )
                var (codes, object): ([Failure.Code], RemoteObject?) = ([], nil)
                for _ in 0..<4 where object == nil && codes.last != .outcomeUnknown {
                    do { object = try await staged.send(to: end, recorder) } catch let error as UploadError {
                        codes.append(error.failure.code)
                        if error.failure.code == .outcomeUnknown { #expect(error.remedy == .failUpload) }
                    }
                }
                // With a key VOD can be queried; without one the upload reports that, and sends nothing twice.
                #expect(way == .key ? object?.verifiedBy == "held" : codes.last == .outcomeUnknown, "\(codes)")
                #expect(try await end.partsTaken().count == 6)
            }
        }
    }

    @Test("`resume: false` removes the remains when stopped, and starts with the first byte")
    func noResume() async throws {
        try await ApsaraEnd.open(.key, ["parallel": .whole(1), "resume": .flag(false)]) { end in
            let (staged, recorder) = (try StagedUpload(4 * Self.part), RecordingReporter(allowsCleanupRequest: true))
            try await staged.sendStopped(to: end, recorder, accepting: 2 * Self.part)
            #expect(try await end.server.unfinished() == [])
            #expect(try await staged.send(to: end, recorder).verifiedBy == "crc64")
            #expect(recorder.sent.contains { $0 < Self.part })
            #expect(try await end.media().count == 1)
            #expect(try await end.server.unfinished() == [])
            for old in recorder.left { #expect(try await end.destination.discard(old) == true) }
            // Stopped with the last part in flight.
            let (late, second) = (
                try StagedUpload(2 * Self.part, id: "2", name: "2.mp4", seed: 2),
                RecordingReporter(allowsCleanupRequest: true)
            )
            let wasStopped = try await late.sendStopped(to: end, second) { $0.checkpoints.last?["final_sent"] != nil }
            try #require(wasStopped)
            #expect(try await end.server.unfinished() == [])
            let object = try await late.send(to: end, second)
            #expect(object.verifiedBy == "crc64" && object.warnings.isEmpty, "\(object)")
            // The policy forbids sending: no further request is sent. The remains are recorded for a later removal.
            let (third, closed) = (
                try StagedUpload(4 * Self.part, id: "3", name: "3.mp4", seed: 3), RecordingReporter()
            )
            try await third.sendStopped(to: end, closed, accepting: 2 * Self.part)
            #expect(try await end.server.unfinished().count == 1)
            #expect(try await third.send(to: end, closed).verifiedBy == "crc64")
            #expect(closed.left.count == 1)
            for old in closed.left { #expect(try await end.destination.discard(old) == true) }
            #expect(try await end.server.unfinished() == [])
        }
    }
}
