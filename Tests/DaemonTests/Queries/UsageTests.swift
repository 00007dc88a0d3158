import API
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Usage in the daemon", .timeLimit(.minutes(Patience.minutes(1))))
struct UsageTests {
    @Test("usage is shown by day and month, grouped as requested, together with the quotas")
    func usage() async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(clocks: clocks) { settings in
            settings.policy.rules = PolicyRules(quotas: [Quota(period: .day, bytes: 1000, files: 9)])
            settings.folders[0].policy.rules = PolicyRules(quotas: [
                Quota(period: .hour, bytes: 50, name: "lte", when: .fact(.metered(true)))
            ])
        }
        let id = try await scene.add("a.mp4")
        try await scene.reach(.completed, [id])
        let store = scene.daemon.context.store
        let account = SpendingAccount(destination: "old", folder: nil, network: .unmetered)
        let metered = SpendingAccount(destination: "nas", folder: "cam", network: .metered)
        try await store.write {
            try $0.ledger.pay(
                [
                    Payment(account, Spending(bytes: 360)),
                    Payment(metered, Spending(bytes: 40, received: 7), quotas: [QuotaName(.folder("cam"), "lte")]),
                ],
                reserving: [Reservation(account, Spending(bytes: 30))])
        }
        var query = UsageQuery()
        query.by = "destination"
        let view = try await scene.daemon.usage(query)
        #expect(view.days.count == 7)
        #expect(view.months.count == 3)
        let sent = try #require(view.days.last)
        #expect(sent.name == LocalTime(clocks.wall()).date)
        #expect(view.months.last?.name == String(sent.name.dropLast(3)))
        #expect(sent.parts?.map(\.name) == ["old", "nas"])
        #expect(sent.bytes == 400)
        #expect(sent.received == 7)
        #expect(sent.parts?.map(\.received) == [0, 7])
        #expect(sent.files == 1)
        #expect(view.months.last?.bytes == 400)
        #expect(view.days.first?.bytes == 0)
        #expect(view.quotas.map(\.place) == ["policy", "policy", "folder cam"])
        #expect(
            view.quotas.map(\.text) == ["1 kB a day", "9 files a day", "50 B an hour while the network is metered"])
        // The file was sent to a place on this machine, which no quota counts.
        #expect(view.quotas.map(\.used) == [400, 0, 40])
        #expect(view.quotas.map(\.reserved) == [30, 0, 0])
        #expect(view.quotas.map(\.left) == [570, 9, 10])
        #expect(view.quotas[0].until == view.days.last?.until)
        query.by = nil
        query.folder = "cam"
        let folder = try await scene.daemon.usage(query)
        #expect(folder.days.last?.bytes == 40)
        #expect(folder.days.last?.parts == nil)
        query.folder = "solo"
        #expect(try await scene.daemon.usage(query).quotas.map(\.place) == ["policy", "policy"])
        // A name that is only in the ledger is known, too.
        query.folder = nil
        query.destination = "old"
        #expect(try await scene.daemon.usage(query).days.last?.bytes == 360)
        try await scene.stop()
    }

    @Test("a running transfer counts in status and usage while it runs, and once after it ended")
    func underWay() async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(clocks: clocks)
        let ledger = scene.daemon.operations.usage.ledger
        func sent() async throws -> [Int64] {
            let (status, usage) = (try await scene.daemon.status(), try await scene.daemon.usage(UsageQuery()))
            let nas = try #require(status.destinations.first)
            let today = try #require(usage.days.last)
            return [nas.sentToday, nas.receivedToday, today.bytes, today.received]
        }
        for isFree in [true, false] {
            let account = QuotaAccount(
                SpendingAccount(destination: "nas", folder: "cam", network: isFree ? .local : .any),
                QuotaState.Class("nas", from: "cam"), step: nil, isFree: isFree, in: ledger)
            // A reservation is made for it, before the first byte is sent.
            try await account.prepare(for: 500)
            account.spend(500)
            account.receive(20)
            account.ended()
            let expected: [Int64] = isFree ? [500, 20, 500, 20] : [1000, 40, 1000, 40]
            #expect(try await sent() == expected)
            try await ledger.close(account)
            #expect(try await sent() == expected)
        }
        try await scene.stop()
    }

    @Test("removing a limit returns the removed one, or an empty list")
    func limits() async throws {
        let scene = try await DaemonScene()
        let daemon = scene.daemon
        let set = try await daemon.limit(LimitRequest(rate: 1000, duration: 60), by: "anna")
        #expect(set.ended == nil && set.exceptions.map(\.rate) == [1000])
        let off = try await daemon.limit(LimitRequest(rate: nil, duration: nil), by: "anna")
        #expect(off.ended?.map(\.rate) == [1000] && off.exceptions.isEmpty)
        #expect(try await daemon.limit(LimitRequest(rate: nil, duration: nil), by: "anna").ended == [])
        _ = try await daemon.allow(AllowRequest(folder: "cam", kinds: ["window"], duration: 60), by: "anna")
        let end = try await daemon.allow(
            AllowRequest(folder: "cam", kinds: ["window", "quota"], duration: 0), by: "anna")
        #expect(end.ended?.map(\.kind) == ["window"])
        try await scene.stop()
    }

    @Test("daily maintenance merges old hours into days")
    func upkeep() async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(clocks: clocks)
        let store = scene.daemon.context.store
        let account = SpendingAccount(destination: "nas", folder: "cam", network: .any)
        let hour = Period.hour.interval(around: clocks.wall(), in: .local).lowerBound
        let day = Period.day.interval(around: clocks.wall().advanced(by: .seconds(50 * 86_400)), in: .local).lowerBound
        try await store.write { try $0.ledger.pay([Payment(account, Spending(bytes: 400))]) }
        #expect(try await store.read { try $0.ledger.usage(since: WallTime(milliseconds: 0)) }.map(\.at) == [hour])
        clocks.advance(by: .seconds(50 * 86_400))
        scene.daemon.signals.maintenance.signal()
        try await eventually("the hours have been merged into their day") {
            try await store.read { try $0.ledger.usage(since: WallTime(milliseconds: 0)) }.map(\.at)
                == [Period.day.interval(around: hour, in: .local).lowerBound]
        }
        #expect(try await store.read { try $0.ledger.spent(since: day) } == .none)
        try await scene.stop()
    }

    @Test("unknown names are refused with a suggestion")
    func refused() async throws {
        let scene = try await DaemonScene()
        func message(_ change: (inout UsageQuery) -> Void) async throws -> String {
            var query = UsageQuery()
            change(&query)
            do { _ = try await scene.daemon.usage(query) } catch let refusal as Refusal { return refusal.message }
            return ""
        }
        #expect(try await message { $0.destination = "nass" } == "no destination is called `nass`; did you mean `nas`?")
        #expect(try await message { $0.folder = "garden" } == "no folder is called `garden`")
        #expect(
            try await message { $0.by = "day" }
                == "cannot group by `day`; there are: destination, folder, network")
        #expect(try await message { $0.days = 401 } == "days is `401`; it must be from 0 to 400")
        #expect(try await message { $0.months = -1 } == "months is `-1`; it must be from 0 to 13")
        try await scene.stop()
    }
}
