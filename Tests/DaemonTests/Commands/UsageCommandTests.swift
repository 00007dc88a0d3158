import API
import Config
import Core
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Setting the usage of a quota", .timeLimit(.minutes(Patience.minutes(1))))
struct UsageCommandTests {
    private static func scene() async throws -> DaemonScene {
        let quota = Quota(period: .month(startsOn: 1), bytes: 5_000_000_000, name: "plan", when: .fact(.roaming(false)))
        return try await DaemonScene(clocks: ManualClocks()) { settings in
            settings.policy.rules = PolicyRules(quotas: [quota])
            settings.folders[0].policy.rules = PolicyRules(quotas: [
                Quota(period: .day, files: 9, name: "few", when: .fact(.metered(false)))
            ])
        }
    }

    @Test("it is shown in usage, and an event and the reply have who, before and after")
    func set() async throws {
        let scene = try await Self.scene()
        let first = try await scene.daemon.setUsage(UsageChangeRequest(name: "plan", bytes: 2_000_000_000), by: "anna")
        #expect(first.place == "policy" && first.before == 0 && first.used == 2_000_000_000 && first.by == "anna")
        let second = try await scene.daemon.setUsage(UsageChangeRequest(name: "plan", bytes: 7), by: "bob")
        #expect(second.before == 2_000_000_000 && second.used == 7)
        let files = try await scene.daemon.setUsage(UsageChangeRequest(name: "few", files: 3), by: "bob")
        #expect(files.place == "folder cam" && files.counts == "files" && files.used == 3)
        let quotas = try await scene.daemon.usage(UsageQuery()).quotas
        #expect(quotas.map(\.used) == [7, 3] && quotas.map(\.name) == ["plan", "few"])
        #expect(quotas.first?.when == "no modem roams")
        let events = try await scene.daemon.context.store.read { try $0.events.list(after: 0, limit: 1000) }
        let set = try #require(events.last { $0.type == .usageSet && $0.detail[.name] == "plan" })
        #expect(set.detail[.from] == "2000000000" && set.detail[.to] == "7" && set.detail[.by] == "bob")
        try await scene.stop()
    }

    @Test("of quotas with one name, that of the policy is meant unless a place is named")
    func sameName() async throws {
        let quota = Quota(period: .day, bytes: 1_000, name: "plan", when: .fact(.roaming(false)))
        let scene = try await DaemonScene(clocks: ManualClocks()) { settings in
            settings.policy.rules = PolicyRules(quotas: [quota])
            settings.folders[0].policy.rules = PolicyRules(quotas: [quota])
        }
        let first = try await scene.daemon.setUsage(UsageChangeRequest(name: "plan", bytes: 7), by: "bob")
        #expect(first.place == "policy")
        let second = try await scene.daemon.setUsage(
            UsageChangeRequest(name: "plan", place: "folder cam", bytes: 8), by: "bob")
        #expect(second.place == "folder cam")
        #expect(try await scene.daemon.usage(UsageQuery()).quotas.map(\.used) == [7, 8])
        try await scene.stop()
    }

    @Test("an unknown name, a wrong unit and a negative amount are refused, and change nothing")
    func refused() async throws {
        let scene = try await Self.scene()
        for (request, text) in [
            (UsageChangeRequest(name: "pla", bytes: 1), "did you mean `plan`?"),
            (UsageChangeRequest(name: "plan", files: 1), "counts no files"),
            (UsageChangeRequest(name: "few", bytes: 1), "counts no bytes"),
            (UsageChangeRequest(name: "plan"), "give `bytes` or `files`"),
            (UsageChangeRequest(name: "plan", bytes: -1), "not negative"),
            (UsageChangeRequest(name: "plan", place: "folder cam", bytes: 1), "no quota"),
        ] {
            await #expect { _ = try await scene.daemon.setUsage(request, by: "x") } throws: {
                ($0 as? Refusal)?.message.contains(text) ?? false
            }
        }
        #expect(try await scene.daemon.usage(UsageQuery()).quotas.map(\.used) == [0, 0])
        try await scene.stop()
    }
}
