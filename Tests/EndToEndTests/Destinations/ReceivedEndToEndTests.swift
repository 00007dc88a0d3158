import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// Received bytes in the ledger, compared with the counts of the kernel's packet filter.
@Suite(
    "Received bytes, with the built program", .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"),
    .timeLimit(.minutes(Patience.minutes(4))))
struct ReceivedEndToEndTests {
    private struct Usage: Decodable {
        struct Period: Decodable { let bytes, received: Int64 }
        struct Quota: Decodable { let used, reserved, left: Int64 }
        let days: [Period]
        let quotas: [Quota]
    }

    private struct Reached: Decodable {
        struct Detail: Decodable { let place, quota, threshold, percent, used, limit, until: String }
        let seq: Int
        let type: String
        let detail: Detail
    }

    private func usage(_ fixture: DaemonFixture) async throws -> Usage {
        let text = try await eventually("the daemon reports the received bytes") {
            try await fixture.runVerb("usage", ["--json"])
        }
        return try JSONDecoder().decode(Usage.self, from: Data(text.utf8))
    }

    private func came(_ roads: TwoRoads) async throws -> Int64 {
        try await blocking { try roads.received(by: "wan") + roads.received(by: "lte") }
    }

    private func counted(_ fixture: DaemonFixture) async throws -> Int64 {
        try await usage(fixture).days.last?.received ?? 0
    }

    private func scene(_ policy: [String] = []) async throws -> (TwoRoads, DaemonFixture, Camera) {
        let roads = try await blocking { try TwoRoads() }
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.roads = roads
        fixture.policyKeys = policy
        try await fixture.startReceiver()
        return (roads, fixture, Camera(fixture, dice: Dice(seed: 1)))
    }

    @Test("with many small files and a large one, received bytes are never under-reported and hardly over-reported")
    func counts() async throws {
        // No faster than the links of the test transmit without loss.
        let (roads, fixture, camera) = try await scene(["bandwidth: 5 MB/s"])
        try fixture.startDaemon()
        for number in 0..<300 {
            try camera.drop(Clip(number: number, size: 1 + number * 50, relative: FilePath("\(number).mp4")))
        }
        try camera.drop(Clip(number: 999, size: 20_000_000, relative: "large.mp4"))
        try await Outcome(fixture: fixture, clips: camera.clips).wait(within: .seconds(60))
        let (counted, came) = (try await self.counted(fixture), try await self.came(roads))
        #expect(came > 100_000)
        #expect(counted >= came, "\(counted) \(came)")
        // One closing exchange (180 bytes) for each connection, of which there is at most one for each small file: those
        // take one request each.
        #expect(counted <= came + 300 * 180 + 6000, "\(counted) \(came)")
    }

    @Test("selective acknowledgements on a lossy link are counted with their length")
    func loses() async throws {
        let (roads, fixture, camera) = try await scene()
        try await blocking { try roads.lose(3) }
        try fixture.startDaemon()
        for number in 0..<5 {
            try camera.drop(Clip(number: number, size: 3_000_000, relative: FilePath("\(number).mp4")))
        }
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        let (counted, came) = (try await self.counted(fixture), try await self.came(roads))
        #expect(counted >= came, "\(counted) \(came)")
        #expect(Double(counted) <= 1.5 * Double(came) + 6000, "\(counted) \(came)")
    }

    @Test("bytes that still arrive for an interrupted transfer are counted, in spite of kills")
    func breaks() async throws {
        let (roads, fixture, camera) = try await scene(["bandwidth: 30 MB/s"])
        try fixture.startDaemon()
        try camera.drop(Clip(number: 0, size: 400_000_000, relative: "clip.mp4"))
        for stop in 1...8 as ClosedRange<Int64> {
            let before = try await came(roads)
            try await eventually("more bytes have arrived", every: .milliseconds(5)) {
                try await came(roads) > before + 10_000
            }
            let isKill = stop % 2 == 0
            if isKill {
                fixture.killDaemon()
            } else {
                _ = try await eventually("the daemon has paused") { try await fixture.runVerb("pause") }
            }
            let all = try await eventually("no more bytes arrive", every: .milliseconds(200)) {
                let one = try await came(roads)
                try await Task.sleep(for: .milliseconds(300))
                return try await came(roads) == one ? one : nil
            }
            if isKill { try fixture.startDaemon() }
            let counted = try await self.counted(fixture)
            #expect(counted >= all, "\(counted) \(all)")
            #expect(counted <= all + all / 20 + stop * 150_000, "\(counted) \(all)")
            if !isKill { _ = try await eventually("the daemon has resumed") { try await fixture.runVerb("resume") } }
        }
    }

    @Test(
        "a quota of received bytes, or of both directions, holds, and uploads continue when it is raised",
        arguments: [false, true])
    func holds(isOfBoth: Bool) async throws {
        let direction = isOfBoth ? "both" : "received"
        let (roads, fixture, camera) = try await scene([
            "quotas: [{per: month, bytes: 300 KiB, direction: \(direction)}]"
        ])
        try fixture.startDaemon()
        try camera.drop(Clip(number: 0, size: isOfBoth ? 3_000_000 : 200_000_000, relative: "clip.mp4"))
        let clip = fixture.drop.appending("clip.mp4").display
        let text = try await eventually("the quota holds the upload") {
            try await fixture.runVerb("why", [clip]).flatMap {
                $0.contains("the quota of policy is used up") && !$0.contains("under way") ? $0 : nil
            }
        }
        #expect(text.contains(isOfBoth ? "sent and received a month" : "received a month"), "\(text)")
        let plan = try await fixture.runVerb("plan") ?? ""
        // After so few bytes the speed is still unknown, which is reported first.
        #expect(plan.contains(isOfBoth ? "is not known yet" : "the quota of policy is used up"), "\(plan)")
        let incoming = try await came(roads)
        let left = try await blocking { try roads.bytes(by: "wan") + roads.bytes(by: "lte") }
        let count = isOfBoth ? incoming + left : incoming
        #expect(count <= 300 << 10 && count > 150 << 10, "\(count)")
        let quota = try #require(try await usage(fixture).quotas.first)
        #expect(quota.used >= count && quota.used <= 300 << 10, "\(quota) \(count)")
        fixture.policyKeys = ["quotas: [{per: month, bytes: 100 MB, direction: \(direction)}]"]
        try fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        try await outcome.check()
    }

    @Test("a hook is notified of 80 and of 100 percent, once each, in spite of kills and reloads")
    func hook() async throws {
        let (_, fixture, camera) = try await scene(["bandwidth: 2 MB/s", "quotas: [{per: month, bytes: 4 MB}]"])
        let out = fixture.folder.path.appending("delivered")
        let tell = try fixture.folder.writeProgram("tell", "cat >> \(out.display)")
        fixture.topKeys = ["hooks:", "  - {name: tell, command: [\(tell.display)], on: [quota_reached]}"]
        func delivered() throws -> [Reached] {
            guard let text = try? Files.read(out) else { return [] }
            // After a kill before the record it is reported once more, with the same number.
            return try String(decoding: text, as: UTF8.self).split(separator: "\n").map {
                try JSONDecoder().decode(Reached.self, from: Data($0.utf8))
            }.reduce(into: []) { all, one in if !all.contains(where: { $0.seq == one.seq }) { all.append(one) } }
        }
        try fixture.startDaemon()
        try camera.drop(Clip(number: 0, size: 9_000_000, relative: "clip.mp4"))
        // On a loaded machine the second notice may arrive before this check.
        try await eventually("the hook has been notified of 80 percent", within: .seconds(30)) {
            try !delivered().isEmpty
        }
        let first = try #require(try delivered().first)
        #expect(first.type == "quota_reached" && first.detail.threshold == "80" && first.detail.place == "policy")
        #expect(first.detail.quota == "4 MB a month" && first.detail.limit == "4000000")
        #expect(try #require(Int64(first.detail.used)) >= 3_200_000)
        #expect(try #require(Int(first.detail.percent)) >= 80 && first.detail.until > "2026")
        fixture.killDaemon()
        try fixture.startDaemon()
        try await eventually("the hook has been notified of 100 percent", within: .seconds(30)) {
            try delivered().count == 2
        }
        #expect(try delivered().last?.detail.threshold == "100")
        fixture.killDaemon()
        try fixture.startDaemon()
        // A smaller quota is used up just like this one.
        fixture.policyKeys = ["quotas: [{per: month, bytes: 3 MB}]"]
        try fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
        fixture.policyKeys = ["quotas: [{per: month, bytes: 4600 kB}]"]
        try fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
        // More bytes are sent. Both thresholds of that quota are reached now, or were reached before.
        try await eventually("the hook has been notified of the last quota", within: .seconds(30)) {
            try delivered().last?.detail.limit == "4600000" && delivered().last?.detail.threshold == "100"
        }
        let all = try delivered().map { "\($0.detail.limit) \($0.detail.threshold)" }
        #expect(all == ["4000000 80", "4000000 100", "4600000 100"], "\(all)")
    }
}
