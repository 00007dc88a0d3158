import API
import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Reload, without a daemon")
struct ReloaderTests {
    /// The configuration files, as a reload finds them.
    private final class Files: Sendable {
        private let content: Mutex<Result<Settings, ConfigErrors>>
        private let all = Mutex<[String]>([])

        init(_ settings: Settings) { content = Mutex(.success(settings)) }

        var calls: [String] { all.withLock { $0 } }

        func write(_ change: (inout Settings) -> Void) {
            content.withLock { content in
                guard case .success(var settings) = content else { return }
                change(&settings)
                content = .success(settings)
            }
        }

        func spoil(_ errors: ConfigErrors) { content.withLock { $0 = .failure(errors) } }

        var reloading: Reloading {
            Reloading(
                load: {
                    LoadedSettings(settings: try self.content.withLock { $0 }.get(), warnings: [], files: ["/s.yaml"])
                }, began: { self.all.withLock { $0.append("began") } },
                ended: { self.all.withLock { $0.append("ended") } })
        }
    }

    @Test("a reload replaces the settings, applies the quotas, and wakes every loop that has settings")
    func applied() async throws {
        let scene = try await ComponentScene()
        let files = Files(scene.context.settings)
        let reloader = scene.handlers(reloading: files.reloading).reloader
        files.write { $0.policy.rules.quotas = [Quota(period: .day, bytes: 1_000_000)] }
        let signals = scene.parts.signals
        let loops = [
            signals.staging, signals.release, signals.removal, signals.maintenance, signals.retention, signals.metrics,
            signals.history, signals.hook,
        ]
        let waits = loops.map { signal in Task { await signal.wait() } }
        try await eventually("all loops wait") { loops.allSatisfy(\.isWaiting) }
        let view = try await reloader.reload()
        #expect(view.applied)
        for wait in waits { await wait.value }
        #expect(scene.context.settings.policy.rules.quotas.count == 1)
        #expect(scene.parts.limits.ledger.quotas.lines.count == 1)
        #expect(scene.context.destinations["nas"] as? ScriptedRemote === scene.remote)
        #expect(files.calls == ["began", "ended"])
        #expect(reloader.isLastReloadApplied)
    }

    @Test("files with an error change nothing, and the next reload with correct ones is applied")
    func refused() async throws {
        let scene = try await ComponentScene()
        let (files, before) = (Files(scene.context.settings), scene.context.settings)
        let reloader = scene.handlers(reloading: files.reloading).reloader
        let problem = ConfigProblem(
            severity: .error, file: "/s.yaml", line: 3, column: 1, key: "policy", text: "is wrong", excerpt: nil)
        files.spoil(ConfigErrors(problems: [problem]))
        let view = try await reloader.reload()
        #expect(!view.applied)
        #expect(view.errors.map(\.text) == ["is wrong"])
        #expect(scene.context.settings == before)
        #expect(!reloader.isLastReloadApplied)
    }

    @Test("a destination that cannot be made leaves all settings in force")
    func unusable() async throws {
        let scene = try await ComponentScene()
        let (files, before) = (Files(scene.context.settings), scene.context.settings)
        // The factory knows no type.
        let reloader = scene.handlers(reloading: files.reloading).reloader
        files.write {
            $0.destinations[0].values["token"] = .text("other")
            $0.policy.rules.quotas = [Quota(period: .day, bytes: 1_000_000)]
        }
        let view = try await reloader.reload()
        #expect(!view.applied)
        #expect(scene.context.settings == before)
        #expect(scene.parts.limits.ledger.quotas.lines.isEmpty)
    }

    @Test("without a configuration file, and before the start is over, a reload is refused")
    func unavailable() async throws {
        let scene = try await ComponentScene()
        let reloader = scene.handlers().reloader
        await #expect(throws: Refusal.self) { try await reloader.reload() }
        let early = try await ComponentScene(isReady: false)
        let files = Files(early.context.settings)
        await #expect(throws: Refusal.self) {
            try await early.handlers(reloading: files.reloading).reloader.reload()
        }
        #expect(files.calls.isEmpty)
    }
}
