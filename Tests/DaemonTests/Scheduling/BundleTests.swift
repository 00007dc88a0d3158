import Core
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("small files together")
struct BundleTests {
    private func scene() async throws -> AgentScene {
        let scene = try await AgentScene(retry: .seconds(3600))
        scene.remote.takesTogether(Bundling(largest: 1000, files: 4, bytes: 4000))
        return scene
    }

    /// Files that wait, and then may all be sent at once.
    private func backlog(_ count: Int, _ scene: AgentScene, size: Int = 100) async throws -> [String] {
        _ = try await scene.daemon.pause(Selection(all: true))
        var ids: [String] = []
        for number in 0..<count { ids.append(try await scene.add("small \(number)", size: size)) }
        try await scene.reachability(.queued, ids)
        return ids
    }

    private func release(_ scene: AgentScene) async throws {
        _ = try await scene.daemon.resume(Selection(all: true))
    }

    @Test("each arrives once and is counted once, and a bundle is one transfer of the limit")
    func all() async throws {
        let scene = try await scene()
        let ids = try await backlog(50, scene)
        scene.remote.standard = .waitUploading
        try await release(scene)
        try await eventually("eight bundles run") { scene.remote.bundles.count == 8 }
        #expect(scene.remote.bundles.flatMap { $0 }.count == 32)
        var running = 0
        for id in ids where await scene.daemon.scheduler.isRunning(id) { running += 1 }
        #expect(running == 32)
        scene.remote.letGo()
        try await scene.reachability(.completed, ids)
        #expect(scene.remote.objects.count == 50 && Set(scene.remote.objects).count == 50)
        #expect(scene.remote.bundles.allSatisfy { $0.count <= 4 })
        #expect(scene.remote.began.isEmpty, "none went alone")
        #expect(try await scene.daemon.status().counts.completed == 50)
        try await scene.stop()
    }

    @Test("what a bundle leaves out goes alone, and is judged there")
    func leftOut() async throws {
        let scene = try await scene()
        scene.remote.set(.fail(.giveUp), for: "small 3")
        let ids = try await backlog(20, scene)
        try await release(scene)
        try await scene.reachability(.completed, ids.filter { $0 != ids[3] })
        try await scene.reachability(.failed, [ids[3]])
        #expect(scene.remote.began == ["small 3"])
        try await scene.stop()
    }

    @Test("what a bundle began and left out is gone on with, and not begun again")
    func leftOutBegun() async throws {
        let scene = try await scene()
        scene.remote.set(.leaveOut, for: "small 3")
        let ids = try await backlog(20, scene)
        try await release(scene)
        try await scene.reachability(.completed, ids)
        #expect(scene.remote.began == ["small 3"])
        #expect(scene.remote.objects.count == 20)
        try await scene.stop()
    }

    @Test("small files of other folders go together beside a folder with a limit of its own")
    func besideALimit() async throws {
        let scene = try await AgentScene(retry: .seconds(3600), solo: 1)
        scene.remote.takesTogether(Bundling(largest: 1000, files: 4, bytes: 4000))
        var ids = try await backlog(20, scene)
        for number in 0..<3 { ids.append(try await scene.add("slow \(number)", in: "solo")) }
        try await scene.reachability(.queued, ids)
        try await release(scene)
        try await scene.reachability(.completed, ids)
        #expect(Set(scene.remote.began) == ["slow 0", "slow 1", "slow 2"])
        #expect(scene.remote.bundles.flatMap { $0 }.count == 20 && scene.remote.bundles.count < 20)
        try await scene.stop()
    }

    @Test("when the destination fails, one of a bundle asks and the others wait")
    func down() async throws {
        let scene = try await scene()
        scene.remote.standard = .fail(.holdDestination(after: nil))
        let ids = try await backlog(4, scene)
        _ = try await scene.daemon.pause(Selection(all: true))
        // One lane: all four in one bundle.
        for permit in 0..<7 { scene.remote.set(.waitUploading, for: FilePath("lane \(permit)")) }
        var bandwidth: [String] = []
        for permit in 0..<7 { bandwidth.append(try await scene.add("lane \(permit)", in: "solo", size: 2000)) }
        try await scene.reachability(.queued, bandwidth)
        try await release(scene)
        try await eventually("the destination is held") { await scene.daemon.scheduler.hold(of: "nas") != nil }
        try await scene.reachability(.queued, ids)
        #expect(scene.remote.began.filter { $0.display.hasPrefix("small") }.count < 4)
        for id in ids { #expect(try await scene.daemon.house.store.read { try $0.uploads.find(id) }?.attempt == 0) }
        scene.remote.letGo()
        try await scene.daemon.scheduler.reconsider()
        try await scene.reachability(.completed, ids + bandwidth)
        #expect(scene.remote.objects.count == 11)
        try await scene.stop()
    }

    @Test("a cancelled one ends, and those that were with it arrive")
    func cancelled() async throws {
        let scene = try await scene()
        let ids = try await backlog(32, scene)
        scene.remote.standard = .waitUploading
        try await release(scene)
        try await eventually("eight bundles run") { scene.remote.bundles.count == 8 }
        _ = try await scene.daemon.cancel(Selection(ids: [ids[5]]))
        try await scene.reachability(.cancelled, [ids[5]])
        scene.remote.letGo()
        try await scene.reachability(.completed, ids.filter { $0 != ids[5] })
        #expect(try await scene.state(ids[5]) == .cancelled)
        try await eventually("what it left at the remote is removed") { !scene.remote.objects.contains("small 5") }
        #expect(scene.remote.objects.count == 31)
        try await scene.stop()
    }

    @Test("large ones, and those that were begun, go alone")
    func alone() async throws {
        let scene = try await scene()
        let large = try await backlog(3, scene, size: 5000)
        try await release(scene)
        try await scene.reachability(.completed, large)
        #expect(scene.remote.bundles.isEmpty && scene.remote.began.count == 3)
        scene.remote.standard = .waitUploading
        let small = try await scene.add("begun", size: 10)
        try await eventually("it runs") { scene.remote.bundles.count == 1 }
        _ = try await scene.daemon.pause(Selection(all: true))
        try await scene.reachability(.queued, [small])
        scene.remote.standard = .take
        try await release(scene)
        try await scene.reachability(.completed, [small])
        #expect(scene.remote.bundles.count == 1 && scene.remote.began.last == "begun")
        try await scene.stop()
    }
}
