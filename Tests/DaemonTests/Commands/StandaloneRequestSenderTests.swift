import Core
import Store
import TestKit
import Testing
import Transport

@testable import Config
@testable import Daemon

@Suite("Requests of commands without a daemon")
struct StandaloneRequestSenderTests {
    /// - Returns: The kind of the hold on a request to `nas`; `nil` if it was sent.
    private func hold(_ scene: ComponentScene, _ network: HookNetwork) async -> Hold.Kind? {
        let requests = StandaloneRequestSender(scene.parts.settings, StandaloneNetworkReport())
        switch await requests.perform("nas", network, { _ in true }) {
        case .success: return nil
        case .failure(let held): return held.hold.kind
        }
    }

    @Test("a pause on disk holds a request that policy applies to, and no other")
    func pause() async throws {
        let scene = try await ComponentScene()
        #expect(await hold(scene, .policy) == nil)
        try await scene.store.write {
            try $0.pauses.set(
                PauseRecord(scope: .all, name: "", since: scene.clocks.wall(), until: nil))
        }
        #expect(await hold(scene, .policy) == .global)
        #expect(await hold(scene, .any) == nil)
        try await scene.store.write { try $0.pauses.clear(.all, "") }
        #expect(await hold(scene, .policy) == nil)
    }

    @Test("a closed window, a quota and an unknown network hold a request that policy applies to")
    func rules() async throws {
        for (rules, kinds) in [
            (PolicyRules(windows: [Window(days: [], from: 0, to: 1440)]), [Hold.Kind.rule, .clock]),
            (PolicyRules(quotas: [Quota(period: .day, bytes: 1000)]), [.quota]),
            (PolicyRules(metered: .pause), [.metered]),
        ] {
            let scene = try await ComponentScene { $0.policy.rules = rules }
            let kind = try #require(await hold(scene, .policy))
            #expect(kinds.contains(kind))
        }
    }

    @Test("a network whose cost is unknown is closed to every request")
    func unseen() async throws {
        let scene = try await ComponentScene { $0.policy.rules = PolicyRules(metered: .pause) }
        #expect(await hold(scene, .any) == .metered)
    }
}
