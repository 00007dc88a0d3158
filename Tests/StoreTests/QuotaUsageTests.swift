import Core
import TestKit
import Testing

@testable import Store

@Suite("Counts of quotas with conditions")
struct QuotaUsageTests {
    private static let nas = SpendingAccount(destination: "nas", folder: "door", network: .unmetered)
    private static let plan = QuotaName(.policy, "lte-plan")
    private static let other = QuotaName(.folder("door"), "lte-plan")

    private let folder = TemporaryFolder()
    private let clocks = ManualClocks()

    private func open() async throws -> Store {
        try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst, zone: .utc)
    }

    /// The sum of the count since the day began, and what is reserved of it.
    private func read(_ name: QuotaName, of store: Store) async throws -> (spent: Int64, reserved: Int64) {
        let place: RulePlace = name.place == "policy" ? .policy : .folder("door")
        let rules = PolicyRules(quotas: [Quota(period: .day, bytes: 1, name: name.name, when: .fact(.metered(true)))])
        var quotas =
            place == .policy
            ? QuotaState(policy: rules) : QuotaState(policy: PolicyRules(), folders: [(name: "door", rules: rules)])
        let recount = try #require(quotas.advance(to: clocks.wall(), in: .utc).first)
        return try await store.read {
            (try $0.ledger.spent(for: recount).bytes, try $0.ledger.reserved(for: recount).bytes)
        }
    }

    private func set(_ bytes: Int64, of store: Store) async throws {
        let rules = PolicyRules(quotas: [
            Quota(period: .day, bytes: 1, name: Self.plan.name, when: .fact(.metered(true)))
        ])
        var quotas = QuotaState(policy: rules)
        let recount = try #require(quotas.advance(to: clocks.wall(), in: .utc).first)
        try await store.write { try $0.ledger.set(recount, to: Spending(bytes: bytes)) }
    }

    @Test("a payment counts for the quotas that its reservation was charged to, and no sum of traffic counts it twice")
    func charged() async throws {
        let store = try await open()
        let step = try await store.write {
            try $0.ledger.reserve(Reservation(Self.nas, Spending(bytes: 800), quotas: [Self.plan]))
        }
        #expect(try await read(Self.plan, of: store) == (0, 800))
        try await store.write { try $0.ledger.close(step, Spending(bytes: 300)) }
        try await store.write { try $0.ledger.pay([Payment(Self.nas, Spending(bytes: 40))]) }
        #expect(try await read(Self.plan, of: store) == (300, 0))
        #expect(try await read(Self.other, of: store) == (0, 0))
        #expect(try await store.read { try $0.ledger.spent(since: WallTime(milliseconds: 0)) }.bytes == 340)
        #expect(
            try await store.read { try $0.ledger.usage(since: WallTime(milliseconds: 0)) }.map(\.spending.bytes) == [
                340
            ])
        await store.close()
    }

    @Test("after a kill, a reservation that was not settled counts as sent, for its quotas too")
    func killed() async throws {
        var store = try await open()
        _ = try await store.write {
            try $0.ledger.reserve(
                Reservation(
                    Self.nas, Spending(bytes: 800), since: .counted(nil), quotas: [Self.plan, Self.other]))
        }
        await store.close()
        store = try await open()
        #expect(try await read(Self.plan, of: store) == (800, 0))
        #expect(try await read(Self.other, of: store) == (800, 0))
        await store.close()
    }

    @Test("a count that is set is that amount, more or less than before, and goes on from there")
    func corrected() async throws {
        let store = try await open()
        func pay(_ bytes: Int64) async throws {
            try await store.write {
                try $0.ledger.pay([Payment(Self.nas, Spending(bytes: bytes), quotas: [Self.plan])])
            }
        }
        try await pay(500)
        clocks.advance(by: .seconds(60))
        try await set(2000, of: store)
        #expect(try await read(Self.plan, of: store).spent == 2000)
        try await set(100, of: store)
        #expect(try await read(Self.plan, of: store).spent == 100)
        try await pay(7)
        #expect(try await read(Self.plan, of: store).spent == 107)
        // The ledger of traffic is not touched.
        #expect(try await store.read { try $0.ledger.spent(since: WallTime(milliseconds: 0)) }.bytes == 507)
        await store.close()
    }

    @Test("a key has place and name, and other texts have none")
    func keys() {
        for name in [Self.plan, Self.other, QuotaName(.destination("nas"), "a.b-c_1")] {
            #expect(QuotaName(key: name.key) == name)
        }
        #expect(QuotaName(key: "lte") == nil && QuotaName(key: " lte") == nil && QuotaName(key: "policy ") == nil)
    }
}
