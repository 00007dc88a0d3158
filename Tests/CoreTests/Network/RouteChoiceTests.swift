import TestKit
import Testing

@testable import Core

@Suite("Reasons for a route")
struct RouteChoiceTests {
    private static let links = ["wan0", "lte0", "eth0"].enumerated().map { number, name in
        var link = NetworkLink(index: Int32(number + 2), name: name)
        (link.hasDevice, link.leadsOut) = (true, true)
        return link
    }
    private static let networks = [
        NetworkRule(interface: "wan0", isMetered: false), NetworkRule(interface: "lte0", isMetered: true),
    ]
    private static let free = "unmetered: the rule {interface: \"wan0\", metered: false} says so about wan0"
    private static let costly = "metered: the rule {interface: \"lte0\", metered: true} says so about lte0"

    /// The first is the kernel's own, and the number of each is its metric.
    private static func choice(
        _ links: [Int32], _ rules: PolicyRules, exempt: Set<Exemption> = []
    ) -> Admission.RouteChoice? {
        var rules = rules
        if rules.meteredRule != nil || !rules.bandwidth.isEmpty { rules.networks = networks }
        let paths = links.enumerated().map { number, link in
            var path = NetworkPath(link: link)
            (path.isOwn, path.metric, path.source) = (number == 0, UInt32(link * 10), IPAddress("10.\(link).0.2"))
            path.destination = IPAddress("203.0.113.9")
            return path
        }
        let remote = Admission.DestinationState(
            name: "nas", slots: 1, running: 0, pause: nil, health: DestinationHealth(), reachability: .over(paths))
        var inputs = Admission.PolicyInputs(
            now: WallTime(milliseconds: 0), monotonic: MonotonicTime(nanoseconds: 0), running: 0, everything: nil)
        inputs.network = rules.dependsOnNetwork ? Metering(links: Self.links) : nil
        let admission = Admission(total: 1, rules: rules)
        let origin = Admission.FolderState(name: "door", exempt: exempt)
        let choice = admission.choice(to: remote, from: origin, in: inputs)
        // The reported choice is the used one.
        if case .open(let route) = admission.routeDecision(to: remote, from: origin, in: inputs), route.interface != nil
        {
            #expect(choice?.interface == route.interface)
        }
        return choice
    }

    private static let pause = PolicyRules(metered: .pause)

    @Test("the kernel's route, if allowed and unmetered")
    func own() throws {
        let choice = try #require(Self.choice([2, 3], Self.pause))
        #expect(choice.interface == "wan0" && choice.source == IPAddress("10.2.0.2"))
        #expect(choice.reason == "the kernel's own route to 203.0.113.9, allowed and free (\(Self.free))")
        #expect(choice.refused.map(\.interface) == ["lte0"])
        #expect(choice.refused.first?.reason.hasPrefix("`metered` of policy says pause; \(Self.costly)") == true)
    }

    @Test("an equal unmetered route, if the kernel's is not")
    func equal() throws {
        for rules in [
            Self.pause, PolicyRules(networks: Self.networks),
            PolicyRules(bandwidth: [RateRule(limit: 1000, when: .fact(.metered(true)))]),
        ] {
            let choice = try #require(Self.choice([3, 2], rules))
            #expect(choice.interface == "wan0")
            #expect(
                choice.reason
                    == "equal to the kernel's own route through lte0, with metric 20, allowed and free (\(Self.free))")
        }
        let limited = try #require(
            Self.choice([3, 2], PolicyRules(bandwidth: [RateRule(limit: 1000, when: .fact(.metered(true)))])))
        #expect(
            limited.refused == [
                Admission.RouteChoice.Refused(
                    interface: "lte0", reason: "it counts as metered (\(Self.costly)), and wan0 is free")
            ])
    }

    @Test("a metered route is chosen if no unmetered one is equal, an unmetered one even if metered is allowed")
    func metered() throws {
        let choice = try #require(
            Self.choice([3], PolicyRules(bandwidth: [RateRule(limit: 1000, when: .fact(.metered(true)))])))
        #expect(choice.interface == "lte0" && choice.refused.isEmpty)
        #expect(
            choice.reason.contains(
                "it counts as metered (\(Self.costly)), and no free route that may be used is equal to it"))
        #expect(Self.choice([3, 2], Self.pause, exempt: [.metered])?.interface == "wan0")
        #expect(Self.choice([3], Self.pause, exempt: [.metered])?.interface == "lte0")
    }

    @Test("a metered route with the higher limit is chosen before a free one, and says why")
    func faster() throws {
        let rules = PolicyRules(bandwidth: [
            RateRule(limit: 1000, when: .fact(.metered(false))), RateRule(limit: 3000, when: .fact(.metered(true))),
        ])
        let choice = try #require(Self.choice([3, 2], rules))
        #expect(choice.interface == "lte0")
        #expect(choice.reason.hasSuffix("and the `bandwidth` of a free route is lower"), "\(choice.reason)")
    }

    @Test("the first of several unmetered routes, and the others say so")
    func several() throws {
        let choice = try #require(Self.choice([2, 4], Self.pause))
        #expect(
            choice.refused == [
                Admission.RouteChoice.Refused(
                    interface: "eth0", reason: "it is equally good, with metric 40, and wan0 comes first")
            ])
    }

    @Test("without a usable route, each one is named with its reason")
    func none() throws {
        let choice = try #require(Self.choice([3], Self.pause))
        #expect(choice.interface == nil)
        #expect(choice.refused.map(\.interface) == ["lte0"])
    }

    @Test("the kernel's route, if no rule depends on networks")
    func kernel() throws {
        #expect(Self.choice([3, 2], PolicyRules())?.reason == Admission.kernelsChoice)
        #expect(Self.choice([3, 2], PolicyRules())?.refused.isEmpty == true)
    }
}
