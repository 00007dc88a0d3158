import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

/// The built program and an account: after kills at any moment, each file is one video.
@Suite("Vimeo with kills", .serialized, .timeLimit(.minutes(Patience.minutes(20))))
struct VimeoCrashTests {
    private struct Scene {
        let server: VimeoServer
        let fixture: DaemonFixture
        let camera: Camera

        init(_ flow: String, _ more: String = "", folder: [String] = []) throws {
            server = try VimeoServer()
            fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
            let token = try fixture.folder.write("token", Array("vimeo-token-1".utf8))
            fixture.uploadTo = ["film"]
            fixture.folderKeys += folder
            fixture.destination = server.url
            fixture.moreDestinations = [
                "film: {type: vimeo, url: \"\(server.url)\", token: {file: \(token.display)}, flow: \(flow), "
                    + "chunk_size: 64 KiB, poll: 1s, allow_origins: [\(server.bytesURL)]\(more)}"
            ]
            camera = Camera(fixture, dice: Dice(seed: 1))
        }

        func drop(_ count: Int, size: Int, from first: Int = 0) throws {
            for number in first..<first + count {
                try camera.drop(Clip(number: number, size: size, relative: FilePath("clip \(number).mp4")))
            }
        }

        func allIsDone(_ count: Int) async throws {
            try await eventually("all uploads are complete", within: .seconds(90), every: .milliseconds(100)) {
                try fixture.daemon?.requireRunning()
                guard let counts = try await fixture.status()?.counts else { return nil }
                return counts.completed == count && counts.ongoing == 0
            }
            try await eventually("the sources have been deleted", every: .milliseconds(50)) {
                try Outcome.files(in: fixture.drop, hidden: true).isEmpty
            }
        }

        /// Every clip is one video, and all other videos are empty.
        func check(orphans: Int = 0) throws {
            let wanted = Set(camera.clips.map(\.content))
            let videos = server.videos.map(\.bytes)
            let whole = videos.filter { !$0.isEmpty }
            #expect(Set(whole) == wanted)
            #expect(whole.count == wanted.count, "no video exists twice")
            #expect(videos.count - whole.count <= orphans)
            #expect(server.state.withLock { $0.tokensAtBytes } == 0)
            #expect(try Outcome.files(in: fixture.staging, hidden: true).isEmpty)
        }
    }

    struct Kill: CustomTestStringConvertible, Sendable {
        let flow: String
        let step: String
        let nth: Int
        var testDescription: String { "\(flow), \(step):\(nth)" }
    }

    static let kills = ["tus", "two-step", "four-step"].flatMap { flow in
        [
            Kill(flow: flow, step: "opening", nth: 1), Kill(flow: flow, step: "opened", nth: 1),
            Kill(flow: flow, step: "opening", nth: 2), Kill(flow: flow, step: "opened", nth: 2),
            Kill(flow: flow, step: "accepted", nth: 2), Kill(flow: flow, step: "opened", nth: 3),
            Kill(flow: flow, step: "opened", nth: 4), Kill(flow: flow, step: "verified", nth: 1),
            Kill(flow: flow, step: "completed", nth: 1),
        ]
    }

    @Test(
        "after a kill at any step the next start continues: one video for each file, and no other",
        arguments: Tier.sample(kills))
    func steps(_ kill: Kill) async throws {
        let scene = try Scene(kill.flow)
        try scene.drop(2, size: 150_000)
        try scene.fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": "\(kill.step):\(kill.nth)"])
        let ending = try await #require(scene.fixture.daemon).end(within: .seconds(20))
        try #require(ending == .signal(SIGKILL), "\(kill) was not reached: \(scene.fixture.lastWords())")
        try scene.fixture.startDaemon()
        try await scene.allIsDone(2)
        // Two uploads are in flight at once: the other one may have requested its video, and lost the answer in the
        // kill.
        try scene.check(orphans: 1)
    }

    @Test(
        "killed at any moment: one video for each file, and at most one empty one for each interrupted creation",
        arguments: ["tus", "two-step", "four-step"])
    func random(_ flow: String) async throws {
        let scene = try Scene(flow)
        let seed = Setting.seed
        var dice = Dice(seed: seed)
        let kills = max(2, Setting.kills / 10)
        try scene.fixture.startDaemon()
        for round in 0..<kills {
            // Each with a size of its own: the service does not say which of two videos without a name, of the same size,
            // came from which ticket whose last answer a kill has lost. Such files wait, and keep their sources.
            for number in round * 3..<round * 3 + 3 { try scene.drop(1, size: 200_000 + number, from: number) }
            // The time is random on purpose, so that the kill meets files in any state.
            try await Task.sleep(for: .milliseconds(Int.random(in: 100...1500, using: &dice)))
            scene.fixture.killDaemon()
            try scene.fixture.startDaemon()
        }
        do {
            try await scene.allIsDone(kills * 3)
            try scene.check(orphans: kills * 4)
        } catch { Issue.record(error, "seed \(seed); run again with SLUICE_SEED=\(seed)") }
    }

    @Test("the video of an upload cancelled in progress is removed, in spite of a kill and an outage of the service")
    func cancelled() async throws {
        let scene = try Scene("tus", ", bandwidth: 100 kB/s")
        try scene.drop(1, size: 600_000)
        try scene.fixture.startDaemon()
        try await eventually("the video is being uploaded") {
            scene.server.videos.first.map { $0.bytes.count > 60_000 }
        }
        scene.server.script(.removal, .answer(503))
        _ = try await scene.fixture.runVerb("cancel", [scene.fixture.drop.appending("clip 0.mp4").display])
        scene.fixture.killDaemon()
        try scene.fixture.startDaemon()
        try await eventually("the video has been deleted", within: .seconds(30), every: .milliseconds(100)) {
            scene.server.videos.isEmpty
        }
        #expect(try Outcome.files(in: scene.fixture.drop, hidden: true) == ["clip 0.mp4"])
    }

    @Test("the page of a transcoded video is shown, also in the event; until then the upload shows its wait")
    func shown() async throws {
        let scene = try Scene("tus", ", verify: transcoded")
        scene.server.change { $0.behaviour.states = ["transcoding"] }
        try scene.drop(1, size: 1000)
        try scene.fixture.startDaemon()
        let source = scene.fixture.drop.appending("clip 0.mp4").display
        try await eventually("the upload waits for the service", within: .seconds(20), every: .milliseconds(100)) {
            try await scene.fixture.runVerb("why", [source])?.contains("still processing the video")
        }
        scene.server.change { $0.behaviour.states = ["available"] }
        try await scene.allIsDone(1)
        let shown = try await eventually("`show` answers") { try await scene.fixture.runVerb("show", [source]) }
        #expect(shown.contains("https://vimeo.example/1"), "\(shown)")
        #expect(shown.contains("verified by transcoded"), "\(shown)")
        let follower = Follower(scene.fixture.folder.path.appending("control.sock"))
        let task = Task { await follower.follow() }
        defer { task.cancel() }
        try await eventually("the event names the page") {
            await follower.events.contains { $0.type == "completed" && $0.detail["url"] == "https://vimeo.example/1" }
        }
    }

    @Test("an image of the group becomes the thumbnail, in spite of kills, and waits for its video")
    func thumbnails() async throws {
        let scene = try Scene(
            "tus", ", video: {thumbnail: true}, bandwidth: 200 kB/s",
            folder: ["group: {by: stem, wait: 500ms, sidecars: [jpg]}"])
        try scene.drop(2, size: 400_000)
        for number in 0..<2 {
            try scene.camera.drop(
                Clip(number: 100 + number, size: 5000, relative: FilePath("clip \(number).jpg")))
        }
        for step in ["opened:2", "verified:1", "accepted:2"] {
            try scene.fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": step])
            let ending = try await #require(scene.fixture.daemon).end(within: .seconds(30))
            try #require(ending == .signal(SIGKILL), "\(step) was not reached: \(scene.fixture.lastWords())")
        }
        try scene.fixture.startDaemon()
        try await scene.allIsDone(4)
        let contents = Dictionary(uniqueKeysWithValues: scene.camera.clips.map { ($0.number, $0.content) })
        let videos = scene.server.videos.filter { !$0.bytes.isEmpty }
        #expect(videos.count == 2)
        for (number, clip) in [(0, 100), (1, 101)] {
            let video = try #require(videos.first { $0.bytes == contents[number] })
            let shown = scene.server.pictures.filter { $0.isActive && $0.video == video.number }.map(\.bytes)
            let isRight = shown == [contents[clip]]
            #expect(isRight, "the thumbnail of clip \(number)")
        }
    }

    @Test("the account's videos are listed with their uploads, foreign ones separately")
    func listed() async throws {
        let scene = try Scene("tus")
        try scene.drop(2, size: 1000)
        try scene.fixture.startDaemon()
        try await scene.allIsDone(2)
        // An incomplete upload of another program.
        scene.server.change { state in
            state.uploads.append(VimeoServer.Upload(number: 3, flow: .tus, size: 500, isVideo: true))
        }
        let all = try await eventually("the daemon lists the remote videos") {
            try await scene.fixture.runVerb("remote", ["film", "--json"])
        }
        let lines = all.split(separator: "\n")
        #expect(lines.count == 3, "\(all)")
        #expect(lines.first?.contains("\"state\":\"uploading\"") == true)
        #expect(lines.filter { $0.contains("\"upload\":\"0") }.count == 2)
        let foreign = try await eventually("the daemon lists the foreign videos") {
            try await scene.fixture.runVerb("remote", ["film", "--foreign"])
        }
        #expect(foreign.contains("/videos/3") && !foreign.contains("/videos/1"), "\(foreign)")
    }
}
