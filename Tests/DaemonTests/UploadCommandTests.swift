import API
import Core
import Glibc
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Daemon

@Suite("Commands on uploads")
struct UploadCommandTests {
    enum Moment: CaseIterable { case staging, queued, opening, uploading }

    @Test("cancel removes the copy and the remote remains, and keeps the source", arguments: Moment.allCases)
    func cancel(_ moment: Moment) async throws {
        let scene = try await DaemonScene(cap: 10_000)
        let id = try await bring(scene, to: moment)
        let views = try await scene.daemon.cancel(Selection(ids: [id])).uploads
        #expect(views.map(\.state) == [.cancelled])
        scene.remote.letGo()
        try await eventually("no copy is left") { try scene.copies.isEmpty }
        try await eventually("the remote has no object of the upload") {
            !scene.remote.objects.contains("meant") && scene.remote.running.isEmpty
        }
        #expect(try await scene.state(id) == .cancelled)
        #expect(try FileStatus.ifPresent(at: scene.folder.path.appending("cam/meant")) != nil)
        try await scene.stop()
    }

    @Test("retry after cancel uploads the file once more, and the remote has it once", arguments: Moment.allCases)
    func retry(_ moment: Moment) async throws {
        let scene = try await DaemonScene(cap: 10_000)
        let id = try await bring(scene, to: moment)
        _ = try await scene.daemon.cancel(Selection(ids: [id]))
        // The opening may finish only now: the retry meets the transfer of the earlier generation.
        let retried = Task { try await scene.daemon.retry(Selection(ids: [id])) }
        scene.remote.letGo()
        #expect(try await retried.value.uploads.map(\.generation) == [2])
        _ = try await scene.daemon.resume(Selection(all: true))
        try await scene.reach(.completed, [id])
        try await eventually("the remote has one object of the upload") {
            scene.remote.objects.filter { $0 == "meant" }.count == 1
        }
        try await eventually("no copy is left") { try scene.copies.isEmpty }
        try await scene.stop()
    }

    @Test("retry of a failed upload starts again, from the source if the copy is gone")
    func retryFailed() async throws {
        let scene = try await DaemonScene()
        scene.remote.standard = .fail(.failUpload)
        let id = try await scene.add("a")
        try await scene.reach(.failed, [id])
        scene.remote.letGo()
        #expect(try await scene.daemon.retry(Selection(ids: [id])).uploads.map(\.generation) == [2])
        try await scene.reach(.completed, [id])
        // A completed upload needs no copy.
        await #expect(throws: Refusal.self) { try await scene.daemon.retry(Selection(ids: [id])) }
        try await scene.stop()
    }

    /// A file `meant` that has reached this moment.
    private func bring(_ scene: DaemonScene, to moment: Moment) async throws -> String {
        switch moment {
        case .staging:
            // The cap leaves no space for a second copy before the first upload is over.
            scene.remote.standard = .waitUploading
            _ = try await scene.add("first", size: 8_000)
            try await scene.isRunning(1)
            let id = try await scene.add("meant", size: 8_000)
            try await eventually("the upload waits for staging space") {
                try await !scene.daemon.show(id).upload.holds.isEmpty
            }
            return id
        case .queued:
            _ = try await scene.daemon.pause(Selection(all: true))
            let id = try await scene.add("meant")
            try await scene.reach(.queued, [id])
            return id
        case .opening, .uploading:
            scene.remote.standard = moment == .opening ? .waitOpening : .waitUploading
            let id = try await scene.add("meant")
            try await eventually("the upload is \(moment)") {
                scene.daemon.operations.plan.live[id]?.phase == (moment == .opening ? .opening : .uploading)
            }
            return id
        }
    }
}
