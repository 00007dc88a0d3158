import Core
import TestKit
import Testing

@testable import Store

@Suite("Ledger")
struct LedgerTests {
    private static let nas = SpendingAccount(destination: "nas", folder: "door", network: .metered)
    private static let cloud = SpendingAccount(destination: "cloud", folder: nil, network: .unmetered)
    /// Central Europe in 2026.
    private static let zone = Zone { moment in
        (1_774_746_000_000..<1_792_890_000_000).contains(moment.milliseconds) ? 7200 : 3600
    }

    /// A ledger that is opened, closed and opened again.
    private struct Books {
        let folder = TemporaryFolder()
        let clocks: ManualClocks
        var store: Store

        init(_ clocks: ManualClocks = ManualClocks()) async throws {
            self.clocks = clocks
            store = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst, zone: zone)
        }

        /// As after a kill: no step is settled, and no other end is recorded.
        mutating func killAndOpen() async throws {
            await store.close()
            store = try await Store.open(folder.path, clocks: clocks, sorting: .newestFirst, zone: zone)
        }

        func spent(_ period: Period = .day) async throws -> Int64 {
            try await store.read {
                try $0.ledger.spent(since: period.interval(around: clocks.wall(), in: zone).lowerBound)
            }.bytes
        }
    }

    @Test("a reservation is not spent; a settlement is, with less or more, and once")
    func settling() async throws {
        let books = try await Books()
        let one = try await books.store.write {
            try $0.ledger.reserve(Reservation(Self.nas, Spending(bytes: 800, files: 1)))
        }
        let two = try await books.store.write { try $0.ledger.reserve(Reservation(Self.nas, Spending(bytes: 800))) }
        #expect(try await books.spent() == 0)
        #expect(try await books.store.read { try $0.ledger.reserved() } == Spending(bytes: 1600, files: 1))
        #expect(try await books.store.read { try $0.ledger.reserved(destination: "cloud") } == .none)
        try await books.store.write { try $0.ledger.close(one, Spending(bytes: 300, files: 1)) }
        #expect(try await books.spent() == 300)
        #expect(try await books.store.read { try $0.ledger.reserved() } == Spending(bytes: 800))
        // A step and the next one of the same transfer are one transaction.
        let three = try await books.store.write {
            try $0.ledger.pay(
                [Payment(closing: two, Spending(bytes: 900))], reserving: [Reservation(Self.nas, Spending(bytes: 5))])
        }
        #expect(try await books.spent() == 1200)
        #expect(try await books.store.read { try $0.ledger.reserved() } == Spending(bytes: 5))
        try await books.store.write { try $0.ledger.close(two, Spending(bytes: 900)) }
        try await books.store.write {
            try $0.ledger.pay([Payment(closing: three[0], .none), Payment(Self.cloud, Spending(bytes: 7))])
        }
        #expect(try await books.spent() == 1207)
        #expect(try await books.store.read { try $0.ledger.reserved() } == .none)
    }

    @Test("reservations of a killed process count as sent, and a late settlement changes nothing")
    func killed() async throws {
        var books = try await Books()
        let step = try await books.store.write {
            try $0.ledger.reserve(Reservation(Self.nas, Spending(bytes: 8 << 20, files: 1)))
        }
        let settled = try await books.store.write {
            try $0.ledger.reserve(Reservation(Self.cloud, Spending(bytes: 100)))
        }
        try await books.store.write { try $0.ledger.close(settled, Spending(bytes: 60)) }
        #expect(await books.store.leftCharge == nil)
        try await books.killAndOpen()
        #expect(
            await books.store.leftCharge
                == CrashCharge(spending: Spending(bytes: 8 << 20, files: 1), isBounded: false))
        #expect(try await books.spent() == 8 << 20 + 60)
        #expect(
            try await books.store.read { try $0.ledger.spent(since: WallTime(milliseconds: 0), destination: "nas") }
                == Spending(bytes: 8 << 20, files: 1))
        #expect(try await books.store.read { try $0.ledger.reserved() } == .none)
        try await books.store.write { try $0.ledger.close(step, .none) }
        try await books.killAndOpen()
        #expect(try await books.spent() == 8 << 20 + 60)
        // A number is never reused: otherwise another transfer could settle the step.
        let next = try await books.store.write { try $0.ledger.reserve(Reservation(Self.nas, Spending(bytes: 1))) }
        #expect(next.id > step.id && next.id > settled.id)
    }

    @Test("bytes reserved before midnight and settled later, or left by a kill, count for the day of the reservation")
    func overMidnight() async throws {
        var books = try await Books()
        books.clocks.step(by: .seconds(15 * 3600 - 60))
        let one = try await books.store.write { try $0.ledger.reserve(Reservation(Self.nas, Spending(bytes: 500))) }
        _ = try await books.store.write { try $0.ledger.reserve(Reservation(Self.cloud, Spending(bytes: 20))) }
        books.clocks.advance(by: .seconds(120))
        try await books.store.write { try $0.ledger.close(one, Spending(bytes: 400)) }
        #expect(try await books.spent() == 400)
        try await books.killAndOpen()
        #expect(try await books.spent() == 420)
        // If the clock is not set when the machine starts, no bytes are dated back to 1970.
        _ = try await books.store.write { try $0.ledger.reserve(Reservation(Self.nas, Spending(bytes: 3))) }
        books.clocks.step(by: .seconds(-1_700_000_000))
        try await books.killAndOpen()
        books.clocks.step(by: .seconds(1_700_000_000))
        #expect(try await books.spent() == 423)
    }

    @Test("a claim reserves and an end settles in their own transactions")
    func withUploads() async throws {
        let scene = try await Scene()
        let upload = try await scene.stage(Scene.arrival(Scene.file("a"))).uploads[0]
        let account = SpendingAccount(destination: "nas", folder: "cam", network: .unknown)
        let claims = try await scene.store.claim(
            filling: BatchLimits(slots: 2), "nas", from: { _ in true },
            reserving: { Reservation(account, Spending(bytes: $0.upload.size + 2000, files: 1)) })
        let step = try #require(claims.first?.step)
        #expect(try await scene.store.read { try $0.ledger.reserved(folder: "cam") } == Spending(bytes: 2100, files: 1))
        let day = Period.day.interval(around: scene.clocks.wall(), in: .utc).lowerBound
        try await scene.store.write {
            try $0.attempts.finish([
                .init(
                    upload, .verified(RemoteObject(id: nil, url: nil, verifiedBy: "offset")),
                    payments: [Payment(closing: step, Spending(bytes: 900, files: 1))])
            ])
        }
        #expect(try await scene.store.read { try $0.ledger.reserved() } == .none)
        #expect(
            try await scene.store.read { try $0.ledger.spent(since: day, networks: [.unknown]) }
                == Spending(bytes: 900, files: 1))
        // The bytes count, although the upload has ended.
        try await scene.store.write {
            try $0.attempts.finish(upload, .yielded, payments: [Payment(account, Spending(bytes: 11))])
        }
        #expect(
            try await scene.store.read { try $0.ledger.spent(since: day, destination: "nas") }
                == Spending(bytes: 911, files: 1))
        #expect(try await scene.store.read { try $0.ledger.spent(since: day, networks: [.metered]) } == .none)
    }

    @Test("a clock that is set back grants no quota twice: later entries count now, once, and age")
    func clockSetBack() async throws {
        var books = try await Books()
        try await books.store.write { try $0.ledger.pay([Payment(Self.nas, Spending(bytes: 70))]) }
        books.clocks.step(by: .seconds(-3 * 86_400))
        #expect(try await books.spent(.hour) == 70)
        // Also before the rows are dated again, and while they are dated later.
        try await books.store.write { try $0.ledger.pay([Payment(Self.nas, Spending(bytes: 5))]) }
        #expect(try await books.spent(.hour) == 75)
        try await books.killAndOpen()
        #expect(try await books.spent(.hour) == 75)
        let rows = try await books.store.read { try $0.ledger.usage(since: WallTime(milliseconds: 0)) }
        #expect(rows.map(\.spending.bytes).sorted() == [5, 70])
        #expect(rows.allSatisfy { $0.at <= books.clocks.wall() })
        books.clocks.advance(by: .seconds(3600))
        #expect(try await books.spent(.hour) == 0)
        #expect(try await books.spent(.day) == 75)
        books.clocks.advance(by: .seconds(86_400))
        #expect(try await books.spent(.day) == 0)
        // The first hour was the correct one after all: setting the clock back was wrong.
        books.clocks.step(by: .seconds(2 * 86_400 - 3600))
        #expect(try await books.spent(.day) == 70)
        #expect(try await books.spent(.week(startsOn: .mon)) == 75)
    }

    @Test("entries dated in the future count for at most their hour once the store knows the clock")
    func redated() async throws {
        let books = try await Books()
        try await books.store.write { try $0.ledger.pay([Payment(Self.nas, Spending(bytes: 70))]) }
        books.clocks.step(by: .seconds(-3 * 86_400))
        try await books.store.redateLedger()
        #expect(try await books.spent(.hour) == 70)
        books.clocks.advance(by: .seconds(3600))
        #expect(try await books.spent(.hour) == 0)
        // There is no further change, and nothing is written.
        _ = await books.store.statementCosts(.runs)
        try await books.store.redateLedger()
        let runs = await books.store.statementCosts(.runs)
        #expect(runs.contains { $0.key.hasPrefix("SELECT 1 FROM usage") && $0.value == 1 })
        #expect(runs.filter { $0.key.hasPrefix("UPDATE usage") }.values.allSatisfy { $0 == 0 })
    }

    @Test("a row damaged by a disk blocks no reservation and grants no quota")
    func damaged() async throws {
        for (bytes, files) in [(Int64.max, Int64.min), (.min, .max), (-1, -1)] {
            let books = try await Books()
            try await books.store.write {
                try $0.ledger.pay([
                    Payment(Self.nas, Spending(bytes: 70, files: 1)),
                    Payment(Self.cloud, Spending(bytes: 70, files: 1)),
                ])
            }
            let disk = try Connection(path: books.folder.path.appending("sluice.db"))
            try disk.execute("UPDATE usage SET bytes = \(bytes), files = \(files)")
            disk.close()
            try await books.store.write { try $0.ledger.pay([Payment(Self.nas, Spending(bytes: .max, files: .max))]) }
            try await books.store.write { try $0.ledger.pay([Payment(Self.nas, Spending(bytes: 5, files: 1))]) }
            let spent = try await books.store.read {
                try $0.ledger.spent(since: WallTime(milliseconds: 0), destination: "nas")
            }
            #expect(spent.bytes >= 5 && spent.files >= 1)
            #expect(
                try await books.store.read {
                    try $0.ledger.spent(since: WallTime(milliseconds: 0), destination: "cloud")
                }.bytes >= 0)
            books.clocks.advance(by: .seconds(60 * 86_400))
            #expect(try await books.store.pruneLedger() == 1)
            let rows = try await books.store.read { try $0.ledger.usage(since: WallTime(milliseconds: 0)) }
            #expect(rows.allSatisfy { $0.spending.bytes >= 0 && $0.spending.files >= 0 })
        }
    }

    @Test("a clock that shows another century for a moment changes no present usage")
    func clockAhead() async throws {
        var books = try await Books()
        try await books.store.write { try $0.ledger.pay([Payment(Self.nas, Spending(bytes: 70))]) }
        books.clocks.step(by: .seconds(70 * 365 * 86_400))
        try await books.store.write { try $0.ledger.pay([Payment(Self.nas, Spending(bytes: 4))]) }
        try await books.store.pruneLedger()
        try await books.killAndOpen()
        books.clocks.step(by: .seconds(-70 * 365 * 86_400))
        #expect(try await books.spent(.day) == 74)
        try await books.store.pruneLedger()
        #expect(try await books.spent(.day) == 74)
        books.clocks.advance(by: .seconds(2 * 86_400))
        #expect(try await books.spent(.day) == 0)
    }

    @Test("sums match an unlimited ledger, over months, for every period, place and network")
    func sums() async throws {
        // From the end of January to after the 29th of March, on which the clocks are set forward.
        let books = try await Books(ManualClocks(wall: WallTime(milliseconds: 1_769_690_000_000)))
        var dice = Dice(seed: 5)
        var all: [(at: WallTime, account: SpendingAccount, spending: Spending)] = []
        for count in 0..<900 {
            books.clocks.advance(by: .seconds(Int64.random(in: 1...15_000, using: &dice)))
            let account = SpendingAccount(
                destination: Bool.random(using: &dice) ? "nas" : "cloud",
                folder: [nil, "door", "yard"][Int.random(in: 0...2, using: &dice)],
                network: NetworkClass.allCases[Int.random(in: 0...3, using: &dice)])
            let spending = Spending(
                bytes: Int64.random(in: 0...1000, using: &dice), files: Int64.random(in: 0...1, using: &dice))
            try await books.store.write { try $0.ledger.pay([Payment(account, spending)]) }
            all.append((books.clocks.wall(), account, spending))
            if count % 97 == 0 { try await books.store.pruneLedger() }
            guard count % 9 == 0 else { continue }
            for period in [Period.hour, .day, .week(startsOn: .sun), .month(startsOn: 31)] {
                let since = period.interval(around: books.clocks.wall(), in: Self.zone).lowerBound
                func sum(_ isMeant: (SpendingAccount) -> Bool) -> Spending {
                    all.filter { $0.at >= since && isMeant($0.account) }.map(\.spending).reduce(.none, +)
                }
                #expect(
                    try await books.store.read { try $0.ledger.spent(since: since) } == sum { _ in true },
                    "\(count), \(period)")
                #expect(
                    try await books.store.read {
                        try $0.ledger.spent(since: since, destination: "nas", networks: [.metered, .unknown])
                    }
                        == sum { $0.destination == "nas" && [.metered, .unknown].contains($0.network) })
                #expect(
                    try await books.store.read { try $0.ledger.spent(since: since, folder: "yard") }
                        == sum { $0.folder == "yard" })
            }
        }
        try await books.store.pruneLedger()
        let rows = try await books.store.read { try $0.ledger.usage(since: WallTime(milliseconds: 0)) }
        #expect(rows.map(\.spending).reduce(.none, +) == all.map(\.spending).reduce(.none, +))
        // Old bytes have one row a day, which begins with it.
        let days = Set(rows.filter { $0.at < books.clocks.wall().advanced(by: .seconds(-42 * 86_400)) }.map(\.at))
        #expect(days.count > 20)
        #expect(days.allSatisfy { Period.day.interval(around: $0, in: Self.zone).lowerBound == $0 })
    }

    @Test("the ledger is bounded: forty days by hour, a year by day, and nothing older")
    func retention() async throws {
        let books = try await Books()
        for _ in 0..<450 {
            books.clocks.advance(by: .seconds(86_400))
            try await books.store.write {
                try $0.ledger.pay([
                    Payment(Self.nas, Spending(bytes: 1)), Payment(Self.cloud, Spending(bytes: 1)),
                ])
            }
        }
        #expect(try await books.store.pruneLedger() == 409)
        let rows = try await books.store.read { try $0.ledger.usage(since: WallTime(milliseconds: 0)) }
        #expect(rows.count == 2 * (41 + 360))
        #expect(try await books.store.pruneLedger() == 0)
        #expect(try await books.spent(.month(startsOn: 1)) == 2 * 13)
    }

    @Test("an abandoned database passes its ledger on: its reservations count as sent")
    func salvaged() async throws {
        let books = try await Books()
        try await books.store.write {
            try $0.ledger.pay([
                Payment(Self.nas, Spending(bytes: 70, files: 2)), Payment(Self.cloud, Spending(bytes: 4)),
            ])
        }
        _ = try await books.store.write { try $0.ledger.reserve(Reservation(Self.nas, Spending(bytes: 1000))) }
        await books.store.close()
        let next = try await Store.openNew(
            books.folder.path, clocks: books.clocks, sorting: .newestFirst, isTrial: true)
        #expect(try await next.salvageLedger(from: books.folder.path))
        let start = WallTime(milliseconds: 0)
        #expect(
            try await next.read { try $0.ledger.spent(since: start, destination: "nas") }
                == Spending(bytes: 1070, files: 2))
        #expect(try await next.read { try $0.ledger.spent(since: start, networks: [.unmetered]) } == Spending(bytes: 4))
        #expect(try await !next.salvageLedger(from: "/nowhere"))
        try await next.discard()
    }
}
