import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Lists of ended work, without a daemon", .timeLimit(.minutes(Patience.minutes(1))))
struct HistoryCleanerTests {
    private static func run(
        _ scene: ComponentScene, _ body: (_ signal: AsyncSignal) async throws -> Void
    ) async throws {
        let signal = scene.parts.signals.history
        let cleaner = HistoryCleaner(context: scene.context, stateHealth: scene.parts.stateHealth, signal: signal)
        let loop = Task { try await cleaner.run() }
        defer { loop.cancel() }
        try await body(signal)
    }

    private static func cancelled(_ name: FilePath, _ scene: ComponentScene) async throws {
        let id = try await scene.record(name)
        _ = try await scene.store.write { try $0.transitions.cancel([id]) }
        scene.clocks.advance(by: .seconds(1))
    }

    /// The names in the list of cancelled uploads. Uploads of which only the history tells have no row there.
    private static func list(_ scene: ComponentScene) async throws -> Set<String> {
        var filter = UploadFilter()
        filter.states = [.cancelled]
        return Set(try await scene.store.rows(filter).map(\.upload.name.display))
    }

    @Test("a list keeps its newest entries")
    func most() async throws {
        let scene = try await ComponentScene { $0.lists.cancelled = ListRetention.Limits(time: nil, most: 2) }
        for number in 1...4 { try await Self.cancelled(FilePath("\(number).mp4"), scene) }
        try await Self.run(scene) { _ in
            try await eventually("two are left") { try await Self.list(scene) == ["3.mp4", "4.mp4"] }
        }
    }

    @Test("an entry leaves when its time is over, and not before")
    func time() async throws {
        let scene = try await ComponentScene { $0.lists.cancelled = ListRetention.Limits(time: .seconds(3600)) }
        try await Self.cancelled("a.mp4", scene)
        try await Self.run(scene) { signal in
            try await eventually("the cleaner sleeps") { signal.isWaiting }
            #expect(try await Self.list(scene) == ["a.mp4"])
            scene.clocks.advance(by: .seconds(3600))
            signal.signal()
            try await eventually("it is gone") { try await Self.list(scene).isEmpty }
        }
    }

    @Test("entries without limits stay, and the cleaner sleeps until more work ends")
    func unlimited() async throws {
        let scene = try await ComponentScene { settings in
            settings.lists.cancelled = ListRetention.Limits(time: nil)
            settings.lists.history = nil
        }
        try await Self.cancelled("a.mp4", scene)
        try await Self.run(scene) { signal in
            try await eventually("the cleaner sleeps") { signal.isWaiting }
            scene.clocks.advance(by: .seconds(400 * 86_400))
            try await Self.cancelled("b.mp4", scene)
            try await eventually("the cleaner was woken, and sleeps") { signal.isWaiting }
            #expect(try await Self.list(scene) == ["a.mp4", "b.mp4"])
        }
    }
}
