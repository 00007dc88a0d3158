import API
import Core
import Glibc
import Linux
import Staging
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// Sources that are uploaded in place.
@Suite("Uploads in place", .timeLimit(.minutes(Patience.minutes(1))))
struct InPlaceTests {
    /// - Parameter watches: Whether the folder is watched too; if not, files are only added by hand.
    private func scene(watches: Bool = false) async throws -> DaemonScene {
        try await DaemonScene { settings in
            settings.staging.copy = .inPlace
            if watches { settings.folders[0].watch.exclude = [] }
            settings.folders[0].watch.quietFor = .milliseconds(50)
        }
    }

    /// The id of the first upload of a file that the watcher delivers.
    private func taken(_ scene: DaemonScene, _ path: FilePath) async throws -> String {
        try await eventually("the file has an upload") { try await uploads(scene, of: path).first?.upload.id }
    }

    private func row(_ scene: DaemonScene, _ id: String) async throws -> UploadRow {
        try #require(try await scene.daemon.context.store.read { try $0.uploads.row(id) })
    }

    /// All uploads of the file, oldest first.
    private func uploads(_ scene: DaemonScene, of path: FilePath) async throws -> [UploadRow] {
        try await scene.daemon.context.store.rows(UploadFilter()).filter { $0.asset.path == path }
            .sorted { $0.upload.id < $1.upload.id }
    }

    @Test("an upload in place copies no bytes, uses no staging space, and sends the source's bytes")
    func plain() async throws {
        let scene = try await scene()
        let id = try await scene.add("a.mp4", size: 3 << 20)
        try await scene.reach(.completed, [id])
        #expect(try scene.copies.isEmpty)
        #expect(try await scene.daemon.context.store.read { try $0.staging.totalBytes() } == 0)
        #expect(scene.remote.contents == [noise(3 << 20)])
        #expect(try await row(scene, id).asset.stagingMode == .inPlace)
        try await scene.stop()
    }

    @Test("the setting of a folder overrides the global one")
    func perFolder() async throws {
        let scene = try await DaemonScene { settings in
            settings.staging.copy = .copy
            settings.folders[0].copy = .inPlace
        }
        scene.remote.standard = .waitUploading
        let inPlace = try await scene.add("a.mp4")
        let copied = try await scene.add("b.mp4", in: "solo")
        try await scene.isRunning(2)
        #expect(try await row(scene, inPlace).asset.stagingMode == .inPlace)
        #expect(try scene.copies == [try await row(scene, copied).asset.stagedName])
        scene.remote.letGo()
        try await scene.reach(.completed, [inPlace, copied])
        try await scene.stop()
    }

    @Test(
        "a source that changes during its upload is removed at the remote and uploaded as a new version",
        arguments: ["opened", "sent"], [1000, 1004])
    func changed(_ moment: String, _ size: Int) async throws {
        let scene = try await scene(watches: true)
        let next = noise(size, seed: 77)
        scene.remote.when(moment) { order in
            // Like a camera that overwrites its oldest clip.
            try? Files.remove(order.file.path)
            try? Files.replace(order.file.path, with: next)
        }
        let path = try scene.folder.write("cam/a.mp4", noise(1000))
        let id = try await taken(scene, path)
        try await scene.reach(.cancelled, [id])
        #expect(try await row(scene, id).failure?.code == .sourceChanged)
        try await eventually("the new version has been uploaded") {
            try await uploads(scene, of: path).last { $0.upload.id != id && $0.upload.state == .completed } != nil
        }
        try await eventually("the remote object of the old version has been deleted") {
            scene.remote.objects.count == 1
        }
        #expect(scene.remote.contents.last == next)
        let all = try await uploads(scene, of: path).map {
            "\($0.upload.state) \($0.asset.identity) \($0.asset.changed)"
        }
        #expect(all.count == 2, "\(all.joined(separator: "\n"))")
        try await scene.stop()
    }

    @Test(
        "a version that replaces the source of a running or paused upload ends it, even if released at once",
        arguments: [true, false])
    func superseded(_ isPaused: Bool) async throws {
        let scene = try await DaemonScene { settings in
            settings.staging.copy = .inPlace
            settings.folders[0].watch.exclude = []
            settings.folders[0].watch.quietFor = .milliseconds(50)
            settings.folders[0].afterUpload = .delete
            settings.folders[0].releaseUnsure = .delete
        }
        scene.remote.set(.waitUploading, for: "a.mp4")
        let path = try scene.folder.write("cam/a.mp4", noise(1000))
        let id = try await taken(scene, path)
        try await eventually("the old version is being uploaded") {
            scene.daemon.operations.plan.live[id]?.phase == .uploading
        }
        if isPaused {
            _ = try await scene.daemon.pause(Selection(ids: [id]))
            try await eventually("the upload is paused") { try await scene.state(id) == .queued }
        }
        scene.remote.set(.take, for: "a.mp4")
        let next = noise(700, seed: 77)
        try Files.rename(try scene.folder.write("next", next), to: path)
        // The old upload cannot continue: it is stopped.
        try await scene.reach(.cancelled, [id])
        #expect(try await row(scene, id).failure?.code == .sourceChanged)
        try await eventually("the new version has been uploaded and released") {
            let last = try await uploads(scene, of: path).last
            return last?.upload.state == .completed && last?.asset.sourceState == .released
        }
        try await eventually("the remote object of the old version has been deleted") {
            scene.remote.objects.count == 1
        }
        #expect(scene.remote.contents == [next])
        #expect(try await uploads(scene, of: path).count == 2)
        try await scene.stop()
    }

    @Test(
        "a change with the same size and time is detected by content, and chmod is no change", arguments: [true, false])
    func sameLook(_ isRewritten: Bool) async throws {
        let scene = try await scene(watches: true)
        scene.remote.when("opened") { order in
            let status = try? FileStatus(at: order.file.path)
            guard let file = try? Descriptor.open(order.file.path, for: .updating), let status else { return }
            if isRewritten { try? file.write([9, 9, 9], named: order.file.path) }
            try? file.setModified(status.modified, named: order.file.path)
            try? file.setMode(0o640, named: order.file.path)
        }
        let path = try scene.folder.write("cam/a.mp4", noise(1000))
        let id = try await taken(scene, path)
        try await scene.reach(isRewritten ? .cancelled : .completed, [id])
        try await eventually("the last version has been uploaded") {
            try await uploads(scene, of: path).last?.upload.state == .completed
        }
        try await eventually("the remote has one object") { scene.remote.objects.count == 1 }
        #expect(scene.remote.contents.last == (try Files.read(path)))
        #expect(try await uploads(scene, of: path).count == (isRewritten ? 2 : 1))
        try await scene.stop()
    }

    @Test("a source that is removed before it is sent fails with its name")
    func removed() async throws {
        let scene = try await scene()
        _ = try await scene.daemon.pause(Selection(all: true))
        let path = try scene.folder.write("cam/a.mp4", noise(1000))
        let id = try await scene.add(path)
        try await scene.reach(.queued, [id])
        try Files.remove(path)
        _ = try await scene.daemon.resume(Selection(all: true))
        try await scene.reach(.failed, [id])
        #expect(try await row(scene, id).failure?.code == .sourceMissing)
        #expect(scene.remote.objects.isEmpty)
        try await scene.stop()
    }

    @Test("a source that is removed after the remote has all bytes is not given up")
    func removedAfter() async throws {
        let scene = try await scene()
        scene.remote.when("sent") { try? Files.remove($0.file.path) }
        let id = try await scene.add("a.mp4", size: 1000)
        try await scene.reach(.completed, [id])
        #expect(try await row(scene, id).upload.remote?.warnings.contains { $0.contains("was removed") } == true)
        try await scene.stop()
    }

    @Test("a source that is removed after its last byte, before the remote confirms it, is not given up")
    func removedAtTheEnd() async throws {
        let scene = try await scene()
        scene.remote.when("opened") { try? Files.remove($0.file.path) }
        let id = try await scene.add("a.mp4", size: 1000)
        try await scene.reach(.completed, [id])
        #expect(try await row(scene, id).upload.remote?.warnings.contains { $0.contains("was removed") } == true)
        try await scene.stop()
    }

    @Test("a source whose disk is absent holds its upload as absent, without a failure")
    func away() async throws {
        let scene = try await scene()
        _ = try await scene.daemon.pause(Selection(all: true))
        let id = try await scene.add("a.mp4", size: 1000)
        try await scene.reach(.queued, [id])
        let cam = scene.folder.path.appending("cam")
        let elsewhere = scene.folder.path.appending("elsewhere")
        try Files.rename(cam, to: elsewhere)
        _ = try await scene.daemon.resume(Selection(all: true))
        // The view with the wait, since the next view may be after another try.
        let shown = try await eventually("the upload waits for its source") {
            let view = try await scene.daemon.show(id).upload
            return view.holds.contains { $0.kind.known == .absent } ? view : nil
        }
        #expect(shown.state == .waiting)
        #expect(shown.attempt == 0)
        #expect(scene.remote.objects.isEmpty)
        try Files.rename(elsewhere, to: cam)
        try await scene.reach(.completed, [id])
        #expect(try await scene.daemon.show(id).upload.holds.isEmpty)
        try await scene.stop()
    }

    @Test(
        "of many uploads in place whose disk is away few are tried, all wait with the reason, and all go when it is back"
    )
    func manyAway() async throws {
        let scene = try await scene()
        _ = try await scene.daemon.pause(Selection(all: true))
        var ids: [String] = []
        for number in 0..<100 { ids.append(try await scene.add("\(number).mp4", size: 500 + number)) }
        try await scene.reach(.queued, ids)
        let cam = scene.folder.path.appending("cam")
        let elsewhere = scene.folder.path.appending("elsewhere")
        try Files.rename(cam, to: elsewhere)
        _ = try await scene.daemon.resume(Selection(all: true))
        let other = try await scene.add("other.mp4", in: "solo")
        try await scene.reach(.completed, [other])
        try await eventually("all wait for the disk") {
            for id in ids
            where try await !scene.daemon.show(id).upload.holds.contains(where: { $0.kind.known == .absent }) {
                return false
            }
            return true
        }
        var tried = 0
        for id in ids where try await row(scene, id).failure != nil { tried += 1 }
        // As many as may run at the same time, and those of one more turn.
        #expect((1...16).contains(tried))
        #expect(scene.remote.objects.count == 1)
        try Files.rename(elsewhere, to: cam)
        try await scene.reach(.completed, ids)
        #expect(scene.remote.objects.count == 101)
        for id in ids { #expect(try await scene.daemon.show(id).upload.holds.isEmpty) }
        try await scene.stop()
    }

    @Test("an upload of a disk that is away is cancelled, and the others of the disk go when it is back")
    func awayCancelled() async throws {
        let scene = try await scene()
        _ = try await scene.daemon.pause(Selection(all: true))
        var ids: [String] = []
        for number in 0..<10 { ids.append(try await scene.add("\(number).mp4", size: 500 + number)) }
        try await scene.reach(.queued, ids)
        let cam = scene.folder.path.appending("cam")
        let elsewhere = scene.folder.path.appending("elsewhere")
        try Files.rename(cam, to: elsewhere)
        _ = try await scene.daemon.resume(Selection(all: true))
        try await eventually("one has found the disk away") {
            for id in ids where try await row(scene, id).failure?.code == .sourceAbsent { return true }
            return false
        }
        try await scene.isRunning(0)
        var cancelled: Set<String> = []
        for id in ids where try await row(scene, id).failure != nil { cancelled.insert(id) }
        _ = try await scene.daemon.cancel(Selection(ids: Array(cancelled)))
        try Files.rename(elsewhere, to: cam)
        try await scene.reach(.completed, ids.filter { !cancelled.contains($0) })
        try await scene.reach(.cancelled, Array(cancelled))
        #expect(scene.remote.objects.count == ids.count - cancelled.count)
        try await scene.stop()
    }

    @Test(
        "a file with the source's name on another disk ends no upload, which continues when its own disk is back",
        .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value })
    func otherDisk() async throws {
        let scene = try await scene()
        let own = try SmallDisk(at: scene.folder.path.appending("cam"))
        _ = try await scene.daemon.pause(Selection(all: true))
        let id = try await scene.add("a.mp4", size: 1000)
        try await scene.reach(.queued, [id])
        do {
            let other = try await LoopDisk(.ext4, at: own.path)
            try Files.replace(other.path.appending("a.mp4"), with: noise(1000, seed: 5))
            _ = try await scene.daemon.resume(Selection(all: true))
            try await eventually("the upload waits for its disk") {
                try await scene.daemon.show(id).upload.holds.map(\.kind.known) == [.absent]
            }
            #expect(try await scene.state(id) == .queued)
        }
        try await scene.reach(.completed, [id])
        #expect(scene.remote.contents == [noise(1000)])
        try await scene.stop()
        withExtendedLifetime(own) {}
    }

    @Test(
        "retry of a cancelled upload whose disk is away is accepted, and it continues when the disk is back",
        arguments: [StagingSettings.Copy.inPlace, .copy])
    func retriedAway(_ copy: StagingSettings.Copy) async throws {
        let scene = try await DaemonScene { $0.staging.copy = copy }
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4", size: 1000)
        try await scene.isRunning(1)
        _ = try await scene.daemon.cancel(Selection(ids: [id]))
        try await scene.reach(.cancelled, [id])
        try await eventually("the copy is gone") { try scene.copies.isEmpty }
        let cam = scene.folder.path.appending("cam")
        let elsewhere = scene.folder.path.appending("elsewhere")
        try Files.rename(cam, to: elsewhere)
        scene.remote.standard = .take
        _ = try await scene.daemon.retry(Selection(ids: [id]))
        try await eventually("the upload waits for its disk") {
            try await scene.daemon.show(id).upload.holds.contains { $0.kind.known == .absent }
        }
        try Files.rename(elsewhere, to: cam)
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }

    @Test("small files in place are not bundled, so that each source is checked")
    func bundles() async throws {
        let scene = try await scene()
        scene.remote.takesTogether(Bundling(largest: 256 << 10, files: 32, bytes: 8 << 20))
        _ = try await scene.daemon.pause(Selection(all: true))
        var ids: [String] = []
        for number in 0..<5 { ids.append(try await scene.add("\(number).mp4", size: 500 + number)) }
        try await scene.reach(.queued, ids)
        _ = try await scene.daemon.resume(Selection(all: true))
        try await scene.reach(.completed, ids)
        #expect(scene.remote.bundles.isEmpty)
        #expect(scene.remote.objects.count == 5)
        try await scene.stop()
    }

    @Test("a cancelled upload keeps its source, and a retry computes its digest again")
    func cancelled() async throws {
        let scene = try await scene()
        scene.remote.standard = .waitUploading
        let path = try scene.folder.write("cam/a.mp4", noise(1000))
        let id = try await scene.add(path)
        try await scene.isRunning(1)
        _ = try await scene.daemon.cancel(Selection(ids: [id]))
        try await scene.reach(.cancelled, [id])
        scene.remote.letGo()
        try await eventually("the asset has been dropped") { try await row(scene, id).asset.state == .dropped }
        #expect(try Files.read(path) == noise(1000))
        _ = try await scene.daemon.retry(Selection(ids: [id]))
        try await scene.reach(.completed, [id])
        try await scene.stop()
    }
}
