import Core
import Linux
import TestKit
import Testing

@testable import Store

@Suite("Ledger of received bytes")
struct ReceivedTests {
    private static let nas = SpendingAccount(destination: "nas", folder: "door", network: .metered)
    private let folder = TemporaryFolder()
    private let clocks = ManualClocks()

    private func open() async throws -> Store {
        try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst, zone: .utc)
    }

    private func spent(_ store: Store) async throws -> Spending {
        try await store.read {
            try $0.ledger.spent(since: WallTime(milliseconds: 0), destination: "nas", networks: [.metered])
        }
    }

    @Test("received bytes are recorded beside sent ones and survive a kill; reservations count as received then")
    func killed() async throws {
        var store = try await open()
        let step = try await store.write {
            try $0.ledger.reserve(Reservation(Self.nas, Spending(bytes: 800, received: 90, files: 1)))
        }
        let more = try await store.write {
            try $0.ledger.pay(
                [Payment(closing: step, Spending(bytes: 700, received: 40, files: 1))],
                reserving: [Reservation(Self.nas, Spending(bytes: 500, received: 60))])
        }
        #expect(more.first?.spending == Spending(bytes: 500, received: 60))
        #expect(try await spent(store) == Spending(bytes: 700, received: 40, files: 1))
        #expect(try await store.read { try $0.ledger.reserved() } == Spending(bytes: 500, received: 60))
        await store.close()
        store = try await open()
        #expect(try await spent(store) == Spending(bytes: 1200, received: 100, files: 1))
        #expect(try await store.read { try $0.ledger.reserved() } == .none)
        // Bytes that were only received count as well, and days keep them.
        try await store.write { try $0.ledger.pay([Payment(Self.nas, Spending(received: 11))]) }
        clocks.advance(by: .seconds(50 * 86_400))
        #expect(try await store.pruneLedger() == 1)
        #expect(try await spent(store) == Spending(bytes: 1200, received: 111, files: 1))
        #expect(
            try await store.read { try $0.ledger.usage(since: WallTime(milliseconds: 0)) }.map(\.spending)
                == [Spending(bytes: 1200, received: 111, files: 1)])
        await store.close()
    }

    @Test("an abandoned database passes the received bytes on")
    func salvaged() async throws {
        let store = try await open()
        try await store.write {
            try $0.ledger.pay(
                [Payment(Self.nas, Spending(bytes: 7, received: 5))],
                reserving: [Reservation(Self.nas, Spending(bytes: 2, received: 1))])
        }
        await store.close()
        let other = TemporaryFolder()
        let next = try await Store.open(other.path, clocks: clocks, sorting: .newestFirst, zone: .utc)
        #expect(try await next.salvageLedger(from: folder.path))
        #expect(try await spent(next) == Spending(bytes: 9, received: 6))
        await next.close()
    }

    @Test("servers that refuse `Expect` are read as they were stored")
    func originsWithoutExpect() async throws {
        let store = try await open()
        #expect(try await store.read { try $0.settings.originsWithoutExpect() } == [:])
        let all = ["http://nas.lan:80": clocks.wall(), "https://[fd00::1]:8443": WallTime(milliseconds: 7)]
        try await store.write { try $0.settings.store(originsWithoutExpect: all) }
        #expect(try await store.read { try $0.settings.originsWithoutExpect() } == all)
        await store.close()
    }

    @Test("a reached quota threshold is an event, and both survive a kill")
    func marks() async throws {
        var store = try await open()
        let now = clocks.wall()
        var book = QuotaState(
            policy: PolicyRules(), folders: [("door", PolicyRules(quotas: [Quota(period: .day, bytes: 1000)]))])
        for recount in book.advance(to: now, in: .utc) {
            book.recount(recount, spent: Spending(bytes: 812), at: now)
        }
        var marks = try await store.read { try $0.settings.quotaMarks() }
        #expect(marks == QuotaThresholds())
        let before = await store.seq
        let reached = marks.update(book)
        try await store.write { [marks] tx in try tx.settings.announce(reached, marks) }
        await store.close()
        store = try await open()
        #expect(try await store.read { try $0.settings.quotaMarks() } == marks)
        let event = try #require(
            try await store.read { try $0.events.list(after: before, limit: 10) }.first { $0.type == .quotaReached })
        #expect(event.upload == nil)
        let day = Period.day.interval(around: now, in: .utc)
        #expect(
            event.detail == [
                "place": "folder door", "folder": "door", "quota": "1 kB a day", "counts": "bytes", "direction": "sent",
                "threshold": "80", "percent": "81", "used": "812", "limit": "1000",
                "from": day.lowerBound.description, "until": day.upperBound.description,
            ])
        await store.close()
    }
}
