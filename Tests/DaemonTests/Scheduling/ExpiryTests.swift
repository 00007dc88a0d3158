import API
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Expiry in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct ExpiryTests {
    private static let week = PolicyRules(expiresAfter: .seconds(7 * 86_400))

    private func goOn(_ scene: DaemonScene, _ clocks: ManualClocks, by time: Duration) async throws {
        try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
        clocks.advance(by: time)
        scene.daemon.signals.scheduling.signal()
    }

    @Test(
        "an upload that waited too long expires, keeps its source, loses its copy, and can be retried"
    )
    func ends() async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(clocks: clocks) { settings in
            settings.policy.rules = Self.week
            settings.folders[0].afterUpload = .delete
        }
        _ = try await scene.daemon.pause(Selection(all: true))
        let id = try await scene.add("a.mp4")
        try await scene.reach(.queued, [id])
        try await goOn(scene, clocks, by: .seconds(7 * 86_400 - 1))
        let left = try #require(try await scene.daemon.scheduler.nextDeadline())
        #expect(left <= .seconds(1))
        #expect(try await scene.state(id) == .queued)
        try await goOn(scene, clocks, by: .seconds(1))
        try await scene.reach(.cancelled, [id])
        try await eventually("the staged copy has been deleted") { try scene.copies.isEmpty }
        let view = try await scene.daemon.show(id).upload
        #expect(view.state == .expired && view.list.known == .cancelled)
        #expect(view.error?.code == "expired")
        try await eventually("the source is kept for good") {
            try await scene.daemon.show(id).upload.sourceState == "kept: an upload of it has expired"
        }
        let why = try #require(try await scene.daemon.why(id).answers.first)
        #expect(why.text.hasPrefix("it was found at 2026-11-20T08:00:00.000Z, which is longer ago than expires_after"))
        #expect(why.text.hasSuffix("`sluice retry \(id)` queues it again"))
        var query = ListQuery()
        query.state = "expired"
        #expect(try await scene.daemon.list(query).uploads.map(\.id) == [id])
        let source = scene.folder.path.appending("cam/a.mp4")
        #expect(try FileStatus.ifPresent(at: source) != nil)
        _ = try await scene.daemon.resume(Selection(all: true))
        _ = try await scene.daemon.retry(Selection(ids: [id]))
        try await scene.reach(.completed, [id])
        try await eventually("the source has been deleted") { try FileStatus.ifPresent(at: source) == nil }
        #expect(scene.remote.objects == ["a.mp4"])
        try await scene.stop()
    }

    @Test("a running upload finishes, however old it gets")
    func underWay() async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(clocks: clocks) { $0.folders[0].policy.rules = Self.week }
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await scene.isRunning(1)
        try await goOn(scene, clocks, by: .seconds(8 * 86_400))
        try await eventually("the scheduler waits again") { scene.daemon.signals.scheduling.isWaiting }
        #expect(scene.remote.running.count == 1)
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test("a source that expired for one destination is kept, even if another has it and it would be deleted")
    func other() async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(clocks: clocks) { settings in
            var cloud = settings.destinations[0]
            (cloud.name, cloud.policy.rules) = ("cloud", Self.week)
            settings.destinations.append(cloud)
            settings.folders[0].uploadTo = ["nas", "cloud"]
            settings.folders[0].afterUpload = .delete
        }
        _ = try await scene.daemon.pause(Selection(destination: "cloud"))
        _ = try await scene.add("a.mp4")
        let uploads = try await scene.daemon.context.store.read { try $0.uploads.of(1) }
        let ids = Dictionary(uploads.map { ($0.destination, $0.id) }, uniquingKeysWith: { $1 })
        try await scene.reach(.completed, [try #require(ids["nas"])])
        try await goOn(scene, clocks, by: .seconds(7 * 86_400))
        try await scene.reach(.cancelled, [try #require(ids["cloud"])])
        try await eventually("the staged copy has been deleted") { try scene.copies.isEmpty }
        #expect(try FileStatus.ifPresent(at: scene.folder.path.appending("cam/a.mp4")) != nil)
        try await eventually("the source is recorded as kept") {
            try await scene.daemon.context.store.read { try $0.assets.find(1) }?.sourceState == .kept
        }
        try await scene.stop()
    }

    @Test("an untrusted clock expires nothing, and expiry is checked again when it is trusted")
    func clock() async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(clocks: clocks) { $0.policy.rules = Self.week }
        _ = try await scene.daemon.pause(Selection(all: true))
        let id = try await scene.add("a.mp4")
        try await scene.reach(.queued, [id])
        // The run is old enough, and then the clock is set.
        try await goOn(scene, clocks, by: .seconds(7 * 86_400 - 30))
        try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
        clocks.step(by: .seconds(3600))
        try await goOn(scene, clocks, by: .seconds(45))
        try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
        #expect(try await scene.state(id) == .queued)
        try await goOn(scene, clocks, by: .seconds(61))
        try await scene.reach(.cancelled, [id])
        try await scene.stop()
    }
}
