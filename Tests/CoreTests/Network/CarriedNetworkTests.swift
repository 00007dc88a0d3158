import Core
import TestKit
import Testing

private func link(_ name: String, _ index: Int32, _ change: (inout NetworkLink) -> Void = { _ in }) -> NetworkLink {
    var link = NetworkLink(index: index, name: name)
    link.hasDevice = true
    link.leadsOut = true
    change(&link)
    return link
}

private func made(_ kind: String, _ name: String, _ index: Int32, on lower: [Int32] = []) -> NetworkLink {
    var link = NetworkLink(index: index, name: name)
    link.kind = kind
    link.lower = lower
    return link
}

private let wire = link("eth0", 2)
private let modem = link("wwan0", 9) { $0.deviceType = "wwan" }
private let tap = made("tun", "vnet0", 20)
private let pod = made("veth", "veth1", 21)
private let wireGuard = made("wireguard", "wg0", 30)

extension Metering {
    fileprivate func of(_ index: Int32, gateway: String? = nil) -> Judgement {
        judgement(of: NetworkPath(link: index, gateway: gateway.flatMap { HardwareAddress($0) }))
    }
}

@Suite("Interfaces on top of others")
struct CarriedNetworkTests {
    @Test(
        "the cost is that of the most expensive lower interface",
        arguments: ["bridge", "bond", "team", "vlan", "macvlan"])
    func worst(_ kind: String) {
        let inputs = Metering(links: [wire, modem, made(kind, "x0", 5, on: [9, 2]), made(kind, "x1", 6, on: [2])])
        #expect(inputs.of(5).reason == "metered: x0 runs over wwan0, and wwan0 is a modem (DEVTYPE wwan)")
        #expect(inputs.of(5).remedy == #"- {interface: "wwan0", metered: false}"#)
        #expect(inputs.of(5).links == [5, 2, 9])
        #expect(inputs.of(6).reason == "unmetered: x1 runs over eth0, and eth0 is wired")
    }

    @Test("several layers count, even if a lower interface is down")
    func floors() {
        var down = modem
        down.isUsable = false
        let inputs = Metering(links: [
            wire, down, made("bond", "bond0", 5, on: [2, 9]), made("vlan", "v7", 6, on: [5]),
        ])
        #expect(inputs.of(6).reason == "metered: v7 runs over wwan0, and wwan0 is a modem (DEVTYPE wwan)")
    }

    @Test("a decision on an upper interface ends the search below it")
    func ends() {
        let inputs = Metering(
            links: [wire, modem, made("bond", "bond0", 5, on: [9]), made("vlan", "v7", 6, on: [5])],
            rules: [NetworkRule(interface: "bond0", isMetered: false)])
        #expect(
            inputs.of(6).reason
                == #"unmetered: v7 runs over bond0, and the rule {interface: "bond0", metered: false} says so about bond0"#
        )
        #expect(inputs.of(6).remedy == #"- {interface: "bond0", metered: true}"#)
        #expect(inputs.of(9).metered == .metered)
    }

    @Test("circular interfaces, and one on itself, get an answer")
    func circle() {
        let selfish = made("bridge", "br0", 5, on: [5])
        #expect(Metering(links: [selfish]).of(5).reason == "unknown: br0 runs only over itself")
        let one = made("bridge", "one", 5, on: [6])
        let two = made("bond", "two", 6, on: [5])
        #expect(Metering(links: [one, two]).of(5).metered == .unknown)
        let twoAndWire = made("bond", "two", 6, on: [5, 2])
        #expect(Metering(links: [one, twoAndWire, wire]).of(5).metered == .unmetered)
        let missing = made("bridge", "br0", 5, on: [77])
        #expect(Metering(links: [missing]).of(5).metered == .unknown)
    }

    @Test("ten thousand paths downwards are walked once each")
    func diamonds() {
        var links = [link("eth0", 1)]
        for floor in stride(from: Int32(2), to: 400, by: 2) {
            let below = floor == 2 ? [1] : [floor - 2, floor - 1]
            links += [made("bond", "a\(floor)", floor, on: below), made("bond", "b\(floor)", floor + 1, on: below)]
        }
        let judgement = Metering(links: links).of(398)
        #expect(judgement.metered == .unmetered)
        #expect(judgement.links.count == 398)
    }

    @Test("guest interfaces of a bridge do not count beside its uplink, and count alone")
    func guests() {
        var bridge = made("bridge", "br0", 5, on: [2, 20, 21])
        #expect(Metering(links: [wire, tap, pod, bridge]).of(5).metered == .unmetered)
        bridge.lower = [21]
        #expect(Metering(links: [wire, tap, pod, bridge]).of(5).metered == .unknown)
    }

    @Test("a gateway below a bridge or a VLAN is the same gateway")
    func gateway() {
        let router = "02:00:00:00:00:01"
        let rule = NetworkRule(interface: "eth0", gateway: HardwareAddress(router), isMetered: true)
        let inputs = Metering(links: [wire, made("vlan", "v7", 6, on: [2])], rules: [rule])
        #expect(inputs.of(6, gateway: router).metered == .metered)
        #expect(inputs.of(6, gateway: "02:00:00:00:00:02").metered == .unmetered)
    }

    @Test("a rule that forbids a lower interface forbids the upper one, even with a cost decided above")
    func forbidden() {
        let inputs = Metering(
            links: [wire, modem, made("bond", "bond0", 5, on: [2, 9])],
            rules: [
                NetworkRule(interface: "bond0", isMetered: false, isAllowed: true),
                NetworkRule(interface: "wwan*", isAllowed: false),
            ])
        #expect(inputs.of(5).metered == .unmetered)
        #expect(
            inputs.of(5).forbidden
                == #"bond0 runs over wwan0, and the rule {interface: "wwan*", allowed: false} forbids wwan0"#)
        #expect(inputs.of(2).forbidden == nil)
    }

    @Test("roaming below counts as roaming")
    func roaming() {
        let inputs = Metering(
            links: [modem, made("vlan", "v7", 6, on: [9])], modems: ["wwan0": ModemBearer(isRoaming: true)])
        #expect(inputs.of(6).isRoaming)
    }
}

@Suite("Tunnels")
struct TunnelTests {
    @Test("a tunnel costs what the route to its peer costs, if known")
    func known() {
        let inputs = Metering(links: [wire, modem, wireGuard], carriers: [30: [NetworkPath(link: 2)]])
        #expect(inputs.of(30).reason == "unmetered: wg0 runs over eth0, and eth0 is wired")
        let other = Metering(
            links: [wire, modem, wireGuard], carriers: [30: [NetworkPath(link: 2), NetworkPath(link: 9)]])
        #expect(other.of(30).metered == .metered)
    }

    @Test("a tunnel with an unknown route costs the most expensive outward interface")
    func supposed() {
        let free = Metering(links: [wire, wireGuard]).of(30)
        #expect(free.metered == .unknown)
        #expect(
            free.reason
                == "unknown: the carrier of the tunnel wg0 is not known, although every visible route is free")
        #expect(free.remedy == #"- {interface: "wg0", metered: false}"#)
        let said = NetworkRule(interface: "wg0", isMetered: false)
        #expect(Metering(links: [wire, wireGuard], rules: [said]).of(30).metered == .unmetered)
        let inputs = Metering(links: [wire, modem, wireGuard])
        #expect(inputs.of(30).reason == "metered: wg0 may run over wwan0, and wwan0 is a modem (DEVTYPE wwan)")
        #expect(
            inputs.of(30).remedy == #"- {interface: "wg0", metered: false}"#, "wwan0 may not be the carrier")
        var (dead, deadEnd) = (modem, modem)
        dead.isUsable = false
        #expect(Metering(links: [wire, dead, wireGuard]).of(30).metered == .unknown)
        deadEnd.leadsOut = false
        #expect(Metering(links: [wire, deadEnd, wireGuard]).of(30).metered == .unknown)
        var other = made("tun", "tun0", 31)
        other.leadsOut = true
        #expect(
            Metering(links: [other, wireGuard]).of(30).metered == .unknown, "a tunnel is no way out of the machine")
    }

    @Test("an IPsec policy may use any outward interface, and costs the most expensive one")
    func ipsec() {
        var path = NetworkPath(link: 2)
        path.isEncapsulated = true
        #expect(Metering(links: [wire]).judgement(of: path).metered == .unmetered, "there is no other interface")
        let both = Metering(links: [wire, modem]).judgement(of: path)
        #expect(
            both.reason
                == "metered: IPsec traffic of eth0 may leave through wwan0, and wwan0 is a modem (DEVTYPE wwan)"
        )
        #expect(both.remedy == nil, "no rule would decide which interface it is")
        let free = NetworkRule(interface: "eth0", isMetered: false)
        #expect(Metering(links: [wire, modem], rules: [free]).judgement(of: path).metered == .metered)
        let forbidding = NetworkRule(interface: "wwan*", isAllowed: false)
        #expect(Metering(links: [wire, modem], rules: [forbidding]).judgement(of: path).forbidden != nil)
    }

    @Test("the route continues through an outward bridge to its uplink")
    func overBridge() {
        var bridge = made("bridge", "br0", 5, on: [2, 20])
        bridge.leadsOut = true
        var port = wire
        port.leadsOut = false
        let inputs = Metering(links: [port, tap, bridge, wireGuard], carriers: [30: [NetworkPath(link: 5)]])
        #expect(inputs.of(30).metered == .unmetered)
        #expect(Metering(links: [port, tap, bridge, wireGuard]).of(30).metered == .unknown)
    }

    @Test("a tunnel with a known peer without a route has unknown cost")
    func lost() {
        var tunnel = made("vxlan", "vx0", 31)
        tunnel.peer = IPAddress("198.51.100.7")
        #expect(Metering(links: [wire, tunnel]).of(31).metered == .unknown)
        // A link of its own only carries the packets to peers that name no other link.
        tunnel.lower = [wire.index]
        #expect(Metering(links: [wire, tunnel]).of(31).metered == .unknown)
        tunnel.lower = []
        // The same holds for interfaces above it.
        #expect(Metering(links: [wire, tunnel, made("bridge", "br0", 5, on: [31])]).of(5).metered == .unknown)
    }

    @Test("an unknown tunnel waits where metered networks do, unless unknown ones are allowed")
    func counts() {
        func way(_ rules: PolicyRules) -> Admission.RouteDecision {
            var inputs = Admission.PolicyInputs(
                now: WallTime(milliseconds: 0), monotonic: MonotonicTime(nanoseconds: 0), running: 0, everything: nil)
            inputs.network = Metering(links: [wire, wireGuard])
            let remote = Admission.DestinationState(
                name: "nas", slots: 1, running: 0, pause: nil, health: DestinationHealth(),
                reachability: .over([NetworkPath(link: 30)]))
            return Admission(total: 1, rules: rules).routeDecision(to: remote, in: inputs)
        }
        guard case .closed(let holds, _) = way(PolicyRules(metered: .pause)) else {
            Issue.record("the way is open")
            return
        }
        #expect(holds.first?.text.contains(#"`- {interface: "wg0", metered: false}` under `networks`"#) == true)
        guard case .open(let route) = way(PolicyRules(metered: .pause, meteredUnknown: .allow)) else {
            Issue.record("the way is closed")
            return
        }
        #expect(!route.countsAsMetered)
    }

    @Test("a possible carrier that is forbidden forbids the tunnel, unless a rule allows the tunnel")
    func forbidden() {
        let forbidding = NetworkRule(interface: "wwan*", isAllowed: false)
        let allowing = NetworkRule(interface: "wg0", isAllowed: true)
        var inputs = Metering(links: [wire, modem, wireGuard], rules: [forbidding])
        #expect(
            inputs.of(30).forbidden
                == #"wg0 may run over wwan0, and the rule {interface: "wwan*", allowed: false} forbids wwan0"#)
        inputs.rules[0].append(allowing)
        #expect(inputs.of(30).forbidden == nil)
        inputs.carriers = [30: [NetworkPath(link: 9)]]
        #expect(inputs.of(30).forbidden != nil, "the forbidden carrier is known now")
    }
}

@Suite("Judgement of interfaces")
struct JudgementTests {
    /// Random networks, with interfaces on top of each other in every way.
    @Test(
        "every configuration has an answer, always the same, and never better than the worst lower one",
        arguments: 0..<300)
    func total(_ seed: UInt64) {
        var dice = Dice(seed: seed)
        func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &dice) }
        let kinds: [String?] = [nil, nil, "bridge", "bond", "vlan", "veth", "wireguard", "tun", "ppp", "dummy"]
        let names = ["eth", "wwan", "ppp", "bnep", "wlan", "usb", "wg", "br"]
        var links: [NetworkLink] = []
        for index in Int32(1)...8 {
            var link = NetworkLink(index: index, name: "\(names[below(8)])\(index)")
            link.kind = kinds[below(kinds.count)]
            link.hasDevice = link.kind == nil && below(4) > 0
            link.isWireless = below(5) == 0
            link.isUsable = below(4) > 0
            link.leadsOut = below(2) == 0
            link.driver = below(3) == 0 ? ["cdc_ncm", "qmi_wwan", "r8152"][below(3)] : nil
            if link.kind != nil { link.lower = (0..<below(4)).map { _ in Int32(below(10)) } }
            links.append(link)
        }
        let rules = (0..<below(4)).map { _ in
            NetworkRule(
                interface: "\(names[below(8)])*", isMetered: [nil, true, false][below(3)],
                isAllowed: [nil, true, false][below(3)])
        }
        let managed = Dictionary(
            uniqueKeysWithValues: links.filter { _ in below(4) == 0 }.map {
                ($0.name, NetworkManagerMetered.allCases[below(5)])
            })
        let inputs = Metering(links: links, rules: rules, managed: managed)
        let shuffled = Metering(links: links.reversed(), rules: rules, managed: managed)
        for link in links {
            let judgement = inputs.judgement(of: NetworkPath(link: link.index))
            #expect(judgement == shuffled.judgement(of: NetworkPath(link: link.index)))
            #expect(judgement.reason.hasPrefix("\(judgement.metered.rawValue): "))
            #expect(judgement.links.first == link.index)
            #expect(Set(judgement.links).count == judgement.links.count)
            // Only a person's rule or NetworkManager may overrule a metered interface below.
            if judgement.source == .guess, judgement.metered == .unmetered, link.kind == "bond" || link.kind == "vlan" {
                for lower in link.lower where lower != link.index {
                    let carrier = inputs.judgement(of: NetworkPath(link: lower))
                    #expect(carrier.metered != .metered, "\(judgement.reason), but \(carrier.reason)")
                }
            }
        }
    }

    @Test("the traffic of a tunnel is counted once, for the interface that carries it, and loopback never")
    func links() {
        var loopback = link("lo", 1)
        loopback.medium = .loopback
        let metering = Metering(
            links: [loopback, wire, modem, made("vxlan", "x0", 5, on: [9]), made("bridge", "br0", 6, on: [2])])
        let networks = [NetworkRule(name: "lte", interface: "wwan*", isMetered: true)]
        func links(_ condition: Condition) -> Set<Int32> {
            let facts = ConditionFacts(
                now: WallTime(milliseconds: 0), zone: .utc, knowsTime: false, power: nil, folders: [], destination: "",
                file: .noFile, way: .local, networks: networks)
            return metering.links(described: condition, facts, gateways: [:])
        }
        #expect(links(.fact(.network(["lte"]))) == [9])
        #expect(links(.fact(.interface(["x0", "br0"]))) == [5, 6])
        #expect(links(.fact(.metered(true))) == [9])
        #expect(links(.not(.fact(.interface(["wwan0"])))) == [2])
        // Unknown applies.
        #expect(links(.all([.fact(.interface(["eth0"])), .fact(.between([]))])) == [2])
    }
}
