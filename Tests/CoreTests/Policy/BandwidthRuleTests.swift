import TestKit
import Testing

@testable import Core

@Suite("Bandwidth by time")
struct BandwidthRuleTests {
    private static let rules = PolicyRules(bandwidth: [
        .init(limit: 5_000_000), .init(limit: 2_000_000, when: .fact(.between([Window(from: 8 * 60, to: 18 * 60)]))),
        .init(limit: 0, when: .fact(.between([Window(from: 12 * 60, to: 13 * 60)]))),
    ])

    private static func inputs(_ at: String, _ trouble: Hold? = nil) -> Admission.PolicyInputs {
        Admission.PolicyInputs(
            now: utc("2026-11-20T\(at):00"), monotonic: MonotonicTime(nanoseconds: 0), clockTrouble: trouble,
            running: 0,
            everything: nil)
    }

    @Test(
        "the strictest limit of the present time counts",
        arguments: [
            ("07:59", 5_000_000), ("08:00", 2_000_000), ("12:30", 0), ("13:00", 2_000_000), ("18:00", 5_000_000),
        ])
    func strictest(_ at: String, _ limit: Int64) {
        #expect(Self.rules.limit(in: Self.inputs(at)) == limit)
        #expect(PolicyRules(bandwidth: [.init(limit: nil)]).limit(in: Self.inputs(at)) == nil)
    }

    @Test("zero bandwidth is a hold with an end; another limit is a change and no hold")
    func still() throws {
        func holds(_ at: String) -> [Hold] {
            let remote = Admission.DestinationState(
                name: "nas", slots: 1, running: 0, pause: nil, health: DestinationHealth())
            return Admission(total: 1, rules: Self.rules).hardBlockers(on: remote, in: Self.inputs(at))
        }
        let noon = try #require(holds("12:30").first)
        #expect(noon.kind == .rule && noon.rule?.name == "bandwidth")
        #expect(
            noon.text
                == "the rule `bandwidth` of policy sets the bandwidth to 0 while it is between 12:00-13:00")
        #expect(noon.since == utc("2026-11-20T12:00:00"))
        #expect(noon.until == utc("2026-11-20T13:00:00"))
        #expect(holds("13:00").isEmpty)
        #expect(Self.rules.nextChange(in: Self.inputs("13:00")) == utc("2026-11-20T18:00:00"))
        #expect(PolicyRules(bandwidth: [.init(limit: 0)]).holds("policy", in: Self.inputs("13:00")).first?.until == nil)
    }

    @Test("with an untrusted clock the lowest limit counts, whatever its time")
    func clock() {
        let trouble = Hold(.clock, since: WallTime(milliseconds: 0), text: "not set")
        #expect(Self.rules.limit(in: Self.inputs("20:00", trouble)) == 0)
        #expect(Self.rules.nextChange(in: Self.inputs("20:00", trouble)) == nil)
    }
}
