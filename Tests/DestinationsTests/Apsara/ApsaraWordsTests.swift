import Core
import Credentials
import Linux
import TestKit
import TestTraits
import Testing

@testable import Destinations

/// Requests to ApsaraVideo VOD and to services that call it, and the meaning of their answers.
@Suite("apsara-vod: requests and answers", .needsPackages, .timeLimit(.minutes(Patience.minutes(5))))
struct ApsaraWordsTests {
    private static func order(_ staged: StagedUpload, _ metadata: [String: String]) -> UploadOrder {
        var order = staged.order
        order.metadata = metadata
        return order
    }

    @Test("template values reach VOD, and those for the end are sent at the end")
    func media() async throws {
        let more: [String: SettingValue?] = [
            "media.transcode": .flag(false), "media.process": .flag(true), "media.watermark": .flag(false),
            "media.priority": .whole(6),
        ]
        try await ApsaraEnd.open(.key, more) { end in
            let said = [
                "media.title": "front door", "media.description": "at night", "media.tags": "cam1, night ,",
                "media.category": "19", "media.cover": "https://example.org/cover.jpg", "media.workflow": "0123abc",
                "media.storage_location": "outin-x.oss-cn-shanghai.aliyuncs.com", "media.app_id": "app-1000000",
            ]
            let staged = try StagedUpload(1000)
            let object = try await end.destination.upload(Self.order(staged, said), reporter: RecordingReporter())
            #expect(object.warnings.isEmpty)
            let medium = try #require(try await end.media().first)
            var expected = [
                "Title": "front door", "Description": "at night", "Tags": "cam1,night", "CateId": "19",
                "CoverURL": "https://example.org/cover.jpg", "WorkflowId": "0123abc", "FileSize": "1000",
                "StorageLocation": "outin-x.oss-cn-shanghai.aliyuncs.com", "AppId": "app-1000000",
                "TranscodeMode": "NoTranscode", "FileName": "front/clip.mp4",
            ]
            expected["ReferenceId"] = medium.said["ReferenceId"]
            #expect(medium.said == expected)
            #expect(medium.said["ReferenceId"]?.hasPrefix("sluice-") == true)
            let notice = try #require(try await end.headers("x-oss-notification", of: "CompleteMultipartUpload").first)
            let json = try #require(bytes(base64: notice).flatMap { JSONValue.read($0) })
            #expect(
                json
                    == .object([
                        "Vod": .object([
                            "Title": .text("front door"), "Description": .text("at night"), "Tags": .text("cam1,night"),
                            "CateId": .text("19"), "CoverUrl": .text("https://example.org/cover.jpg"),
                            "IsProcess": .text("true"),
                            "UserData": .object(["IsShowWaterMark": .text("false"), "Priority": .text("6")]),
                        ])
                    ]))
            // Pictures have fewer fields.
            let picture = try StagedUpload(1000, id: "2", name: "a.JPG")
            _ = try await end.destination.upload(Self.order(picture, said), reporter: RecordingReporter())
            let other = try #require(try await end.media().last)
            #expect(other.said["ImageType"] == "default" && other.said["ImageExt"] == "jpg")
            #expect(other.said["Title"] == "front door" && other.said["WorkflowId"] == nil)
        }
    }

    @Test(
        "too long values are cut, and impossible ones fail the file before any request",
        arguments: Tier.sample(
            [
                (["media.title": String(repeating: "é", count: 130)], nil),
                (["media.description": String(repeating: "x", count: 1025)], nil),
                (["media.tags": (1...17).map { "t\($0)" }.joined(separator: ",")], nil),
                (["media.tags": String(repeating: "日", count: 33)], nil),
                (["media.category": "nineteen"], "media.category"), (["media.category": "-1"], "media.category"),
                (["media.cover": "cover.jpg"], "media.cover"), (["media.user_data": "{"], "media.user_data"),
                (["media.user_data": "[]"], "media.user_data"), (["media.app_id": "1000000"], "media.app_id"),
                (["media.template_group": "a b"], "media.template_group"),
            ] as [([String: String], String?)], 3))
    func limits(_ said: [String: String], _ key: String?) async throws {
        try await ApsaraEnd.open { end in
            let staged = try StagedUpload(100)
            let order = Self.order(staged, said)
            if let key {
                let error = await #expect(throws: UploadError.self) {
                    _ = try await end.destination.upload(order, reporter: RecordingReporter())
                }
                #expect(error?.failure.code == .metadataRefused && error?.remedy == .failUpload)
                #expect(error?.failure.message.contains("`\(key)`") == true)
                #expect(try await end.server.operations() == [])
            } else {
                let object = try await end.destination.upload(order, reporter: RecordingReporter())
                #expect(object.warnings.count == 1, "\(object.warnings)")
            }
        }
    }

    @Test("a file of a type unknown to VOD, or without a byte, fails before any request")
    func refused() async throws {
        try await ApsaraEnd.open { end in
            let cases: [(name: String, size: Int, code: Failure.Code)] = [
                ("a.txt", 10, .notMedia), ("mp4", 10, .notMedia), ("a.mp4", 0, .emptyFile),
            ]
            for (name, size, code) in cases {
                let error = try await StagedUpload(size, name: FilePath(name)).failure(to: end)
                #expect(error.failure.code == code && error.remedy == .failUpload)
            }
            #expect(try await end.server.operations() == [])
        }
    }

    @Test("every extension of the service's list has a kind")
    func endings() {
        let video =
            "mp4 ts 3gp mpg mpeg mpe dat vob asf avi wmv flv f4v rm rmvb mov mkv m3u8 dv m2t m4v mj2 mjpeg mts ogg qt swf webm"
        let audio = "mp3 wma wav aac ra m4a flac ape ac3 amr caf acm"
        for (words, sort) in [(video, ApsaraMediaKind.video), (audio, .audio), ("png jpg jpeg gif heic webp", .image)] {
            for word in words.split(separator: " ") {
                #expect(ApsaraMediaKind.of(FilePath("a.\(word)")) == sort)
                #expect(ApsaraMediaKind.of(FilePath("a.\(word.uppercased())")) == sort)
            }
        }
        for name in ["a", "mp4", "a.mp4.part", "a.", ".mp4", "a.docx"] {
            #expect(ApsaraMediaKind.of(FilePath(name)) == nil)
        }
    }

    // MARK: A service of the person's

    @Test(
        "a service may pass on VOD's answer unchanged, decoded, as text or wrapped",
        arguments: ["coded", "object", "text", "wrapped"])
    func styles(_ style: String) async throws {
        try await ApsaraEnd.open(.service, ["authorisation.token": .secret(.literal("a-token-of-the-service"))]) {
            end in
            try await end.server.control(
                "settings",
                #"{"own_style": "\#(style)", "own_headers": {"Authorization": "Bearer a-token-of-the-service"}}"#)
            #expect(try await StagedUpload(1000).send(to: end, RecordingReporter()).verifiedBy == "crc64")
            #expect(try await end.objects.count == 1)
        }
    }

    @Test("a program may replace the service, and refuses in its own words")
    func program() async throws {
        try await ApsaraEnd.open(.service) { end in
            let temporary = TemporaryFolder()
            let script = try temporary.writeProgram(
                "ask", "exec curl -sS -X POST --data-binary @- \(end.server.url)/_auth")
            let refusing = try temporary.writeProgram(
                "refuse",
                #"echo '{"error": {"code": "Quota", "message": "no more today, key=abcdefghijklmnop"}, "final": true}'"#
            )
            let good = try end.again([
                "authorisation.url": nil, "authorisation.command": .texts([script.display]),
                "upload_endpoint": .text(end.server.url),
            ])
            let first = try StagedUpload(1000)
            #expect(try await good.upload(first.order, reporter: RecordingReporter()).verifiedBy == "crc64")
            let bad = try end.again(["authorisation.url": nil, "authorisation.command": .texts([refusing.display])])
            let staged = try StagedUpload(1000, id: "2", name: "b.mp4")
            let error = await #expect(throws: UploadError.self) {
                _ = try await bad.upload(staged.order, reporter: RecordingReporter())
            }
            #expect(
                error?.remedy == .failUpload && error?.failure.code == .service("Quota"), "\(String(describing: error))"
            )
            #expect(error?.failure.message.contains("no more today") == true)
        }
    }

    @Test("the program in the manual works as the manual says")
    func manualProgram() async throws {
        try await ApsaraEnd.open(.service) { end in
            let page = Repository.root.appending("docs/destinations/apsara-vod.md")
            let text = String(decoding: try Files.read(page), as: UTF8.self)
            let blocks = text.split(separator: "```python\n").dropFirst()
            let block = try #require(blocks.first.flatMap { $0.split(separator: "```").first })
            let right = #"endpoint="vod.cn-shanghai.aliyuncs.com""#
            #expect(block.contains(right))
            let here = block.replacing(right, with: "endpoint=\"127.0.0.1:\(end.server.port)\", protocol=\"http\"")
            let temporary = TemporaryFolder()
            let script = try temporary.write("ask.py", Array(here.utf8))
            let python = try await blocking { try Tools.python("oss") }.appending("python")
            let destination = try end.again([
                "authorisation.url": nil,
                "authorisation.command": .texts([
                    "/usr/bin/env", "ALIBABA_CLOUD_ACCESS_KEY_ID=\(OSSServer.id)",
                    "ALIBABA_CLOUD_ACCESS_KEY_SECRET=\(OSSServer.secretKey)", python.display, script.display,
                ]), "upload_endpoint": .text(end.server.url),
            ])
            #expect(await destination.check().verdict == .ok)
            try await end.server.control(
                "faults", #"[{"do": "lose_answer", "match": {"operation": "CreateUploadVideo"}}]"#)
            for name in ["a.mp4", "b.png"] {
                let (staged, recorder) = (
                    try StagedUpload(3 * ApsaraTests.part, id: name, name: FilePath(name)), RecordingReporter()
                )
                var object: RemoteObject?
                for _ in 0..<3 where object == nil {
                    var order = staged.order
                    order.checkpoint = recorder.last
                    recorder.beginAttempt()
                    do { object = try await destination.upload(order, reporter: recorder) } catch is UploadError {}
                }
                #expect(object?.verifiedBy == "crc64", "\(name)")
            }
            #expect(try await end.media().count == 2)
        }
    }

    @Test("a medium granted for another file is not used for a second one")
    func sharedMedium() async throws {
        try await ApsaraEnd.open(.service) { end in
            let temporary = TemporaryFolder()
            let script = try temporary.writeProgram(
                "ask",
                #"curl -sS -X POST --data-binary @- \#(end.server.url)/_auth | sed 's/"VideoId": "[0-9a-f]*"/"VideoId": "always-this"/'"#
            )
            let destination = try end.again([
                "authorisation.url": nil, "authorisation.command": .texts([script.display]),
                "upload_endpoint": .text(end.server.url),
            ])
            let (first, second) = (try StagedUpload(1000), try StagedUpload(1000, id: "2", name: "b.mp4", seed: 2))
            #expect(try await destination.upload(first.order, reporter: RecordingReporter()).id == "always-this")
            let recorder = RecordingReporter()
            for _ in 0..<2 {
                var order = second.order
                order.checkpoint = recorder.last
                let error = await #expect(throws: UploadError.self) {
                    _ = try await destination.upload(order, reporter: recorder)
                }
                #expect(error?.failure.code == .mediaShared, "\(String(describing: error))")
            }
            #expect(try await end.objects.count == 1)
        }
    }

    @Test("names become displayable titles and paths")
    func strangeNames() async throws {
        try await ApsaraEnd.open { end in
            for (number, name) in ["nl\nline\u{1}\u{1B}[31m.mp4", "emoji 😀\"q'\\.mp4", " .mp4"].enumerated() {
                let staged = try StagedUpload(100, id: "\(number)", name: FilePath(name), seed: UInt64(number))
                #expect(try await staged.send(to: end, RecordingReporter()).verifiedBy == "crc64")
            }
            let titles = try await end.media().map { $0.said["Title"] }
            #expect(titles == ["nl line  [31m", "emoji 😀\"q'\\", " .mp4"])
        }
    }

    // MARK: Errors

    @Test(
        "an error is defined by its code, with any sender",
        arguments: Tier.sample(
            [
                ("InvalidAccessKeyId.NotFound", 404, "auth"), ("SignatureDoesNotMatch", 400, "auth"),
                ("Forbidden.RAM", 403, "auth"), ("NoPermission", 403, "auth"),
                ("OperationDenied.Suspended", 403, "destination"), ("Forbidden.InitFailed", 403, "destination"),
                ("Throttling.User", 400, "rate_limit"), ("Throttling", 400, "rate_limit"),
                ("InvalidParameter.FileName", 400, "giveUp"), ("MissingParameter", 400, "giveUp"),
                ("AddVideoFailed", 500, "destination"), ("InternalError", 500, "destination"),
                ("ServiceUnAvailable", 503, "destination"), ("InvalidTimeStamp.Format", 400, "destination"),
                ("Something.Else", 400, "giveUp"), ("Something.Else", 502, "destination"),
            ], 5), [ApsaraEnd.Authorization.key, .service])
    func errors(_ given: (code: String, status: Int, meaning: String), _ way: ApsaraEnd.Authorization) async throws {
        try await ApsaraEnd.open(way) { end in
            try await end.server.control(
                "faults", #"[{"do": "error", "status": \#(given.status), "code": "\#(given.code)", "times": 0}]"#)
            let error = try await StagedUpload(1000).failure(to: end)
            let told: String
            switch error.remedy {
            case .authenticate: told = "auth"
            case .holdDestination, .misconfigured: told = "destination"
            case .rateLimit: told = "rate_limit"
            case .failUpload: told = "giveUp"
            default: told = "\(error.remedy)"
            }
            #expect(told == given.meaning, "\(error)")
            #expect(error.failure.code == .service(given.code))
            #expect(await end.destination.check().verdict != .ok)
        }
    }

    @Test("a used nonce is replaced, and the call repeated")
    func nonce() async throws {
        try await ApsaraEnd.open { end in
            try await end.server.control(
                "faults",
                #"[{"do": "error", "status": 400, "code": "SignatureNonceUsed", "match": {"operation": "CreateUploadVideo"}}]"#
            )
            #expect(try await StagedUpload(1000).send(to: end, RecordingReporter()).verifiedBy == "crc64")
        }
    }

    @Test("a wrong key is reported with its configuration keys, without a secret", arguments: ["acs3", "rpc"])
    func wrongKey(_ calls: String) async throws {
        let more: [String: SettingValue?] = [
            "secret_key": .secret(.literal("another-secret-of-nobody")), "call_signature": .text(calls),
        ]
        try await ApsaraEnd.open(.key, more) { end in
            let check = await end.destination.check()
            #expect(check.verdict == .failed)
            #expect(check.detail.contains("SignatureDoesNotMatch") && check.detail.contains("`secret_key`"), "\(check)")
            for secret in ["another-secret", OSSServer.id, "Nonce%253D"] {
                #expect(!check.detail.contains(secret), "\(check)")
            }
        }
    }
}
