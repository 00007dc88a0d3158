import Config
import Core
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Accounts of quotas")
struct QuotaAccountTests {
    @Test(
        "a block waits for a renewal that is being stored, and is refused only when the quota itself is used up",
        arguments: 0..<40)
    func renewed(_ yields: Int) async throws {
        let scene = try await ComponentScene {
            $0.policy.rules = PolicyRules(quotas: [Quota(period: .day, bytes: 1_000_000)])
        }
        let ledger = scene.parts.limits.ledger
        try await ledger.refresh()
        let account = QuotaAccount(
            SpendingAccount(destination: "nas", folder: "cam", network: .any),
            QuotaState.Class("nas", from: "cam"), size: 3_000_000, step: nil, isFree: false,
            in: ledger)
        let (block, onWire): (Int64, Int64) = (30_000, 30_500)
        var blocks: Int64 = 0
        while await account.reserve(for: block) == nil {
            try await account.prepare(for: block)
            account.spend(onWire)
            account.receive(300)
            account.ended()
            account.returnReservation(for: block, sent: block)
            blocks += 1
            // What a renewal reserves is in the ledger before the account has it. The next block meets any moment of it.
            for _ in 0..<yields { await Task.yield() }
        }
        #expect(account.total == blocks * onWire && account.total <= 1_000_000)
        #expect(account.total + IndivisibleRequest.cost(ofBody: block) > 1_000_000, "\(account.total) B were sent")
        try await ledger.close(account)
    }
}
