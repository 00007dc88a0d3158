import Core
import Linux
import Synchronization
import TestKit
import Testing

@testable import Destinations

/// An image that belongs to a video becomes its thumbnail.
@Suite("Thumbnails at vimeo", .timeLimit(.minutes(Patience.minutes(2))))
struct VimeoPictureTests {
    private static let on: [String: SettingValue] = ["video.thumbnail": .flag(true)]

    /// An emulator with a complete video, an image that belongs to it, and the daemon's knowledge of both.
    private struct Scene {
        let end: VimeoEnd
        let image: StagedUpload
        let recorder: RecordingReporter

        init(_ more: [String: SettingValue] = on, mediaType: String = "image/jpeg", size: Int = 3000) async throws {
            end = try VimeoEnd(.tus, more)
            let video = try await end.bring(try StagedUpload(2000))
            image = try StagedUpload(size, id: "01JP", name: "front/clip.jpg", mediaType: mediaType, seed: 2)
            recorder = RecordingReporter()
            recorder.accompany([Companion(mediaType: "video/mp4", state: .completed, remote: video)])
            end.server.change { $0.requests = [] }
        }

        var shown: [[UInt8]] { end.server.pictures.filter(\.isActive).map(\.bytes) }
    }

    @Test("a thumbnail is created, filled without the token, and selected")
    func whole() async throws {
        let scene = try await Scene()
        let object = try await scene.end.bring(scene.image, scene.recorder)
        #expect(object == RemoteObject(id: "/videos/1/pictures/1", url: nil, verifiedBy: "active"))
        let isShown = scene.shown == [scene.image.content]
        #expect(isShown)
        #expect(scene.end.server.pictures.map(\.mediaType) == ["image/jpeg"])
        #expect(scene.end.server.requests == ["picture", "image", "choice"])
        #expect(scene.end.server.state.withLock { $0.tokensAtBytes } == 0)
    }

    @Test(
        "after a lost or refused answer the thumbnail is shown, without another one beside it",
        arguments: [
            (VimeoServer.Kind.image, VimeoServer.Fault.loseReply), (.image, .cut(after: 100)), (.image, .answer(503)),
            (.image, .answer(404)), (.image, .answer(403)), (.choice, .loseReply), (.choice, .answer(500)),
            (.choice, .answer(200, [], "{}")), (.picture, .answer(500)), (.choice, .answer(429)),
            (.choice, .answer(404, [], "{\"error\": \"not found\"}")),
        ])
    func faults(_ kind: VimeoServer.Kind, _ fault: VimeoServer.Fault) async throws {
        let scene = try await Scene()
        scene.end.server.script(kind, fault)
        try await scene.end.bring(scene.image, scene.recorder)
        let isShown = scene.shown == [scene.image.content]
        #expect(isShown)
        #expect(scene.end.server.pictures.count == 1)
    }

    @Test("a thumbnail whose creation got no answer is created again, and the leftover has no bytes")
    func lostCreation() async throws {
        let scene = try await Scene()
        scene.end.server.script(.picture, .loseReply)
        try await scene.end.bring(scene.image, scene.recorder)
        let isShown = scene.shown == [scene.image.content]
        #expect(isShown)
        #expect(scene.end.server.pictures.map(\.bytes.isEmpty) == [true, false])
    }

    @Test("after a kill at each note the same picture continues")
    func deaths() async throws {
        for deaths in 1...3 {
            let scene = try await Scene()
            for note in 1...deaths {
                _ = try await scene.image.sendStopped(to: scene.end, scene.recorder) { $0.taken == note + 1 }
            }
            try await scene.end.bring(scene.image, scene.recorder)
            let isShown = scene.shown == [scene.image.content]
            #expect(isShown, "after \(deaths) kills")
            #expect(scene.end.server.pictures.count == 1, "after \(deaths) kills")
        }
    }

    @Test(
        "a thumbnail waits for its video without an attempt, with the reason",
        arguments: [UploadState.queued, .uploading, .failed])
    func waits(_ state: UploadState) async throws {
        let scene = try await Scene()
        scene.recorder.accompany([
            Companion(mediaType: "image/png", state: .completed, remote: nil),
            Companion(mediaType: "video/mp4", state: state),
        ])
        let error = try await scene.image.failure(to: scene.end, scene.recorder)
        #expect(error.remedy == .pending(after: .seconds(300)))
        #expect(error.failure.message.contains("waits for its video"))
        #expect(scene.end.server.requests.isEmpty)
    }

    @Test("no other sidecar is taken for the video, and only its own round's")
    func others() async throws {
        let scene = try await Scene()
        let video = try #require(try await scene.recorder.companions().first)
        let sidecars = ["application/xml", "application/x-subrip", "text/plain", "audio/mpeg", "image/png"].map {
            Companion(
                mediaType: $0, state: .completed, remote: RemoteObject(id: "/videos/9", url: nil, verifiedBy: "offset"))
        }
        let cancelled = Companion(mediaType: "video/mp4", state: .cancelled)
        scene.recorder.accompany(sidecars + [video, cancelled])
        #expect(try await scene.end.bring(scene.image, scene.recorder).id == "/videos/1/pictures/1")
        let other = RecordingReporter()
        other.accompany([cancelled, video])
        #expect(try await scene.image.failure(to: scene.end, other).failure.code == .noVideo)
    }

    @Test("a thumbnail lost before it is shown is created again, three times, and then by `retry`")
    func gone() async throws {
        let scene = try await Scene()
        for _ in 0..<3 { scene.end.server.script(.choice, .answer(404, [], "{\"error\": \"not found\"}")) }
        let error = try await scene.image.failure(to: scene.end, scene.recorder)
        #expect(error.remedy == .failUpload && error.failure.code == .videoDeleted)
        try await scene.end.bring(scene.image, scene.recorder)
        #expect(scene.shown == [scene.image.content])
        #expect(scene.end.server.pictures.count == 1)
    }

    @Test("a thumbnail fails alone without a video: none in the group, a cancelled one, or a deleted one")
    func noVideo() async throws {
        let scene = try await Scene()
        for others in [[], [Companion(mediaType: "video/mp4", state: .cancelled)]] {
            scene.recorder.accompany(others)
            let error = try await scene.image.failure(to: scene.end, scene.recorder)
            #expect(error.remedy == .failUpload)
            #expect(error.failure.code == .noVideo)
        }
        scene.recorder.accompany([
            Companion(
                mediaType: "video/mp4", state: .completed,
                remote: RemoteObject(id: "/videos/77", url: nil, verifiedBy: "offset"))
        ])
        #expect(try await scene.image.failure(to: scene.end, scene.recorder).failure.code == .videoDeleted)
    }

    @Test("a thumbnail without the token's permission fails alone, names the scope, and `check` reports it before")
    func scope() async throws {
        let scene = try await Scene()
        scene.end.server.change { $0.account.scopes = ["upload", "private", "delete"] }
        let error = try await scene.image.failure(to: scene.end, scene.recorder)
        #expect(error.remedy == .failUpload)
        #expect(error.failure.message.contains("`edit`"))
        let check = await scene.end.destination.check()
        #expect(check.verdict == .warning)
        #expect(check.detail.contains("it lacks the scope `edit`, for setting a thumbnail"))
    }

    @Test("an empty, unsuitable or unconfigured image is refused without a request")
    func refused() async throws {
        let cases: [(Scene, Failure.Code)] = [
            (try await Scene(size: 0), .emptyFile), (try await Scene(mediaType: "image/heic"), .notAPicture),
            (try await Scene([:]), .notAVideo),
        ]
        for (scene, code) in cases {
            let error = try await scene.image.failure(to: scene.end, scene.recorder)
            #expect(error.remedy == .failUpload)
            #expect(error.failure.code == code)
            #expect(scene.end.server.requests.isEmpty)
        }
    }

    @Test("a cancelled thumbnail is removed, and a missing one is done")
    func removal() async throws {
        let scene = try await Scene()
        try await scene.end.bring(scene.image, scene.recorder)
        let last = try #require(scene.recorder.last)
        #expect(try await scene.end.destination.discard(last))
        #expect(scene.end.server.pictures.isEmpty)
        #expect(scene.end.server.videos.count == 1)
        #expect(try await scene.end.destination.discard(last))
    }
}
