import TestKit
import TestTraits
import Testing

@testable import Core

/// Rules only restrict, whatever they are. A failure names its seed.
@Suite("Any rules with conditions", .ownThreads)
struct ConditionPropertyTests {
    private func each(_ body: (inout Dice, ConditionScene) -> String?) { ConditionCases.each(body) }

    @Test("the order of rules changes nothing")
    func shuffled() {
        each { dice, scene in
            var other = scene
            other.rules.shuffle(using: &dice)
            guard Set(other.holds) == Set(scene.holds) else { return "the holds differ" }
            return other.route.isOpen == scene.route.isOpen ? nil : "the routes differ"
        }
    }

    @Test("one rule more never lets more go")
    func oneMore() {
        var stopped = 0
        each { dice, scene in
            var other = scene
            other.rules.append(ConditionScene.rule(&dice, "more"))
            if scene.goes, !other.goes { stopped += 1 }
            return other.goes && !scene.goes ? "it goes with one rule more" : nil
        }
        #expect(stopped > ConditionCases.seeds.count / 20)
    }

    @Test("a known fact that becomes unknown never lets more go")
    func unknown() {
        var stopped = 0
        each { dice, drawn in
            var scene = drawn
            // With it, an unknown cost is a known one.
            scene.unknownCost = nil
            var other = scene
            other.forget(Int.random(in: 0...9, using: &dice))
            if scene.goes, !other.goes { stopped += 1 }
            return other.goes && !scene.goes ? "it goes with a fact less" : nil
        }
        #expect(stopped > ConditionCases.seeds.count / 100)
    }

    @Test("over a described network nothing goes that the real one would hold, however little is stated")
    func described() {
        var (went, held) = (0, 0)
        each { dice, drawn in
            var scene = drawn
            let link = Int32.random(in: 2...4, using: &dice)
            scene.reachability = .over([NetworkPath(link: link)])
            var other = scene
            let network = scene.described(link, &dice)
            other.reachability = .described(network)
            if other.goes { went += 1 }
            if !scene.goes { held += 1 }
            return other.goes && !scene.goes ? "it goes over \(network.factWords), and not over link \(link)" : nil
        }
        #expect(went > ConditionCases.seeds.count / 20 && held > ConditionCases.seeds.count / 5)
    }

    @Test("without the rule that a hold names, the answer changes, or another named rule is left")
    func named() {
        each { _, scene in
            guard let hold = scene.holds.first(where: { $0.kind == .rule }), let name = hold.rule?.name else {
                return nil
            }
            var other = scene
            for path in [\ConditionScene.rules, \.destinationRules, \.folderRules] {
                other[keyPath: path].removeAll { $0.name == name }
            }
            if other.goes { return nil }
            return other.holds.allSatisfy { $0.kind != .rule || ($0.rule.map { $0.name != name } ?? false) }
                ? nil : "the holds still name \(name), or none"
        }
    }

    @Test("before the next change by time nothing changes, and no rule's hold ends before its end")
    func until() {
        each { dice, scene in
            let end = scene.nextChange ?? scene.now.advanced(by: .seconds(7 * 86_400))
            guard end > scene.now else { return "the next change is past" }
            let names = Set(scene.holds.compactMap(\.rule?.name))
            let last = end.milliseconds - 1
            for moment in [last, Int64.random(in: scene.now.milliseconds...last, using: &dice)] {
                var other = scene
                other.now = WallTime(milliseconds: moment)
                if other.goes != scene.goes || Set(other.holds.compactMap(\.rule?.name)) != names {
                    return "it differs at \(other.now), before \(end)"
                }
            }
            for hold in scene.holds {
                guard let until = hold.until, let rule = hold.rule?.name else { continue }
                var other = scene
                other.now = WallTime(milliseconds: until.milliseconds - 1)
                if !other.holds.contains(where: { $0.rule?.name == rule }) { return "\(rule) ends before \(until)" }
            }
            return nil
        }
    }
}

extension Admission.RouteDecision {
    fileprivate var isOpen: Bool { if case .open = self { true } else { false } }
}
