import Testing

@testable import Core

@Suite("Quotas of received bytes")
struct QuotaDirectionTests {
    private static let now = utc("2026-11-20T10:00:00")
    private static let nas = QuotaState.Class("nas", from: "door", [QuotaName(.policy, "lte")])

    private static func quotas(_ quotas: [Quota], least: Int64 = Quota.minUsable) -> QuotaState {
        var quotas = QuotaState(policy: PolicyRules(quotas: quotas), least: least)
        for recount in quotas.advance(to: now, in: .utc) { quotas.recount(recount, spent: .none, at: now) }
        return quotas
    }

    @Test("only bytes of the direction count, and both are the sum")
    func directions() {
        var quotas = Self.quotas(
            Quota.Direction.allCases.map { Quota(period: .day, bytes: 1_000_000_000, direction: $0) })
        quotas.spend(Spending(bytes: 700, received: 40, files: 1), for: Self.nas, at: Self.now)
        quotas.open(1, Spending(bytes: 70, received: 4), for: Self.nas, at: Self.now)
        #expect(quotas.lines.map(\.used) == [700, 40, 740])
        let reserved: [Int64] = [770, 44, 814]
        #expect(quotas.lines.map(\.unspent) == reserved.map { 1_000_000_000 - $0 })
        quotas.close(1, Spending(bytes: 7, received: 1), at: Self.now)
        #expect(quotas.lines.map(\.used) == [707, 41, 748])
        #expect(quotas.lines.allSatisfy { $0.reserved == .none })
    }

    @Test("the sendable amount always leaves space for all possible responses")
    func remaining() throws {
        for limit: Int64 in [0, 1, 20_000, 294_912, 1_000_000, 5_000_000_000, .max] {
            for direction in Quota.Direction.allCases {
                let quotas = Self.quotas([Quota(period: .day, bytes: limit, direction: direction)], least: 0)
                let remaining = quotas.remaining(for: Self.nas)
                let bytes = try #require(remaining.bytes)
                #expect(bytes >= 0)
                let received = min(Spending.received(for: bytes), remaining.received(beside: bytes))
                #expect(direction.bytes(of: Spending(bytes: bytes, received: received)) <= limit)
                if bytes > 0 { #expect(received == Spending.received(for: bytes)) }
            }
        }
        #expect(Self.quotas([]).remaining(for: Self.nas).received(beside: 5) == .max)
    }

    @Test("an exhausted quota of received bytes is the same hold, with its direction in words")
    func hold() throws {
        for (direction, words) in [
            (
                Quota.Direction.received,
                "10 MB received a month while the network is metered (`quotas`), 10.0 MB received"
            ),
            (
                .both,
                "10 MB sent and received a month while the network is metered (`quotas`), 10.0 MB sent and received"
            ),
        ] {
            var quotas = Self.quotas([
                Quota(
                    period: .month(startsOn: 1), bytes: 10_000_000, direction: direction, name: "lte",
                    when: .fact(.metered(true)))
            ])
            quotas.spend(Spending(bytes: 9_000_000), for: Self.nas, at: Self.now)
            #expect(quotas.holds(for: Self.nas).isEmpty)
            let rest: Int64 = direction == .both ? 1_000_000 : 10_000_000
            quotas.spend(Spending(received: rest), for: Self.nas, at: Self.now)
            let hold = try #require(quotas.holds(for: Self.nas).first)
            #expect(hold.text == "the quota `lte` of policy is used up: \(words)")
            #expect(hold.kind == .quota && hold.until == utc("2026-12-01T00:00:00"))
            #expect(quotas.holds(for: Self.nas, isStarting: false).count == 1)
            #expect(quotas.holds(for: .init("nas", from: "door")).isEmpty)
        }
    }

    @Test(
        "a rest too small for a request with its response counts as used up, and cannot be reserved")
    func rest() {
        var quotas = Self.quotas([Quota(period: .day, bytes: 1_000_000, direction: .both)])
        quotas.spend(Spending(bytes: 890_000), for: Self.nas, at: Self.now)
        #expect(quotas.remaining(for: Self.nas).bytes == 0)
        #expect(quotas.holds(for: Self.nas).first?.text.contains("the 110 kB that are left are too little") == true)
    }

    @Test("an upload too large for a whole period never runs, and a smaller one does")
    func never() {
        for direction in Quota.Direction.allCases {
            for limit: Int64 in [300_000, 1_000_000, 1_000_015, 30_000_000] {
                let quotas = Self.quotas([Quota(period: .day, bytes: limit, direction: direction)])
                let remaining = direction.sendable(of: limit)
                for bytes in max(1, remaining - 20)...remaining + 20 {
                    #expect(
                        (quotas.lineTooSmall(bytes, for: Self.nas) == nil) == (bytes <= remaining),
                        "\(direction) \(bytes)")
                }
            }
        }
    }

    @Test("each quota too small for a part is reported, the smallest first")
    func neverOfSeveral() {
        let quotas = Self.quotas([
            Quota(period: .day, bytes: 3_000_000),
            Quota(period: .month(startsOn: 1), bytes: 400_000, direction: .received),
            Quota(period: .week(startsOn: .mon), bytes: 100_000_000),
        ])
        let lines = quotas.linesTooSmall(8_000_000, for: Self.nas)
        #expect(lines.map(\.quota.direction) == [.sent, .received])
        #expect(quotas.lineTooSmall(8_000_000, for: Self.nas) == lines.first)
    }
}
