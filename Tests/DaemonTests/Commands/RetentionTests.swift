import API
import Core
import Linux
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Lists and history in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct RetentionTests {
    private func list(_ scene: DaemonScene, _ list: String) async throws -> [String] {
        var query = ListQuery()
        query.list = list
        return try await scene.daemon.list(query).uploads.map(\.id)
    }

    /// An upload that failed, with its copy.
    private func fail(_ scene: DaemonScene, _ name: String) async throws -> String {
        scene.remote.set(.fail(.failUpload), for: FilePath(name))
        let id = try await scene.add(name)
        try await scene.reach(.failed, [id])
        return id
    }

    @Test(
        "each list has its own retention of running time, and afterwards only the history shows the upload"
    )
    func times() async throws {
        let clocks = ManualClocks(wall: WallTime(milliseconds: 0))
        let scene = try await DaemonScene(clocks: clocks) { settings in
            settings.lists.completed.time = .seconds(10)
            settings.lists.failed.time = .seconds(60)
            settings.lists.history = .seconds(100)
        }
        let done = try await scene.add("done.mp4")
        try await scene.reach(.completed, [done])
        clocks.advance(by: .seconds(5))
        let failed = try await fail(scene, "failed.mp4")
        // The clock is set.
        clocks.step(by: .seconds(20_000 * 86_400))
        scene.daemon.signals.history.signal()
        let view = try await scene.daemon.show(done).upload
        #expect(view.expiresAt == clocks.wall().advanced(by: .seconds(5)).description)
        clocks.advance(by: .seconds(5))
        scene.daemon.signals.history.signal()
        try await scene.reach(.removed, [done])
        #expect(try await list(scene, "completed").isEmpty)
        #expect(try await list(scene, "failed") == [failed])
        #expect(try await list(scene, "history") == [done])
        let gone = try await scene.daemon.show(done).upload
        #expect(gone.state == .completed && gone.list.known == .history && gone.progress.fraction == 1)
        #expect(try await scene.daemon.status().counts == Counts(failed: 1))
        clocks.advance(by: .seconds(55))
        scene.daemon.signals.history.signal()
        try await scene.reach(.removed, [failed])
        #expect(try await scene.daemon.show(failed).upload.error?.code == "scripted")
        // Its source exists: the copy is not needed.
        try await eventually("the staged copy has been deleted") { try scene.copies.isEmpty }
        try await eventually("the source is kept") {
            try await scene.daemon.show(failed).upload.sourceState == "kept: an upload of it has failed"
        }
        clocks.advance(by: .seconds(35))
        scene.daemon.signals.history.signal()
        try await eventually("the oldest completed upload has been forgotten") { try await scene.state(done) == nil }
        #expect(try await scene.state(failed) == .removed)
        try await scene.stop()
    }

    @Test(
        "the only copy of a file that reached no destination is kept", arguments: ["gone", "another file"],
        ["remove", "cancel"])
    func rescued(_ source: String, _ verb: String) async throws {
        let scene = try await DaemonScene()
        let id = try await fail(scene, "clip.mp4")
        let path = scene.folder.path.appending("cam/clip.mp4")
        let content = try Files.read(path)
        try Files.remove(path)
        if source != "gone" { try scene.folder.write("cam/clip.mp4", noise(100, seed: 9)) }
        let selection = Selection(ids: [id])
        _ = try await verb == "remove" ? scene.daemon.remove(selection) : scene.daemon.cancel(selection)
        let shelf = scene.folder.path.appending("staging/rescued")
        let note = try await eventually("the source state names the place of the copy") {
            let state = try await scene.daemon.show(id).upload.sourceState
            return state.hasPrefix("kept: it was uploaded to no destination") ? state : nil
        }
        let names = try Files.names(in: shelf)
        #expect(names.count == 1 && names.first?.display.hasSuffix("-clip.mp4") == true)
        let place = shelf.appending(try #require(names.first))
        #expect(note.hasSuffix(place.display))
        #expect(try Files.read(place) == content)
        // The copy is named, for a person who wants it back.
        if source == "gone" {
            let refusal = await #expect(throws: Refusal.self) { try await scene.daemon.retry(selection) }
            #expect(refusal?.code == .sourceMissing && refusal?.message.contains(place.display) == true)
        }
        try await scene.stop()
    }

    @Test("an only copy that cannot be moved stays with the reason, and delays no other release")
    func stuck() async throws {
        let scene = try await DaemonScene { $0.folders[0].afterUpload = .delete }
        let id = try await fail(scene, "clip.mp4")
        let shelf = try scene.folder.write("staging/rescued", [])
        try Files.remove(scene.folder.path.appending("cam/clip.mp4"))
        _ = try await scene.daemon.remove(Selection(ids: [id]))
        try await eventually("the source state says that the copy cannot be moved") {
            try await scene.daemon.show(id).upload.sourceState.contains("to a safe place")
        }
        let other = try await scene.add("other.mp4")
        try await scene.reach(.completed, [other])
        try await eventually("the other source has been deleted") {
            try FileStatus.ifPresent(at: scene.folder.path.appending("cam/other.mp4")) == nil
        }
        try await eventually("only the copy that cannot be moved is left") {
            try scene.copies.filter { $0 != "rescued" }.count == 1
        }
        try Files.remove(shelf)
        try await scene.stop()
    }

    @Test("a dismissed upload starts again from the history under its own name, and cannot be dismissed meanwhile")
    func again() async throws {
        let scene = try await DaemonScene()
        let id = try await fail(scene, "clip.mp4")
        _ = try await scene.daemon.remove(Selection(ids: [id]))
        #expect(try await scene.daemon.remove(Selection(ids: [id])).uploads.map(\.list.known) == [.history])
        try await eventually("the staged copy has been deleted") { try scene.copies.isEmpty }
        scene.remote.set(.waitUploading, for: "clip.mp4")
        let path = scene.folder.path.appending("cam/clip.mp4").display
        #expect(try await scene.daemon.retry(Selection(ids: [path])).uploads.map(\.generation) == [2])
        try await scene.isRunning(1)
        for verb in [scene.daemon.remove, scene.daemon.retry] {
            let refusal = try? await verb(Selection(ids: [id]))
            #expect(refusal == nil || refusal?.uploads.first?.generation == 2)
        }
        let refusal = await #expect(throws: Refusal.self) { try await scene.daemon.remove(Selection(ids: [id])) }
        #expect(
            refusal?.code == .conflict
                && refusal?.message.contains("only an upload that has ended can be removed") == true)
        scene.remote.letGo()
        try await scene.reach(.completed, [id])
        _ = try await scene.daemon.remove(Selection(ids: [id]))
        let over = await #expect(throws: Refusal.self) { try await scene.daemon.retry(Selection(ids: [id])) }
        #expect(over?.code == .conflict && over?.message.contains("add --again") == true)
        let cancel = await #expect(throws: Refusal.self) { try await scene.daemon.cancel(Selection(ids: [id])) }
        #expect(cancel?.message.contains("completed and in the history") == true)
        #expect(scene.remote.objects == ["clip.mp4"])
        try await scene.stop()
    }

    @Test("flush clears ended uploads of a list, a folder, a destination or all, and running uploads continue")
    func flush() async throws {
        let scene = try await DaemonScene()
        let done = try await scene.add("done.mp4")
        try await scene.reach(.completed, [done])
        let failed = try await fail(scene, "failed.mp4")
        scene.remote.standard = .waitUploading
        let running = [try await scene.add("1"), try await scene.add("2"), try await scene.add("3")]
        try await scene.isRunning(3)
        #expect(try await scene.daemon.flush(FlushRequest(list: "failed", folder: "solo")).count == 0)
        #expect(try await scene.daemon.flush(FlushRequest(list: "failed", folder: "cam")).count == 1)
        #expect(try await scene.state(failed) == .removed)
        #expect(try await scene.state(done) == .completed)
        let seq = await scene.daemon.context.store.seq
        #expect(try await scene.daemon.flush(FlushRequest()).count == 1)
        #expect(try await list(scene, "history") == [failed, done])
        #expect(try await Set(list(scene, "ongoing")) == Set(running))
        let events = try await scene.daemon.context.store.read { try $0.events.list(after: seq, limit: 10) }
        #expect(events.map(\.type).filter { $0 != .source } == [.removed, .flushed])
        #expect(events.first { $0.type == .flushed }?.detail == ["lists": "completed failed cancelled", "count": "1"])
        for list in ["ongoing", "history", "x"] {
            let refusal = await #expect(throws: Refusal.self) {
                try await scene.daemon.flush(FlushRequest(list: list))
            }
            #expect(refusal?.code == .badRequest)
        }
        scene.remote.letGo()
        try await scene.reach(.completed, running)
        try await scene.stop()
    }

    @Test("a reload applies new retention to uploads that have already ended")
    func reload() async throws {
        let clocks = ManualClocks()
        let scene = try await DaemonScene(clocks: clocks)
        let done = try await scene.add("done.mp4")
        try await scene.reach(.completed, [done])
        clocks.advance(by: .seconds(30))
        scene.written.edit { $0.lists.completed.time = .seconds(20) }
        let view = try await scene.daemon.reload()
        #expect(view.changes.map(\.words) == ["retention changed (completed)"])
        try await scene.reach(.removed, [done])
        try await scene.stop()
    }
}
