import TestKit
import Testing

@testable import Core

@Suite("Quotas")
struct QuotaTests {
    private static let daily = Quota(period: .day, bytes: 20_000_000_000)
    private static let now = utc("2026-11-20T10:00:00")
    private static let nas = QuotaState.Class("nas", from: "door")

    /// With all sums read: there is no usage so far.
    private static func quotas(
        policy: [Quota] = [], nas: [Quota] = [], door: [Quota] = [], at now: WallTime = now, in zone: Zone = .utc
    ) -> QuotaState {
        var quotas = QuotaState(
            policy: PolicyRules(quotas: policy), destinations: [("nas", PolicyRules(quotas: nas))],
            folders: [("door", PolicyRules(quotas: door))])
        for recount in quotas.advance(to: now, in: zone) { quotas.recount(recount, spent: .none, at: now) }
        return quotas
    }

    /// As in a simulation: there is no usage in the following periods.
    private static func go(_ quotas: inout QuotaState, to now: WallTime) {
        for recount in quotas.advance(to: now, in: .utc) { quotas.recount(recount, spent: .none, at: now) }
    }

    @Test("an exhausted quota is a hold with place, amounts and end, and none in the next period")
    func usedUp() throws {
        var quotas = Self.quotas(nas: [Self.daily])
        #expect(quotas.holds(for: Self.nas).isEmpty)
        #expect(quotas.nextChange == nil)
        quotas.spend(Spending(bytes: 20_000_000_000), for: Self.nas, at: utc("2026-11-20T14:02:00"))
        #expect(
            quotas.holds(for: Self.nas) == [
                Hold(
                    .quota, since: utc("2026-11-20T14:02:00"), until: utc("2026-11-21T00:00:00"),
                    text: "the quota of destinations.nas is used up: 20 GB a day (`quotas`), 20.0 GB sent")
            ])
        #expect(quotas.holds(for: .init("other", from: "door")).isEmpty)
        #expect(quotas.nextChange == utc("2026-11-21T00:00:00"))
        Self.go(&quotas, to: utc("2026-11-21T00:00:00"))
        #expect(quotas.holds(for: Self.nas).isEmpty)
        #expect(quotas.remaining(for: Self.nas).bytes == 20_000_000_000)
    }

    @Test("a quota with too little left to start states its rest")
    func tooLittle() throws {
        let quota = Quota(period: .hour, bytes: 1_000_000)
        var quotas = QuotaState(policy: PolicyRules(quotas: [quota]), destinations: [], least: Quota.minUsable)
        Self.go(&quotas, to: Self.now)
        quotas.spend(Spending(bytes: 950_000), for: Self.nas, at: Self.now)
        #expect(
            quotas.holds(for: Self.nas).first?.text
                == "the quota of policy is used up: 1 MB an hour (`quotas`), 950 kB sent; the 50.0 kB that are left are too little to start with"
        )
    }

    @Test("reservations count until settled, and unsent bytes are available again")
    func reserved() throws {
        var quotas = Self.quotas(policy: [Quota(period: .hour, bytes: 100)])
        quotas.open(1, Spending(bytes: 100), for: Self.nas, at: Self.now)
        #expect(
            quotas.holds(for: Self.nas).first?.text
                == "the quota of policy is used up: 100 B an hour (`quotas`), 0 B sent, 100 B under way")
        #expect(quotas.holds(for: Self.nas, isStarting: false).isEmpty)
        quotas.close(1, Spending(bytes: 30), at: Self.now)
        #expect(quotas.remaining(for: Self.nas).bytes == 70)
        quotas.close(1, Spending(bytes: 30), at: Self.now)
        #expect(quotas.remaining(for: Self.nas).bytes == 70)
        // More than the reservation counts as well.
        quotas.open(2, Spending(bytes: 10), for: Self.nas, at: Self.now)
        quotas.close(2, Spending(bytes: 75), at: Self.now)
        #expect(quotas.remaining(for: Self.nas).bytes == 0)
        #expect(quotas.holds(for: Self.nas, isStarting: false).count == 1)
    }

    @Test("traffic that continues past the end of a period counts in the next one")
    func overTheEnd() throws {
        var quotas = Self.quotas(policy: [Quota(period: .hour, bytes: 100)])
        quotas.spend(Spending(bytes: 60), for: Self.nas, at: Self.now)
        quotas.open(1, Spending(bytes: 40), for: Self.nas, at: Self.now)
        let next = utc("2026-11-20T11:00:00")
        Self.go(&quotas, to: next)
        #expect(quotas.remaining(for: Self.nas).bytes == 60)
        quotas.close(1, Spending(bytes: 40), at: next)
        #expect(quotas.remaining(for: Self.nas).bytes == 60)
    }

    @Test("a quota of files holds new uploads, and no running one")
    func files() throws {
        var quotas = Self.quotas(door: [Quota(period: .week(startsOn: .mon), files: 2)])
        quotas.open(1, Spending(bytes: 500, files: 1), for: Self.nas, at: Self.now)
        #expect(quotas.remaining(for: Self.nas).files == 1)
        #expect(quotas.remaining(for: Self.nas).bytes == nil)
        quotas.close(1, Spending(bytes: 500, files: 1), at: Self.now)
        quotas.open(2, Spending(bytes: 500, files: 1), for: Self.nas, at: Self.now)
        let hold = try #require(quotas.holds(for: Self.nas).first)
        #expect(hold.text == "the quota of folder door is used up: 2 files a week (`quotas`), 1 sent, 1 under way")
        #expect(hold.until == utc("2026-11-23T00:00:00"))
        #expect(quotas.holds(for: Self.nas, isStarting: false).isEmpty)
        #expect(quotas.holds(for: .init("nas", from: nil)).isEmpty)
    }

    @Test("a quota with a condition counts and holds only what it applies to")
    func metered() {
        var quotas = Self.quotas(policy: [
            Quota(period: .month(startsOn: 15), bytes: 100, name: "lte", when: .fact(.metered(true)))
        ])
        let metered = QuotaState.Class("nas", from: "door", [QuotaName(.policy, "lte")])
        quotas.spend(Spending(bytes: 1_000), for: Self.nas, at: Self.now)
        #expect(quotas.remaining(for: Self.nas) == QuotaState.Remaining())
        #expect(quotas.remaining(for: metered).bytes == 100)
        quotas.spend(Spending(bytes: 100), for: metered, at: Self.now)
        #expect(
            quotas.holds(for: metered).first?.text
                == "the quota `lte` of policy is used up: 100 B a month while the network is metered (`quotas`), 100 B sent"
        )
        #expect(quotas.holds(for: metered).first?.until == utc("2026-12-15T00:00:00"))
        #expect(quotas.holds(for: Self.nas).isEmpty)
    }

    @Test("a zero quota always holds, and no calendar change ends it")
    func nothing() throws {
        var quotas = Self.quotas(nas: [Quota(period: .day, bytes: 0)])
        let hold = try #require(quotas.holds(for: Self.nas).first)
        #expect(hold.text == "the quota of destinations.nas allows nothing: 0 B a day (`quotas`)")
        #expect(hold.until == nil)
        #expect(quotas.nextChange == nil)
        #expect(quotas.holds(for: Self.nas, isStarting: false) == [hold])
        Self.go(&quotas, to: utc("2026-11-22T00:00:00"))
        #expect(quotas.holds(for: Self.nas) == [hold])
    }

    @Test("unread usage counts as used up")
    func unread() throws {
        var quotas = QuotaState(policy: PolicyRules(quotas: [Self.daily]))
        #expect(quotas.remaining(for: Self.nas).bytes == 0)
        #expect(quotas.holds(for: Self.nas).count == 1)
        let first = try #require(quotas.advance(to: Self.now, in: .utc).first)
        #expect(first.since == utc("2026-11-20T00:00:00"))
        #expect(quotas.advance(to: Self.now, in: .utc) == [first])
        #expect(
            quotas.holds(for: Self.nas).first?.text == "the usage of the quota of policy has not been read yet")
        // The clock was set once more before the answer came: the answer belongs to another query.
        let second = try #require(quotas.advance(to: utc("2026-11-18T00:00:00"), in: .utc).first)
        quotas.recount(first, spent: .none, at: Self.now)
        #expect(quotas.remaining(for: Self.nas).bytes == 0)
        quotas.recount(second, spent: Spending(bytes: 5), at: Self.now)
        #expect(quotas.remaining(for: Self.nas).bytes == 19_999_999_995)
    }

    @Test("bytes charged while the ledger is read are not lost, in either order")
    func meanwhile() throws {
        var quotas = Self.quotas(policy: [Self.daily])
        quotas.open(1, Spending(bytes: 40), for: Self.nas, at: Self.now)
        let next = utc("2026-11-21T00:00:00")
        let recount = try #require(quotas.advance(to: next, in: .utc).first)
        #expect(quotas.remaining(for: Self.nas).bytes == 0)
        quotas.close(1, Spending(bytes: 30), at: next)
        quotas.recount(recount, spent: Spending(bytes: 7), at: next)
        #expect(quotas.lines[0].spent?.bytes == 37)
        quotas.recount(recount, spent: Spending(bytes: 7), at: next)
        #expect(quotas.lines[0].spent?.bytes == 7)
    }

    @Test("a clock that is wrong for a while, and then right again, grants no quota twice")
    func backAndForth() throws {
        var quotas = Self.quotas(policy: [Self.daily])
        quotas.spend(Spending(bytes: 20_000_000_000), for: Self.nas, at: Self.now)
        let wrong = utc("2026-11-19T10:00:00")
        for recount in quotas.advance(to: wrong, in: .utc) { quotas.recount(recount, spent: .none, at: wrong) }
        let again = try #require(quotas.advance(to: Self.now, in: .utc).first)
        #expect(again.since == utc("2026-11-20T00:00:00"))
        #expect(quotas.remaining(for: Self.nas).bytes == 0)
    }

    @Test("a clock set back within the period changes nothing; one set back before it causes a new read")
    func clockGoesBack() {
        var quotas = Self.quotas(policy: [Quota(period: .hour, bytes: 50), Self.daily])
        quotas.spend(Spending(bytes: 50), for: Self.nas, at: Self.now)
        #expect(quotas.advance(to: utc("2026-11-20T10:00:00"), in: .utc).isEmpty)
        let again = quotas.advance(to: utc("2026-11-20T09:59:59"), in: .utc)
        #expect(again.map(\.since) == [utc("2026-11-20T09:00:00")])
        #expect(quotas.remaining(for: Self.nas).bytes == 0)
        // The ledger counts usage with a later date.
        for recount in again { quotas.recount(recount, spent: Spending(bytes: 50), at: Self.now) }
        #expect(quotas.remaining(for: Self.nas).bytes == 0)
    }

    @Test("after a reload an unchanged quota continues, another is read, and reservations stay")
    func reload() {
        var quotas = Self.quotas(policy: [Self.daily], door: [Quota(period: .hour, bytes: 10)])
        quotas.spend(Spending(bytes: 5), for: Self.nas, at: Self.now)
        quotas.open(7, Spending(bytes: 3), for: Self.nas, at: Self.now)
        var next = QuotaState(
            policy: PolicyRules(quotas: [Self.daily]), destinations: [("nas", PolicyRules(quotas: [Self.daily]))],
            folders: [("door", PolicyRules(quotas: [Quota(period: .hour, bytes: 20)]))], after: quotas)
        let recounts = next.advance(to: Self.now, in: .utc)
        #expect(recounts.map(\.destination) == ["nas", nil])
        #expect(recounts.map(\.folder) == [nil, "door"])
        for recount in recounts { next.recount(recount, spent: Spending(bytes: 5), at: Self.now) }
        #expect(next.lines.map(\.reserved.bytes) == [3, 3, 3])
        #expect(next.remaining(for: Self.nas).bytes == 12)
        next.close(7, Spending(bytes: 1), at: Self.now)
        #expect(next.lines.map { $0.spent?.bytes } == [6, 6, 6])
    }

    @Test("the tightest quota binds, and is named")
    func tightest() {
        let month = Quota(period: .month(startsOn: 1), bytes: 100)
        let quotas = Self.quotas(policy: [month], nas: [Self.daily], door: [Quota(period: .day, files: 9)])
        #expect(quotas.remaining(for: Self.nas).bytes == 100)
        #expect(quotas.remaining(for: Self.nas).binding?.place == .policy)
        #expect(quotas.remaining(for: Self.nas).binding?.quota == month)
        #expect(quotas.remaining(for: Self.nas).files == 9)
        #expect(quotas.remaining(for: Self.nas).binding?.quota.words == "100 B a month")
        #expect(
            Quota(period: .day, bytes: 20_000_000_000, files: 1, name: "lte", when: .fact(.metered(true))).words
                == "20 GB a day while the network is metered, 1 file a day while the network is metered")
    }

    @Test("rules with a quota depend on the clock, and an untrusted one holds them")
    func clockTrouble() {
        let rules = PolicyRules(quotas: [Self.daily])
        #expect(!rules.isTimeless)
        let trouble = Hold(.clock, since: Self.now, text: "not set")
        func inputs(_ trouble: Hold?) -> Admission.PolicyInputs {
            Admission.PolicyInputs(
                now: Self.now, monotonic: MonotonicTime(nanoseconds: 0), clockTrouble: trouble, running: 0,
                everything: nil)
        }
        #expect(rules.holds("policy", in: inputs(trouble)) == [trouble])
        #expect(rules.holds("policy", in: inputs(nil)).isEmpty)
        // The counted period and its end are unknown then: no quota names a time.
        var told = inputs(trouble)
        told.quotas = Self.quotas(policy: [Quota(period: .day, bytes: 0)])
        var remote = Admission.DestinationState(
            name: "nas", slots: 1, running: 0, pause: nil, health: DestinationHealth())
        remote.reachability = .over([])
        let admission = Admission(total: 1, rules: PolicyRules(quotas: [Quota(period: .day, bytes: 0)]))
        remote.reachability = .unseen("")
        #expect(admission.hardBlockers(on: remote, in: told) == [trouble])
        told.clockTrouble = nil
        #expect(admission.hardBlockers(on: remote, in: told).map(\.kind) == [.quota])
        #expect(rules.nextChange(in: inputs(nil)) == nil)
    }
}
