import TestKit
import Testing

@testable import Core

@Suite("Networks that a person describes")
struct DescribedNetworkTests {
    private static let networks = [
        NetworkRule(name: "home", ssid: "Home", isMetered: false),
        NetworkRule(name: "home", ssid: "Attic", isMetered: false),
        NetworkRule(name: "lte", interface: "wwan*", isMetered: true),
    ]

    private enum Answer { case yes, no, unknown }

    private func answer(_ predicate: Condition.Predicate, _ facts: NetworkRule) -> Answer {
        switch DescribedNetwork(facts).truth(of: predicate, Self.networks) {
        case .yes: .yes
        case .no: .no
        case .unknown: .unknown
        }
    }

    @Test("a name stands for the facts that all of its items state alike; options replace them")
    func named() throws {
        let home = try #require(DescribedNetwork(named: "home", in: Self.networks))
        #expect(home.facts == NetworkRule(name: "home", isMetered: false))
        let lte = try #require(
            DescribedNetwork(named: "lte", in: Self.networks, stating: NetworkRule(isRoaming: true, isMetered: false)))
        #expect(lte.facts == NetworkRule(name: "lte", interface: "wwan*", isRoaming: true, isMetered: false))
        #expect(lte.factWords == "lte: interface wwan*, not metered, roaming")
        #expect(DescribedNetwork(named: "cafe", in: Self.networks) == nil)
        #expect(DescribedNetwork(named: nil, in: Self.networks)?.facts == NetworkRule())
    }

    @Test("a Wi-Fi is no modem and a modem no Wi-Fi, by their names; what nothing states is unknown")
    func kinds() {
        let (wifi, modem) = (NetworkRule(ssid: "Home"), NetworkRule(interface: "wwan*"))
        #expect(answer(.network(["lte"]), wifi) == .no && answer(.network(["home"]), wifi) == .yes)
        #expect(answer(.network(["home"]), modem) == .no && answer(.network(["lte"]), modem) == .yes)
        #expect(answer(.roaming(true), wifi) == .no && answer(.roaming(true), modem) == .unknown)
        #expect(
            answer(.ssid(["Home"]), modem) == .no
                && answer(.gateway([ConditionScene.router].compactMap { $0 }), modem) == .unknown)
        let nothing = NetworkRule()
        #expect(answer(.network(["lte"]), nothing) == .unknown && answer(.ssid(["Home"]), nothing) == .unknown)
        // Which of them it is, and what carries a tunnel, is not stated.
        #expect(answer(.interface(["wwan0"]), modem) == .unknown && answer(.interface(["eth*"]), modem) == .no)
        #expect(answer(.interface(["wwan*"]), NetworkRule(interface: "wg0")) == .unknown)
        #expect(answer(.interface(["wwan*", "eth0"]), NetworkRule(interface: "eth0")) == .yes)
    }

    @Test("its cost is what it states and the first item that means it; what may mean it leaves the cost unknown")
    func cost() {
        func cost(_ facts: NetworkRule, _ lists: [[NetworkRule]] = [Self.networks]) -> Metered {
            DescribedNetwork(facts).cost(lists)
        }
        #expect(cost(NetworkRule(ssid: "Attic")) == .unmetered && cost(NetworkRule(interface: "wwan1")) == .metered)
        #expect(cost(NetworkRule(ssid: "Cafe")) == .unknown && cost(NetworkRule()) == .unknown)
        #expect(cost(NetworkRule(ssid: "Cafe", isMetered: false)) == .unmetered)
        // A modem costs, as for the daemon; another place may be stricter.
        #expect(cost(NetworkRule(interface: "wwan1"), []) == .metered)
        #expect(cost(NetworkRule(ssid: "Home"), [Self.networks, [NetworkRule(isMetered: true)]]) == .metered)
    }

    @Test("an item with `allowed: false` forbids it, and may forbid what it may mean")
    func forbidden() throws {
        let list = [NetworkRule(interface: "wwan0", isAllowed: false)]
        #expect(
            DescribedNetwork(NetworkRule(interface: "wwan0")).prohibition([list])?.contains("forbids wwan0") == true)
        #expect(DescribedNetwork(NetworkRule(interface: "wwan*")).prohibition([list])?.contains("may forbid") == true)
        #expect(DescribedNetwork(NetworkRule(interface: "eth0")).prohibition([list]) == nil)
        let first = [NetworkRule(interface: "wwan*", isAllowed: true)] + list
        #expect(DescribedNetwork(NetworkRule(interface: "wwan0")).prohibition([first]) == nil)
    }
}
