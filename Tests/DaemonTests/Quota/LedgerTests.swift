import Config
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Ledger, without a daemon")
struct LedgerTests {
    private static let key = SpendingAccount(destination: "nas", folder: "cam", network: .any)
    private static let kind = QuotaState.Class("nas", from: "cam")

    private static func scene(_ quotas: Quota...) async throws -> ComponentScene {
        let scene = try await ComponentScene { $0.policy.rules = PolicyRules(quotas: quotas) }
        try await scene.parts.limits.ledger.refresh()
        return scene
    }

    private static func account(_ scene: ComponentScene, size: Int64, step: StoredReservation? = nil) -> QuotaAccount {
        QuotaAccount(key, kind, size: size, step: step, isFree: false, in: scene.parts.limits.ledger)
    }

    /// What the ledger on disk counts as sent: settled bytes, and those that are reserved.
    private static func counted(_ scene: ComponentScene) async throws -> Int64 {
        try await scene.store.read { tx in
            try tx.ledger.spent(since: WallTime(milliseconds: 0)).bytes + tx.ledger.reserved().bytes
        }
    }

    @Test("the ledger on disk never counts less than was sent", arguments: UInt64(0)..<12)
    func neverLess(_ seed: UInt64) async throws {
        var dice = Dice(seed: seed)
        let scene = try await Self.scene(Quota(period: .day, bytes: 3_000_000))
        let account = Self.account(scene, size: 10_000_000)
        let stopped = StopFlag()
        account.setEndHandler { _ in stopped.set() }
        while !stopped.isSet {
            let body = Int64.random(in: 1...200_000, using: &dice)
            do { try await account.prepare(for: body) } catch is CancellationError { break }
            var left = Int64.random(in: 1...IndivisibleRequest.cost(ofBody: body), using: &dice)
            while left > 0 {
                let some = min(left, Int64.random(in: 1...40_000, using: &dice))
                account.spend(some)
                left -= some
                #expect(try await Self.counted(scene) >= account.total)
            }
            account.ended()
            if Bool.random(using: &dice) { scene.clocks.advance(by: .milliseconds(300)) }
        }
        #expect(account.total <= 3_000_000)
        #expect(account.total > 2_000_000, "the quota was used")
        try await scene.parts.limits.ledger.close(account)
        #expect(try await Self.counted(scene) == account.total)
    }

    @Test("a first reservation counts at once, and no longer where storing it failed")
    func provisional() async throws {
        let scene = try await Self.scene(Quota(period: .day, bytes: 400_000))
        let ledger = scene.parts.limits.ledger
        func reserve(isExempt: Bool = false) -> Int64? {
            ledger.reserveFirst(Self.key, Self.kind, size: 10_000_000, isBegun: false, isExempt: isExempt)?.number
        }
        let first = try #require(reserve())
        let second = try #require(reserve())
        // Less than the least is left.
        #expect(reserve() == nil)
        #expect(reserve(isExempt: true) != nil)
        ledger.replaceProvisional(first, as: nil, Self.kind)
        ledger.replaceProvisional(second, as: nil, Self.kind)
        #expect(reserve() != nil)
    }

    @Test("a quota of files counts those that begin, and not those that go on")
    func files() async throws {
        let scene = try await Self.scene(Quota(period: .day, files: 2))
        let ledger = scene.parts.limits.ledger
        func mayBegin(isBegun: Bool = false) -> Bool {
            ledger.reserveFirst(Self.key, Self.kind, size: 100, isBegun: isBegun, isExempt: false) != nil
        }
        #expect(mayBegin())
        #expect(mayBegin(isBegun: true))
        #expect(mayBegin())
        #expect(!mayBegin())
        #expect(mayBegin(isBegun: true))
    }

    @Test("work is stopped when its quota is used up, and the next day allows more")
    func period() async throws {
        let scene = try await Self.scene(Quota(period: .day, bytes: 600_000))
        let ledger = scene.parts.limits.ledger
        let account = Self.account(scene, size: 10_000_000)
        let stopped = StopFlag()
        account.setEndHandler { _ in stopped.set() }
        await #expect(throws: CancellationError.self) {
            while true {
                try await account.prepare(for: 100_000)
                account.spend(110_000)
                account.ended()
            }
        }
        #expect(stopped.isSet)
        try await ledger.close(account)
        #expect(ledger.reserveFirst(Self.key, Self.kind, size: 1_000_000, isBegun: false, isExempt: false) == nil)
        scene.clocks.advance(by: .seconds(86_400))
        try await ledger.refresh()
        #expect(ledger.reserveFirst(Self.key, Self.kind, size: 1_000_000, isBegun: false, isExempt: false) != nil)
    }

    @Test("accounts that wait for more bytes share one renewal")
    func together() async throws {
        let scene = try await Self.scene(Quota(period: .day, bytes: 100_000_000))
        let accounts = (0..<8).map { _ in Self.account(scene, size: 1_000_000) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for account in accounts { group.addTask { try await account.prepare(for: 100_000) } }
            try await group.waitForAll()
        }
        let quotas = scene.parts.limits.ledger.quotas
        let reserved = try await scene.store.read { try $0.ledger.reserved() }
        #expect(reserved.bytes >= 8 * QuotaAccount.minRequest)
        // The book in memory counts what is on disk.
        #expect(quotas.lines.first?.reserved.bytes == reserved.bytes)
        for account in accounts { try await scene.parts.limits.ledger.close(account) }
        #expect(try await scene.store.read { try $0.ledger.reserved() }.bytes == 0)
        #expect(scene.parts.limits.ledger.quotas.lines.first?.reserved.bytes == 0)
    }

    @Test("a reload keeps what is counted and reserved")
    func reload() async throws {
        let scene = try await Self.scene(Quota(period: .day, bytes: 1_000_000))
        let ledger = scene.parts.limits.ledger
        let account = Self.account(scene, size: 500_000)
        try await account.prepare(for: 100_000)
        account.spend(110_000)
        account.ended()
        let before = ledger.quotas.lines.first
        var settings = scene.context.settings
        settings.policy.rules = PolicyRules(quotas: [
            Quota(period: .day, bytes: 1_000_000), Quota(period: .hour, bytes: 5_000_000),
        ])
        ledger.apply(settings)
        try await ledger.refresh()
        #expect(ledger.quotas.lines.count == 2)
        #expect(ledger.quotas.lines.first?.spent == before?.spent)
        #expect((ledger.quotas.lines.last?.reserved.bytes ?? 0) > 0)
        try await ledger.close(account)
        #expect(ledger.quotas.lines.allSatisfy { $0.spent?.bytes == 110_000 && $0.reserved.bytes == 0 })
    }
}
