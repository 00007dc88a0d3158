import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// The ledger, compared with the counts of the kernel's packet filter.
@Suite(
    "Ledger and wire, with the built program", .enabled(if: TwoRoads.isPossible, "\(TwoRoads.need)"),
    .timeLimit(.minutes(Patience.minutes(4))))
struct LedgerEndToEndTests {
    private struct Status: Decodable {
        struct Destination: Decodable { var sent_today: Int64 }
        var destinations: [Destination]
    }

    private func sent(_ fixture: DaemonFixture) async throws -> Int64 {
        try await eventually("the daemon reports the sent bytes") {
            guard let text = try await fixture.runVerb("status", ["--json"]) else { return nil }
            return try JSONDecoder().decode(Status.self, from: Data(text.utf8)).destinations.first?.sent_today
        }
    }

    private func bytes(_ roads: TwoRoads) async throws -> Int64 {
        try await blocking { try roads.bytes(by: "wan") + roads.bytes(by: "lte") }
    }

    private func scene(_ policy: [String] = []) async throws -> (TwoRoads, DaemonFixture, Camera) {
        let roads = try await blocking { try TwoRoads() }
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.roads = roads
        fixture.policyKeys = policy
        try await fixture.startReceiver()
        return (roads, fixture, Camera(fixture, dice: Dice(seed: 1)))
    }

    @Test("sent bytes are never under-reported and hardly over-reported, including headers and handshakes")
    func counts() async throws {
        let (roads, fixture, camera) = try await scene()
        try fixture.startDaemon()
        for number in 0..<30 {
            try camera.drop(Clip(number: number, size: 1 + number * 10_000, relative: FilePath("\(number).mp4")))
        }
        try camera.drop(Clip(number: 99, size: 40_000_000, relative: "large.mp4"))
        try await Outcome(fixture: fixture, clips: camera.clips).wait()
        let (told, left) = (try await sent(fixture), try await bytes(roads))
        #expect(told >= left, "\(told) \(left)")
        // Each of a file's few requests, large or small, is charged a closing exchange; the connection has only one.
        #expect(told <= left + left / 50 + 31 * 1000, "\(told) \(left)")
    }

    @Test("kernel retransmissions on a lossy link are counted")
    func loses() async throws {
        let (roads, fixture, camera) = try await scene()
        try await blocking { try roads.lose(3) }
        try fixture.startDaemon()
        for number in 0..<5 {
            try camera.drop(Clip(number: number, size: 3_000_000, relative: FilePath("\(number).mp4")))
        }
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        try await outcome.check()
        let (told, left) = (try await sent(fixture), try await bytes(roads))
        // Headers alone are 4.6 %.
        #expect(left > 15_000_000 * 106 / 100, "\(left)")
        #expect(told >= left, "\(told) \(left)")
        #expect(told <= left + left / 50 + 5 * 1000, "\(told) \(left)")
    }

    @Test(
        "packets dropped by a local queue are not counted, and every packet sent is",
        arguments: [false, true])
    func shortQueue(isBound: Bool) async throws {
        let rules = "networks: [{interface: lte0, metered: true}, {interface: wan0, metered: false}]"
        let (roads, fixture, camera) = try await scene(isBound ? ["metered: pause", rules] : [])
        try await blocking { try roads.shortQueue() }
        let before = try await blocking { try roads.carriedByWan() }
        try fixture.startDaemon()
        try camera.drop(Clip(number: 0, size: 600_000, relative: "clip.mp4"))
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        try await outcome.check()
        let (told, handedDown) = (try await sent(fixture), try await bytes(roads))
        let carried = try await blocking { try roads.carriedByWan() } - before
        // Otherwise the two could not be distinguished.
        #expect(handedDown > carried * 13 / 10, "\(handedDown) \(carried)")
        // Besides TCP a few ARP requests were sent there.
        #expect(told >= carried - 500, "\(told) \(carried)")
        #expect(told <= carried + carried / 10 + 50_000, "\(told) \(carried) \(handedDown)")
    }

    /// The kernel learns from the first packet that the tunnel's packets have to be shorter. By then TCP has made more
    /// packets of the old length. The kernel rejects them, and TCP sends their bytes again.
    @Test(
        "packets that are too long for a tunnel do not leave, and the ledger has all that did",
        .enabled(if: TwoRoads.tunnels.contains(.vxlan), "needs a kernel with vxlan"), arguments: [false, true])
    func longPackets(isBound: Bool) async throws {
        let rules = "networks: [{interface: lte0, metered: true}, {interface: wan0, metered: false}]"
        let (roads, fixture, camera) = try await scene(isBound ? ["metered: pause", rules] : [])
        try await blocking {
            try roads.countPayload()
            try roads.addTunnel(.vxlan, over: "wan")
            try roads.box.ip("route", "add", "default", "via", "10.9.0.1", "dev", TwoRoads.tunnel, "metric", "1")
        }
        let before = try await blocking { try roads.carriedByWan() }
        try fixture.startDaemon()
        try camera.drop(Clip(number: 0, size: 600_000, relative: "clip.mp4"))
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        try await outcome.check()
        let (ledger, counts) = (try await sent(fixture), try await blocking { try roads.counts() })
        let carried = try await blocking { try roads.carriedByWan() } - before
        let (left, headers) = (counts.left(by: "wan"), counts.headers(by: "wan", of: .vxlan))
        #expect(headers > 0 && counts.left(by: "lte") == 0)
        // Otherwise no packet was too long.
        #expect(counts.handedToTunnel > left - headers + 1000, "\(counts.handedToTunnel) \(left) \(headers)")
        // The link itself counts the same bytes, and a few packets that look for neighbours.
        #expect(left <= carried && carried <= left + 2000, "\(left) \(carried)")
        #expect(ledger >= left, "\(ledger) \(left)")
        #expect(ledger <= left + left / 50 + 5000, "\(ledger) \(left)")
    }

    @Test(
        "a transfer stops at its quota, keeps its progress, shows its wait, and resumes when the quota is raised"
    )
    func stops() async throws {
        let (roads, fixture, camera) = try await scene(["quotas: [{per: month, bytes: 12 MB}]"])
        try fixture.startDaemon()
        try camera.drop(Clip(number: 0, size: 30_000_000, relative: "clip.mp4"))
        let clip = fixture.drop.appending("clip.mp4").display
        let text = try await eventually("the quota holds the upload") {
            try await fixture.runVerb("why", [clip]).flatMap {
                $0.contains("the quota of policy is used up") ? $0 : nil
            }
        }
        #expect(text.contains("12 MB a month"), "\(text)")
        #expect(try await bytes(roads) <= 12_000_000)
        #expect(try await bytes(roads) > 11_000_000)
        #expect(try await sent(fixture) <= 12_000_000)
        // A restart does not grant the quota again.
        fixture.killDaemon()
        let before = try await bytes(roads)
        try fixture.startDaemon()
        try camera.drop(Clip(number: 1, size: 100_000, relative: "other.mp4"))
        try await eventually("the other upload waits as well") {
            try await fixture.runVerb("why", [fixture.drop.appending("other.mp4").display])?.contains("is used up")
        }
        // Closing packets of the connections that the killed program had kept.
        let after = try await bytes(roads)
        #expect(after <= before + 500, "\(before) \(after)")
        fixture.policyKeys = ["quotas: [{per: month, bytes: 50 MB}]"]
        try fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await fixture.runVerb("reload") }
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        try await outcome.check()
        // No byte was sent again.
        #expect(try await bytes(roads) < 32_000_000)
    }

    @Test("an exception from a quota ends with the transfer that it had let run")
    func exceptionEnds() async throws {
        let (roads, fixture, camera) = try await scene(["bandwidth: 2 MB/s", "quotas: [{per: month, bytes: 2 MB}]"])
        try fixture.startDaemon()
        try camera.drop(Clip(number: 0, size: 100_000_000, relative: "clip.mp4"))
        let clip = fixture.drop.appending("clip.mp4").display
        func isUsedUp() async throws -> Bool {
            try await eventually("why answers") { try await fixture.runVerb("why", [clip]) }
                .contains("the quota of policy is used up")
        }
        try await eventually("the quota holds the upload") { try await isUsedUp() }
        let before = try await bytes(roads)
        _ = try await eventually("it is allowed") {
            try await fixture.runVerb("allow", ["--folder", "camera", "--quota", "--for", "1h"])
        }
        try await eventually("it is sent again") { try await bytes(roads) > before + 2_000_000 }
        _ = try await eventually("it is no longer allowed") {
            try await fixture.runVerb("allow", ["--folder", "camera", "--quota", "--end"])
        }
        try await eventually("the quota holds it again") { try await isUsedUp() }
        let after = try await eventually("no more bytes are sent", every: .milliseconds(200)) {
            let one = try await all(roads)
            try await Task.sleep(for: .milliseconds(300))
            return try await all(roads) == one ? one : nil
        }
        #expect(after < 50_000_000, "\(after)")
    }

    @Test(
        "a small quota is used almost fully and never exceeded, by large and by small files",
        arguments: [(288, false), (288, true), (512, false), (1024, true)])
    func small(_ kibibytes: Int64, isOfSmallFiles: Bool) async throws {
        let limit = kibibytes << 10
        let (roads, fixture, camera) = try await scene(["quotas: [{per: month, bytes: \(kibibytes) KiB}]"])
        try fixture.startDaemon()
        for number in 0..<(isOfSmallFiles ? 40 : 2) {
            let size = isOfSmallFiles ? 40_000 : 3_000_000
            try camera.drop(Clip(number: number, size: size, relative: FilePath("\(number).mp4")))
        }
        let used: Int64 = try await eventually("the quota is used up", within: .seconds(30)) {
            guard let text = try await fixture.runVerb("status"), text.contains("is used up"),
                !text.contains("under way")
            else { return nil }
            return try await sent(fixture)
        }
        #expect(used <= limit && used >= limit - Quota.minUsable, "\(used) of \(limit)")
        let left = try await bytes(roads)
        #expect(left <= used, "\(left) \(used)")
    }

    @Test(
        "an interrupted transfer is counted with all later kernel retransmissions",
        arguments: [false, true])
    func breaks(_ isFar: Bool) async throws {
        let (roads, fixture, camera) = try await scene()
        if isFar { try await blocking { try roads.slowReturn() } }
        try fixture.startDaemon()
        // More than is sent between all the stops.
        let size = Setting.isThorough ? 2_000_000_000 : 400_000_000
        try camera.drop(Clip(number: 0, size: size, relative: "clip.mp4"))
        for stop in 1...(Setting.isThorough ? 100 : 12) as ClosedRange<Int64> {
            let before = try await bytes(roads)
            try await eventually("more bytes have been sent", every: .milliseconds(5)) {
                try await bytes(roads) > before + 1_000_000
            }
            _ = try await eventually("the daemon has paused") { try await fixture.runVerb("pause") }
            let (told, left) = try await eventually("all sent bytes have arrived", every: .milliseconds(50)) {
                let (one, told) = (try await all(roads), try await sent(fixture))
                return try await all(roads) == one ? (told, one) : nil
            }
            #expect(told >= left, "\(told - left)")
            #expect(told <= left + left / 50 + stop * 6000, "\(told - left) of \(left)")
            _ = try await eventually("the daemon has resumed") { try await fixture.runVerb("resume") }
        }
    }

    /// Includes the kernel's answers to packets for closed connections.
    private func all(_ roads: TwoRoads) async throws -> Int64 {
        try await bytes(roads)
            + blocking { try roads.bytes(by: "wan-resets") + roads.bytes(by: "lte-resets") }
    }

    @Test("a crash charges a quota the bytes sent, plus two seconds of each transfer", arguments: [false, true])
    func crash(isOtherStart: Bool) async throws {
        // More than the kills cost and more than is sent between them, also on a machine where kills are slow.
        let (roads, fixture, camera) = try await scene(["bandwidth: 1 MB/s", "quotas: [{per: month, bytes: 30 MB}]"])
        try fixture.startDaemon()
        try camera.drop(Clip(number: 0, size: isOtherStart ? 20_000_000 : 14_000_000, relative: "clip.mp4"))
        for kill in 1...3 as ClosedRange<Int64> {
            let before = try await bytes(roads)
            try await eventually("more bytes have been sent", every: .milliseconds(20)) {
                try await bytes(roads) > before + 1_000_000
            }
            fixture.killDaemon()
            let left = try await eventually("no more bytes are sent", every: .milliseconds(200)) {
                let one = try await all(roads)
                try await Task.sleep(for: .milliseconds(300))
                return try await all(roads) == one ? one : nil
            }
            if isOtherStart { try await forgetLinks(fixture) }
            try fixture.startDaemon()
            let told = try await sent(fixture)
            // The started daemon has already continued: what it has sent by then is on the links.
            let later = try await all(roads)
            #expect(told >= left, "\(told) \(left)")
            // Bytes reserved for a query belong to another account. A start that cannot use the kernel's counts of its
            // links counts two seconds for each kill, at a rate that a full bucket has raised.
            let reserved = isOtherStart ? kill * 3_000_000 : try reservedAtStarts(fixture)
            #expect(reserved <= kill * 3_000_000, "\(reserved)")
            #expect(told <= later + later / 50 + 300_000 * kill + reserved, "\(told) \(left) \(later) \(reserved)")
        }
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        if !isOtherStart { try await outcome.wait(within: .seconds(60)) }
    }

    /// Removes the recorded counts of the links, as a start of the machine does.
    private func forgetLinks(_ fixture: DaemonFixture) async throws {
        let child = try Child(
            "/usr/bin/python3",
            [
                "-c",
                "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute('UPDATE usage_step SET links = NULL'); d.commit()",
                fixture.state.appending("sluice.db").display,
            ], output: fixture.folder.path.appending("out"), errors: fixture.folder.path.appending("err"))
        try #require(try await child.end(within: .seconds(20)) == .status(0))
    }

    @Test("with kills at any moment the ledger never falls below the wire, and exceeds it by at most a step each")
    func kills() async throws {
        let (roads, fixture, camera) = try await scene(["bandwidth: 20 MB/s"])
        var dice = Dice(seed: Setting.seed)
        var kills: Int64 = 0
        for number in 0..<(Setting.isThorough ? 100 : 12) {
            try fixture.startDaemon()
            let size = Int.random(in: 100_000...12_000_000, using: &dice)
            try camera.drop(Clip(number: number, size: size, relative: FilePath("\(number).mp4")))
            let least = try await bytes(roads) + Int64.random(in: 1...6_000_000, using: &dice)
            // Or the whole file has arrived.
            try await eventually("more bytes have been sent", every: .milliseconds(5)) {
                let arrived = try Outcome.files(in: fixture.received, hidden: false).count > number
                return try await bytes(roads) > least || arrived
            }
            fixture.killDaemon()
            kills += 1
        }
        try fixture.startDaemon()
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        try await outcome.check()
        let (told, left) = (try await sent(fixture), try await bytes(roads))
        #expect(told >= left, "\(told) \(left)")
        // A start whose kernel was still sending counts all that was reserved. Other starts count what the links sent,
        // including the closing packets of all connections. What was sent between the opening of a step and the
        // settlement of the step before it counts twice then, which is more on a busy machine.
        let reserved = try reservedAtStarts(fixture)
        #expect(told <= left + left / 20 + kills * 1_000_000 + reserved, "\(told) \(left) \(kills) \(reserved)")
        #expect(reserved <= kills * 13_000_000, "\(reserved)")
    }

    @Test("a start while the kernel still sends for the killed run counts all reserved bytes, and says so")
    func startsTooEarly() async throws {
        let (roads, fixture, camera) = try await scene(["bandwidth: 2 MB/s"])
        try fixture.startDaemon()
        try camera.drop(Clip(number: 0, size: 8_000_000, relative: "clip.mp4"))
        try await eventually("bytes have been sent", every: .milliseconds(20)) { try await bytes(roads) > 1_000_000 }
        // Nothing is acknowledged any more: the kernel repeats what the daemon has given to it.
        try await blocking { try roads.lose(100) }
        fixture.killDaemon()
        try fixture.startDaemon()
        let told = try await sent(fixture)
        #expect(try reservedAtStarts(fixture) >= 6_000_000)
        #expect(told >= 8_000_000, "\(told)")
        #expect(told <= 9_500_000, "\(told)")
    }

    /// The bytes that starts counted without the help of the links' counters.
    private func reservedAtStarts(_ fixture: DaemonFixture) throws -> Int64 {
        try (fixture.daemon?.standardError() ?? "").split(separator: "\n").filter {
            $0.contains("counted all bytes that were reserved")
        }
        .compactMap { line in
            line.firstRange(of: "sent=").flatMap { Int64(line[$0.upperBound...].prefix { $0.isNumber }) }
        }
        .reduce(0, +)
    }
}
