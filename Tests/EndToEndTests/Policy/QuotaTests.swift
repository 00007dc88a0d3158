import Core
import Foundation
import Linux
import TestKit
import Testing

/// `sluice quota` and its route, from the built program.
@Suite("Remaining quota and space", .timeLimit(.minutes(Patience.minutes(1))))
struct QuotaTests {
    private struct Allowance: Decodable {
        struct Space: Decodable {
            let unit: String
            let free: Int64?
            let asked_at: String?
        }
        struct Quota: Decodable {
            let place: String
            let limit, used, left: Int64
        }
        let destination: String
        let space: Space?
        let quotas: [Quota]
    }

    @Test("the output shows the reported space of a destination and the remaining quotas that apply")
    func told() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.uploadTo = ["nas", "archive"]
        fixture.destinationKeys = ", quotas: [{per: day, bytes: 10 MB}]"
        fixture.policyKeys = ["quotas: [{per: month, bytes: 1 GB}]"]
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try camera.drop(Clip(number: 1, size: 400_000, relative: "a.mp4"))
        try await eventually("both destinations have the file", within: .seconds(30), every: .milliseconds(100)) {
            try await fixture.status()?.counts.completed == 2
        }
        func asked(_ words: [String]) async throws -> Data {
            Data(
                try await eventually("the daemon answers") { try await fixture.runVerb("quota", words + ["--json"]) }
                    .utf8)
        }
        let nas = try JSONDecoder().decode(Allowance.self, from: try await asked(["nas"]))
        #expect(nas.destination == "nas")
        #expect(nas.space?.unit == "bytes" && (nas.space?.free ?? 0) > 0 && nas.space?.asked_at != nil)
        #expect(nas.quotas.map(\.place).sorted() == ["destinations.nas", "policy"])
        let own = try #require(nas.quotas.first { $0.place == "destinations.nas" })
        #expect(own.limit == 10_000_000 && own.used > 400_000 && own.left <= own.limit - own.used)

        struct All: Decodable { let destinations: [Allowance] }
        let all = try JSONDecoder().decode(All.self, from: try await asked([])).destinations
        #expect(all.map(\.destination) == ["nas", "archive"])
        // A folder of this machine: no quota counts copies to it.
        #expect(all.last?.quotas.isEmpty == true)
        #expect((all.last?.space?.free ?? 0) > 0)

        let words = try #require(try await fixture.runVerb("quota"))
        #expect(
            words.contains("nas\n") && words.contains("destinations.nas") && words.contains(" left until "), "\(words)")
        #expect(try await fixture.runVerb("quota", ["nass"]) == nil)
        let wire = try Wire(unix: fixture.folder.path.appending("control.sock"))
        try await wire.send("GET /v1/quota/nass HTTP/1.1\r\nHost: x\r\n\r\n")
        let refusal = try await wire.reply()
        #expect(refusal.status == 404 && refusal.text.contains("did you mean `nas`?"), "\(refusal.text)")
    }
}
