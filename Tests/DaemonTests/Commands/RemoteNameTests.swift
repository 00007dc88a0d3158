import API
import Core
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Names that a remote gives to an upload in progress", .timeLimit(.minutes(Patience.minutes(2))))
struct RemoteNameTests {
    @Test("the remote name is shown during the upload and after a cancel, finds the upload, and verifies nothing")
    func shown() async throws {
        let scene = try await DaemonScene()
        scene.remote.mediaID = "media-7"
        scene.remote.standard = .waitUploading
        let id = try await scene.add("a.mp4")
        try await eventually("the upload has its remote name") {
            try await scene.daemon.show(id).upload.remote?.id == "media-7"
        }
        let view = try await scene.daemon.show("media-7").upload
        #expect(
            view.id == id && view.list.known == .ongoing && view.remote?.verifiedBy == nil && view.remote?.url == nil)
        #expect(try await scene.daemon.list(ListQuery()).uploads.first?.remote?.id == "media-7")
        _ = try await scene.daemon.cancel(Selection(ids: [id]))
        try await scene.isRunning(0)
        let over = try await scene.daemon.show(id).upload
        #expect(over.state == .cancelled && over.remote?.id == "media-7" && over.remote?.verifiedBy == nil)
        try await scene.stop()
    }

    @Test("the remote name is shown with a failure, and beside the verification after completion")
    func ends() async throws {
        let scene = try await DaemonScene()
        scene.remote.mediaID = "media-7"
        scene.remote.when("opened") { _ in scene.remote.mediaID = "media-8" }
        let whole = try await scene.add("a.mp4")
        try await scene.reach(.completed, [whole])
        let view = try await scene.daemon.show(whole).upload
        #expect(view.remote?.id == "media-7" && view.remote?.verifiedBy == "script")
        scene.remote.standard = .failNamed(.failUpload)
        let refused = try await scene.add("b.mp4")
        try await scene.reach(.failed, [refused])
        let failed = try await scene.daemon.show(refused).upload
        #expect(failed.remote?.id == "media-8" && failed.remote?.verifiedBy == nil)
        try await scene.stop()
    }

    @Test("a renewed authorization is an event of the upload, with its remote name")
    func credential() async throws {
        let scene = try await DaemonScene()
        scene.remote.mediaID = "media-7"
        scene.remote.renew(CredentialRenewal(reason: .ending, until: WallTime(milliseconds: 60_000)))
        let id = try await scene.add("a.mp4")
        try await scene.reach(.completed, [id])
        var told: EventView?
        for await event in try await scene.daemon.events(since: 0) where event.type == .credential {
            told = event
            break
        }
        #expect(told?.op?.id == id && told?.op?.remote?.id == "media-7")
        #expect(told?.detail == ["reason": "ending", "until": "1970-01-01T00:01:00.000Z"])
        try await scene.stop()
    }
}
