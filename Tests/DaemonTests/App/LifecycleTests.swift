import API
import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store
@testable import Watch

@Suite("Phases of the daemon")
struct LifecycleTests {
    @Test("requests are refused until the start has finished, and a stop is final")
    func phases() throws {
        let lifecycle = DaemonPhase(startedAt: WallTime(milliseconds: 0))
        #expect(lifecycle.isStarting)
        #expect { try lifecycle.requireReady() } throws: { ($0 as? Refusal)?.code == .unavailable }
        lifecycle.finishStart()
        try lifecycle.requireReady()
        #expect(!lifecycle.isStopping)
        lifecycle.beginStop()
        #expect(lifecycle.isStopping)
    }
}
