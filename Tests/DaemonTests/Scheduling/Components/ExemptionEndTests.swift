import Config
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("The end of an exception from quotas")
struct ExemptionEndTests {
    private static let kind = QuotaState.Class("nas", from: "cam")

    private static func scene(_ quota: Int64) async throws -> (scene: ComponentScene, account: QuotaAccount) {
        let scene = try await ComponentScene {
            $0.policy.rules = PolicyRules(quotas: [Quota(period: .day, bytes: quota)])
        }
        let ledger = scene.parts.limits.ledger
        try await ledger.refresh()
        let account = QuotaAccount(
            SpendingAccount(destination: "nas", folder: "cam", network: .any), kind, size: 200_000_000, step: nil,
            isExempt: true, isFree: false, in: ledger)
        return (scene, account)
    }

    /// Sends requests until the account allows no more or `limit` is reached.
    private static func spend(_ account: QuotaAccount, upTo limit: Int64) async throws {
        while account.total < limit {
            do { try await account.prepare(for: 100_000) } catch is CancellationError { return }
            account.spend(110_000)
            account.ended()
        }
    }

    @Test("what an account reserves after its exception has ended comes out of its quotas")
    func spending() async throws {
        let (scene, account) = try await Self.scene(40_000_000)
        try await Self.spend(account, upTo: 1_000_000)
        account.endExemption()
        try await Self.spend(account, upTo: 200_000_000)
        #expect(account.total <= 40_000_000)
        #expect(account.total > 38_000_000, "the quota was used")
        try await scene.parts.limits.ledger.close(account)
    }

    @Test("an account above its quotas sends no more than it had reserved")
    func above() async throws {
        let (scene, account) = try await Self.scene(600_000)
        try await Self.spend(account, upTo: 3_000_000)
        let reserved = try await scene.store.read { try $0.ledger.reserved().bytes }
        let before = account.total
        account.endExemption()
        try await Self.spend(account, upTo: 200_000_000)
        #expect(account.total <= before + reserved)
        try await scene.parts.limits.ledger.close(account)
    }

    private enum Exception: CaseIterable { case none, upload, folder, otherUpload, otherRule }

    private static func overrides(_ exception: Exception, at now: WallTime) -> OverrideSet {
        var overrides = OverrideSet()
        let record: (scope: OverrideRecord.Scope, name: String, exemption: Exemption)? =
            switch exception {
            case .none: nil
            case .upload: (.upload, "a", .quota)
            case .folder: (.folder, "cam", .quota)
            case .otherUpload: (.upload, "b", .quota)
            case .otherRule: (.upload, "a", .metered)
            }
        if let record {
            overrides.replace([
                OverrideRecord(
                    scope: record.scope, name: record.name, kind: .exemption(record.exemption), since: now,
                    until: now.advanced(by: .seconds(60)), who: "root")
            ])
        }
        return overrides
    }

    @Test("the accounts of a transfer without its exception are found, until they know that it has ended")
    func found() async throws {
        let (scene, account) = try await Self.scene(4_000_000)
        var facts = SchedulerFacts()
        facts.transfers.add(
            RunningTransfers.Transfer(
                destination: "nas", route: .any, folders: ["a": "cam"], inPlace: [], accounts: ["a": account],
                task: Task {}),
            facts.transfers.nextNumber())
        func found(_ exception: Exception) throws -> Bool {
            facts.overrides = Self.overrides(exception, at: scene.clocks.wall())
            let snapshot = PolicySnapshot(
                scene.parts.runtime, clocks: scene.clocks, quotas: scene.parts.limits.ledger.quotas, facts: facts)
            return try !snapshot.accountsWithoutExemption(#require(snapshot.transfers.all.first)).isEmpty
        }
        for exception in Exception.allCases {
            #expect(try found(exception) == ![.upload, .folder].contains(exception), "\(exception)")
        }
        account.endExemption()
        #expect(try !found(.none))
        try await scene.parts.limits.ledger.close(account)
    }

    /// What the account has reserved counts as used.
    @Test("only a quota that counts an account's bytes and leaves none of them is used up")
    func usedUp() async throws {
        for (quota, isUsedUp) in [(Int64(40_000_000), false), (600_000, true)] {
            let (scene, account) = try await Self.scene(quota)
            try await Self.spend(account, upTo: 1_000_000)
            let snapshot = PolicySnapshot(
                scene.parts.runtime, clocks: scene.clocks, quotas: scene.parts.limits.ledger.quotas,
                facts: SchedulerFacts())
            #expect(snapshot.isUsedUp(account) == isUsedUp)
            try await scene.parts.limits.ledger.close(account)
        }
        let scene = try await ComponentScene()
        let account = QuotaAccount(
            SpendingAccount(destination: "nas", folder: "cam", network: .any), Self.kind, step: nil, isExempt: true,
            isFree: false, in: scene.parts.limits.ledger)
        let snapshot = PolicySnapshot(
            scene.parts.runtime, clocks: scene.clocks, quotas: scene.parts.limits.ledger.quotas, facts: SchedulerFacts()
        )
        #expect(!snapshot.isUsedUp(account))
    }
}
