import FoundationEssentials
import Testing

@testable import Core

@Suite("Thresholds of quotas")
struct QuotaThresholdsTests {
    private static let now = utc("2026-11-20T10:00:00")
    private static let nas = QuotaState.Class("nas", from: "door", [QuotaName(.policy, "lte")])

    private static func quotas(_ quota: Quota, after earlier: QuotaState? = nil, at now: WallTime = now) -> QuotaState {
        var quotas = QuotaState(policy: PolicyRules(quotas: [quota]), after: earlier)
        let spent = earlier?.lines.first?.spent ?? .none
        for recount in quotas.advance(to: now, in: .utc) { quotas.recount(recount, spent: spent, at: now) }
        return quotas
    }

    @Test("80 and 100 percent of bytes and of files are reported once each, with usage and end")
    func once() throws {
        var quotas = Self.quotas(Quota(period: .day, bytes: 1000, files: 10))
        var marks = QuotaThresholds()
        #expect(marks.update(quotas).isEmpty)
        quotas.spend(Spending(bytes: 799, files: 7), for: Self.nas, at: Self.now)
        #expect(marks.update(quotas).isEmpty)
        quotas.spend(Spending(bytes: 1, files: 0), for: Self.nas, at: Self.now)
        let first = try #require(marks.update(quotas).first)
        #expect(first.threshold == 80 && first.percent == 80 && first.used == 800 && first.limit == 1000)
        #expect(first.text == "1 kB a day" && first.counts == "bytes" && first.place == .policy)
        #expect(first.stretch == utc("2026-11-20T00:00:00")..<utc("2026-11-21T00:00:00"))
        #expect(marks.update(quotas).isEmpty)
        quotas.spend(Spending(bytes: 300, files: 1), for: Self.nas, at: Self.now)
        #expect(
            marks.update(quotas).map { "\($0.counts) \($0.threshold) \($0.percent)" } == [
                "bytes 100 110", "files 80 80",
            ])
        quotas.spend(Spending(files: 2), for: Self.nas, at: Self.now)
        #expect(marks.update(quotas).map(\.threshold) == [100])
        quotas.spend(Spending(bytes: 9000, files: 90), for: Self.nas, at: Self.now)
        #expect(marks.update(quotas).isEmpty)
        // Another day has a new quota.
        let next = utc("2026-11-21T09:00:00")
        for recount in quotas.advance(to: next, in: .utc) {
            quotas.recount(recount, spent: Spending(bytes: 850), at: next)
        }
        #expect(marks.update(quotas).map(\.threshold) == [80])
        // The clock is set back.
        for recount in quotas.advance(to: Self.now, in: .utc) {
            quotas.recount(recount, spent: Spending(bytes: 9950), at: Self.now)
        }
        #expect(marks.update(quotas).isEmpty)
    }

    @Test("reaching both thresholds at once reports both, and reservations do not count")
    func atOnce() {
        var quotas = Self.quotas(Quota(period: .day, bytes: 1000, direction: .received))
        var marks = QuotaThresholds()
        quotas.open(1, Spending(bytes: 9000, received: 2000), for: Self.nas, at: Self.now)
        #expect(marks.update(quotas).isEmpty)
        quotas.close(1, Spending(bytes: 9000, received: 1200), at: Self.now)
        #expect(marks.update(quotas).map(\.threshold) == [80, 100])
    }

    @Test("a restart reports nothing again")
    func restart() throws {
        var quotas = Self.quotas(Quota(period: .day, bytes: 1000))
        quotas.spend(Spending(bytes: 850), for: Self.nas, at: Self.now)
        var marks = QuotaThresholds()
        #expect(marks.update(quotas).count == 1)
        var after = try JSONDecoder().decode(QuotaThresholds.self, from: JSONEncoder().encode(marks))
        #expect(after == marks)
        #expect(after.update(quotas).isEmpty)
    }

    @Test("a reload reports a newly reached threshold once, and no earlier one again")
    func reload() {
        var marks = QuotaThresholds()
        var quotas = Self.quotas(Quota(period: .day, bytes: 1000))
        quotas.spend(Spending(bytes: 850), for: Self.nas, at: Self.now)
        #expect(marks.update(quotas).map(\.threshold) == [80])
        func limit(_ bytes: Int64) -> [Int64] {
            quotas = Self.quotas(Quota(period: .day, bytes: bytes), after: quotas)
            return marks.update(quotas).map(\.threshold)
        }
        #expect(limit(900) == [])
        #expect(limit(800) == [100])
        #expect(limit(5000) == [])
        #expect(limit(800) == [])
        #expect(limit(1050) == [])
        #expect(limit(5000) == [])
        quotas.spend(Spending(bytes: 3200), for: Self.nas, at: Self.now)
        #expect(marks.update(quotas).map(\.threshold) == [80])
        // A quota with another place, name or direction is another quota.
        quotas = Self.quotas(Quota(period: .day, bytes: 5000, name: "lte", when: .fact(.metered(true))), after: quotas)
        #expect(marks.update(quotas).map(\.threshold) == [80])
    }

    @Test("a rest too small to start with counts as everything, and a zero quota reports nothing")
    func rest() {
        var quotas = QuotaState(
            policy: PolicyRules(quotas: [Quota(period: .day, bytes: 10_000_000), Quota(period: .hour, bytes: 0)]),
            least: Quota.minUsable)
        for recount in quotas.advance(to: Self.now, in: .utc) { quotas.recount(recount, spent: .none, at: Self.now) }
        quotas.spend(Spending(bytes: 9_950_000), for: Self.nas, at: Self.now)
        var marks = QuotaThresholds()
        #expect(marks.update(quotas).map(\.threshold) == [80, 100])
    }

    @Test("the stored thresholds are bounded")
    func bounded() {
        var marks = QuotaThresholds()
        var quotas = Self.quotas(Quota(period: .hour, bytes: 10))
        for hour in 1...1000 as ClosedRange<Int64> {
            let now = Self.now.advanced(by: .seconds(hour * 3600))
            for recount in quotas.advance(to: now, in: .utc) {
                quotas.recount(recount, spent: Spending(bytes: 9), at: now)
            }
            #expect(marks.update(quotas).count == 1)
        }
        #expect(marks.count == QuotaThresholds.capacity)
    }
}
