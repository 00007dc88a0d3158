import Core
import Credentials
import Linux
import TestKit
import TestTraits
import Testing

@testable import Destinations

/// The destination against an emulator that checks each signature with the vendor's own packages.
@Suite("oss", .needsPackages, .timeLimit(.minutes(Patience.minutes(5))))
struct OSSTests {
    private static let part = 128 << 10

    @Test(
        "files of any size arrive with either signature, verified by CRC-64, and are looked up",
        arguments: ["v4", "v1"])
    func sizes(_ signature: String) async throws {
        try await OSSEnd.open(["signature": .text(signature)]) { end in
            for (number, size) in [0, 1, 100 << 10, (100 << 10) + 1, Self.part, 4 * Self.part + 1].enumerated() {
                let name = FilePath("a b+%é/\(number).mp4")
                let staged = try StagedUpload(size, id: "\(number)", name: name, seed: UInt64(number))
                #expect(try await end.destination.find(staged.order) == .absent)
                let recorder = RecordingReporter()
                let object = try await staged.send(to: end, recorder)
                #expect(object.verifiedBy == "crc64")
                #expect(object.warnings.isEmpty)
                let isWhole = try await end.objects[name] == staged.content
                #expect(isWhole, "\(size) bytes")
                #expect(!recorder.everything.contains(OSSServer.secretKey))
                guard case .found = try await end.destination.find(staged.order) else {
                    Issue.record("the file is not found again")
                    continue
                }
                #expect(try await staged.send(to: end, RecordingReporter()).verifiedBy == "held")
            }
            #expect(try await end.server.unfinished() == [])
            #expect(try await end.objects.count == 6)
            #expect(await end.destination.check().verdict == .ok)
        }
    }

    @Test("stopped after any note, an upload resumes with the server's state, and starts each file once")
    func stops() async throws {
        try await OSSEnd.open(["parallel": .whole(1)]) { end in
            for note in 1... {
                let staged = try StagedUpload(
                    2 * Self.part + 1, id: "\(note)", name: FilePath("\(note).mp4"), seed: UInt64(note))
                let recorder = RecordingReporter()
                let wasStopped = try await staged.sendStopped(to: end, recorder) { $0.taken == note }
                let accepted = recorder.accepted
                var order = staged.order
                order.checkpoint = recorder.last
                recorder.beginAttempt()
                _ = try await end.destination(["parallel": .whole(1)]).upload(order, reporter: recorder)
                #expect(recorder.sent.allSatisfy { $0 >= accepted }, "note \(note)")
                let isWhole = try await end.objects[FilePath("\(note).mp4")] == staged.content
                #expect(isWhole, "stopped at note \(note)")
                if !wasStopped { break }
                #expect(note < 40, "the upload does not end")
            }
            #expect(try await end.server.unfinished() == [])
            let operations = try await end.server.operations()
            #expect(
                operations.filter { $0 == "InitiateMultipartUpload" }.count == (try await end.objects.count),
                "\(operations)")
        }
    }

    @Test("a temporary key that expires between two parts is read again, and no part is sent twice")
    func expiry() async throws {
        try await OSSEnd.open([:]) { end in
            let temporary = TemporaryFolder()
            // A program that prints a new key each time, as a security token service gives it.
            let program = try temporary.writeProgram(
                "key", "exec curl -sS -X POST -d '{}' \(end.server.url)/_control/keys")
            let destination = try end.destination([
                "access_key": nil, "secret_key": nil, "credentials": .secret(.command([program.display])),
                "parallel": .whole(1),
            ])
            try await end.server.control(
                "faults", #"[{"do": "expire", "match": {"operation": "UploadPart", "part": 2}}]"#)
            let staged = try StagedUpload(3 * Self.part)
            let object = try await destination.upload(staged.order, reporter: RecordingReporter())
            #expect(object.verifiedBy == "crc64")
            let operations = try await end.server.operations()
            #expect(operations.filter { $0 == "InitiateMultipartUpload" }.count == 1)
            // Three parts, and the one that was refused.
            #expect(operations.filter { $0 == "UploadPart" }.count == 4, "\(operations)")
        }
    }

    @Test("a key in a file is read again when it has expired")
    func keyFile() async throws {
        try await OSSEnd.open([:]) { end in
            let temporary = TemporaryFolder()
            let file = temporary.path.appending("key.json")
            try Files.replace(file, with: Array(try await end.server.control("keys", "{}").utf8))
            let destination = try end.destination([
                "access_key": nil, "secret_key": nil, "credentials": .secret(.file(file)),
            ])
            let first = try StagedUpload(1000)
            _ = try await destination.upload(first.order, reporter: RecordingReporter())
            try await end.server.control("expire", "{}")
            try Files.replace(file, with: Array(try await end.server.control("keys", "{}").utf8))
            let other = try StagedUpload(1000, id: "2", name: "other.mp4")
            #expect(try await destination.upload(other.order, reporter: RecordingReporter()).verifiedBy == "crc64")
        }
    }

    @Test("a key that lost its permission is reported, and the next one resumes")
    func newKey() async throws {
        try await OSSEnd.open(["parallel": .whole(1)]) { end in
            try await end.server.control(
                "faults",
                #"[{"do": "error", "status": 403, "code": "InvalidAccessKeyId", "times": 0, "match": {"operation": "UploadPart", "part": 2}}]"#
            )
            let (staged, recorder) = (try StagedUpload(3 * Self.part), RecordingReporter())
            let error = await #expect(throws: UploadError.self) { _ = try await staged.send(to: end, recorder) }
            #expect(error?.remedy == .authenticate, "\(String(describing: error))")
            try await end.server.control("faults", "[]")
            #expect(try await staged.send(to: end, recorder).verifiedBy == "crc64")
            #expect(recorder.sent.allSatisfy { $0 >= Self.part }, "\(recorder.sent)")
        }
    }

    @Test(
        "answers are compared with the bytes sent, and corrected or reported",
        arguments: Tier.sample(
            [
                // A wrong checksum, once: the part is sent again.
                (#"[{"do": "wrong_crc", "match": {"operation": "UploadPart"}}]"#, nil),
                (#"[{"do": "corrupt", "seen": true, "match": {"operation": "UploadPart"}}]"#, nil),
                (#"[{"do": "lower_etag", "times": 0}, {"do": "loose_xml", "times": 0}]"#, nil),
                (#"[{"do": "lose_answer", "match": {"operation": "CompleteMultipartUpload"}}]"#, nil),
                (#"[{"do": "lose_answer", "match": {"operation": "UploadPart"}}]"#, nil),
                (#"[{"do": "drop_part", "match": {"operation": "UploadPart", "part": 1}}]"#, nil),
                (#"[{"do": "callback_failed", "match": {"operation": "CompleteMultipartUpload"}}]"#, nil),
                (#"[{"do": "error", "status": 500, "match": {"operation": "UploadPart"}}]"#, nil),
                // The whole object differs, so it does not count as the file.
                (
                    #"[{"do": "wrong_crc", "times": 0, "match": {"operation": "CompleteMultipartUpload"}}]"#,
                    "object_damaged"
                ),
            ] as [(String, String?)], 2))
    func answers(_ faults: String, _ code: String?) async throws {
        try await OSSEnd.open(["parallel": .whole(1)]) { end in
            try await end.server.control("faults", faults)
            let staged = try StagedUpload(2 * Self.part + 1)
            let recorder = RecordingReporter()
            var failures: [String?] = []
            var object: RemoteObject?
            for _ in 0..<6 where object == nil {
                do { object = try await staged.send(to: end, recorder) } catch let error as UploadError {
                    failures.append(error.failure.code.rawValue)
                }
            }
            if let code {
                #expect(failures.contains(code), "\(failures)")
            } else {
                #expect(object != nil, "\(failures)")
                let isWhole = try await end.objects["front/clip.mp4"] == staged.content
                #expect(isWhole)
            }
            #expect(try await end.objects.count == 1)
            #expect(try await end.server.unfinished() == [])
        }
    }

    @Test(
        "an error is defined by its code",
        arguments: Tier.sample(
            [
                ("AccessDenied", 403, "auth"), ("InDebt", 403, "destination"), ("UserDisable", 403, "destination"),
                ("TotalQpsLimitExceeded", 503, "rate_limit"), ("UploadTrafficRateLimitExceeded", 503, "rate_limit"),
                ("NoSuchBucket", 404, "destination"), ("InternalError", 500, "destination"),
                ("EntityTooLarge", 400, "giveUp"), ("SecondLevelDomainForbidden", 403, "destination"),
            ], 2))
    func errors(_ code: String, _ status: Int, _ meaning: String) async throws {
        try await OSSEnd.open([:]) { end in
            try await end.server.control(
                "faults", #"[{"do": "error", "status": \#(status), "code": "\#(code)", "times": 0}]"#)
            let error = try await StagedUpload(1000).failure(to: end)
            let told: String
            switch error.remedy {
            case .authenticate: told = "auth"
            case .holdDestination, .misconfigured: told = "destination"
            case .rateLimit: told = "rate_limit"
            case .failUpload: told = "giveUp"
            default: told = "\(error.remedy)"
            }
            #expect(told == meaning, "\(error)")
            #expect(error.failure.message.contains(code), "\(error)")
        }
    }

    @Test(
        "the service's clock counts, in either version's words",
        arguments: [("v4", true), ("v4", false), ("v1", false)])
    func clock(_ signature: String, _ isInWords: Bool) async throws {
        try await OSSEnd.open(["signature": .text(signature)]) { end in
            try await end.server.control("settings", #"{"skew": 7200}"#)
            if isInWords {
                try await end.server.control("faults", #"[{"do": "skew_in_words", "times": 0}]"#)
            }
            #expect(try await StagedUpload(1000).send(to: end, RecordingReporter()).verifiedBy == "crc64")
        }
    }

    @Test("an existing key gets a number, and one created meanwhile is not overwritten")
    func taken() async throws {
        try await OSSEnd.open([:]) { end in
            let first = try StagedUpload(1000, seed: 1)
            _ = try await first.send(to: end, RecordingReporter())
            let object = try await StagedUpload(1000, id: "2", seed: 2).send(to: end, RecordingReporter())
            #expect(object.id == "front/clip (2).mp4")
            let large = try StagedUpload(2 * Self.part, id: "3", name: "large.mp4", seed: 3)
            let recorder = RecordingReporter()
            let wasStopped = try await large.sendStopped(to: end, recorder) { $0.accepted >= Self.part }
            try #require(wasStopped)
            // Another writer creates the object meanwhile.
            let other = try StagedUpload(50_000, id: "4", name: "large.mp4", seed: 4)
            _ = try await end.destination().upload(other.order, reporter: RecordingReporter())
            #expect(try await large.send(to: end, recorder).id == "large (2).mp4")
            let kept = try await end.objects["large.mp4"] == other.content
            #expect(kept)
        }
    }

    @Test(
        "an impossible key becomes a possible one",
        arguments: [
            ("a\u{1}b.mp4", "a\\x01b.mp4"), ("\\begins.mp4", "_\\begins.mp4"), ("tab\t é.mp4", "tab\t é.mp4"),
        ] as [(FilePath, String)])
    func names(_ name: FilePath, _ key: String) async throws {
        try await OSSEnd.open([:]) { end in
            for (number, size) in [1000, Self.part + 1].enumerated() {
                let folder = "\(name.bytes.first == 0x5C ? "" : "\(number)/")"
                let staged = try StagedUpload(
                    size, id: "\(number)", name: FilePath(bytes: Array(folder.utf8) + name.bytes), seed: UInt64(number))
                let object = try await staged.send(to: end, RecordingReporter())
                #expect(object.verifiedBy == "crc64")
            }
            let keys = try await Set(end.objects.keys.map(\.display))
            let shown = FilePath(key).display
            #expect(keys.allSatisfy { $0.contains(shown.dropLast(4)) } && keys.count == 2, "\(keys)")
        }
    }

    @Test("objects and unfinished uploads are listed page by page, and cancelled ones removed")
    func lists() async throws {
        try await OSSEnd.open(["parallel": .whole(1)]) { end in
            try await end.server.control("settings", #"{"page_size": 2}"#)
            for number in 1...3 {
                _ = try await StagedUpload(
                    100, id: "\(number)", name: FilePath("\(number) é.mp4"), seed: UInt64(number)
                )
                .send(to: end, RecordingReporter())
            }
            let page = try #require(try await end.destination.list(after: nil))
            #expect(page.items.contains { $0.id == "1 é.mp4" && $0.size == 100 })
            var recorders: [RecordingReporter] = []
            for number in 1...3 {
                let recorder = RecordingReporter()
                let staged = try StagedUpload(
                    4 * Self.part, id: "u\(number)", name: FilePath("u\(number).mp4"), seed: UInt64(number))
                let wasStopped = try await staged.sendStopped(to: end, recorder) { $0.accepted >= 3 * Self.part }
                try #require(wasStopped)
                recorders.append(recorder)
            }
            let unfinished = try #require(try await end.destination.unfinished())
            #expect(Set(unfinished.map(\.name)) == ["u1.mp4", "u2.mp4", "u3.mp4"])
            for recorder in recorders {
                #expect(try await end.destination.discard(#require(recorder.last)) == true)
            }
            #expect(try await end.server.unfinished() == [])
        }
    }

    @Test("a wrong key is reported with its configuration keys, and shown nowhere")
    func wrongKey() async throws {
        try await OSSEnd.open(["secret_key": .secret(.literal("another-secret-of-nobody"))]) { end in
            let check = await end.destination.check()
            #expect(check.verdict == .failed)
            #expect(check.detail.contains("SignatureDoesNotMatch") && check.detail.contains("`secret_key`"), "\(check)")
            #expect(!check.detail.contains("another-secret"))
        }
    }

    @Test("the test server accepts the vendor's clients, and refuses violations")
    func standIn() async throws {
        let (ending, words) = try await OSSServer.runOwnTests()
        #expect(ending == .status(0), "\(words.suffix(3000))")
        #expect(words.contains("Ran 61 tests"), "\(words.suffix(300))")
    }

    @Test("the service is told a bandwidth limit within its range")
    func limit() {
        #expect(OSS.trafficLimit(nil) == nil)
        #expect(OSS.trafficLimit(0) == nil)
        #expect(OSS.trafficLimit(1)?.value == "819200")
        #expect(OSS.trafficLimit(1_000_000)?.value == "8000000")
        #expect(OSS.trafficLimit(.max)?.value == "838860800")
    }

    @Test(
        "mistakes are reported with their keys",
        arguments: [
            (["bucket": .text("Cameras")], "bucket"), (["bucket": .text("-cameras")], "bucket"),
            (["region": .text("oss-cn-shanghai")], "region"), (["region": .text("")], "region"),
            (["addressing": nil], "endpoint"), (["endpoint": .text("https://media.example.com/x")], "endpoint"),
            (["endpoint_kind": .text("internal")], "endpoint_kind"),
            (["endpoint": nil, "addressing": .text("domain")], "addressing"),
            (["region": nil, "signature": .text("v4")], "signature"), (["kms_key": .text("a")], "kms_key"),
            (["part_size": .bytes(1000)], "part_size"), (["secret_key": nil], "access_key"),
            (["region": nil, "endpoint": nil], "bucket"),
            (["access_key": nil, "secret_key": nil], "bucket"),
        ] as [([String: SettingValue?], String)])
    func mistakes(_ more: [String: SettingValue?], _ key: String) {
        let objections = OSS.objections(OSSEnd.values("http://127.0.0.1:1", more))
        #expect(objections.first?.key == key, "\(objections)")
        #expect(OSS.objections(OSSEnd.values("http://127.0.0.1:1")).isEmpty)
    }
}
