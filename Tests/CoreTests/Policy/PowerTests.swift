import Testing

@testable import Core

@Suite("Power")
struct PowerTests {
    private static let now = WallTime(milliseconds: 1_795_161_600_000)

    @Test(
        "a machine runs on battery if one is discharging and no other supply is online; without a battery it does not",
        arguments: [
            ([Power.Supply](), Bool?.none, Int?.none), ([.outer(isOnline: false)], nil, nil),
            ([.outer(isOnline: true), .battery(isDraining: true, percent: 50)], false, 50),
            ([.outer(isOnline: false), .battery(isDraining: true, percent: 50)], true, 50),
            ([.outer(isOnline: false), .battery(isDraining: false, percent: 100)], false, 100),
            ([.battery(isDraining: true, percent: nil)], true, nil),
            ([.battery(isDraining: false, percent: 20), .battery(isDraining: true, percent: 41)], true, 30),
            ([.outer(isOnline: false), .outer(isOnline: true), .battery(isDraining: true, percent: 120)], false, 100),
        ])
    func supplies(_ supplies: [Power.Supply], _ isOnBattery: Bool?, _ percent: Int?) {
        let power = Power(supplies, at: Self.now)
        #expect(power?.isOnBattery == isOnBattery)
        #expect(power?.percent == percent)
    }

    @Test("a level near the limit holds until two above it, or until mains power returns")
    func band() {
        var power: Power?
        func isHeld(_ percent: Int?, isFed: Bool = false) -> Bool {
            power = Power(isOnBattery: !isFed, percent: percent, since: Self.now, after: power)
            let inputs = Admission.PolicyInputs(
                now: Self.now, monotonic: MonotonicTime(nanoseconds: 1), running: 0, everything: nil, power: power)
            let rules = PolicyRules(minBattery: 30)
            return !Admission(total: 3).hardBlockers(on: Admission.FolderState(name: "cam", rules: rules), in: inputs)
                .isEmpty
        }
        #expect([32, 31, 30].map { isHeld($0) } == [false, false, false])
        #expect([29, 30, 31, 30, 31].map { isHeld($0) } == [true, true, true, true, true])
        #expect([32, 31, 30, 29, 31].map { isHeld($0) } == [false, false, false, true, true])
        let hold = PolicyRules(minBattery: 30).powerHolds(
            "policy",
            in: Admission.PolicyInputs(
                now: Self.now, monotonic: MonotonicTime(nanoseconds: 1), running: 0, everything: nil, power: power))
        #expect(
            hold.map(\.text) == ["the battery is at 31 %, and uploads continue at 32 %: `min_battery: 30%` of policy"])
        #expect(!isHeld(31, isFed: true))
        #expect(!isHeld(30))
        #expect(isHeld(29, isFed: true))
        #expect(!isHeld(30, isFed: true))
        #expect(isHeld(28))
        #expect(!isHeld(nil))
        #expect(!isHeld(30))
    }

    @Test("a rule of any of the three places holds, and an unknown battery holds nothing")
    func holds() {
        let remote = Admission.DestinationState(
            name: "nas", slots: 2, running: 0, pause: nil, health: DestinationHealth(),
            rules: PolicyRules(onBattery: .pause))
        let folder = Admission.FolderState(name: "cam", rules: PolicyRules(minBattery: 40))
        func texts(_ power: Power?) -> [String] {
            let inputs = Admission.PolicyInputs(
                now: Self.now, monotonic: MonotonicTime(nanoseconds: 1), running: 0, everything: nil, power: power)
            let holds = Admission(total: 3, rules: PolicyRules(onBattery: .allow, minBattery: 20)).holds(
                for: remote, from: folder, in: inputs)
            #expect(holds.allSatisfy { $0.kind == .power && $0.since == power?.since })
            return holds.map(\.text)
        }
        func power(_ isOnBattery: Bool, _ percent: Int?) -> Power {
            Power(isOnBattery: isOnBattery, percent: percent, since: Self.now)
        }
        #expect(texts(nil).isEmpty)
        #expect(texts(power(false, 40)).isEmpty)
        #expect(texts(power(false, nil)).isEmpty)
        let onBattery = "the machine runs on its battery: `on_battery: pause` of destinations.nas"
        #expect(texts(power(true, 40)) == [onBattery])
        #expect(texts(power(false, 39)) == ["the battery is at 39 %: `min_battery: 40%` of folder cam"])
        #expect(texts(power(true, 19)).count == 3)
    }
}
