import TestKit
import Testing

@testable import Core

@Suite("Limits with conditions")
struct AppliedRulesTests {
    private static let onLTE = Condition.fact(.network(["lte"]))

    private func scene(over link: Int32, _ change: (inout ConditionScene) -> Void) -> ConditionScene {
        var scene = ConditionScene()
        scene.reachability = .over([NetworkPath(link: link)])
        change(&scene)
        return scene
    }

    @Test("a limit about a network applies on its routes alone, beside those of the place")
    func network() {
        for (link, speed) in [(Int32(2), Int64(5000)), (4, 1000)] {
            let scene = scene(over: link) {
                $0.rates = [RateRule(limit: 5000), RateRule(limit: 1000, when: Self.onLTE)]
            }
            #expect(scene.speed == speed)
        }
    }

    @Test("of equal routes, the one with the highest limit is taken, whatever the kernel prefers")
    func fastest() {
        let scene = scene(over: 4) {
            $0.reachability = .over([NetworkPath(link: 4), NetworkPath(link: 2)])
            $0.rates = [
                RateRule(limit: 1000, when: Self.onLTE), RateRule(limit: 2000, when: .fact(.interface(["eth*"]))),
            ]
        }
        #expect(scene.speed == 2000)
    }

    @Test("a limit that may apply applies: roaming is unknown")
    func unknown() {
        let scene = scene(over: 4) {
            $0.isRoaming = nil
            $0.rates = [RateRule(limit: 1000, when: .fact(.roaming(true)))]
            $0.quotas = [Quota(period: .day, bytes: 1, name: "abroad", when: .fact(.network(["abroad"])))]
            $0.slots = [ConcurrencyRule(atMost: 1, when: .not(.fact(.roaming(false))))]
        }
        #expect(scene.speed == 1000)
        #expect(scene.applied?.quotas == [QuotaName(.policy, "abroad")])
        #expect(scene.applied?.slots.count == 1)
    }

    @Test("a limit of 0 with a condition is a hold with its name and place, which no exception lifts")
    func zero() throws {
        let scene = scene(over: 4) {
            $0.rates = [RateRule(name: "no-lte", limit: 0, when: Self.onLTE, place: "sluice.yaml:9")]
        }
        let hold = try #require(scene.holds.first)
        #expect(hold.kind == .rule && hold.rule?.name == "no-lte")
        #expect(
            hold.text
                == "the rule `no-lte` of policy (sluice.yaml:9) sets the bandwidth to 0 while the network is lte; "
                + "it ends when `network` changes")
    }

    @Test("the slots of a rule are full when as many run as it allows, and the smallest is named")
    func slots() {
        var applied = AppliedRules()
        let (one, two) = (
            AppliedRules.Slots(place: .policy, rule: ConcurrencyRule(atMost: 1, when: Self.onLTE)),
            AppliedRules.Slots(place: .folder("door"), rule: ConcurrencyRule(atMost: 2, when: Self.onLTE))
        )
        applied.slots = [one, two]
        #expect(applied.full([:]) == nil && applied.room([:]) == 1)
        #expect(applied.full([one: 1, two: 2]) == one)
        #expect(applied.full([two: 2]) == two && applied.room([two: 2]) == 0)
        #expect(AppliedRules().room([:]) == nil)
        #expect(one.words == "at most 1 at once while the network is lte (policy)")
    }
}
