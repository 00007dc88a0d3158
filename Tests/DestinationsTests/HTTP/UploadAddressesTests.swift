import Core
import Glibc
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// One address for two uploads.
@Suite("Addresses of uploads", .timeLimit(.minutes(Patience.minutes(1))))
struct UploadAddressesTests {
    @Test("an address belongs to one owner, in every spelling, until that one is over")
    func owners() {
        let addresses = UploadAddresses()
        let (one, part) = (UploadAddresses.Owner(upload: "1"), UploadAddresses.Owner(upload: "1", part: 0))
        #expect(addresses.claim("http://nas.example/files/abc", for: one))
        #expect(addresses.claim("http://nas.example/files/abc", for: one))
        for spelling in ["http://NAS.example:80/files/abc", "http://nas.example/files/a%62c/"] {
            #expect(!addresses.claim(spelling, for: part) && addresses.isClaimed(spelling))
        }
        #expect(addresses.claim("http://nas.example/files/abc?part=2", for: part))
        addresses.release(upload: "1")
        #expect(!addresses.isClaimed("http://nas.example/files/abc"))
        #expect(addresses.claim("http://nas.example/files/abc", for: UploadAddresses.Owner(upload: "2")))
    }

    @Test(
        "an upload that gets the address of one that is being sent waits, and sends no byte there",
        arguments: ["tus", "resumable-http"])
    func waits(_ type: String) async throws {
        let isOpen = Mutex(false)
        defer { isOpen.withLock { $0 = true } }
        let server = try FakeServer { exchange in
            let common = [("Tus-Resumable", "1.0.0"), ("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?0")]
            switch exchange.method {
            case "OPTIONS":
                exchange.reply(
                    204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation"), ("Upload-Limit", "min-size=0")])
            case "POST": exchange.reply(201, common + [("Location", "/files/0a1b2c")])
            case "HEAD": exchange.reply(200, common + [("Upload-Offset", "0"), ("Upload-Length", "1000")])
            default:
                _ = exchange.body()
                while !isOpen.withLock({ $0 }) { usleep(1000) }
                exchange.reply(422)
            }
        }
        let scenario = try UploadScenario(server.url + "/files", type: type)
        let first = Task { try await scenario.attempt() }
        try await eventually("the first one is being sent") { server.seen.contains { $0.hasPrefix("PATCH") } }
        let reporter = CountingReporter()
        let other: UploadOrder = {
            var order = scenario.order
            order.id = "01JR"
            return order
        }()
        let error = await #expect(throws: UploadError.self) {
            try await scenario.destination.upload(other, reporter: reporter)
        }
        #expect(error?.failure.code == .sameUpload && error?.remedy == .retry(after: .seconds(60)))
        // Nothing that belongs to the other one is kept, so that no cancel removes it.
        #expect(reporter.last?["url"] == nil && reporter.last?["creating"] == nil)
        #expect(server.seen.filter { $0.hasPrefix("PATCH") }.count == 1)
        isOpen.withLock { $0 = true }
        _ = await first.result
    }
}
