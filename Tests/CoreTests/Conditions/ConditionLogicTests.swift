import TestKit
import Testing

@testable import Core

/// What is said about a condition holds for all facts. A failure names its seed.
@Suite("Conditions that never hold, or always")
struct ConditionLogicTests {
    private static let night = Condition.fact(.between([Window(from: 22 * 60, to: 6 * 60)]))
    private static let day = Condition.fact(.between([Window(from: 8 * 60, to: 18 * 60)]))
    private static let big = Condition.fact(.file(.largerThan(100)))
    private static let small = Condition.fact(.file(.smallerThan(20)))

    @Test(
        "lines that exclude each other are found",
        arguments: [
            Condition.all([night, day]), .all([big, small]), .fact(.file(.smallerThan(0))),
            .all([.fact(.metered(true)), .fact(.metered(false))]), .all([big, .not(big)]),
            .all([.fact(.file(.kind([.photo]))), .fact(.file(.longerThan(10)))]),
            .all([.fact(.file(.longerThan(10))), .not(.fact(.file(.longerThan(5))))]),
            .all([.fact(.batteryBelow(20)), .not(.fact(.batteryBelow(30)))]),
            .all([.fact(.hotterThan(70)), .not(.fact(.hotterThan(60)))]),
            .all([.fact(.folder(["a"])), .fact(.folder(["b"]))]),
            .all([.fact(.destination(["a", "b"])), .not(.fact(.destination(["b", "a", "c"])))]),
            .all([.fact(.interface(["eth0"])), .not(.fact(.interface(["e*"])))]),
            .all([.fact(.network(["lte"])), .not(.any([.fact(.network(["lte"])), night]))]),
            .any([.all([night, day]), .all([big, small])]),
            .not(.any([night, .not(night)])),
            .not(.fact(.between([Window(from: 0, to: 1440)]))),
        ])
    func contradictions(_ condition: Condition) {
        let logic = ConditionLogic()
        #expect(logic.conflict(in: condition) != nil && !logic.isAlwaysTrue(condition))
        #expect(logic.conflict(in: .not(condition)) == nil && logic.isAlwaysTrue(.not(condition)))
    }

    @Test(
        "what may hold is not reported",
        arguments: [
            Condition.all([night, .not(day)]), .all([big, .fact(.file(.smallerThan(102)))]), .any([night, day]),
            .not(.all([big, .fact(.file(.kind([.video])))])),
            // A route may run over several interfaces.
            .all([.fact(.interface(["eth0"])), .fact(.interface(["wwan0"]))]),
            .all([.fact(.ssid(["a"])), .fact(.ssid(["b"]))]),
            .all([.fact(.interface(["e*"])), .not(.fact(.interface(["eth0"])))]),
            .all([.fact(.batteryBelow(30)), .not(.fact(.batteryBelow(20)))]),
            // A request that sends no file is neither.
            .not(.any([.fact(.file(.largerThan(10))), .fact(.file(.smallerThan(20)))])),
        ])
    func possible(_ condition: Condition) {
        #expect(ConditionLogic().conflict(in: condition) == nil && !ConditionLogic().isAlwaysTrue(condition))
    }

    @Test("of files alone more can be said; the folder of a card has two names")
    func kinds() {
        let all = Condition.any([.fact(.file(.largerThan(10))), .fact(.file(.smallerThan(20)))])
        #expect(ConditionLogic(concernsFiles: true).isAlwaysTrue(all))
        let folders = Condition.all([.fact(.folder(["card"])), .fact(.folder(["card-a"]))])
        #expect(ConditionLogic(patterns: ["card"]).conflict(in: folders) == nil)
        #expect(
            ConditionLogic().conflict(in: .all([Self.night, Self.big, .fact(.metered(false)), Self.small]))
                == .lines([
                    ConditionLogic.Literal(predicate: .file(.largerThan(100)), isNegated: false),
                    ConditionLogic.Literal(predicate: .file(.smallerThan(20)), isNegated: false),
                ]))
    }

    @Test("an interface and a network of another one hold together only over a tunnel")
    func interfaces() {
        let networks: [String: [String?]] = ["lte": ["wwan*"], "home": [nil], "both": ["wwan*", "eth0"]]
        func isSeparate(_ condition: Condition) -> Bool {
            ConditionLogic().separateInterfaces(in: condition, networks: networks) != nil
        }
        let cable = Condition.fact(.interface(["eth0"]))
        #expect(isSeparate(.all([.fact(.network(["lte"])), cable])))
        #expect(!isSeparate(.all([.fact(.network(["home"])), cable])))
        #expect(!isSeparate(.all([.fact(.network(["both"])), cable])))
        #expect(!isSeparate(.all([.fact(.network(["lte"])), .not(cable)])))
        #expect(!isSeparate(.any([.all([.fact(.network(["lte"])), cable]), cable])))
        #expect(isSeparate(.all([.fact(.interface(["ETH*"])), .fact(.interface(["wlan0", "wwan?"]))])))
    }

    @Test("what never holds is true of no facts, and what always holds false of none")
    func property() {
        var (never, always) = (0, 0)
        ConditionCases.each { dice, scene in
            let condition = Self.narrow(&dice)
            let logic = ConditionLogic()
            let (isNever, isAlways) = (logic.conflict(in: condition) != nil, logic.isAlwaysTrue(condition))
            if isNever { never += 1 }
            if isAlways { always += 1 }
            guard isNever || isAlways else { return nil }
            var scenes = [scene]
            for _ in 0..<8 { scenes.append(ConditionScene(dice: &dice)) }
            for var one in scenes {
                if Bool.random(using: &dice) { one.forget(Int.random(in: 0...9, using: &dice)) }
                if Bool.random(using: &dice) { one.file = .noFile }
                for facts in one.facts {
                    let truth = condition.truth(facts)
                    if isNever, truth == .yes { return "it is true: \(condition.words)" }
                    if isAlways, truth == .no { return "it is false: \(condition.words)" }
                }
            }
            return nil
        }
        #expect(never > ConditionCases.seeds.count / 50 && always > ConditionCases.seeds.count / 100)
    }

    /// Of few predicates, so that they often meet.
    private static func narrow(_ dice: inout Dice) -> Condition {
        let size = Int64.random(in: 0...3, using: &dice) * 10_000_000
        let level = Int.random(in: 1...4, using: &dice) * 20
        let pool: [[Condition.Predicate]] = [
            [.metered(true), .metered(false), .roaming(true), .roaming(false)],
            [.lan(true), .lan(false), .onBattery(true), .onBattery(false)],
            [
                .file(.largerThan(size)), .file(.smallerThan(size)), .file(.smallerThan(size + 1)),
                .file(.kind([.video])), .file(.kind([.photo, .other])), .file(.longerThan(size / 5000)),
            ],
            [.batteryBelow(level), .hotterThan(level), .batteryBelow(level + 1), .hotterThan(level + 1)],
            [.folder(["door"]), .folder(["garden"]), .destination(["nas"]), .destination(["cloud"])],
            [
                .interface(["eth*"]), .interface(["eth0", "wwan0"]), .network(["lte"]), .network(["lte", "home"]),
                .ssid(["Home"]), .ssid(["Home", "Cafe"]),
            ],
            [
                .between([Window(from: level * 10, to: level * 10 + 300)]),
                .between([Window(from: 22 * 60, to: 6 * 60), Window(from: 5 * 60, to: 23 * 60)]),
                .between([Window(from: 0, to: 12 * 60)]), .between([Window(from: 12 * 60, to: 1440)]),
            ],
        ]
        let own = pool.randomElement(using: &dice) ?? pool[0]
        func part(_ dice: inout Dice) -> Condition {
            let fact = Condition.fact(own.randomElement(using: &dice) ?? own[0])
            return Bool.random(using: &dice) ? fact : .not(fact)
        }
        func parts(_ dice: inout Dice) -> [Condition] {
            (0..<Int.random(in: 2...3, using: &dice)).map { _ in part(&dice) }
        }
        switch Int.random(in: 0...4, using: &dice) {
        case 0, 1: return .all(parts(&dice))
        case 2: return .any(parts(&dice))
        case 3: return .not(.all([.any(parts(&dice)), part(&dice)]))
        default: return .any([.all(parts(&dice)), .all(parts(&dice))])
        }
    }
}
