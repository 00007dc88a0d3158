import API
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// Files that are to be at one of two destinations.
@Suite("first_of in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct FirstOfTests {
    private let clocks = ManualClocks()
    private let nas = ScriptedRemote()
    private let cloud = ScriptedRemote()

    private func scene(
        folder: TemporaryFolder = TemporaryFolder(), _ shape: (inout Settings) -> Void = { _ in }
    ) async throws -> DaemonScene {
        try await DaemonScene(clocks: clocks, folder: folder, remote: nas, second: cloud) { settings in
            var second = settings.destinations[0]
            (second.name, second.type) = ("cloud", "second")
            settings.destinations.append(second)
            settings.folders[0].routes = [UploadRoute(firstOf: ["nas", "cloud"], after: .seconds(3600))]
            settings.folders[0].afterUpload = .delete
            shape(&settings)
        }
    }

    /// - Returns: The uploads to nas and to cloud.
    private func add(_ scene: DaemonScene, _ name: String = "a.mp4") async throws -> (nas: String, cloud: String) {
        let path = try scene.folder.write(FilePath("cam").appending(FilePath(name)), noise(100))
        let uploads = try await scene.daemon.add(AddRequest(path: path.display)).uploads
        #expect(uploads.map(\.destination) == ["nas", "cloud"])
        return (try #require(uploads.first).id, try #require(uploads.last).id)
    }

    private func goOn(_ scene: DaemonScene, by time: Duration) async throws {
        try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
        clocks.advance(by: time)
        scene.daemon.signals.scheduling.signal()
    }

    private func isGone(_ scene: DaemonScene, _ name: FilePath = "cam/a.mp4") throws -> Bool {
        try FileStatus.ifPresent(at: scene.folder.path.appending(name)) == nil
    }

    @Test("when the first destination has the file, the second gets nothing and names the first, and the source goes")
    func first() async throws {
        let scene = try await scene()
        let ids = try await add(scene)
        try await scene.reach(.completed, [ids.nas])
        try await scene.reach(.cancelled, [ids.cloud])
        try await eventually("the source has been deleted") { try isGone(scene) }
        #expect(cloud.began.isEmpty && nas.objects == ["a.mp4"])
        let view = try await scene.daemon.show(ids.cloud).upload
        #expect(view.state == .superseded && view.list.known == .cancelled && view.error?.code == "superseded")
        let why = try #require(try await scene.daemon.why(ids.cloud).answers.first)
        #expect(why.text.hasPrefix("superseded by nas: upload \(ids.nas) was verified there first"))
        await #expect { _ = try await scene.daemon.retry(Selection(ids: [ids.cloud])) } throws: {
            "\($0)".contains("the file is verified at nas, which is enough")
        }
        try await scene.stop()
    }

    @Test("while it waits, its hold and the end of it are shown; then it goes, and what the first has is removed")
    func takesOver() async throws {
        nas.standard = .waitUploading
        let scene = try await scene()
        let ids = try await add(scene)
        try await eventually("the upload to nas runs") { nas.running.count == 1 }
        try await scene.reach(.queued, [ids.cloud])
        let hold = try #require(try await scene.daemon.show(ids.cloud).upload.holds.first)
        #expect(hold.kind.known == .alternative)
        #expect(hold.until == clocks.wall().advanced(by: .seconds(3600)).description)
        #expect(hold.text == "goes to cloud only if the file is not verified in time at nas")
        #expect(try await scene.daemon.why(ids.cloud).answers.first?.text == hold.text)
        let status = try await scene.daemon.status()
        #expect(status.classes?.map(\.hold.kind.known) == [.alternative])
        var query = ListQuery()
        query.state = "waiting"
        #expect(try await scene.daemon.list(query).uploads.map(\.id) == [ids.cloud])
        #expect(try await scene.daemon.scheduler.nextDeadline() == .seconds(3600))
        try await goOn(scene, by: .seconds(3599))
        try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
        #expect(cloud.began.isEmpty)
        try await goOn(scene, by: .seconds(1))
        try await scene.reach(.completed, [ids.cloud])
        try await scene.reach(.cancelled, [ids.nas])
        try await eventually("the object at nas has been removed") { nas.objects.isEmpty }
        try await eventually("the source has been deleted") { try isGone(scene) }
        #expect(cloud.objects == ["a.mp4"])
        try await scene.stop()
    }

    /// A daemon that waits for half an hour, and stops.
    private func firstRun() async throws -> (folder: TemporaryFolder, ids: (nas: String, cloud: String)) {
        let scene = try await scene()
        let ids = try await add(scene)
        try await eventually("the upload to nas runs") { nas.running.count == 1 }
        try await goOn(scene, by: .seconds(1800))
        try await eventually("the scheduler waits") { scene.daemon.signals.scheduling.isWaiting }
        try await scene.stop()
        return (scene.folder, ids)
    }

    @Test("a restart and a clock that is set do not shorten the wait")
    func restart() async throws {
        nas.standard = .waitUploading
        let (folder, ids) = try await firstRun()
        clocks.step(by: .seconds(86_400))
        let again = try await scene(folder: folder)
        try await eventually("the upload to nas runs again") { nas.running.count == 1 }
        let left = try #require(try await again.daemon.context.store.read { try $0.alternatives.nextWait() })
        #expect(left >= .seconds(1800) && left <= .seconds(1860))
        try await goOn(again, by: left)
        try await again.reach(.completed, [ids.cloud])
        try await again.reach(.cancelled, [ids.nas])
        try await again.stop()
    }

    @Test("a first upload that is refused or cancelled lets the second go at once", arguments: [true, false])
    func refused(_ isCancelled: Bool) async throws {
        nas.standard = isCancelled ? .waitUploading : .fail(.failUpload)
        let scene = try await scene()
        let ids = try await add(scene)
        if isCancelled {
            try await eventually("the upload to nas runs") { nas.running.count == 1 }
            _ = try await scene.daemon.cancel(Selection(ids: [ids.nas]))
        }
        try await scene.reach(.completed, [ids.cloud])
        try await scene.reach(.cancelled, [ids.nas])
        try await eventually("the source has been deleted") { try isGone(scene) }
        try await scene.stop()
    }

    @Test("a destination that is no longer configured is waited for, and then the next one goes")
    func removed() async throws {
        nas.standard = .waitUploading
        let scene = try await scene()
        let ids = try await add(scene)
        try await eventually("the upload to nas runs") { nas.running.count == 1 }
        scene.written.edit { settings in
            settings.destinations.removeFirst()
            settings.folders[0].routes = [UploadRoute(to: "cloud")]
            settings.folders[1].routes = [UploadRoute(to: "cloud")]
        }
        _ = try await scene.daemon.reload()
        #expect(cloud.began.isEmpty)
        try await goOn(scene, by: .seconds(3600))
        try await scene.reach(.completed, [ids.cloud])
        try await scene.reach(.cancelled, [ids.nas])
        try await scene.stop()
    }

    @Test("files that a person adds for both destinations go to both")
    func named() async throws {
        let scene = try await scene()
        let path = try scene.folder.write("cam/a.mp4", noise(100))
        let added = try await scene.daemon.add(AddRequest(path: path.display, to: ["nas", "cloud"])).uploads
        try await scene.reach(.completed, added.map(\.id))
        #expect(nas.objects == ["a.mp4"] && cloud.objects == ["a.mp4"])
        try await scene.stop()
    }

    @Test("a plan does not send what waits for another destination, and says so where that will be too late")
    func plan() async throws {
        nas.standard = .waitUploading
        let scene = try await scene()
        let ids = try await add(scene)
        try await eventually("the upload to nas runs") { nas.running.count == 1 }
        try await scene.reach(.queued, [ids.cloud])
        var plan = try await scene.daemon.plan(PlanQuery(rate: 1_000_000))
        #expect(plan.queues.filter { $0.destination == "cloud" }.map(\.standby) == [1])
        #expect(plan.queues.filter { $0.destination == "cloud" }.map(\.files) == [0])
        #expect(!plan.notes.contains { $0.contains("may go to cloud") })
        _ = try await scene.daemon.pause(Selection(destination: "nas"))
        plan = try await scene.daemon.plan(PlanQuery(rate: 1_000_000))
        #expect(plan.notes.contains { $0.hasPrefix("files of cam may go to cloud from ") })
        try await scene.stop()
    }
}
