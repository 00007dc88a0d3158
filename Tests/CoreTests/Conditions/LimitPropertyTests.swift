import TestKit
import TestTraits
import Testing

@testable import Core

/// Limits only restrict, whatever they are. A failure names its seed.
@Suite("Any limits with conditions", .ownThreads)
struct LimitPropertyTests {
    private func each(_ body: (inout Dice, ConditionScene) -> String?) {
        ConditionCases.each { dice, drawn in
            var scene = drawn
            scene.drawLimits(&dice)
            return body(&dice, scene)
        }
    }

    /// With one route, so that no other one is chosen.
    private func eachOnOneRoute(_ body: (inout Dice, ConditionScene) -> String?) {
        each { dice, drawn in
            var scene = drawn
            if case .over(let paths) = scene.reachability { scene.reachability = .over(Array(paths.prefix(1))) }
            return body(&dice, scene)
        }
    }

    @Test("the order of limits changes nothing")
    func shuffled() {
        each { dice, scene in
            var other = scene
            other.rates.shuffle(using: &dice)
            other.quotas.shuffle(using: &dice)
            other.slots.shuffle(using: &dice)
            if other.route != scene.route { return "the routes differ" }
            return other.speed == scene.speed ? nil : "the speeds differ"
        }
    }

    @Test("one limit more never makes anything faster, and never takes a quota or a slot away")
    func oneMore() {
        var slower = 0
        eachOnOneRoute { dice, scene in
            var other = scene
            other.rates.append(ConditionScene.rate(&dice, "more"))
            other.quotas.append(ConditionScene.quota(&dice, "more"))
            other.slots.append(ConditionScene.slots(&dice))
            if other.speed ?? 0 < scene.speed ?? 0 { slower += 1 }
            if other.speed ?? 0 > scene.speed ?? 0 { return "it is faster with one limit more" }
            guard let before = scene.applied, let after = other.applied else { return nil }
            return before.quotas.isSubset(of: after.quotas) && before.slots.isSubset(of: after.slots)
                ? nil : "a quota or a slot is gone"
        }
        #expect(slower > ConditionCases.seeds.count / 20)
    }

    @Test("with several routes, one limit more never makes anything faster")
    func oneMoreOnManyRoutes() {
        each { dice, scene in
            var other = scene
            other.rates.append(ConditionScene.rate(&dice, "more"))
            return other.speed ?? 0 > scene.speed ?? 0 ? "it is faster with one limit more" : nil
        }
    }

    @Test("a known fact that becomes unknown never makes anything faster, and never takes a quota or a slot away")
    func unknown() {
        var slower = 0
        eachOnOneRoute { dice, drawn in
            var scene = drawn
            // With it, an unknown cost is a known one.
            scene.unknownCost = nil
            var other = scene
            other.forget(Int.random(in: 0...8, using: &dice))
            if other.speed ?? 0 < scene.speed ?? 0 { slower += 1 }
            if other.speed ?? 0 > scene.speed ?? 0 { return "it is faster with a fact less" }
            guard let before = scene.applied, let after = other.applied else { return nil }
            return before.quotas.isSubset(of: after.quotas) && before.slots.isSubset(of: after.slots)
                ? nil : "a quota or a slot is gone"
        }
        #expect(slower > ConditionCases.seeds.count / 100)
    }

    @Test("before the next change by time, the same limits apply")
    func until() {
        each { dice, scene in
            let end = scene.nextChange ?? scene.now.advanced(by: .seconds(7 * 86_400))
            guard end > scene.now else { return "the next change is past" }
            let last = end.milliseconds - 1
            for moment in [last, Int64.random(in: scene.now.milliseconds...last, using: &dice)] {
                var other = scene
                other.now = WallTime(milliseconds: moment)
                if other.speed != scene.speed || other.applied != scene.applied {
                    return "it differs at \(other.now), before \(end)"
                }
            }
            return nil
        }
    }
}
