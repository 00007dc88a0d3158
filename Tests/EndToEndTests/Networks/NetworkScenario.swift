import Core
import FoundationEssentials
import Linux
import TestKit

/// Plays a scene: carries out the script's steps, and asks the kernel's packet filter for the bytes that left
/// meanwhile.
final class NetworkScenario {
    typealias Road = NetworkScript.Link

    /// The figures of one scene, for the sum over all scenes.
    struct Figures: Sendable, CustomStringConvertible {
        var seed: UInt64
        var files = 0
        var flips = 0
        var kills = 0
        var hasTunnel = false
        /// Bytes of packets with payload on forbidden links, after the settling time.
        var forbiddenBytes: Int64 = 0
        /// Periods in which a link was forbidden and checked.
        var silences = 0
        var comparisons = 0
        var wire: Int64 = 0
        /// Bytes in the ledger above those on the wire, at the end.
        var excess: Int64 = 0
        /// The same for each comparison; the least of them.
        var least = Int64.max
        /// Bytes that connections of killed programs sent after the next start.
        var late: Int64 = 0
        /// Bytes that the tunnel added to the packets in it.
        var added: Int64 = 0
        var connections: Int64 = 0
        var time = Duration.zero

        var description: String {
            "\(seed): \(files) files, \(flips) flips, \(kills) kills, tunnel \(hasTunnel), \(wire) bytes on the wire, "
                + "\(excess) above, \(least) at least, \(connections) connections, \(added) around packets, \(late) late, "
                + "\(forbiddenBytes) forbidden, \(silences) silences, \(comparisons) comparisons, \(time)"
        }
    }

    private let script: NetworkScript
    private let roads: TwoRoads
    private let fixture: DaemonFixture
    private let camera: Camera
    private var law: NetworkScript.Policy
    private(set) var figures: Figures
    private(set) var problems: [String] = []
    /// The bytes of a link when it had been forbidden for long enough.
    private var silent: [Road: Int64] = [:]
    /// The bytes of metered links, and the sum of the bytes sent over them since.
    private var costly: [Road: Int64] = [:]
    private var cost: Int64 = 0
    /// Bytes of connections without a process, between a kill and the next start.
    private var ofTheDead: Int64 = 0
    /// Closing packets of connections that a kill has cut off belong to no process: a FIN each, with repetitions.
    private static let farewells: Int64 = 500
    /// The excess that the ledger may have for a connection, besides the 2 % and 1 kB of the scene. A connection that
    /// is broken off is charged with three segments that its timers may still send, and with a reset for each segment
    /// without an acknowledgement.
    private static let brokenOff: Int64 = 6000

    init(_ script: NetworkScript) async throws {
        self.script = script
        figures = Figures(
            seed: script.seed, flips: script.flips, kills: script.kills, hasTunnel: script.tunnel != nil)
        law = script.law
        roads = try await blocking {
            let roads = try TwoRoads()
            try roads.countPayload()
            if let tunnel = script.tunnel {
                try roads.addTunnel(tunnel.kind, over: tunnel.over.rawValue)
                try roads.box.run(
                    ["route", "add"] + NetworkScript.Tunnel.way(tunnel.metric).split(separator: " ").map(String.init))
            }
            return roads
        }
        fixture = try DaemonFixture(source: script.source, binary: Setting.binary())
        fixture.roads = roads
        camera = Camera(fixture, dice: Dice(seed: script.seed))
    }

    /// Plays the whole scene, until its end, when everything is allowed and has to arrive.
    func play() async throws {
        let clock = ContinuousClock()
        let start = clock.now
        setKeys()
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await answers()
        for (number, steps) in script.phases.enumerated() {
            for step in steps {
                do { try await take(step) } catch {
                    throw Broken(place: "phase \(number + 1), \(step): \(error)", lastWords: fixture.lastWords())
                }
            }
            try await settle("phase \(number + 1)")
        }
        try await finish()
        figures.time = start.duration(to: clock.now)
    }

    struct Broken: Error, CustomStringConvertible {
        let place: String
        let lastWords: String
        var description: String { "\(place)\n\(lastWords)" }
    }

    // MARK: Steps

    private func take(_ step: NetworkScript.Step) async throws {
        switch step {
        case .links(_, let commands):
            for command in commands where script.tunnel != nil || !command.contains(TwoRoads.tunnel) {
                try await ip(command)
            }
        case .rest(let time): try await Task.sleep(for: .milliseconds(time))
        case .drop(let sizes): for size in sizes { try drop(size) }
        case .law(let next):
            try await status("before the reload")
            change(to: next)
            try fixture.writeConfiguration()
            _ = try await eventually("the daemon has reloaded") { try await self.fixture.runVerb("reload") }
        case .kill(let next):
            try await status("before the kill")
            let before = try await counts()
            fixture.killDaemon()
            try await rests()
            ofTheDead += ownerless(try await counts()) - ownerless(before)
            change(to: next)
            try fixture.startDaemon()
            try await answers()
        case .compare:
            _ = try await eventually("the daemon has paused") { try await self.fixture.runVerb("pause") }
            try await compare("under way")
            _ = try await eventually("the daemon has resumed") { try await self.fixture.runVerb("resume") }
        }
    }

    private func drop(_ size: Int) throws {
        let number = camera.clips.count
        try camera.drop(Clip(number: number, size: size, relative: FilePath("\(number).mp4")))
        figures.files += 1
    }

    private func ip(_ command: String) async throws {
        let roads = roads
        try await blocking { try roads.box.run(command.split(separator: " ").map(String.init)) }
    }

    private func change(to next: NetworkScript.Policy) {
        for road in Road.allCases {
            if !next.forbids(road) { silent[road] = nil }
            if next.metered[road] != true { costly[road] = nil }
        }
        law = next
        setKeys()
    }

    private func setKeys() {
        fixture.policyKeys = law.keys(bandwidth: script.bandwidth) + script.quota.keys
    }

    private func answers() async throws {
        try await eventually("the daemon answers") {
            try self.fixture.daemon?.requireRunning()
            return try await self.fixture.status() != nil
        }
    }

    /// Waits until the bytes that a process had written before it was killed are gone, or cannot be sent.
    private func rests() async throws {
        var last = try await counts()
        try await eventually("no more bytes are sent", every: .milliseconds(100)) {
            try await Task.sleep(for: .milliseconds(200))
            let now = try await self.counts()
            defer { last = now }
            return now == last
        }
    }

    // MARK: Conditions

    private func counts() async throws -> TwoRoads.Counts {
        let roads = roads
        return try await blocking { try roads.counts() }
    }

    /// Waits a second, in which the program stops its forbidden transfers; from then on forbidden links must be silent.
    private func settle(_ place: String) async throws {
        try await status(place + ", before it settles")
        // The promised time is the subject of the test.
        try await Task.sleep(for: .seconds(1))
        // On a busy machine, the daemon has had its turn when it answers.
        try await answers()
        let now = try await counts()
        for road in Road.allCases {
            if law.forbids(road), silent[road] == nil { silent[road] = payload(road, now) }
            if law.metered[road] == true, costly[road] == nil { costly[road] = now.left(by: road.rawValue) }
        }
        try await Task.sleep(for: .milliseconds(300))
        try await status(place)
    }

    private func payload(_ road: Road, _ counts: TwoRoads.Counts) -> Int64 {
        let inside = script.tunnel?.over == road ? counts.payload(TwoRoads.tunnel, ofTheLiving: script.hasKills) : 0
        return counts.payload(road.rawValue, ofTheLiving: script.hasKills) + inside
    }

    private func status(_ place: String) async throws {
        let now = try await counts()
        for road in Road.allCases {
            if let before = silent[road] {
                let after = payload(road, now)
                figures.silences += 1
                if after != before {
                    figures.forbiddenBytes += after - before
                    problems.append("\(place): \(after - before) bytes of payload over \(road), which \(law) forbids")
                    silent[road] = after
                }
            }
            if let before = costly[road] {
                let after = now.left(by: road.rawValue)
                cost += after - before
                costly[road] = after
            }
        }
        let slack = Int64(script.kills) * Self.farewells
        let left = wire(now)
        switch script.quota {
        case .none: break
        case .bytes(let most) where left > most + slack:
            problems.append("\(place): \(left) bytes have left under a quota of \(most)")
        case .metered(let most) where cost > most + slack:
            problems.append("\(place): \(cost) bytes have left over metered links under a quota of \(most)")
        case .files(let most):
            let count = try Outcome.files(in: fixture.received, hidden: false).count
            if count > most { problems.append("\(place): \(count) files have arrived under a quota of \(most)") }
        case .bytes, .metered: break
        }
    }

    /// Bytes of TCP that have left by both links, those in the tunnel with its overhead.
    private func wire(_ counts: TwoRoads.Counts) -> Int64 {
        Road.allCases.map { counts.left(by: $0.rawValue) }.reduce(0, +)
    }

    private struct Usage: Decodable {
        struct Day: Decodable { var bytes: Int64 }
        var days: [Day]
    }

    /// Returns the reported bytes, also over midnight.
    private func told() async throws -> Int64 {
        try await eventually("the daemon reports the sent bytes") {
            guard let text = try await self.fixture.runVerb("usage", ["--json", "--days", "2"]) else { return nil }
            return try JSONDecoder().decode(Usage.self, from: Data(text.utf8)).days.map(\.bytes).reduce(0, +)
        }
    }

    /// Called when no transfer is under way.
    private func compare(_ place: String, isEnd: Bool = false) async throws {
        let (now, told) = try await eventually("no more bytes are sent", every: .milliseconds(50)) {
            let (one, told) = (try await self.counts(), try await self.told())
            return try await self.counts() == one ? (one, told) : nil
        }
        let left = wire(now)
        figures.comparisons += 1
        figures.least = min(figures.least, told - left)
        (figures.wire, figures.excess) = (left, told - left)
        figures.connections = (Road.allCases.map(\.rawValue) + [TwoRoads.tunnel]).map { now.calls($0) }.reduce(0, +)
        figures.added = script.tunnel.map { now.headers(by: $0.over.rawValue, of: $0.kind) } ?? 0
        // A killed program's connection over an absent link continues when the link is back; a start has read the links
        // before that.
        let late = script.hasKills ? ownerless(now) - ofTheDead + Int64(script.kills) * Self.farewells : 0
        figures.late = max(figures.late, ownerless(now) - ofTheDead)
        if told < left - late {
            problems.append("\(place): the ledger has \(told) bytes, \(left) have left, \(late) late")
        }
        // At the end of a scene with traffic, a few broken-off connections are within the 2 %.
        let few = isEnd && left > 300_000 ? 1000 : 1000 + figures.connections * Self.brokenOff
        let lost = script.tunnel.map { now.lostInTunnel(over: $0.over.rawValue, of: $0.kind) } ?? 0
        let slack = few + lost
        if !script.hasKills, told > left + left / 50 + slack {
            problems.append("\(place): the ledger has \(told) bytes, \(left) have left, and \(slack) are allowed for")
        }
    }

    /// Bytes with payload that were sent for connections without a process.
    private func ownerless(_ counts: TwoRoads.Counts) -> Int64 {
        (Road.allCases.map(\.rawValue) + [TwoRoads.tunnel]).map {
            counts.payload($0) - counts.payload($0, ofTheLiving: true)
        }.reduce(0, +)
    }

    // MARK: The end

    private func finish() async throws {
        _ = try await eventually("the daemon has paused") { try await self.fixture.runVerb("pause") }
        try await compare("at the end of the script")
        fixture.policyKeys = []
        try fixture.writeConfiguration()
        _ = try await eventually("the daemon has reloaded") { try await self.fixture.runVerb("reload") }
        if script.tunnel != nil { try await ip("link del \(TwoRoads.tunnel)") }
        for (road, net) in [(Road.wan, "10.1.0"), (.lte, "10.2.0")] {
            try await ip("link set \(road)0 up")
            try await ip("route replace default via \(net).1 dev \(road)0 metric \(road == .wan ? 1 : 401)")
        }
        _ = try await eventually("the daemon has resumed") { try await self.fixture.runVerb("resume") }
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(30))
        try await outcome.check()
        try await compare("at the end", isEnd: true)
    }
}
