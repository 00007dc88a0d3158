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
            return !Self.holds(PolicyRules(pauses: [Self.below(30)]), in: inputs).isEmpty
        }
        #expect([32, 31, 30].map { isHeld($0) } == [false, false, false])
        #expect([29, 30, 31, 30, 31].map { isHeld($0) } == [true, true, true, true, true])
        #expect([32, 31, 30, 29, 31].map { isHeld($0) } == [false, false, false, true, true])
        let inputs = Admission.PolicyInputs(
            now: Self.now, monotonic: MonotonicTime(nanoseconds: 1), running: 0, everything: nil, power: power)
        #expect(
            Self.holds(PolicyRules(pauses: [Self.below(30)]), in: inputs).map(\.text) == [
                "the rule `below-30` of policy pauses uploads while the battery has less than 30 %; it has 31 %, which is "
                    + "enough from 32 % on; it ends when `battery_below` changes"
            ])
        #expect(!isHeld(31, isFed: true))
        #expect(!isHeld(30))
        #expect(isHeld(29, isFed: true))
        #expect(!isHeld(30, isFed: true))
        #expect(isHeld(28))
        // A charge that is not reported may be any.
        #expect(isHeld(nil))
        #expect(!isHeld(30))
    }

    @Test("a rule of any of the three places holds since the power changed, and without a battery none does")
    func holds() {
        func holds(_ power: Power?) -> [Hold] {
            Self.holds(
                PolicyRules(pauses: [Self.below(20)]),
                PolicyRules(pauses: [PauseRule(name: "mains", when: .fact(.onBattery(true)))]),
                PolicyRules(pauses: [Self.below(40)]),
                in: Admission.PolicyInputs(
                    now: Self.now.advanced(by: .seconds(60)), monotonic: MonotonicTime(nanoseconds: 1), running: 0,
                    everything: nil, power: power))
        }
        func power(_ isOnBattery: Bool, _ percent: Int?) -> Power {
            Power(isOnBattery: isOnBattery, percent: percent, since: Self.now)
        }
        #expect(holds(nil).isEmpty && holds(power(false, 40)).isEmpty)
        #expect(holds(power(true, 40)).map(\.rule?.name) == ["mains"])
        #expect(holds(power(false, 39)).map(\.rule?.name) == ["below-40"])
        #expect(holds(power(true, 19)).map(\.rule?.name) == ["below-20", "mains", "below-40"])
        #expect(holds(power(true, 19)).allSatisfy { $0.kind == .rule && $0.since == Self.now })
        // Without its charge it cannot be told.
        #expect(holds(power(false, nil)).map(\.rule?.name) == ["below-20", "below-40"])
    }

    private static func below(_ percent: Int) -> PauseRule {
        PauseRule(name: "below-\(percent)", when: .fact(.batteryBelow(percent)))
    }

    private static func holds(
        _ policy: PolicyRules, _ destination: PolicyRules = PolicyRules(), _ folder: PolicyRules = PolicyRules(),
        in inputs: Admission.PolicyInputs
    ) -> [Hold] {
        let remote = Admission.DestinationState(
            name: "nas", slots: 2, running: 0, pause: nil, health: DestinationHealth(), rules: destination)
        return Admission(total: 3, rules: policy).hardBlockers(
            on: remote, from: Admission.FolderState(name: "cam", rules: folder), in: inputs)
    }
}
