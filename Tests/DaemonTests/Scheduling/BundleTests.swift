import API
import Core
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Bundles of small files")
struct BundleTests {
    private func scene() async throws -> DaemonScene {
        let scene = try await DaemonScene(retry: .seconds(3600))
        scene.remote.takesTogether(Bundling(largest: 1000, files: 4, bytes: 4000))
        return scene
    }

    /// Files that wait, and then may all be sent at once.
    private func backlog(_ count: Int, _ scene: DaemonScene, size: Int = 100) async throws -> [String] {
        _ = try await scene.daemon.pause(Selection(all: true))
        var ids: [String] = []
        for number in 0..<count { ids.append(try await scene.add("small \(number)", size: size)) }
        try await scene.reach(.queued, ids)
        return ids
    }

    private func release(_ scene: DaemonScene) async throws {
        _ = try await scene.daemon.resume(Selection(all: true))
    }

    @Test("each file arrives and counts once, and a bundle uses one transfer of the limit")
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
        try await scene.reach(.completed, ids)
        #expect(scene.remote.objects.count == 50 && Set(scene.remote.objects).count == 50)
        #expect(scene.remote.bundles.allSatisfy { $0.count <= 4 })
        #expect(scene.remote.began.isEmpty, "no file was uploaded alone")
        #expect(try await scene.daemon.status().counts.completed == 50)
        try await scene.stop()
    }

    @Test("a file that its bundle leaves out is uploaded alone and judged by that result")
    func leftOut() async throws {
        let scene = try await scene()
        scene.remote.set(.fail(.failUpload), for: "small 3")
        let ids = try await backlog(20, scene)
        try await release(scene)
        try await scene.reach(.completed, ids.filter { $0 != ids[3] })
        try await scene.reach(.failed, [ids[3]])
        #expect(scene.remote.began == ["small 3"])
        try await scene.stop()
    }

    @Test("a file that a bundle started and left out is resumed, not started again")
    func leftOutBegun() async throws {
        let scene = try await scene()
        scene.remote.set(.leaveOut, for: "small 3")
        let ids = try await backlog(20, scene)
        try await release(scene)
        try await scene.reach(.completed, ids)
        #expect(scene.remote.began == ["small 3"])
        #expect(scene.remote.objects.count == 20)
        try await scene.stop()
    }

    @Test("small files of other folders are bundled even beside a folder with its own limit")
    func besideALimit() async throws {
        let scene = try await DaemonScene(retry: .seconds(3600), solo: 1)
        scene.remote.takesTogether(Bundling(largest: 1000, files: 4, bytes: 4000))
        var ids = try await backlog(20, scene)
        for number in 0..<3 { ids.append(try await scene.add("slow \(number)", in: "solo")) }
        try await scene.reach(.queued, ids)
        try await release(scene)
        try await scene.reach(.completed, ids)
        #expect(Set(scene.remote.began) == ["slow 0", "slow 1", "slow 2"])
        #expect(scene.remote.bundles.flatMap { $0 }.count == 20 && scene.remote.bundles.count < 20)
        try await scene.stop()
    }

    @Test("when the destination fails, one file of a bundle probes it and the others wait")
    func down() async throws {
        let scene = try await scene()
        scene.remote.standard = .fail(.holdDestination(after: nil))
        let ids = try await backlog(4, scene)
        _ = try await scene.daemon.pause(Selection(all: true))
        // One transfer: all four in one bundle.
        for number in 0..<7 { scene.remote.set(.waitUploading, for: FilePath("solo \(number)")) }
        var running: [String] = []
        for number in 0..<7 { running.append(try await scene.add("solo \(number)", in: "solo", size: 2000)) }
        try await scene.reach(.queued, running)
        try await release(scene)
        try await eventually("the destination is held") { await scene.daemon.scheduler.shown().hold(of: "nas") != nil }
        try await scene.reach(.queued, ids)
        #expect(scene.remote.began.filter { $0.display.hasPrefix("small") }.count < 4)
        for id in ids { #expect(try await scene.daemon.context.store.read { try $0.uploads.find(id) }?.attempt == 0) }
        scene.remote.letGo()
        try await scene.daemon.scheduler.reconsider()
        try await scene.reach(.completed, ids + running)
        #expect(scene.remote.objects.count == 11)
        try await scene.stop()
    }

    @Test("a cancelled file ends, and the other files of its bundle arrive")
    func cancelled() async throws {
        let scene = try await scene()
        let ids = try await backlog(32, scene)
        scene.remote.standard = .waitUploading
        try await release(scene)
        try await eventually("eight bundles run") { scene.remote.bundles.count == 8 }
        _ = try await scene.daemon.cancel(Selection(ids: [ids[5]]))
        try await scene.reach(.cancelled, [ids[5]])
        scene.remote.letGo()
        try await scene.reach(.completed, ids.filter { $0 != ids[5] })
        #expect(try await scene.state(ids[5]) == .cancelled)
        try await eventually("the remote object of the cancelled file has been deleted") {
            !scene.remote.objects.contains("small 5")
        }
        #expect(scene.remote.objects.count == 31)
        try await scene.stop()
    }

    @Test("large files and started files are uploaded alone")
    func alone() async throws {
        let scene = try await scene()
        let large = try await backlog(3, scene, size: 5000)
        try await release(scene)
        try await scene.reach(.completed, large)
        #expect(scene.remote.bundles.isEmpty && scene.remote.began.count == 3)
        scene.remote.standard = .waitUploading
        let small = try await scene.add("begun", size: 10)
        try await eventually("the upload of the small file runs") { scene.remote.bundles.count == 1 }
        _ = try await scene.daemon.pause(Selection(all: true))
        try await scene.reach(.queued, [small])
        scene.remote.standard = .take
        try await release(scene)
        try await scene.reach(.completed, [small])
        #expect(scene.remote.bundles.count == 1 && scene.remote.began.last == "begun")
        try await scene.stop()
    }
}
