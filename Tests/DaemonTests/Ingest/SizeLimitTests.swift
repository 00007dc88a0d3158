import API
import Core
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// Files that are larger than a destination takes.
@Suite("Size limits of destinations", .timeLimit(.minutes(Patience.minutes(2))))
struct SizeLimitTests {
    private static let large = 2 << 20

    private func run(
        _ remote: ScriptedRemote, routes: [String] = ["nas"], second: ScriptedRemote = ScriptedRemote(),
        clocks: any Clocks = SystemClocks(), _ body: (DaemonScene) async throws -> Void
    ) async throws {
        let scene = try await DaemonScene(clocks: clocks, remote: remote, second: second) { settings in
            settings.destinations.append(
                DestinationSettings(name: "far", type: "second", values: [:], policy: PolicyOverrides(), place: ""))
            for index in settings.folders.indices {
                settings.folders[index].routes = routes.map { UploadRoute(to: $0) }
            }
        }
        do { try await body(scene) } catch {
            try await scene.stop()
            throw error
        }
        try await scene.stop()
    }

    private func code(of id: String, _ scene: DaemonScene) async throws -> Failure.Code? {
        try await scene.daemon.context.store.read { try $0.failures.of(id).last?.failure.code }
    }

    @Test("a file that goes only there is refused before it is copied; one that fits goes")
    func refused() async throws {
        let remote = ScriptedRemote()
        remote.limit(to: [Int64(Self.large)])
        try await run(remote) { scene in
            let tooLarge = try await scene.add("a.mp4", size: Self.large + 1)
            try await scene.reach(.failed, [tooLarge])
            #expect(try await code(of: tooLarge, scene) == .maxSizeExceeded)
            #expect(try scene.copies.isEmpty && remote.began.isEmpty)
            try await scene.reach(.completed, [try await scene.add("b.mp4", size: Self.large)])
            #expect(remote.sizeQuestions == 1)
        }
    }

    @Test("a file that another destination takes is copied for that one")
    func others() async throws {
        let (remote, second) = (ScriptedRemote(), ScriptedRemote())
        remote.limit(to: [1000])
        try await run(remote, routes: ["nas", "far"], second: second) { scene in
            let path = try scene.folder.write("cam/a.mp4", noise(Self.large))
            let ids = try await scene.daemon.add(AddRequest(path: path.display)).uploads.map(\.id)
            try await scene.reach(.completed, ids)
            #expect(remote.sizeQuestions == 0 && second.began.count == 1)
        }
    }

    @Test("without an answer the file is copied, and a small file costs no question")
    func unknown() async throws {
        let remote = ScriptedRemote()
        remote.limit(to: [nil])
        try await run(remote) { scene in
            try await scene.reach(.completed, [try await scene.add("a.mp4", size: Self.large)])
            #expect(remote.sizeQuestions == 1)
            try await scene.reach(.completed, [try await scene.add("b.mp4")])
            #expect(remote.sizeQuestions == 1)
        }
    }

    @Test("a limit that was named long ago refuses no file without another answer, and one file asks for all")
    func outdated() async throws {
        let (remote, clocks) = (ScriptedRemote(), ManualClocks())
        remote.limit(to: [1000, nil])
        try await run(remote, clocks: clocks) { scene in
            let refused = try await scene.add("a.mp4", size: Self.large)
            try await scene.reach(.failed, [refused])
            #expect(try await code(of: refused, scene) == .maxSizeExceeded)
            clocks.advance(by: .seconds(120))
            for name in ["b.mp4", "c.mp4"] {
                try await scene.reach(.completed, [try await scene.add(name, size: Self.large)])
            }
            #expect(remote.sizeQuestions == 2)
        }
    }

    @Test("while policy forbids the question, the file is copied")
    func held() async throws {
        let remote = ScriptedRemote()
        remote.limit(to: [1000])
        try await run(remote) { scene in
            _ = try await scene.daemon.pause(Selection(destination: "nas"))
            let id = try await scene.add("a.mp4", size: Self.large)
            try await scene.reach(.queued, [id])
            #expect(try remote.sizeQuestions == 0 && scene.copies.count == 1)
        }
    }
}
