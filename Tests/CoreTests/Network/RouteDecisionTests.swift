import TestKit
import Testing

@testable import Core

private func link(_ name: String, _ index: Int32, _ change: (inout NetworkLink) -> Void = { _ in }) -> NetworkLink {
    var link = NetworkLink(index: index, name: name)
    (link.hasDevice, link.leadsOut) = (true, true)
    change(&link)
    return link
}

private let since = utc("2026-11-20T10:00:00")
private let wire = link("eth0", 2)
private let wifi = link("wlan0", 3) { $0.isWireless = true }
private let modem = link("wwan0", 4) { $0.deviceType = "wwan" }
private let loop = link("lo", 1) { ($0.medium, $0.hasDevice, $0.leadsOut) = (.loopback, false, false) }

private func way(
    _ paths: [Int32], policy: PolicyRules = PolicyRules(), remote rules: PolicyRules = PolicyRules(),
    folder: PolicyRules? = nil, reachability: Reachability? = nil
) -> Admission.RouteDecision {
    let admission = Admission(total: 1, rules: policy)
    let remote = Admission.DestinationState(
        name: "nas", slots: 1, running: 0, pause: nil, health: DestinationHealth(), rules: rules,
        reachability: reachability ?? .over(paths.map { NetworkPath(link: $0) }), reachabilitySince: since)
    let inputs = Admission.PolicyInputs(
        now: since, monotonic: MonotonicTime(nanoseconds: 0), running: 0, everything: nil,
        network: Metering(links: [loop, wire, wifi, modem]))
    return admission.routeDecision(
        to: remote, from: folder.map { Admission.FolderState(name: "door", rules: $0) }, in: inputs)
}

extension Admission.RouteDecision {
    fileprivate var route: Admission.Route? { if case .open(let route) = self { route } else { nil } }
    fileprivate var hold: Hold? { if case .closed(let holds, _) = self { holds.first } else { nil } }
}

private let pause = PolicyRules(metered: .pause)

@Suite("Network policy")
struct RouteDecisionTests {
    @Test("if no rule depends on a network, no interface is chosen, whatever its cost")
    func careless() {
        for index: Int32 in 2...4 {
            #expect(way([index]).route?.interface == nil)
            #expect(way([index]).route != nil)
        }
        #expect(way([], policy: PolicyRules(metered: .allow), reachability: .unseen("x")).route != nil)
    }

    @Test("where rules close every route, the holds are those of the route that opens first, with their own ends")
    func soonest() {
        func rule(_ name: String, _ interface: String, open from: Int, to: Int) -> PauseRule {
            let window = Condition.fact(.between([Window(from: from * 60, to: to * 60)]))
            return PauseRule(name: name, when: .all([.fact(.interface([interface])), .not(window)]), place: "a.yaml:7")
        }
        let rules = [rule("wire", "eth0", open: 13, to: 14), rule("wifi", "wlan0", open: 12, to: 14)]
        let first = way([2, 3], policy: PolicyRules(pauses: rules)).hold
        #expect(first?.rule?.name == "wifi" && first?.until == utc("2026-11-20T12:00:00"))
        #expect(first?.rule?.file == "a.yaml" && first?.rule?.line == 7 && first?.rule?.facts == ["interface"])
        // No time opens the Wi-Fi now.
        let more = PauseRule(name: "never", when: .fact(.interface(["wlan0"])))
        let second = way([3, 2], policy: PolicyRules(pauses: rules + [more])).hold
        #expect(second?.rule?.name == "wire" && second?.until == utc("2026-11-20T13:00:00"))
        let none = way(
            [3, 2], policy: PolicyRules(pauses: [more, PauseRule(name: "x", when: .fact(.interface(["eth0"])))]))
        #expect(none.hold?.rule?.name == "never" && none.hold?.until == nil)
    }

    @Test(
        "a rule that neither a fact nor the time ends says how it ends",
        arguments: [
            (PauseRule.Override.allow, "it does not end by itself: `sluice allow --rule photos` makes an exception"),
            (.never, "it does not end by itself: change the rule"),
        ])
    func endless(_ override: PauseRule.Override, _ end: String) throws {
        let rule = PauseRule(name: "photos", when: .fact(.folder(["door"])), override: override)
        let admission = Admission(total: 1, rules: PolicyRules(pauses: [rule]))
        let remote = Admission.DestinationState(
            name: "nas", slots: 1, running: 0, pause: nil, health: DestinationHealth(), rules: PolicyRules(),
            reachability: .local, reachabilitySince: since)
        let inputs = Admission.PolicyInputs(
            now: since, monotonic: MonotonicTime(nanoseconds: 0), running: 0, everything: nil)
        let holds = admission.hardBlockers(on: remote, from: Admission.FolderState(name: "door"), in: inputs)
        let hold = try #require(holds.first)
        #expect(hold.text.hasSuffix("; " + end), "\(hold.text)")
        #expect(hold.isByTimeAlone && hold.rule?.facts == [] && hold.rule?.isFixed == (override == .never))
    }

    @Test(
        "the kernel's route is used, or an equal one if it is forbidden or only the other is unmetered")
    func choice() {
        #expect(way([2, 4], policy: pause).route?.interface == "eth0")
        #expect(way([4, 2], policy: pause).route?.interface == "eth0")
        #expect(
            way([4, 2], policy: PolicyRules(bandwidth: [RateRule(limit: 1000, when: .fact(.metered(true)))])).route?
                .interface == "eth0")
        #expect(
            way([4], policy: PolicyRules(bandwidth: [RateRule(limit: 1000, when: .fact(.metered(true)))])).route?
                .interface == "wwan0")
        #expect(
            way([4], policy: PolicyRules(bandwidth: [RateRule(limit: 1000, when: .fact(.metered(true)))])).route?
                .countsAsMetered == true)
        #expect(way([4], policy: pause).hold?.kind == .rule)
    }

    @Test("traffic over a route without a rule is counted, and waits once a rule applies")
    func unasked() {
        #expect(way([], reachability: .any).route == .any)
        #expect(way([], policy: pause, reachability: .any).hold?.kind == .metered)
    }

    @Test("traffic within this machine has no restriction and no cost")
    func inside() {
        #expect(way([1], policy: pause).route?.interface == nil)
        #expect(way([1], policy: pause).route?.cost == .unmetered)
        #expect(way([], policy: pause, reachability: .local).route == .local)
    }

    @Test("rules without effect at a folder are named, and effective ones are not")
    func withoutEffect() {
        let folder = DestinationSite.folder("/srv", cost: nil)
        var rules = PolicyRules(bandwidth: [RateRule(limit: 1000)], quotas: [Quota(period: .day, files: 0)])
        let words = rules.withoutEffect(at: folder, .local)
        #expect(words.count == 2 && words[0].contains("quotas count nothing") && words[1].contains("slows nothing"))
        // Bytes to another machine's folder are counted, but not limited in speed.
        #expect(rules.withoutEffect(at: folder, .mount(.unknown, text: "nfs")) == [words[1]])
        #expect(rules.withoutEffect(at: .server(host: "nas", port: 80), .local).isEmpty)
        // A limit of 0 holds.
        rules = PolicyRules(bandwidth: [RateRule(limit: 0)])
        #expect(rules.withoutEffect(at: folder, .local).isEmpty)
    }

    @Test("unknown cost counts as metered, unless some place allows it and none denies it")
    func unknown() {
        #expect(way([3], policy: pause).hold?.text.contains("an unknown cost counts as metered") == true)
        var lenient = pause
        lenient.meteredUnknown = .allow
        #expect(way([3], policy: lenient).route?.interface == "wlan0")
        #expect(way([3], policy: pause, remote: PolicyRules(meteredUnknown: .allow)).route != nil)
        #expect(way([3], policy: lenient, remote: PolicyRules(meteredUnknown: .metered)).hold != nil)
        #expect(way([4], policy: lenient).hold != nil)
    }

    @Test("a rule of any place counts, and the stricter of two contradictory ones")
    func strictest() {
        func says(_ metered: Bool) -> PolicyRules {
            PolicyRules(networks: [NetworkRule(interface: "wlan0", isMetered: metered)])
        }
        var policy = pause
        policy.networks = says(false).networks
        #expect(way([3], policy: policy).route != nil)
        #expect(way([3], policy: policy, remote: says(true)).hold != nil)
        #expect(way([3], policy: pause, remote: says(false)).route != nil)
        #expect(way([3], policy: pause, remote: says(false), folder: says(true)).hold != nil)
        let never = PolicyRules(networks: [NetworkRule(interface: "e*", isAllowed: false)])
        let always = PolicyRules(networks: [NetworkRule(interface: "eth0", isAllowed: true)])
        #expect(way([2], policy: never, folder: always).hold?.text.contains("forbids eth0") == true)
        #expect(way([2], policy: always, folder: never).hold?.kind == .metered)
        #expect(way([2, 3], policy: never).route?.interface == "wlan0")
    }

    @Test("a hold names the source of the decision, its reason, and the line that would change it")
    func words() throws {
        let hold = try #require(way([4], remote: pause).hold)
        #expect(
            hold.text
                == "`metered` of destinations.nas says pause; metered: wwan0 is a modem (DEVTYPE wwan); "
                + "`- {interface: \"wwan0\", metered: false}` under `networks` would change that; "
                + "`sluice allow --metered` makes an exception")
        #expect(hold.since == since && hold.until == nil)
        #expect(way([4], policy: pause, remote: pause, folder: pause).hold?.text.contains("of policy") == true)
        #expect(way([3], policy: pause).hold?.text.contains("counts as metered (`metered_unknown`)") == true)
        #expect(
            way([3], policy: pause).hold?.text.contains("interface:") == false, "such a rule would apply to every Wi-Fi"
        )
    }

    @Test("a network that is forbidden and metered has a hold for each, without useless suggestions")
    func forbiddenAndMetered() {
        var policy = pause
        policy.networks = [NetworkRule(interface: "wwan*", isAllowed: false)]
        guard case .closed(let holds, _) = way([4], policy: policy) else {
            Issue.record("unexpected: \(way([4], policy: policy))")
            return
        }
        #expect(holds.count == 2 && holds[0].text.contains("forbids wwan0") && holds[1].text.contains("says pause"))
        #expect(!holds.contains { $0.text.contains("sluice allow") })
    }

    @Test("for a metered network each exhausted quota is shown, and for others only those that count everywhere")
    func quotasBehind() {
        let quotas = [
            Quota(period: .day, bytes: 0, name: "lte", when: .fact(.metered(true))),
            Quota(period: .week(startsOn: .mon), bytes: 0),
        ]
        let rules = PolicyRules(metered: .pause, quotas: quotas)
        func kinds(_ reachability: Reachability, exempt: Set<Exemption> = []) -> [String] {
            var quotas = QuotaState(policy: rules)
            for recount in quotas.advance(to: since, in: .utc) { quotas.recount(recount, spent: .none, at: since) }
            let remote = Admission.DestinationState(
                name: "nas", slots: 1, running: 0, pause: nil, health: DestinationHealth(), reachability: reachability,
                reachabilitySince: since)
            let inputs = Admission.PolicyInputs(
                now: since, monotonic: MonotonicTime(nanoseconds: 0), running: 0, everything: nil,
                network: Metering(links: [loop, wire, wifi, modem]), quotas: quotas)
            let origin = Admission.FolderState(name: "door", exempt: exempt)
            return Admission(total: 1, rules: rules).hardBlockers(on: remote, from: origin, in: inputs).map(
                \.kind.rawValue)
        }
        let over = Reachability.over([NetworkPath(link: 4)])
        #expect(kinds(over) == ["rule", "quota", "quota"])
        #expect(kinds(over, exempt: [.metered]) == ["quota", "quota"])
        #expect(kinds(over, exempt: [.quota]) == ["rule"])
        #expect(kinds(.offline("no route")) == ["offline", "quota"])
        #expect(kinds(.local) == [])
    }

    @Test("no route means offline, and an unreadable network counts as metered for rules about cost")
    func offline() {
        #expect(way([], reachability: .offline("no route")).hold == Hold(.offline, since: since, text: "no route"))
        #expect(way([], policy: pause, reachability: .unseen("x")).hold?.kind == .metered)
        #expect(way([], policy: pause).hold?.kind == .offline)
        // An interface that no longer exists.
        #expect(way([9], policy: pause).hold != nil)
        #expect(way([9], policy: PolicyRules(bandwidth: [RateRule(limit: 5, when: .fact(.metered(true)))])).hold != nil)
    }

    @Test("a folder of another machine has the configured cost, or else unknown")
    func mount() {
        #expect(way([], policy: pause, reachability: .mount(.unknown, text: "x")).hold?.kind == .rule)
        #expect(way([], policy: pause, reachability: .mount(.unmetered, text: "x")).route?.interface == nil)
        #expect(way([], policy: pause, reachability: .mount(.metered, text: "x")).hold != nil)
        #expect(way([], reachability: .mount(.metered, text: "x")).route?.ledger == .any)
        #expect(
            way(
                [], policy: PolicyRules(bandwidth: [RateRule(limit: 9, when: .fact(.metered(true)))]),
                reachability: .mount(.metered, text: "x")
            ).route?.ledger
                == .metered)
    }

    /// Rules and paths of all kinds, compared with a decision that is computed in another way.
    @Test("no byte is sent against a pause or ban of any place, and uploads run if some route is open to all")
    func never() {
        for seed in UInt64(1)...2000 {
            var dice = Dice(seed: seed)
            func flip() -> Bool { Bool.random(using: &dice) }
            func rules() -> PolicyRules {
                let limit: Int64? = [nil, nil, 0, 1000].randomElement(using: &dice) ?? nil
                return PolicyRules(
                    bandwidth: limit.map { [RateRule(limit: $0, when: .fact(.metered(true)))] } ?? [],
                    metered: [nil, .allow, .pause].randomElement(using: &dice) ?? nil,
                    meteredUnknown: [nil, nil, .allow, .metered].randomElement(using: &dice) ?? nil,
                    networks: (0..<Int.random(in: 0...2, using: &dice)).map { _ in
                        NetworkRule(
                            interface: ["eth0", "w*", "*"].randomElement(using: &dice),
                            isMetered: flip() ? flip() : nil,
                            isAllowed: flip() ? flip() : nil)
                    })
            }
            let places = [rules(), rules(), rules()]
            let paths = [Int32(2), 3, 4].shuffled(using: &dice).prefix(Int.random(in: 1...3, using: &dice))
            let answer = way(Array(paths), policy: places[0], remote: places[1], folder: places[2])
            let depends = places.contains {
                !$0.networks.isEmpty || $0.meteredRule != nil || !$0.bandwidth.isEmpty
            }
            /// Whether bytes cost money on the interface; `nil` if none may be sent.
            func costs(_ index: Int32) -> Bool? {
                let name = ["", "", "eth0", "wlan0", "wwan0"][Int(index)]
                let said = places.map { place in
                    place.networks.filter { Glob($0.interface ?? "*").matches(FilePath(name)) }
                }
                if said.contains(where: { $0.first { $0.isAllowed != nil }?.isAllowed == false }) { return nil }
                let costs = said.compactMap { $0.first { $0.isMetered != nil }?.isMetered }
                let native: Metered = index == 2 ? .unmetered : index == 3 ? .unknown : .metered
                let cost: Metered = costs.isEmpty ? native : costs.contains(true) ? .metered : .unmetered
                let words = places.compactMap(\.meteredUnknown)
                let counts = cost == .metered || cost == .unknown && (words.contains(.metered) || words.isEmpty)
                return counts && places.contains { $0.meteredRule != nil || $0.bandwidth.first?.limit == 0 }
                    ? nil : counts
            }
            let open = paths.filter { costs($0) != nil }
            // Of the routes that can be bound, an unmetered one; bytes that are not bound follow the kernel's route.
            let expected = depends ? open.first { costs($0) == false } ?? open.first : open.first
            switch answer {
            case .open(let route):
                #expect(expected != nil, "seed \(seed)")
                let name = expected.map { ["", "", "eth0", "wlan0", "wwan0"][Int($0)] }
                #expect(route.interface == (depends ? name : nil), "seed \(seed)")
            case .closed(let holds, _):
                #expect(expected == nil && !holds.isEmpty, "seed \(seed)")
            }
        }
    }
}
