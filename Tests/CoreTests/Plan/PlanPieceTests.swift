import TestKit
import Testing

@testable import Core

@Suite("Plan with indivisible parts")
struct PlanPieceTests {
    private static let mb: Int64 = 1_000_000
    private static let now = utc("2026-11-20T20:00:00")

    private static func question(
        quotas: [Quota], sizes: [Int64], piece: Int64, rest: Spending = .none, rate: Int64? = mb, spent: Int64 = 0,
        windows: [Window] = [], trouble: Hold? = nil
    ) -> Plan.Input {
        let rules = PolicyRules(windows: windows, quotas: quotas)
        var quotas = QuotaState(
            policy: rules, destinations: [("s3", PolicyRules())], folders: [("door", PolicyRules())],
            least: Quota.minUsable)
        for recount in quotas.advance(to: now, in: .utc) {
            quotas.recount(recount, spent: Spending(bytes: spent), at: now)
        }
        var queue = Plan.Queue(
            folder: "door", destination: "s3",
            uploads: sizes.map {
                Plan.Upload(left: $0, piece: IndivisibleRequest(bytes: min($0, piece), keys: ["part_size"]))
            },
            rest: rest)
        queue.piece = IndivisibleRequest(bytes: piece, keys: ["part_size"])
        return Plan.Input(
            admission: Admission(total: 3, rules: rules),
            inputs: Admission.PolicyInputs(
                now: now, monotonic: MonotonicTime(nanoseconds: 0), clockTrouble: trouble, running: 0, everything: nil,
                quotas: quotas),
            remotes: [
                Admission.DestinationState(
                    name: "s3", slots: 1, running: 0, pause: nil, health: DestinationHealth(), reachability: .unseen("")
                )
            ],
            origins: [Admission.FolderState(name: "door")], queues: [queue],
            rates: Plan.Rates(destinations: rate.map { ["s3": $0] } ?? [:]))
    }

    @Test("a part larger than any period's quota never runs, has no end, and delays no other")
    func never() throws {
        let question = Self.question(
            quotas: [Quota(period: .day, bytes: 10 * Self.mb)], sizes: [50 * Self.mb, Self.mb, 2 * Self.mb],
            piece: 20 * Self.mb)
        var ended: [Int] = []
        let plan = Plan(question) { ended.append($0.place) }
        #expect(ended == [1, 2])
        let outcome = try #require(plan.outcomes.first)
        #expect(outcome.ends == nil)
        #expect(outcome.left == Spending(bytes: 50 * Self.mb, files: 1))
        #expect(outcome.obstacles.map(\.kind) == [.never])
        #expect(outcome.obstacles.first?.spending == outcome.left)
        #expect(
            outcome.obstacles.first?.hold.text
                == "never under this quota: policy allows 10 MB a day (`quotas`), and a piece of 20.0 MB, which is "
                + "sent whole or not at all, takes 21.3 MB with its overhead; raise the quota, or make `part_size` of destinations.s3 smaller, or "
                + "make an exception with `sluice allow --quota`")
        #expect(outcome.obstacles.first?.hold.until == nil)
        #expect(outcome.waits.allSatisfy { $0.hold.until == nil })
    }

    @Test("uploads known only by their sum never run either if a part is larger than any period's quota")
    func rest() throws {
        let plan = Plan(
            Self.question(
                quotas: [Quota(period: .day, bytes: 10 * Self.mb)], sizes: [], piece: 20 * Self.mb,
                rest: Spending(bytes: 2_000 * Self.mb, files: 100)))
        let outcome = try #require(plan.outcomes.first)
        #expect(outcome.ends == nil)
        #expect(outcome.obstacles.map(\.spending) == [Spending(bytes: 2_000 * Self.mb, files: 100)])
    }

    @Test("a part that does not fit today runs tomorrow, and that end is shown")
    func tomorrow() throws {
        let quota = Quota(period: .day, bytes: 30 * Self.mb)
        // 20 MB are left, and a piece of 20 MB needs more.
        let plan = Plan(
            Self.question(quotas: [quota], sizes: [20 * Self.mb], piece: 20 * Self.mb, spent: 10 * Self.mb))
        let outcome = try #require(plan.outcomes.first)
        #expect(outcome.ends == utc("2026-11-21T00:00:20"))
        #expect(outcome.obstacles.isEmpty)
        let wait = try #require(outcome.waits.first)
        #expect(wait.hold.kind == .quota && wait.hold.until == utc("2026-11-21T00:00:00"))
        #expect(wait.hold.text.contains("30 MB a day of policy") && wait.hold.text.contains("takes 21.3 MB"))
        #expect(wait.length == .seconds(4 * 3600))
    }

    @Test("a day takes only whole parts, and smaller ones fill its rest")
    func whole() throws {
        let quota = Quota(period: .day, bytes: 50 * Self.mb)
        var ends: [Int: WallTime] = [:]
        // Two pieces a day, of 21.3 MB with their overhead; a small file fits beside the first ones.
        let plan = Plan(
            Self.question(quotas: [quota], sizes: [100 * Self.mb, 4 * Self.mb], piece: 20 * Self.mb)
        ) { ends[$0.place] = $0.at }
        #expect(ends[1] == Self.now.advanced(by: .seconds(44)))
        #expect(ends[0] == utc("2026-11-22T00:00:20"))
        #expect(plan.outcomes.first?.ends == ends[0])
        #expect(plan.outcomes.first?.obstacles.isEmpty == true)
    }

    @Test("running parts already have their reservation")
    func underWay() throws {
        var question = Self.question(
            quotas: [Quota(period: .day, bytes: 30 * Self.mb)], sizes: [20 * Self.mb], piece: 20 * Self.mb)
        question.queues[0].uploads[0].isUnderWay = true
        question.inputs.quotas.open(
            7, Spending(bytes: 21_266_384), for: QuotaState.Class("s3", from: "door"), at: Self.now)
        #expect(Plan(question).outcomes.first?.ends == Self.now.advanced(by: .seconds(20)))
    }

    @Test("many parts under a large quota cost no step each, and end on time")
    func wide() throws {
        let day: Int64 = 40_000 * Self.mb
        let plan = Plan(
            Self.question(
                quotas: [Quota(period: .day, bytes: day)], sizes: [100_000 * Self.mb], piece: 8 * Self.mb,
                rate: 100 * Self.mb))
        let outcome = try #require(plan.outcomes.first)
        // Two days carry 40 GB each with their overhead, and the third the rest.
        #expect(outcome.ends.map { utc("2026-11-22T00:00:00") < $0 && $0 < utc("2026-11-22T00:05:00") } == true)
        #expect(!plan.isCut)
    }

    @Test("an exception lets it run while it lasts, and afterwards it is held for good")
    func exempt() throws {
        var question = Self.question(
            quotas: [Quota(period: .day, bytes: 10 * Self.mb)], sizes: [50 * Self.mb, 50 * Self.mb],
            piece: 20 * Self.mb)
        question.queues[0].grants = [Plan.OverrideGrant(.quota, until: Self.now.advanced(by: .seconds(60)))]
        var ended: [Int] = []
        let plan = Plan(question) { ended.append($0.place) }
        #expect(ended == [0])
        #expect(plan.outcomes.first?.obstacles.map(\.kind) == [.never])
    }

    @Test("without a known rate there is no end, and that is the reason")
    func speed() throws {
        let night = [Window(from: 22 * 60, to: 6 * 60)]
        for windows in [[], night] {
            let plan = Plan(
                Self.question(quotas: [], sizes: [Self.mb], piece: Self.mb, rate: nil, windows: windows))
            let outcome = try #require(plan.outcomes.first)
            #expect(outcome.ends == nil)
            #expect(outcome.obstacles.map(\.kind) == [.speed])
            #expect(outcome.obstacles.first?.hold.text == "the rate to s3 is not known yet")
        }
    }

    @Test("a part with too little remaining quota waits, also with an unknown rate")
    func shortWithoutSpeed() throws {
        let quota = Quota(period: .day, bytes: 30 * Self.mb)
        for (spent, words) in [(10, "too little is left of 30 MB a day of policy"), (30, "is used up: 30 MB a day")] {
            let plan = Plan(
                Self.question(
                    quotas: [quota], sizes: [20 * Self.mb], piece: 20 * Self.mb, rate: nil,
                    spent: Int64(spent) * Self.mb))
            let outcome = try #require(plan.outcomes.first)
            let wait = try #require(outcome.waits.first)
            #expect(outcome.waits.count == 1)
            #expect(wait.hold.kind == .quota && wait.hold.text.contains(words), "\(wait.hold.text)")
            #expect(wait.from == Self.now && wait.hold.until == utc("2026-11-21T00:00:00"))
            #expect(wait.length == .seconds(4 * 3600))
            #expect(outcome.obstacles.map(\.kind) == [.speed])
        }
        // If a smaller file is sent at once, no upload waits.
        let both = Plan(
            Self.question(
                quotas: [quota], sizes: [20 * Self.mb, Self.mb], piece: 20 * Self.mb, rate: nil, spent: 10 * Self.mb))
        #expect(both.outcomes.first?.waits.isEmpty == true)
    }

    @Test("uploads known only by their sum never run under a quota of received bytes too small for a part")
    func received() throws {
        let quota = Quota(period: .day, bytes: Self.mb, direction: .received)
        let plan = Plan(
            Self.question(
                quotas: [quota], sizes: [Self.mb], piece: 20 * Self.mb, rest: Spending(bytes: 40 * Self.mb, files: 2)))
        #expect(plan.outcomes.first?.obstacles.map(\.kind) == [.never])
        #expect(plan.outcomes.first?.left == Spending(bytes: 40 * Self.mb, files: 2))
    }

    @Test("an untrusted clock is named if windows or quotas depend on it")
    func clock() throws {
        let trouble = Hold(.clock, since: Self.now, text: "the clock is not set")
        let quotas = [Quota(period: .day, bytes: 30 * Self.mb)]
        let plan = Plan(Self.question(quotas: quotas, sizes: [Self.mb], piece: Self.mb, trouble: trouble))
        #expect(plan.outcomes.first?.obstacles.map(\.kind) == [.clock])
        #expect(plan.outcomes.first?.obstacles.first?.hold == trouble)
        #expect(plan.outcomes.first?.ends == nil)
        // No upload waits for it here.
        let free = Plan(Self.question(quotas: [], sizes: [Self.mb], piece: Self.mb, trouble: trouble))
        #expect(free.outcomes.first?.obstacles.isEmpty == true)
        #expect(free.outcomes.first?.ends == Self.now.advanced(by: .seconds(1)))
    }
}
