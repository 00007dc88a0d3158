import Core
import Credentials
import Linux
import TestKit
import Testing
import Transport

@testable import Destinations

@Suite("Spelling in answers of authorisation services", .timeLimit(.minutes(Patience.minutes(1))))
struct ApsaraSpellingTests {
    private func ticket(_ first: (String) -> String, image: String) throws -> ApsaraUploadTicket {
        func object(_ fields: [String: String]) -> JSONValue {
            .object(Dictionary(uniqueKeysWithValues: fields.map { (first($0.key), .text($0.value)) }))
        }
        return try ApsaraUploadTicket(
            .object([
                first("VideoId"): .text("93ab850b"), image: .text("https://img.example/a.jpg?auth=1"),
                first("UploadAddress"): object([
                    "Endpoint": "oss-cn-shanghai.aliyuncs.com", "Bucket": "bucket-of-vod", "FileName": "sv/a.mp4",
                ]),
                first("UploadAuth"): object([
                    "AccessKeyId": "STS.abc", "AccessKeySecret": "secret", "SecurityToken": "token",
                    "ExpireUTCTime": "2026-11-23T09:20:05Z", "Region": "cn-shanghai",
                ]),
            ]), as: .video)
    }

    @Test("names may begin with a small letter")
    func camelCase() throws {
        let small: (String) -> String = { $0.prefix(1).lowercased() + $0.dropFirst() }
        let plain = try ticket({ $0 }, image: "ImageURL")
        #expect(try ticket(small, image: "imageUrl") == plain)
        #expect(plain.medium.id == "93ab850b" && plain.grant.key.token == "token" && plain.grant.end != nil)
        #expect(plain.medium.imageURL == "https://img.example/a.jpg")
    }

    private func destination(at server: FakeServer) throws -> any Destination {
        try Apsara.kind.make(
            ["authorisation.url": .text(server.url)],
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive",
                log: { _ in }))
    }

    @Test(
        "an error may be written with small letters too, with any status and at any depth",
        arguments: [200, 400],
        [
            (#"{"code":"InvalidParameter.Title","message":"m"}"#, Remedy.failUpload, "InvalidParameter.Title"),
            (#"{"Code":"InvalidParameter.Title","Message":"m"}"#, .failUpload, "InvalidParameter.Title"),
            (#"{"code":"Throttling.User","message":"m"}"#, .rateLimit(after: nil), "Throttling.User"),
            (#"{"error":{"Code":"Throttling.User","Message":"m"}}"#, .rateLimit(after: nil), "Throttling.User"),
            (#"{"Error":{"code":"NoPermission","message":"m"}}"#, .authenticate, "NoPermission"),
            (#"{"code":"500","error":{"code":"InvalidParameter","message":"m"}}"#, .failUpload, "InvalidParameter"),
            (#"{"code":"Other","message":"m","final":true}"#, .failUpload, "Other"),
        ])
    func errors(_ status: Int, _ answer: (String, Remedy, String)) async throws {
        let (body, remedy, code) = answer
        let server = try FakeServer { exchange in
            _ = exchange.body()
            exchange.reply(status, [("Content-Type", "application/json")], body)
        }
        let (destination, staged) = (try destination(at: server), try StagedUpload(800))
        let error = try #require(
            await #expect(throws: UploadError.self) {
                try await destination.upload(staged.order, reporter: RecordingReporter())
            })
        #expect(error.remedy == remedy && error.failure.code.rawValue == code, "\(error)")
        #expect(error.failure.message.contains("\(code): m"), "\(error)")
    }

    @Test("an error inside `data` is one, and a code of success around an answer without an address is none")
    func wrapped() async throws {
        for (body, words) in [
            (#"{"code":"200","data":{"code":"Throttling.User","message":"m"}}"#, "Throttling.User: m"),
            (#"{"code":"200","message":"success","data":{}}"#, "gives no `UploadAddress`"),
            (#"{"code":"OK"}"#, "gives no `UploadAddress`"),
        ] {
            let server = try FakeServer { exchange in
                _ = exchange.body()
                exchange.reply(200, [], body)
            }
            let (destination, staged) = (try destination(at: server), try StagedUpload(800))
            let error = try #require(
                await #expect(throws: UploadError.self) {
                    try await destination.upload(staged.order, reporter: RecordingReporter())
                })
            #expect(error.failure.message.contains(words), "\(error)")
        }
    }

    @Test("a name in the service's own spelling goes before another")
    func both() {
        let json = ApsaraUploadTicket.withNamesOfService(.object(["videoId": .text("a"), "VideoId": .text("b")]))
        #expect(json["VideoId"]?.text == "b")
        #expect(ApsaraUploadTicket.withNamesOfService(.text("x")) == .text("x"))
    }
}
