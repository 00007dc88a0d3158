import Core
import Credentials
import Linux
import TestKit
import Testing
import Transport

@testable import Destinations

/// Invalid contents of a 200, and messages about answers.
@Suite("s3: invalid answers", .timeLimit(.minutes(Patience.minutes(3))))
struct S3AnswerTests {
    final class Scene {
        let emulator: S3Emulator
        let destination: S3
        private let folder = TemporaryFolder()

        init(_ more: [String: SettingValue?] = [:]) throws {
            emulator = try S3Emulator()
            var values = S3End.values(emulator.url, ["single_up_to": .bytes(1000)])
            for (key, value) in more { values[key] = value }
            destination = try S3(
                values,
                DestinationTools(
                    transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive",
                    log: { _ in }))
        }

        deinit { emulator.stop() }

        func error(_ body: () async throws -> Void) async throws -> UploadError {
            try #require(await #expect(throws: UploadError.self) { try await body() })
        }
    }

    static let noLists = [
        "", "ok", "<html><body>log in</body></html>", "<Other/>", "<ListBucketResult><Contents><Key>a</Key>",
        "<ListMultipartUploadsResult><Upload><Key>a</Key>", "<ListPartsResult/>",
        "<ListBucketResult><Contents><Key>a\u{1}b</Key></Contents></ListBucketResult>",
        "<ListMultipartUploadsResult><Upload><Key>\u{1}</Key></Upload></ListMultipartUploadsResult>",
    ]

    @Test("a 200 that is no list is reported, and never read as an empty one", arguments: noLists)
    func noList(_ body: String) async throws {
        let scene = try Scene()
        scene.emulator.script(.list, .answer(200, [], body), .answer(200, [], body))
        scene.emulator.script(.uploads, .answer(200, [], body), .answer(200, [], body))
        scene.emulator.script(.parts, .answer(200, [], body))
        let objects = try await scene.error { _ = try await scene.destination.list(after: nil) }
        let told = "archive: an answer to the list of objects that is not a list"
        #expect(objects.failure.message == told && objects.remedy == .retry(after: nil))
        #expect(await scene.destination.check() == CheckResult(.failed, told))
        let uploads = try await scene.error { _ = try await scene.destination.unfinished() }
        #expect(uploads.failure.message == "archive: an answer to the list of unfinished uploads that is not a list")
        let parts = try await scene.error { _ = try await scene.destination.api.parts(of: "u", "a") }
        #expect(parts.failure.message == "archive: an answer to the list of parts that is not a list")
    }

    @Test("an error in a 200 instead of a list has its remedy")
    func errors() async throws {
        let scene = try Scene()
        let body = "<Error><Code>SlowDown</Code><Message>later</Message></Error>"
        scene.emulator.script(.list, .answer(200, [], body))
        scene.emulator.script(.uploads, .answer(200, [], body))
        for ask in [
            { _ = try await scene.destination.list(after: nil) }, { _ = try await scene.destination.unfinished() },
        ] {
            let error = try await scene.error(ask)
            #expect(error.remedy == .rateLimit(after: nil))
            #expect(error.failure.message.hasSuffix("SlowDown: later"), "\(error.failure)")
        }
    }

    @Test("keys that XML cannot represent are listed, with all others")
    func coded() async throws {
        let scene = try Scene()
        let keys = ["plain.mp4", "a\u{1}b + %2B é.mp4", "one+one/100%.mp4"]
        scene.emulator.change { state in
            for (number, key) in keys.enumerated() {
                state.objects[key] = S3Emulator.Object(bytes: [1])
                state.uploads["\(number)"] = S3Emulator.Upload(key: key)
            }
        }
        let shown = Set(keys.map { FilePath($0).display })
        let page = try #require(try await scene.destination.list(after: nil))
        #expect(Set(page.items.map(\.id)) == shown)
        #expect(Set(try #require(try await scene.destination.unfinished()).map(\.name)) == shown)
    }

    @Test("a list without a declared encoding is read literally")
    func plain() async throws {
        let scene = try Scene()
        scene.emulator.script(
            .list, .answer(200, [], "<ListBucketResult><Contents><Key>a+b%41</Key></Contents></ListBucketResult>"))
        #expect(try await scene.destination.list(after: nil)?.items.map(\.id) == ["a+b%41"])
    }

    @Test("a list that promises more, and leads to nothing new, is reported", arguments: [true, false])
    func endless(_ hasMarker: Bool) async throws {
        let scene = try Scene()
        func page(_ name: String, _ item: String, _ markers: String) -> S3Emulator.Fault {
            .answer(200, [], "<\(name)><IsTruncated>true</IsTruncated>\(hasMarker ? markers : "")\(item)</\(name)>")
        }
        let objects = page(
            "ListBucketResult", "<Contents><Key>a</Key></Contents>", "<NextContinuationToken>m</NextContinuationToken>")
        let uploads = page(
            "ListMultipartUploadsResult", "<Upload><Key>a</Key><UploadId>u</UploadId></Upload>",
            "<NextKeyMarker>a</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>")
        let parts = page(
            "ListPartsResult",
            "<UploadId>u</UploadId><Part><PartNumber>1</PartNumber><ETag>e</ETag><Size>1</Size></Part>",
            "<NextPartNumberMarker>1</NextPartNumberMarker>")
        scene.emulator.change { $0.faults = [.list: [objects, objects], .uploads: [uploads, uploads]] }
        scene.emulator.change { $0.faults[.parts] = [parts, parts] }
        let words = "that announces more, and the next page has nothing new"
        let first = try await scene.error {
            let mark = try await scene.destination.list(after: nil)?.next
            #expect(hasMarker && mark == "m")
            _ = try await scene.destination.list(after: mark)
        }
        #expect(first.failure.message == "archive: an answer to the list of objects \(words)")
        let second = try await scene.error { _ = try await scene.destination.unfinished() }
        #expect(second.failure.message == "archive: an answer to the list of unfinished uploads \(words)")
        let third = try await scene.error { _ = try await scene.destination.api.parts(of: "u", "a") }
        #expect(third.failure.message == "archive: an answer to the list of parts \(words)")
        let each = hasMarker ? 2 : 1
        #expect(scene.emulator.requests.count == 3 * each, "\(scene.emulator.requests)")
    }

    private static let pair: [String: SettingValue?] = ["access_key": nil, "secret_key": nil]
    static let rights: [(values: [String: SettingValue?], words: String)] = [
        ([:], "`access_key` and `secret_key`"),
        (["session_token": .secret(.literal("t"))], "`access_key`, `secret_key` and `session_token`"),
        (
            pair.merging([
                "credentials": .secret(
                    .literal(#"{"Version": 1, "AccessKeyId": "AK", "SecretAccessKey": "a-secret-of-it"}"#))
            ]) { $1 }, "`credentials`"
        ),
    ]

    @Test("a refusal without a body is reported with possible causes and where to look", arguments: rights)
    func mute(_ values: [String: SettingValue?], _ words: String) async throws {
        let scene = try Scene(values)
        scene.emulator.change { $0.judge = { _ in (403, "AccessDenied", "not with this signing method.") } }
        let error = try await scene.error { _ = try await scene.destination.api.status(at: "a") }
        #expect(error.remedy == .authenticate)
        let end = "Check \(words), and whether the bucket's policy allows `s3:GetObject` and `s3:ListBucket`"
        #expect(error.failure.message.contains("answered 403 to the lookup of an object; it gives no reason"))
        #expect(error.failure.message.hasSuffix(end), "\(error)")
        let check = await scene.destination.check()
        #expect(check.detail.hasSuffix("AccessDenied: not with this signing method; check \(words)"), "\(check)")
    }

    @Test("neither key id nor signature is shown, whatever a server repeats")
    func repeated() async throws {
        let id = "AKIAEXAMPLE0000001"
        let scene = try Scene(["access_key": .secret(.literal(id))])
        scene.emulator.change { state in
            state.judge = { exchange in
                let signature = exchange.header("authorization")?.split(separator: "Signature=").last ?? ""
                return (403, "SignatureDoesNotMatch", "\(id) and \(signature)")
            }
        }
        let error = try await scene.error { _ = try await scene.destination.list(after: nil) }
        let words = error.failure.message
        #expect(words.contains("SignatureDoesNotMatch: *** and ***"), "\(words)")
        #expect(!words.contains(#/[0-9a-f]{64}/#) && !words.contains(id), "\(words)")
    }
}
