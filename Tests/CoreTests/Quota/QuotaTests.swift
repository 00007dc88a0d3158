import TestKit
import Testing

@testable import Core

@Suite("Quotas")
struct QuotaTests {
    private static let daily = Quota(period: .day, bytes: 20_000_000_000)
    private static let now = utc("2026-11-20T10:00:00")
    private static let nas = QuotaState.Class("nas", from: "door", isMetered: false)

    /// With all sums read: there is no usage so far.
    private static func book(
        policy: [Quota] = [], nas: [Quota] = [], door: [Quota] = [], at now: WallTime = now, in zone: Zone = .utc
    ) -> QuotaState {
        var book = QuotaState(
            policy: PolicyRules(quotas: policy), destinations: [("nas", PolicyRules(quotas: nas))],
            folders: [("door", PolicyRules(quotas: door))])
        for recount in book.advance(to: now, in: zone) { book.recount(recount, spent: .none, at: now) }
        return book
    }

    /// As in a simulation: there is no usage in the following periods.
    private static func go(_ book: inout QuotaState, to now: WallTime) {
        for recount in book.advance(to: now, in: .utc) { book.recount(recount, spent: .none, at: now) }
    }

    @Test("an exhausted quota is a hold with place, amounts and end, and none in the next period")
    func usedUp() throws {
        var book = Self.book(nas: [Self.daily])
        #expect(book.holds(for: Self.nas).isEmpty)
        #expect(book.nextChange == nil)
        book.spend(Spending(bytes: 20_000_000_000), for: Self.nas, at: utc("2026-11-20T14:02:00"))
        #expect(
            book.holds(for: Self.nas) == [
                Hold(
                    .quota, since: utc("2026-11-20T14:02:00"), until: utc("2026-11-21T00:00:00"),
                    text: "the quota of destinations.nas is used up: 20 GB a day (`quotas`), 20.0 GB sent")
            ])
        #expect(book.holds(for: .init("other", from: "door", isMetered: false)).isEmpty)
        #expect(book.nextChange == utc("2026-11-21T00:00:00"))
        Self.go(&book, to: utc("2026-11-21T00:00:00"))
        #expect(book.holds(for: Self.nas).isEmpty)
        #expect(book.room(for: Self.nas).bytes == 20_000_000_000)
    }

    @Test("a quota with too little left to start states its rest")
    func tooLittle() throws {
        let quota = Quota(period: .hour, bytes: 1_000_000)
        var book = QuotaState(policy: PolicyRules(quotas: [quota]), destinations: [], least: Quota.minUsable)
        Self.go(&book, to: Self.now)
        book.spend(Spending(bytes: 950_000), for: Self.nas, at: Self.now)
        #expect(
            book.holds(for: Self.nas).first?.text
                == "the quota of policy is used up: 1 MB an hour (`quotas`), 950 kB sent; the 50.0 kB that are left are too little to start with"
        )
    }

    @Test("reservations count until settled, and unsent bytes are available again")
    func reserved() throws {
        var book = Self.book(policy: [Quota(period: .hour, bytes: 100)])
        book.open(1, Spending(bytes: 100), for: Self.nas, at: Self.now)
        #expect(
            book.holds(for: Self.nas).first?.text
                == "the quota of policy is used up: 100 B an hour (`quotas`), 0 B sent, 100 B under way")
        #expect(book.holds(for: Self.nas, isStarting: false).isEmpty)
        book.settle(1, Spending(bytes: 30), at: Self.now)
        #expect(book.room(for: Self.nas).bytes == 70)
        book.settle(1, Spending(bytes: 30), at: Self.now)
        #expect(book.room(for: Self.nas).bytes == 70)
        // More than the reservation counts as well.
        book.open(2, Spending(bytes: 10), for: Self.nas, at: Self.now)
        book.settle(2, Spending(bytes: 75), at: Self.now)
        #expect(book.room(for: Self.nas).bytes == 0)
        #expect(book.holds(for: Self.nas, isStarting: false).count == 1)
    }

    @Test("traffic that continues past the end of a period counts in the next one")
    func overTheEnd() throws {
        var book = Self.book(policy: [Quota(period: .hour, bytes: 100)])
        book.spend(Spending(bytes: 60), for: Self.nas, at: Self.now)
        book.open(1, Spending(bytes: 40), for: Self.nas, at: Self.now)
        let next = utc("2026-11-20T11:00:00")
        Self.go(&book, to: next)
        #expect(book.room(for: Self.nas).bytes == 60)
        book.settle(1, Spending(bytes: 40), at: next)
        #expect(book.room(for: Self.nas).bytes == 60)
    }

    @Test("a quota of files holds new uploads, and no running one")
    func files() throws {
        var book = Self.book(door: [Quota(period: .week(startsOn: .mon), files: 2)])
        book.open(1, Spending(bytes: 500, files: 1), for: Self.nas, at: Self.now)
        #expect(book.room(for: Self.nas).files == 1)
        #expect(book.room(for: Self.nas).bytes == nil)
        book.settle(1, Spending(bytes: 500, files: 1), at: Self.now)
        book.open(2, Spending(bytes: 500, files: 1), for: Self.nas, at: Self.now)
        let hold = try #require(book.holds(for: Self.nas).first)
        #expect(hold.text == "the quota of folder door is used up: 2 files a week (`quotas`), 1 sent, 1 under way")
        #expect(hold.until == utc("2026-11-23T00:00:00"))
        #expect(book.holds(for: Self.nas, isStarting: false).isEmpty)
        #expect(book.holds(for: .init("nas", from: nil, isMetered: false)).isEmpty)
    }

    @Test("a quota of metered networks counts and holds only those")
    func metered() {
        var book = Self.book(policy: [Quota(period: .month(startsOn: 15), bytes: 100, network: .metered)])
        let metered = QuotaState.Class("nas", from: "door", isMetered: true)
        book.spend(Spending(bytes: 1_000), for: Self.nas, at: Self.now)
        #expect(book.room(for: Self.nas) == QuotaState.Room())
        #expect(book.room(for: metered).bytes == 100)
        book.spend(Spending(bytes: 100), for: metered, at: Self.now)
        #expect(
            book.holds(for: metered).first?.text
                == "the quota of policy is used up: 100 B a month over metered networks (`quotas`), 100 B sent")
        #expect(book.holds(for: metered).first?.until == utc("2026-12-15T00:00:00"))
        #expect(book.holds(for: Self.nas).isEmpty)
    }

    @Test("a zero quota always holds, and no calendar change ends it")
    func nothing() throws {
        var book = Self.book(nas: [Quota(period: .day, bytes: 0)])
        let hold = try #require(book.holds(for: Self.nas).first)
        #expect(hold.text == "the quota of destinations.nas allows nothing: 0 B a day (`quotas`)")
        #expect(hold.until == nil)
        #expect(book.nextChange == nil)
        #expect(book.holds(for: Self.nas, isStarting: false) == [hold])
        Self.go(&book, to: utc("2026-11-22T00:00:00"))
        #expect(book.holds(for: Self.nas) == [hold])
    }

    @Test("unread usage counts as used up")
    func unread() throws {
        var book = QuotaState(policy: PolicyRules(quotas: [Self.daily]))
        #expect(book.room(for: Self.nas).bytes == 0)
        #expect(book.holds(for: Self.nas).count == 1)
        let first = try #require(book.advance(to: Self.now, in: .utc).first)
        #expect(first.since == utc("2026-11-20T00:00:00"))
        #expect(book.advance(to: Self.now, in: .utc) == [first])
        #expect(
            book.holds(for: Self.nas).first?.text == "the usage of the quota of policy has not been read yet")
        // The clock was set once more before the answer came: the answer belongs to another query.
        let second = try #require(book.advance(to: utc("2026-11-18T00:00:00"), in: .utc).first)
        book.recount(first, spent: .none, at: Self.now)
        #expect(book.room(for: Self.nas).bytes == 0)
        book.recount(second, spent: Spending(bytes: 5), at: Self.now)
        #expect(book.room(for: Self.nas).bytes == 19_999_999_995)
    }

    @Test("bytes charged while the ledger is read are not lost, in either order")
    func meanwhile() throws {
        var book = Self.book(policy: [Self.daily])
        book.open(1, Spending(bytes: 40), for: Self.nas, at: Self.now)
        let next = utc("2026-11-21T00:00:00")
        let recount = try #require(book.advance(to: next, in: .utc).first)
        #expect(book.room(for: Self.nas).bytes == 0)
        book.settle(1, Spending(bytes: 30), at: next)
        book.recount(recount, spent: Spending(bytes: 7), at: next)
        #expect(book.lines[0].spent?.bytes == 37)
        book.recount(recount, spent: Spending(bytes: 7), at: next)
        #expect(book.lines[0].spent?.bytes == 7)
    }

    @Test("a clock that is wrong for a while, and then right again, grants no quota twice")
    func backAndForth() throws {
        var book = Self.book(policy: [Self.daily])
        book.spend(Spending(bytes: 20_000_000_000), for: Self.nas, at: Self.now)
        let wrong = utc("2026-11-19T10:00:00")
        for recount in book.advance(to: wrong, in: .utc) { book.recount(recount, spent: .none, at: wrong) }
        let again = try #require(book.advance(to: Self.now, in: .utc).first)
        #expect(again.since == utc("2026-11-20T00:00:00"))
        #expect(book.room(for: Self.nas).bytes == 0)
    }

    @Test("a clock set back within the period changes nothing; one set back before it causes a new read")
    func clockGoesBack() {
        var book = Self.book(policy: [Quota(period: .hour, bytes: 50), Self.daily])
        book.spend(Spending(bytes: 50), for: Self.nas, at: Self.now)
        #expect(book.advance(to: utc("2026-11-20T10:00:00"), in: .utc).isEmpty)
        let again = book.advance(to: utc("2026-11-20T09:59:59"), in: .utc)
        #expect(again.map(\.since) == [utc("2026-11-20T09:00:00")])
        #expect(book.room(for: Self.nas).bytes == 0)
        // The ledger counts usage with a later date.
        for recount in again { book.recount(recount, spent: Spending(bytes: 50), at: Self.now) }
        #expect(book.room(for: Self.nas).bytes == 0)
    }

    @Test("after a reload an unchanged quota continues, another is read, and reservations stay")
    func reload() {
        var book = Self.book(policy: [Self.daily], door: [Quota(period: .hour, bytes: 10)])
        book.spend(Spending(bytes: 5), for: Self.nas, at: Self.now)
        book.open(7, Spending(bytes: 3), for: Self.nas, at: Self.now)
        var next = QuotaState(
            policy: PolicyRules(quotas: [Self.daily]), destinations: [("nas", PolicyRules(quotas: [Self.daily]))],
            folders: [("door", PolicyRules(quotas: [Quota(period: .hour, bytes: 20)]))], after: book)
        let recounts = next.advance(to: Self.now, in: .utc)
        #expect(recounts.map(\.destination) == ["nas", nil])
        #expect(recounts.map(\.folder) == [nil, "door"])
        for recount in recounts { next.recount(recount, spent: Spending(bytes: 5), at: Self.now) }
        #expect(next.lines.map(\.reserved.bytes) == [3, 3, 3])
        #expect(next.room(for: Self.nas).bytes == 12)
        next.settle(7, Spending(bytes: 1), at: Self.now)
        #expect(next.lines.map { $0.spent?.bytes } == [6, 6, 6])
    }

    @Test("the tightest quota binds, and is named")
    func tightest() {
        let month = Quota(period: .month(startsOn: 1), bytes: 100)
        let book = Self.book(policy: [month], nas: [Self.daily], door: [Quota(period: .day, files: 9)])
        #expect(book.room(for: Self.nas).bytes == 100)
        #expect(book.room(for: Self.nas).binding?.place == .policy)
        #expect(book.room(for: Self.nas).binding?.quota == month)
        #expect(book.room(for: Self.nas).files == 9)
        #expect(book.room(for: Self.nas).binding?.quota.words == "100 B a month")
        #expect(
            Quota(period: .day, bytes: 20_000_000_000, files: 1, network: .metered).words
                == "20 GB a day over metered networks, 1 file a day over metered networks")
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
        told.quotas = Self.book(policy: [Quota(period: .day, bytes: 0)])
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
