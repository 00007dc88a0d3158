import TestKit
import Testing

@testable import Core

@Suite("Plan")
struct PlanTests {
    private static let gb: Int64 = 1_000_000_000
    private static let now = utc("2026-11-20T20:00:00")
    private static let night = PolicyRules(windows: [Window(from: 22 * 60, to: 6 * 60)])

    private static func question(
        policy: PolicyRules = PolicyRules(), nas: PolicyRules = PolicyRules(), door: PolicyRules = PolicyRules(),
        total: Int = 3, slots: Int = 2, reachability: Reachability = .unseen(""), _ queues: [Plan.Queue],
        rate: Int64? = 1_000_000, until: WallTime? = nil,
        at now: WallTime = now, zone: Zone = .utc
    ) -> Plan.Input {
        var quotas = QuotaState(
            policy: policy, destinations: [("nas", nas), ("cloud", PolicyRules())],
            folders: [("door", door), ("yard", PolicyRules())])
        for recount in quotas.advance(to: now, in: zone) { quotas.recount(recount, spent: .none, at: now) }
        func remote(_ name: String, _ rules: PolicyRules) -> Admission.DestinationState {
            Admission.DestinationState(
                name: name, slots: slots, running: 0, pause: nil, health: DestinationHealth(), rules: rules,
                reachability: reachability)
        }
        return Plan.Input(
            admission: Admission(total: total, rules: policy),
            inputs: Admission.PolicyInputs(
                now: now, monotonic: MonotonicTime(nanoseconds: 0), zone: zone, running: 0, everything: nil,
                quotas: quotas),
            remotes: [remote("nas", nas), remote("cloud", PolicyRules())],
            origins: [Admission.FolderState(name: "door", rules: door), Admission.FolderState(name: "yard")],
            queues: queues,
            rates: Plan.Rates(everything: rate), until: until, overhead: 0)
    }

    private static func queue(_ sizes: [Int64], folder: String = "door", to: String = "nas", rest: Spending = .none)
        -> Plan.Queue
    {
        Plan.Queue(folder: folder, destination: to, uploads: sizes.map { Plan.Upload(left: $0) }, rest: rest)
    }

    @Test("permitted uploads run now, one after another at the available rate")
    func plain() throws {
        var ends: [WallTime] = []
        let plan = Plan(Self.question([Self.queue([60_000_000, 60_000_000, 120_000_000])])) { ends.append($0.at) }
        let step = try #require(plan.steps.first)
        #expect(plan.steps.count == 1)
        #expect(step.from == Self.now)
        #expect(step.to == Self.now.advanced(by: .seconds(240)))
        #expect(step.files == 3 && step.bytes == 240_000_000 && step.rate == 1_000_000)
        #expect(step.end == .done)
        // Two at a time, with half the rate each.
        #expect(ends == [120, 120, 240].map { Self.now.advanced(by: .seconds($0)) })
        #expect(plan.outcomes.first?.ends == step.to)
        #expect(plan.outcomes.first?.left == Spending.none)
    }

    @Test(
        "a quota of received bytes ends a period when acknowledgements and responses use it up",
        arguments: [false, true])
    func received(isOfBoth: Bool) throws {
        let direction = isOfBoth ? Quota.Direction.both : .received
        let policy = PolicyRules(quotas: [Quota(period: .day, bytes: 30_000_000, direction: direction)])
        let plan = Plan(Self.question(policy: policy, [Self.queue([3 * Self.gb])]))
        let step = try #require(plan.steps.first)
        // 3 of every 100 sent bytes.
        let most: Int64 = isOfBoth ? 30_000_000 * 100 / 103 : 1_000_000_000
        #expect(step.bytes > most * 99 / 100 && step.bytes <= most * 101 / 100, "\(step.bytes)")
        guard case .held(let holds) = step.end else { throw Unexpected(end: step.end) }
        #expect(holds.first?.text.contains(direction.words) == true && holds.first?.until == utc("2026-11-21T00:00:00"))
    }

    private struct Unexpected: Error { let end: Plan.Step.End }

    @Test("a small quota is kept in every hour, whatever ends within it")
    func smallQuota() throws {
        let rules = PolicyRules(windows: [Window(from: 0, to: 15 * 60)], quotas: [Quota(period: .hour, bytes: 1 << 20)])
        for (large, small) in [(3, 17), (4, 17), (3, 18), (1, 0), (5, 5)] {
            var question = Self.question(
                policy: rules,
                [
                    Self.queue(Array(repeating: 10_000_000, count: large)),
                    Self.queue(Array(repeating: 3_000, count: small), folder: "yard"),
                ], rate: 2_000_000)
            var quotas = QuotaState(policy: rules, least: Quota.minUsable)
            for recount in quotas.advance(to: Self.now, in: .utc) {
                quotas.recount(recount, spent: .none, at: Self.now)
            }
            question.inputs.quotas = quotas
            question.overhead = 4
            let plan = Plan(question)
            #expect(plan.outcomes.allSatisfy { $0.ends != nil })
            let sums = Dictionary(grouping: plan.steps) { $0.from.milliseconds / 3_600_000 }
                .mapValues { $0.reduce(0) { $0 + $1.bytes } }
            #expect(sums.values.allSatisfy { $0 <= 1 << 20 }, "\(large) \(small): \(sums.values.max() ?? 0)")
            #expect(sums.count >= large * 10)
        }
    }

    @Test("started uploads continue when a quota of files admits no new one, and count once")
    func begun() throws {
        let rules = PolicyRules(quotas: [Quota(period: .day, files: 1)])
        var queue = Self.queue([1_000_000, 1_000_000, 1_000_000])
        queue.uploads[1].isBegun = true
        var question = Self.question(policy: rules, [queue])
        question.inputs.quotas.spend(
            Spending(files: 1), for: QuotaState.Class("nas", from: "door"), at: Self.now)
        var ends: [Int: WallTime] = [:]
        _ = Plan(question) { ends[$0.place] = $0.at }
        #expect(
            ends == [
                1: Self.now.advanced(by: .seconds(1)), 0: utc("2026-11-21T00:00:01"), 2: utc("2026-11-22T00:00:01"),
            ])
    }

    @Test("an upload waits for its window, stops when it closes, and resumes in the next one")
    func window() throws {
        // Eight hours carry 28.8 GB.
        let plan = Plan(Self.question(policy: Self.night, [Self.queue([20 * Self.gb, 20 * Self.gb])]))
        #expect(plan.steps.map(\.from) == [utc("2026-11-20T22:00:00"), utc("2026-11-21T22:00:00")])
        #expect(plan.steps.first?.to == utc("2026-11-21T06:00:00"))
        #expect(plan.steps.first?.bytes == 28_800_000_000)
        guard case .held(let holds)? = plan.steps.first?.end else {
            Issue.record("unexpected end: \(plan.steps)")
            return
        }
        #expect(holds.first?.text == "outside the windows of policy: `windows: [\"22:00-06:00\"]`")
        #expect(plan.outcomes.first?.ends == utc("2026-11-21T22:00:00").advanced(by: .seconds(11_200)))
    }

    @Test("an exempted upload runs until the exception ends, and then waits; a limit ends as well")
    func exceptions() throws {
        var exempt = Self.queue([20 * Self.gb])
        // It is 20:00, and no other upload may be sent before 22:00.
        exempt.grants = [Plan.OverrideGrant(.window, until: utc("2026-11-20T20:30:00"))]
        var question = Self.question(policy: Self.night, [exempt, Self.queue([Self.gb], folder: "yard")])
        question.limits = [Plan.Limit(rate: 500_000, until: utc("2026-11-20T20:10:00"))]
        let plan = Plan(question)
        let first = try #require(plan.steps.first)
        #expect(first.folder == "door" && first.from == Self.now && first.to == utc("2026-11-20T20:30:00"))
        #expect(first.bytes == 10 * 60 * 500_000 + 20 * 60 * 1_000_000)
        guard case .held(let holds) = first.end else {
            Issue.record("unexpected end: \(first)")
            return
        }
        #expect(holds.map(\.kind) == [.rule])
        #expect(plan.steps.dropFirst().allSatisfy { $0.from >= utc("2026-11-20T22:00:00") })
        #expect(plan.outcomes.allSatisfy { $0.left == .none })
    }

    @Test(
        "an upload exempt from its quota runs when that is used up, and counts; others wait for the next period")
    func quotaExcuse() throws {
        let quota = PolicyRules(quotas: [Quota(period: .day, bytes: Self.gb)])
        var exempt = Self.queue([2 * Self.gb])
        exempt.grants = [Plan.OverrideGrant(.quota, until: utc("2026-11-20T23:00:00"))]
        let plan = Plan(Self.question(policy: quota, [exempt, Self.queue([Self.gb], folder: "yard")]))
        let own = try #require(plan.outcomes.first)
        let others = try #require(plan.outcomes.last)
        #expect(try #require(own.ends) < utc("2026-11-20T21:00:00"))
        #expect(try #require(others.ends) > utc("2026-11-21T00:00:00"))
        #expect(others.waits.contains { $0.hold.kind == .quota })
    }

    @Test("files that do not fit are named with the obstacle and their later time")
    func late() throws {
        let plan = Plan(
            Self.question(
                policy: Self.night, [Self.queue([20 * Self.gb, 20 * Self.gb])], until: utc("2026-11-21T12:00:00")))
        let outcome = try #require(plan.outcomes.first)
        #expect(outcome.left.files == 2)
        #expect(outcome.left.bytes == 40 * Self.gb - 28_800_000_000)
        #expect(outcome.ends == utc("2026-11-21T22:00:00").advanced(by: .seconds(11_200)))
        #expect(outcome.waits.map(\.hold.kind) == [.rule])
        #expect(outcome.waits.first?.length == .seconds(8 * 3600))
        #expect(outcome.going == .seconds(8 * 3600))
        #expect(plan.steps.count == 1)
    }

    @Test("a quota is filled to its last byte and no further, and restored in its next period")
    func quota() throws {
        let rules = PolicyRules(quotas: [Quota(period: .day, bytes: 5 * Self.gb)])
        let plan = Plan(Self.question(nas: rules, [Self.queue([4 * Self.gb, 4 * Self.gb, 4 * Self.gb])]))
        #expect(plan.steps.map(\.bytes) == [5 * Self.gb, 5 * Self.gb, 2 * Self.gb])
        #expect(plan.steps.map(\.from) == [Self.now, utc("2026-11-21T00:00:00"), utc("2026-11-22T00:00:00")])
        guard case .held(let holds)? = plan.steps.first?.end else {
            Issue.record("unexpected end: \(plan.steps)")
            return
        }
        #expect(holds.first?.text == "the quota of destinations.nas is used up: 5 GB a day (`quotas`), 5.0 GB sent")
        #expect(plan.outcomes.first?.waits.first?.hold.kind == .quota)
    }

    @Test("the reservation of a running upload is available to it")
    func reserved() throws {
        let rules = PolicyRules(quotas: [Quota(period: .day, bytes: 5 * Self.gb)])
        var question = Self.question(nas: rules, [Self.queue([3 * Self.gb, 4 * Self.gb])])
        question.queues[0].uploads[0].isUnderWay = true
        question.queues[0].uploads[0].isBegun = true
        let kind = QuotaState.Class("nas", from: "door")
        question.inputs.quotas.spend(Spending(bytes: Self.gb), for: kind, at: Self.now)
        question.inputs.quotas.open(1, Spending(bytes: 4 * Self.gb), for: kind, at: Self.now)
        #expect(Plan(question).steps.map(\.bytes) == [4 * Self.gb, 3 * Self.gb])
    }

    @Test("uploads under a zero quota or zero bandwidth never run, with a known rate or not")
    func nothing() throws {
        for rate in [nil, 1_000_000] as [Int64?] {
            for rules in [
                PolicyRules(quotas: [Quota(period: .day, files: 0)]),
                PolicyRules(bandwidth: [RateRule(limit: 0)]),
            ] {
                let outcome = try #require(
                    Plan(Self.question(policy: rules, [Self.queue([1000])], rate: rate)).outcomes.first)
                #expect(outcome.ends == nil)
                #expect(outcome.obstacles.map(\.kind) == [.never])
                #expect(outcome.obstacles.first?.spending == Spending(bytes: 1000, files: 1))
            }
        }
    }

    @Test("a quota of files lets that many start")
    func files() throws {
        let rules = PolicyRules(quotas: [Quota(period: .day, files: 10)])
        let plan = Plan(
            Self.question(policy: rules, [Self.queue([1000, 1000], rest: Spending(bytes: 28_000, files: 28))]))
        #expect(plan.steps.map(\.files) == [10, 10, 10])
        #expect(plan.outcomes.first?.ends.map { $0 < utc("2026-11-22T00:01:00") } == true)
    }

    @Test("higher priority is first; folders of the same take turns; a pause with an end ends")
    func order() throws {
        var first: [Int] = []
        var question = Self.question(
            total: 1,
            [
                Self.queue([1000, 1000, 1000]), Self.queue([1000, 1000], folder: "yard"),
                Plan.Queue(folder: "yard", destination: "cloud", uploads: [Plan.Upload(left: 1000, priority: 5)]),
            ])
        question.remotes[1].pause = Admission.Pause(since: Self.now, until: Self.now.advanced(by: .seconds(3600)))
        let plan = Plan(question) { first.append($0.queue) }
        #expect(first == [0, 1, 0, 1, 0, 2])
        #expect(plan.outcomes[2].waits.first?.length == .seconds(3600))
    }

    @Test("limits share the bandwidth, and another limit counts from its time")
    func limits() throws {
        let slow = PolicyRules(bandwidth: [
            .init(limit: 100_000, when: .fact(.between([Window(from: 20 * 60, to: 21 * 60)])))
        ])
        let plan = Plan(
            Self.question(door: slow, [Self.queue([720_000_000]), Self.queue([7_200_000_000], folder: "yard")]))
        let door = try #require(plan.steps.first { $0.folder == "door" })
        // An hour at a tenth of the rate, then at half of it.
        #expect(door.to == utc("2026-11-20T21:00:00").advanced(by: .seconds(720)))
        // The yard has nine tenths, then half, then all of it.
        let left = 7200.0 - 3600 * 0.9 - 720 * 0.5
        #expect(plan.outcomes[1].ends == utc("2026-11-20T21:12:00").advanced(by: .milliseconds(Int64(left * 1000))))
    }

    @Test("uploads that can never run are named, and so are those with an unknown rate")
    func never() throws {
        var question = Self.question([Self.queue([1000]), Self.queue([1000], to: "cloud")], rate: nil)
        question.rates = Plan.Rates(destinations: ["nas": 1000])
        question.inputs.everything = Admission.Pause(since: Self.now, until: nil)
        let plan = Plan(question)
        #expect(plan.steps.isEmpty)
        #expect(plan.outcomes.map(\.ends) == [nil, nil])
        #expect(plan.outcomes[0].waits.map(\.hold.text) == ["everything is paused"])
        // Without a speed the end is unknown, but the upload waits for the pause.
        #expect(plan.outcomes[1].waits.map(\.hold.text) == ["everything is paused"])
        #expect(plan.outcomes[1].obstacles.map(\.hold.text) == ["the rate to cloud is not known yet"])
        #expect(plan.outcomes[1].left == Spending(bytes: 1000, files: 1))
    }

    @Test("a running upload keeps its slot, and its reservation counts once")
    func underWay() throws {
        let rules = PolicyRules(quotas: [Quota(period: .day, bytes: Self.gb, files: 2)])
        var question = Self.question(
            policy: rules, total: 1,
            [
                Plan.Queue(
                    folder: "door", destination: "nas", uploads: [Plan.Upload(left: 1_000_000, isUnderWay: true)]),
                Plan.Queue(folder: "yard", destination: "nas", uploads: [Plan.Upload(left: 1_000_000, priority: 9)]),
            ])
        question.inputs.quotas.open(
            1, Spending(bytes: 8 << 20, files: 1), for: .init("nas", from: "door"), at: Self.now)
        var order: [Int] = []
        let plan = Plan(question) { order.append($0.queue) }
        #expect(order == [0, 1])
        #expect(plan.outcomes.allSatisfy { $0.waits.isEmpty })
    }

    @Test("a million files in 50 classes cost as little as a few thousand, and all are planned")
    func million() throws {
        var question = Self.question(
            policy: Self.night, [], rate: 100_000_000, until: Self.now.advanced(by: .seconds(20 * 86_400)))
        question.remotes[0].rules.quotas = [Quota(period: .day, bytes: 300 * Self.gb)]
        question.origins = (0..<50).map { Admission.FolderState(name: "f\($0)") }
        question.queues = (0..<50).map { number in
            Self.queue(
                (0..<200).map { Int64($0) * 10_000 + 1 }, folder: "f\(number)", to: number % 2 == 0 ? "nas" : "cloud",
                rest: Spending(bytes: 400 * Self.gb, files: 19_800))
        }
        var (files, calls): (Int64, Int) = (0, 0)
        let plan = Plan(question) {
            files += $0.files
            calls += 1
        }
        let left = plan.outcomes.map(\.left.files).reduce(0, +)
        #expect(files + left == 1_000_000)
        #expect(calls < 50 * (200 + Int(Plan.pieces) + 2))
        #expect(!plan.isCut)
    }
}
