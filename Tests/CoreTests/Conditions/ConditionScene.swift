import Glibc
import TestKit
import Testing

@testable import Core

/// A machine with a cable, a Wi-Fi, a modem and a tunnel over one of them; facts that may be unknown; and random rules.
struct ConditionScene {
    static let links: [NetworkLink] = [
        link("lo", 1) { ($0.medium, $0.hasDevice, $0.leadsOut) = (.loopback, false, false) },
        link("eth0", 2),
        link("wlan0", 3) {
            $0.isWireless = true
            $0.ssid = Array("Home".utf8)
        },
        link("wwan0", 4) {
            $0.deviceType = "wwan"
            $0.medium = .bare
        },
        link("wg0", 5) {
            $0.kind = "wireguard"
            $0.medium = .bare
        },
    ]
    static let router = HardwareAddress("0c:5b:8f:27:9a:64")
    static let networks = [
        NetworkRule(name: "home", ssid: "Home", isMetered: false), NetworkRule(name: "lte", interface: "wwan*"),
        NetworkRule(name: "abroad", interface: "wwan*", isRoaming: true), NetworkRule(name: "desk", gateway: router),
    ]

    static func link(_ name: String, _ index: Int32, _ change: (inout NetworkLink) -> Void = { _ in }) -> NetworkLink {
        var link = NetworkLink(index: index, name: name)
        (link.hasDevice, link.leadsOut) = (true, true)
        change(&link)
        return link
    }

    var now: WallTime
    var zone = Zone.utc
    var knowsTime = true
    var power: Power?
    var temperature = Temperature(50)
    /// Whether the destination is in the network of `eth0` and `wlan0`.
    var isOnLink: Bool? = false
    var links = Self.links
    var isRoaming: Bool? = false
    var gateway: HardwareAddress? = Self.router
    /// The tunnel's carrier: an interface, or unknown.
    var carrier: Int32? = 4
    var reachability: Reachability = .over([NetworkPath(link: 2)])
    var file = FileAnswers.noFile
    var rules: [PauseRule] = []
    var destinationRules: [PauseRule] = []
    var folderRules: [PauseRule] = []
    var unknownCost: UnknownNetwork?
    /// Limits that hold nothing.
    var rates: [RateRule] = []
    var quotas: [Quota] = []
    var slots: [ConcurrencyRule] = []

    init(at now: WallTime = utc("2026-11-25T12:00:00")) { self.now = now }

    init(dice: inout Dice) {
        now = WallTime(
            milliseconds: utc("2026-11-23T00:00:00").milliseconds + Int64.random(in: 0..<20_160, using: &dice) * 60_000)
        power =
            Bool.random(using: &dice)
            ? Power(isOnBattery: .random(using: &dice), percent: Int.random(in: 1...100, using: &dice), since: now)
            : nil
        temperature = Temperature(Int.random(in: 20...100, using: &dice))
        isOnLink = Bool.random(using: &dice)
        isRoaming = Bool.random(using: &dice)
        carrier = Int32.random(in: 2...4, using: &dice)
        if Bool.random(using: &dice) { links[2].ssid = Array("Cafe".utf8) }
        unknownCost = [nil, .allow, .metered].randomElement(using: &dice) ?? nil
        file = .file(
            FileFacts(
                size: Int64.random(in: 0...40, using: &dice) * 1_000_000,
                kind: FileKind.allCases.randomElement(using: &dice) ?? .video,
                duration: Bool.random(using: &dice) ? Int64.random(in: 0...20_000, using: &dice) : nil))
        let count = Int.random(in: 1...3, using: &dice)
        let paths = (0..<count).map { _ in NetworkPath(link: Int32.random(in: 2...5, using: &dice)) }
        reachability =
            [.over(paths), .local, .mount(.metered, text: "a folder"), .mount(.unmetered, text: "a folder")]
            .randomElement(using: &dice) ?? .local
        rules = Self.rules(&dice, most: 3)
        destinationRules = Self.rules(&dice, most: 1)
        folderRules = Self.rules(&dice, most: 1)
    }

    private static func rules(_ dice: inout Dice, most: Int) -> [PauseRule] {
        (0..<Int.random(in: 0...most, using: &dice)).map { rule(&dice, "r\($0)") }
    }

    static func rule(_ dice: inout Dice, _ name: String) -> PauseRule {
        PauseRule(name: name, when: condition(&dice, depth: 1), override: Bool.random(using: &dice) ? .allow : .never)
    }

    /// Draws limits of all kinds.
    mutating func drawLimits(_ dice: inout Dice) {
        rates = (0..<Int.random(in: 0...3, using: &dice)).map { Self.rate(&dice, "l\($0)") }
        quotas = (0..<Int.random(in: 0...2, using: &dice)).map { Self.quota(&dice, "q\($0)") }
        slots = (0..<Int.random(in: 0...2, using: &dice)).map { _ in Self.slots(&dice) }
    }

    static func rate(_ dice: inout Dice, _ name: String) -> RateRule {
        RateRule(
            name: name, limit: Int64.random(in: 1...9, using: &dice) * 1000,
            when: Int.random(in: 0...4, using: &dice) == 0 ? nil : condition(&dice, depth: 1))
    }

    static func quota(_ dice: inout Dice, _ name: String) -> Quota {
        Quota(period: .day, bytes: 1 << 30, name: name, when: condition(&dice, depth: 1))
    }

    static func slots(_ dice: inout Dice) -> ConcurrencyRule {
        ConcurrencyRule(atMost: Int.random(in: 1...4, using: &dice), when: condition(&dice, depth: 1))
    }

    /// As a configuration can write it.
    static func condition(_ dice: inout Dice, depth: Int) -> Condition {
        func mapping(_ dice: inout Dice) -> Condition {
            var parts = (0..<Int.random(in: 1...2, using: &dice)).map { _ in Condition.fact(predicate(&dice)) }
            if depth < Condition.maxDepth, Bool.random(using: &dice) {
                parts.append(.not(condition(&dice, depth: depth + 1)))
            }
            return parts.count == 1 ? parts[0] : .all(parts)
        }
        if Int.random(in: 0...3, using: &dice) > 0 { return mapping(&dice) }
        return .any([mapping(&dice), mapping(&dice)])
    }

    private static func predicate(_ dice: inout Dice) -> Condition.Predicate {
        switch Int.random(in: 0...15, using: &dice) {
        case 0, 1:
            .between([
                Window(
                    days: Set(Weekday.allCases.filter { _ in Bool.random(using: &dice) }).union([.tue]),
                    from: Int.random(in: 0...23, using: &dice) * 60, to: Int.random(in: 1...24, using: &dice) * 60)
            ])
        case 2: .network([["home", "lte", "abroad", "desk"].randomElement(using: &dice) ?? "home"])
        case 3: .metered(.random(using: &dice))
        case 4: .interface([["eth*", "wlan0", "wwan?", "wg0"].randomElement(using: &dice) ?? "*"])
        case 5: .ssid(Bool.random(using: &dice) ? ["Home"] : ["Cafe", "Bar"])
        case 6: .gateway([router].compactMap { $0 })
        case 7: .roaming(.random(using: &dice))
        case 8:
            Bool.random(using: &dice)
                ? .onBattery(.random(using: &dice)) : .batteryBelow(Int.random(in: 1...100, using: &dice))
        case 9: .file(.largerThan(Int64.random(in: 0...40, using: &dice) * 1_000_000))
        case 10: .file(.kind(Bool.random(using: &dice) ? [.video] : [.photo, .other]))
        case 11: .file(.longerThan(Int64.random(in: 0...20, using: &dice) * 1_000))
        case 12: .lan(.random(using: &dice))
        case 13: .hotterThan(Int.random(in: 20...100, using: &dice))
        case 14: .folder(Bool.random(using: &dice) ? ["door"] : ["garden"])
        default: .destination(Bool.random(using: &dice) ? ["nas"] : ["cloud"])
        }
    }

    /// The network of a link as a person may describe it, with or without each of its facts.
    func described(_ link: Int32, _ dice: inout Dice) -> DescribedNetwork {
        var facts = NetworkRule()
        let isHome = links[2].ssid == Array("Home".utf8)
        func maybe<Value>(_ value: Value?) -> Value? { Int.random(in: 0...3, using: &dice) > 0 ? value : nil }
        facts.interface = maybe([2: "eth0", 3: "wlan0", 4: Bool.random(using: &dice) ? "wwan*" : "wwan0"][link])
        facts.ssid = link == 3 ? maybe(isHome ? "Home" : "Cafe") : nil
        facts.gateway = [2, 3].contains(link) ? maybe(gateway) : nil
        facts.isRoaming = link == 4 ? maybe(isRoaming) : maybe(false)
        facts.isMetered = maybe([2: false, 3: isHome ? false : nil, 4: true][link] ?? nil)
        return DescribedNetwork(facts, isLAN: maybe([2, 3].contains(link) ? isOnLink : false))
    }

    // MARK: The decision

    private var inputs: Admission.PolicyInputs {
        let trouble = knowsTime ? nil : Hold(.clock, since: now, text: "the clock is not set")
        var metering = Metering(
            links: links, modems: ["wwan0": ModemBearer(isRoaming: isRoaming)],
            carriers: carrier.map { [5: [NetworkPath(link: $0)]] } ?? [:])
        metering.rules = []
        return Admission.PolicyInputs(
            now: now, monotonic: MonotonicTime(nanoseconds: 0), zone: zone, clockTrouble: trouble, running: 0,
            everything: nil, network: metering, power: power, temperature: temperature)
    }

    private var parts: (admission: Admission, remote: Admission.DestinationState, folder: Admission.FolderState) {
        var reached = reachability
        if case .over(let paths) = reached {
            reached = .over(
                paths.map { path in
                    var path = path
                    path.gateway = [2, 3].contains(path.link) ? gateway : nil
                    path.isOnLink = [2, 3].contains(path.link) ? isOnLink : false
                    return path
                })
        }
        let remote = Admission.DestinationState(
            name: "nas", slots: 2, running: 0, pause: nil, health: DestinationHealth(),
            rules: PolicyRules(pauses: destinationRules), reachability: reached,
            reachabilitySince: WallTime(milliseconds: 0))
        let everywhere = PolicyRules(
            bandwidth: rates, concurrency: slots, pauses: rules, meteredUnknown: unknownCost, networks: Self.networks,
            quotas: quotas)
        return (
            Admission(total: 2, rules: everywhere), remote,
            Admission.FolderState(name: "door", file: file, rules: PolicyRules(pauses: folderRules))
        )
    }

    /// What conditions are judged by, on each route.
    var facts: [ConditionFacts] {
        let (admission, remote, folder) = parts
        let inputs = inputs
        func facts(_ way: ConditionFacts.Way) -> ConditionFacts {
            admission.facts(remote, folder, over: way, in: inputs)
        }
        switch (remote.reachability, inputs.network) {
        case (.over(let paths), let metering?):
            return paths.flatMap { path in
                [true, false, nil].map { facts(.over(path, metering, isMetered: $0)) }
            }
        case (.mount(let cost, _), _): return [facts(.mount(isMetered: cost == .metered))]
        default: return [facts(.local)]
        }
    }

    var holds: [Hold] {
        let (admission, remote, folder) = parts
        return admission.hardBlockers(on: remote, from: folder, in: inputs)
    }

    var goes: Bool { holds.isEmpty }

    var route: Admission.RouteDecision {
        let (admission, remote, folder) = parts
        return admission.routeDecision(to: remote, from: folder, in: inputs)
    }

    /// The lowest limit of the speed in bytes a second, of the place and of what applies on the route; `nil` without a
    /// route.
    var speed: Int64? {
        guard case .open(let route) = route else { return nil }
        return [parts.admission.rules.limit(in: inputs), route.applied.lowestRate].compactMap { $0 }.min() ?? .max
    }

    /// The rules that apply on the route; `nil` without one.
    var applied: AppliedRules? { if case .open(let route) = route { route.applied } else { nil } }

    var nextChange: WallTime? {
        let (admission, remote, folder) = parts
        return admission.nextChange([remote], [folder], in: inputs)
    }

    /// The same with one fact less.
    mutating func forget(_ fact: Int) {
        switch fact {
        case 0: knowsTime = false
        case 1: links[2].ssid = nil
        case 2: isRoaming = nil
        case 3: gateway = nil
        case 4: carrier = nil
        case 5:
            guard let known = power else { return }
            power = Power(isOnBattery: known.isOnBattery, percent: nil, since: known.since)
        case 6: file = .known([:])
        case 7: temperature = Temperature(nil)
        case 8: isOnLink = nil
        default:
            switch reachability {
            case .over, .mount: reachability = .unseen("no netlink")
            case .local, .any, .described, .offline, .unseen: break
            }
        }
    }
}

/// The cases of a property. A failure names its seed.
enum ConditionCases {
    /// `make test-long` sets `SLUICE_CASES=100000`.
    static let seeds: [Int] = {
        let cases = getenv("SLUICE_CASES").flatMap { Int(String(cString: $0)) } ?? 3_000
        return Tier.sample(1...max(1, cases), 500)
    }()

    /// - Parameter body: Returns the problem, where the property does not hold. Three are enough.
    static func each(_ body: (inout Dice, ConditionScene) -> String?) {
        var failures = 0
        for seed in seeds {
            var dice = Dice(seed: UInt64(seed))
            let scene = ConditionScene(dice: &dice)
            guard let problem = body(&dice, scene) else { continue }
            Issue.record("seed \(seed): \(problem)")
            failures += 1
            if failures == 3 { return }
        }
    }
}
