import API
import Core
import Linux
import Synchronization
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

    @Test("a supervisor is told that the daemon is ready only when commands are accepted")
    func ready() async throws {
        let folder = TemporaryFolder()
        let path = { (name: String) in folder.path.appending(FilePath(name)) }
        let settings = Settings(
            state: path("state"), staging: StagingSettings(path: path("staging"), keepFree: 0), folders: [],
            destinations: [], policy: PolicySettings(), control: ControlSettings(socket: path("control.sock")))
        let daemon = try await Daemon.start(settings, kinds: [], log: .silent)
        #expect(daemon.isStarting)
        let wasStarting = Mutex<Bool?>(nil)
        let running = Task { try await daemon.run { wasStarting.withLock { $0 = daemon.isStarting } } }
        try await eventually("it is ready") { wasStarting.withLock { $0 } != nil }
        #expect(wasStarting.withLock { $0 } == false)
        running.cancel()
        try await running.value
    }
}
