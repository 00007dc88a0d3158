import Core
import TestKit

/// A script of changes for a machine with two links and perhaps a tunnel, generated in advance from a seed.
struct NetworkScript: CustomStringConvertible {
    enum Link: String, CaseIterable { case wan, lte }

    /// The rules of a policy for the two links.
    struct Policy: Equatable, CustomStringConvertible {
        enum Metered: Equatable {
            case pause, allow
            /// In kB/s.
            case limit(Int)
        }
        var metered: [Link: Bool]
        var forbidden: Set<Link>
        var mode: Metered

        /// Whether no byte of a file may be sent over the link, nor over a tunnel that it carries.
        func forbids(_ road: Link) -> Bool { forbidden.contains(road) || (mode == .pause && metered[road] == true) }

        /// As YAML, one line for each key.
        ///
        /// - Parameter most: The limit of the speed over any network, in MB/s.
        func keys(bandwidth most: Int) -> [String] {
            var bandwidth = ["\(most) MB/s"]
            var costly = "allow"
            switch mode {
            case .pause: costly = "pause"
            case .allow: break
            case .limit(let rate): bandwidth.append("{limit: \(rate) kB/s, when: {metered: true}}")
            }
            let rules = Link.allCases.map { road in
                "{interface: \(road)0, metered: \(metered[road] == true)"
                    + (forbidden.contains(road) ? ", allowed: false}" : "}")
            }
            return [
                "bandwidth: [\(bandwidth.joined(separator: ", "))]", "metered: \(costly)",
                "networks: [\(rules.joined(separator: ", "))]",
            ]
        }
        var description: String { keys(bandwidth: 0).joined(separator: "; ") + " (\(mode))" }
    }

    /// At most one, for the whole scene except its end.
    enum Quota: Equatable {
        case none
        case bytes(Int64)
        case metered(Int64)
        case files(Int)

        var keys: [String] {
            switch self {
            case .none: []
            case .bytes(let most): ["quotas: [{per: month, bytes: \(most) B}]"]
            case .metered(let most): ["quotas: [{name: lte, per: month, bytes: \(most) B, when: {metered: true}}]"]
            case .files(let most): ["quotas: [{per: month, files: \(most)}]"]
            }
        }
    }

    enum Step: CustomStringConvertible {
        /// Arguments of `ip` in the machine, in their order.
        case links(String, [String])
        case law(Policy)
        /// The daemon is killed, and starts under rules that may be different.
        case kill(Policy)
        /// Files of these sizes arrive.
        case drop([Int])
        /// Nothing for this many milliseconds.
        case rest(Int)
        /// A person pauses all uploads for a moment, and the ledger is compared with the wire.
        case compare

        var description: String {
            switch self {
            case .links(let what, let commands): "\(what) (ip \(commands.joined(separator: "; ip ")))"
            case .law(let law): "reload \(law)"
            case .kill(let law): "kill -9, start with \(law)"
            case .drop(let sizes): "files of \(sizes) bytes"
            case .rest(let time): "\(time) ms"
            case .compare: "pause, compare, resume"
            }
        }
    }

    struct Tunnel {
        let kind: TwoRoads.Tunnel
        let over: Link
        /// 1: before both links; 500: after them.
        let metric: Int

        /// The route through it, in the form of `ip route`.
        static func way(_ metric: Int) -> String { "default via 10.9.0.1 dev \(TwoRoads.tunnel) metric \(metric)" }
    }

    let seed: UInt64
    let source: DaemonFixture.Source
    /// In MB/s.
    let bandwidth: Int
    let quota: Quota
    let tunnel: Tunnel?
    let law: Policy
    /// Lists of steps, and the conditions that must hold after each.
    let phases: [[Step]]
    var hasKills: Bool {
        phases.joined().contains { if case .kill = $0 { true } else { false } }
    }
    var kills: Int { phases.joined().count { if case .kill = $0 { true } else { false } } }
    var flips: Int {
        phases.joined().count {
            switch $0 {
            case .links, .law: true
            default: false
            }
        }
    }

    var description: String {
        let start =
            "source \(source.rawValue), \(bandwidth) MB/s, quota \(quota), tunnel "
            + (tunnel.map { "\($0.kind.rawValue) over \($0.over.rawValue)0 with metric \($0.metric)" } ?? "none")
            + ", \(law)"
        return
            ([start]
            + phases.enumerated().map { number, steps in
                "phase \(number + 1): " + steps.map(\.description).joined(separator: " | ")
            }).joined(separator: "\n")
    }

    init(seed: UInt64, tunnels: [TwoRoads.Tunnel]) {
        var dice = Dice(seed: seed)
        self.seed = seed
        source = DaemonFixture.Source.allCases.randomElement(using: &dice) ?? .keep
        bandwidth = Int.random(in: 1...4, using: &dice)
        quota =
            switch Int.random(in: 0..<10, using: &dice) {
            case 0...3: .none
            case 4...5: .bytes(Int64.random(in: 400_000...3_000_000, using: &dice))
            case 6...7: .metered(Int64.random(in: 400_000...2_000_000, using: &dice))
            default: .files(Int.random(in: 1...4, using: &dice))
            }
        // Drawn on every kernel, with a tunnel or without, so that the rest of the scene is the same everywhere.
        let (isDug, over) = (Int.random(in: 0..<5, using: &dice) < 2, Link.allCases.randomElement(using: &dice) ?? .lte)
        let (metric, kind) = (Bool.random(using: &dice) ? 1 : 500, Int.random(in: 0..<12, using: &dice))
        tunnel =
            isDug && !tunnels.isEmpty ? Tunnel(kind: tunnels[kind % tunnels.count], over: over, metric: metric) : nil
        let isKilled = Int.random(in: 0..<10, using: &dice) < 3
        var box = MachineState(tunnel: isDug ? over : nil, metric: metric, law: Self.law(&dice))
        law = box.law
        var phases: [[Step]] = []
        for number in 0..<Int.random(in: 2...4, using: &dice) {
            phases.append(Self.phase(isFirst: number == 0, isKilled: isKilled, &box, &dice))
        }
        self.phases = phases
    }

    private static func phase(isFirst: Bool, isKilled: Bool, _ box: inout MachineState, _ dice: inout Dice) -> [Step] {
        var steps: [Step] = []
        if isFirst || Int.random(in: 0..<3, using: &dice) == 0 {
            steps.append(.drop((0..<Int.random(in: 1...(isFirst ? 4 : 2), using: &dice)).map { _ in size(&dice) }))
        }
        // A file takes 200 ms to settle.
        steps.append(.rest(Int.random(in: 0...(isFirst ? 900 : 300), using: &dice)))
        for _ in 0..<Int.random(in: 1...3, using: &dice) {
            if isKilled, Int.random(in: 0..<3, using: &dice) == 0 {
                if Bool.random(using: &dice) { box.law = law(&dice) }
                steps.append(.kill(box.law))
            } else {
                steps.append(box.flip(&dice))
            }
            if Bool.random(using: &dice) { steps.append(.rest(Int.random(in: 10...200, using: &dice))) }
        }
        if isKilled, !steps.contains(where: { if case .kill = $0 { true } else { false } }) {
            steps.append(.kill(box.law))
        }
        if Int.random(in: 0..<3, using: &dice) == 0 { steps.append(.compare) }
        return steps
    }

    private static func size(_ dice: inout Dice) -> Int {
        switch Int.random(in: 0..<6, using: &dice) {
        case 0: Int.random(in: 1...100, using: &dice)
        case 1: Int.random(in: 100...100_000, using: &dice)
        default: Int.random(in: 100_000...2_000_000, using: &dice)
        }
    }

    fileprivate static func law(_ dice: inout Dice) -> Policy {
        var law = Policy(metered: [:], forbidden: [], mode: .pause)
        switch Int.random(in: 0..<6, using: &dice) {
        case 0: law.mode = .allow
        case 1: law.mode = .limit(Int.random(in: 100...800, using: &dice))
        default: break
        }
        for road in Link.allCases {
            law.metered[road] = Int.random(in: 0..<10, using: &dice) < (road == .wan ? 3 : 7)
            if Int.random(in: 0..<6, using: &dice) == 0 { law.forbidden.insert(road) }
        }
        return law
    }
}

/// The state of the machine after the steps so far.
private struct MachineState {
    typealias Road = NetworkScript.Link

    let tunnel: Road?
    var law: NetworkScript.Policy
    private var isUp: [Road: Bool] = [.wan: true, .lte: true]
    /// Metrics of the default routes over it; none where there is no route.
    private var metrics: [Road: Int] = [.wan: 10, .lte: 100]
    private var host = [Road.wan: 2, .lte: 2]
    private let way: String
    /// Whether a route leads into the tunnel.
    private var isTunnelWay = true

    init(tunnel: Road?, metric: Int, law: NetworkScript.Policy) {
        (self.tunnel, self.law) = (tunnel, law)
        way = NetworkScript.Tunnel.way(metric)
    }

    mutating func flip(_ dice: inout Dice) -> NetworkScript.Step {
        let road = Road.allCases.randomElement(using: &dice) ?? .wan
        var metric = Int.random(in: 2...399, using: &dice)
        // The kernel has one default route of each metric: the second one would be refused, or replace the first.
        if metrics.contains(where: { $0.key != road && $0.value == metric }) { metric += 1 }
        let (net, link) = (road == .wan ? "10.1.0" : "10.2.0", "\(road.rawValue)0")
        let route = "default via \(net).1 dev \(link) metric"
        let kind = Int.random(in: 0..<10, using: &dice)
        if kind == 9, tunnel != nil {
            isTunnelWay.toggle()
            return .links(
                isTunnelWay ? "a way through the tunnel" : "no way through the tunnel",
                ["route \(isTunnelWay ? "replace" : "del") \(way)"])
        }
        if kind < 4 {
            law = NetworkScript.law(&dice)
            return .law(law)
        }
        guard isUp[road] == true else {
            isUp[road] = true
            metrics[road] = metric
            return .links("\(link) up", ["link set \(link) up", "route replace \(route) \(metric)"])
        }
        if kind < 6 {
            isUp[road] = false
            metrics[road] = nil
            return .links("\(link) down", ["link set \(link) down"])
        }
        guard let old = metrics[road] else {
            metrics[road] = metric
            return .links("a way over \(link)", ["route replace \(route) \(metric)"])
        }
        if kind == 6 {
            metrics[road] = nil
            return .links("no way over \(link)", ["route del \(route) \(old)"])
        }
        // The tunnel's own end keeps its address.
        if kind == 7, tunnel != road {
            let (was, now) = (host[road] ?? 2, (host[road] ?? 2) % 200 + 1 + Int.random(in: 1...9, using: &dice))
            host[road] = now
            // The kernel removes the second address with the first, and the route with both.
            return .links(
                "another address on \(link)",
                [
                    "addr add \(net).\(now)/24 dev \(link)", "addr del \(net).\(was)/24 dev \(link)",
                    "addr replace \(net).\(now)/24 dev \(link)", "route replace \(route) \(old)",
                ])
        }
        guard metric != old else { return .rest(10) }
        metrics[road] = metric
        let change = ["route add \(route) \(metric)", "route del \(route) \(old)"]
        return .links("metric \(metric) over \(link)", Bool.random(using: &dice) ? change : change.reversed())
    }
}
