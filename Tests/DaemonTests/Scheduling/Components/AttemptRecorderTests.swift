import Core
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Records of how attempts ended, without a daemon")
struct AttemptRecorderTests {
    private static let kind = QuotaState.Class("nas", from: "cam")
    private static let place = SpendingAccount(destination: "nas", folder: "cam", network: .any)

    private func scene() async throws -> ComponentScene {
        try await ComponentScene {
            $0.policy.rules = PolicyRules(quotas: [Quota(period: .day, bytes: 1_000_000)])
        }
    }

    private func records(_ scene: ComponentScene, _ accounts: [String: QuotaAccount] = [:]) -> AttemptRecorder {
        AttemptRecorder(
            context: scene.context, live: scene.parts.live, stops: scene.parts.stops,
            ledger: scene.parts.limits.ledger, stateHealth: scene.parts.stateHealth, accounts: accounts)
    }

    private func claim(_ scene: ComponentScene) async throws -> Claim {
        let id = try await scene.record("a.mp4", size: 1000)
        let asset = try await scene.row(id).upload.asset
        try await scene.store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: noise(32))]) }
        return try #require(try await scene.store.claim("nas", passingOver: []))
    }

    @Test("an ending has the position that was sent, and the cost of the account, each once")
    func ending() async throws {
        let scene = try await scene()
        let (ledger, live) = (scene.parts.limits.ledger, scene.parts.live)
        try await ledger.refresh()
        let claim = try await claim(scene)
        let account = QuotaAccount(Self.place, Self.kind, size: 1000, step: nil, isFree: false, in: ledger)
        let records = records(scene, [claim.upload.id: account])
        live.begin(claim.upload.id, to: "nas", acked: 0, size: 1000)
        try await account.prepare(for: 700)
        account.spend(700)
        account.ended()
        live.sent(claim.upload.id, 640)
        live.end(claim.upload.id)
        let ending = await records.ending(claim.upload, .yielded)
        #expect(ending.id == claim.upload.id && ending.outcome == .yielded && ending.sent == 640)
        #expect(ending.payments.map(\.spending.bytes).reduce(0, +) == 700)
        try await scene.store.write { try $0.attempts.finish([ending]) }
        records.recordPayments([ending])
        let used = try await scene.store.read { try $0.ledger.usage(since: WallTime(milliseconds: 0)) }
        #expect(used.reduce(0) { $0 + $1.spending.bytes } == 700)
        let again = await records.ending(claim.upload, .yielded)
        #expect(again.sent == 0)
    }

    @Test("claims that did not start are queued again, and can be claimed again")
    func returned() async throws {
        let scene = try await scene()
        let claim = try await claim(scene)
        #expect(try await scene.row(claim.upload.id).upload.state == .uploading)
        #expect(try await scene.store.claim("nas", passingOver: []) == nil)
        try await records(scene).returnClaims([claim])
        #expect(try await scene.row(claim.upload.id).upload.state == .queued)
        #expect(try await scene.store.claim("nas", passingOver: [])?.upload.id == claim.upload.id)
    }

    @Test("nothing is written for no claims")
    func none() async throws {
        let scene = try await scene()
        await scene.store.close()
        try await records(scene).returnClaims([])
    }
}
