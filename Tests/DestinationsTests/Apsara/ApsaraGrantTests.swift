import Core
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// The credential that is given for a file, and its duration.
@Suite("apsara-vod: addresses and credentials")
struct ApsaraGrantTests {
    static let address =
        "eyJFbmRwb2ludCI6Imh0dHBzOi8vb3NzLWNuLXNoYW5naGFpLmFsaXl1bmNzLmNvbSIsIkJ1Y2tldCI6Im91dGluLXRlc3QtYnVja2V0IiwiRmlsZU5hbWUiOiJzdi81YTFiMmMzZC81YTFiMmMzZC5tcDQifQ=="
    static let auth =
        "eyJTZWN1cml0eVRva2VuIjoiQ0FJU2Zha2VTZWN1cml0eVRva2VuL3dpdGgrcGx1cz09IiwiQWNjZXNzS2V5SWQiOiJTVFMuTlRlc3RBY2Nlc3NLZXlJZDAwMDEiLCJFeHBpcmVVVENUaW1lIjoiMjAyNC0wNy0xM1QwOToyMDowNVoiLCJBY2Nlc3NLZXlTZWNyZXQiOiJUZXN0QWNjZXNzS2V5U2VjcmV0MDEyMzQ1Njc4OWFiY2RlZiIsIkV4cGlyYXRpb24iOiIzNjAwIiwiUmVnaW9uIjoiY24tc2hhbmdoYWkifQ=="

    @Test("an address and a credential are decoded as the service encodes them")
    func blobs() throws {
        let ticket = try ApsaraUploadTicket(
            .object(["UploadAddress": .text(Self.address), "UploadAuth": .text(Self.auth), "VideoId": .text("93ab")]),
            as: .video)
        #expect(ticket.medium.endpoint == "https://oss-cn-shanghai.aliyuncs.com")
        #expect(ticket.medium.bucket == "outin-test-bucket" && ticket.medium.key == "sv/5a1b2c3d/5a1b2c3d.mp4")
        #expect(ticket.medium.id == "93ab" && ticket.medium.region == "cn-shanghai")
        #expect(ticket.grant.key.id == "STS.NTestAccessKeyId0001")
        #expect(ticket.grant.key.token == "CAISfakeSecurityToken/with+plus==")
        // `Expiration` is not a time.
        #expect(ticket.grant.end == WallTime(rfc3339: "2024-07-13T09:20:05Z"))
    }

    @Test("an invalid media id is reported", arguments: [JSONValue.object([:]), .text("a/b"), .text(""), .list([])])
    func badID(_ id: JSONValue) {
        #expect(throws: ApsaraUploadTicket.UnusableTicketError.self) {
            try ApsaraUploadTicket(
                .object(["UploadAddress": .text(Self.address), "UploadAuth": .text(Self.auth), "VideoId": id]),
                as: .video)
        }
    }

    @Test(
        "an invalid or foreign address is reported and not used",
        arguments: [
            #"{"Endpoint": "https://x.example/path", "Bucket": "abc", "FileName": "a.mp4"}"#,
            #"{"Endpoint": "ftp://x.example", "Bucket": "abc", "FileName": "a.mp4"}"#,
            #"{"Endpoint": "https://user:pw@x.example", "Bucket": "abc", "FileName": "a.mp4"}"#,
            #"{"Endpoint": "https://x.example", "Bucket": "a/b", "FileName": "a.mp4"}"#,
            #"{"Endpoint": "https://x.example:99999", "Bucket": "abc", "FileName": "a.mp4"}"#,
            #"{"Endpoint": "http://[::1", "Bucket": "abc", "FileName": "a.mp4"}"#,
            #"{"Endpoint": "https://x.example", "Bucket": "x.example#", "FileName": "a.mp4"}"#,
            #"{"Endpoint": "https://x.example", "Bucket": "abc", "FileName": "../a.mp4"}"#,
            #"{"Endpoint": "https://x.example", "Bucket": "abc", "FileName": "/a.mp4"}"#,
            #"{"Endpoint": "https://x.example", "Bucket": "abc", "FileName": ""}"#,
            #"{"Endpoint": "https://x.example", "Bucket": "abc", "FileName": "a\u0000b"}"#,
            #"{"Endpoint": "https://x.example", "Bucket": "abc"}"#, "[]", "x", "",
        ])
    func badAddresses(_ address: String) {
        #expect(throws: ApsaraUploadTicket.UnusableTicketError.self) {
            try ApsaraUploadTicket(
                .object(["UploadAddress": .text(address), "UploadAuth": .text(Self.auth)]), as: .video)
        }
    }

    // MARK: Time

    @Test("a credential is renewed before its end, once for all waiters, and not for each part on failure")
    func deadline() async throws {
        let clocks = ManualClocks()
        let asked = Mutex(0)
        let broken = Mutex(false)
        let grant = ApsaraGrant(key: S3Key(id: "1", secret: "s"))
        let keys = ApsaraKeys(grant, left: .seconds(3000), clocks: clocks, clock: ServiceClock()) { reason, _ in
            #expect(reason == .ending)
            asked.withLock { $0 += 1 }
            if broken.withLock({ $0 }) {
                let failure = Failure(.transient, code: .noReply, message: "away", at: clocks.wall(), retryable: true)
                throw UploadError(failure, remedy: .holdDestination(after: nil))
            }
            return grant
        }
        #expect(try await keys.current().reading == 0)
        clocks.advance(by: .seconds(2879))
        #expect(try await keys.current().reading == 0)
        // A part takes longer than the margin.
        await keys.carried(for: .seconds(100))
        broken.withLock { $0 = true }
        #expect(try await keys.current().reading == 0)
        #expect(try await keys.current().reading == 0)
        #expect(asked.withLock { $0 } == 1)
        broken.withLock { $0 = false }
        clocks.advance(by: .seconds(11))
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<8 { group.addTask { try await keys.current().reading } }
            for try await reading in group { #expect(reading == 1) }
        }
        #expect(asked.withLock { $0 } == 2)
        // An expired credential cannot be used.
        broken.withLock { $0 = true }
        clocks.advance(by: .seconds(3001))
        await #expect(throws: UploadError.self) { try await keys.current() }
    }

    @Test("a credential is valid as long as the service says by its own clock, up to a maximum")
    func life() {
        let now = WallTime(milliseconds: 1_800_000_000_000)
        func life(_ seconds: Int64?, ahead: Duration = .zero) -> Duration {
            let end = seconds.map { now.advanced(by: .seconds($0)) }
            return ApsaraKeys.life(of: ApsaraGrant(key: S3Key(id: "", secret: ""), end: end), now: now, ahead: ahead)
        }
        #expect(life(nil) == .seconds(3000))
        #expect(life(3600) == .seconds(3000))
        #expect(life(600) == .seconds(600))
        #expect(life(7800, ahead: .seconds(7200)) == .seconds(600))
        // The clock of this machine was never set, so its time proves nothing.
        #expect(life(-100_000) == .seconds(3000))
    }
}
