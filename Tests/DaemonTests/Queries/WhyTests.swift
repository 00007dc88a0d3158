import API
import Core
import Linux
import TestKit
import Testing
import Watch

@testable import Config
@testable import Daemon

@Suite("Why, in the daemon", .timeLimit(.minutes(Patience.minutes(2))))
struct WhyTests {
    @Test("a file on an unreachable server gets an answer", .enabled(if: DeadDisk.isPossible))
    func silent() async throws {
        let folder = TemporaryFolder()
        let dead = try DeadDisk(at: folder.path.appending("nas"))
        let scene = try await DaemonScene {
            $0.folders[0].watch.path = folder.path.appending("nas/cam")
            $0.folders[0].watch.exclude = []
        }
        let path = folder.path.appending("nas/cam/a.mp4").display
        let answer = try #require(try await scene.daemon.why(path).answers.first)
        #expect(answer.state == .unknown)
        #expect(answer.text == "its disk does not respond")
        dead.release()
        try await scene.stop()
    }

    @Test("a check does not wait for a disk that is known not to respond", .enabled(if: DeadDisk.isPossible))
    func silentCheck() async throws {
        let folder = TemporaryFolder()
        let dead = try DeadDisk(at: folder.path.appending("nas"))
        let scene = try await DaemonScene {
            $0.folders[0].watch.path = folder.path.appending("nas/cam")
        }
        try await eventually("the folder is known to be stuck", within: .seconds(50)) {
            scene.daemon.watcher.states().contains { $0.folder == "cam" && $0.isStuck }
        }
        let report = try await scene.daemon.check(CheckRequest(folder: "cam"))
        let found = report.checks.filter { $0.about == "folder" }
        #expect(found.map(\.verdict) == [.warning])
        #expect(found.first?.detail.contains("has not responded") == true)
        dead.release()
        try await scene.stop()
    }

    @Test("a file system that is known to hang is not accessed, even if it would respond by now")
    func notAsked() async throws {
        let scene = try await DaemonScene()
        let (settings, request) = (scene.daemon.context.settings, CheckRequest(folder: "cam"))
        let asked = await LocalChecks.all(settings, request, silent: [])
        #expect(asked.findings.map(\.verdict) == [.ok])
        let known = await LocalChecks.all(settings, request, silent: ["cam"])
        #expect(known.findings.map(\.verdict) == [.warning])
        #expect(known.silent == ["cam"])
        try await scene.stop()
    }

    @Test("a watched folder is described with its condition and the holds of its files")
    func folder() async throws {
        let scene = try await DaemonScene()
        let path = scene.folder.path.appending("cam")
        let answer = try await eventually("the folder has been scanned") {
            let answer = try await scene.daemon.why(path.display).answers.first
            return answer?.text.hasSuffix("it is watched") == true ? answer : nil
        }
        #expect(answer.state == .folder && answer.folder == "cam" && answer.holds.isEmpty)
        #expect(answer.text == "it is the folder cam, whose files go to nas: it is watched")
        _ = try await scene.daemon.pause(Selection(destination: "nas"))
        _ = try await scene.daemon.pause(Selection(folder: "cam"))
        let held = try #require(try await scene.daemon.why(path.display + "/").answers.first)
        #expect(held.holds.map(\.text) == ["destination nas is paused", "folder cam is paused"])
        try Files.rename(path, to: scene.folder.path.appending("away"))
        try await eventually("the folder is absent") {
            try await scene.daemon.why(path.display).answers.first?.text.contains("it is absent: ") == true
        }
        try await scene.stop()
    }

    @Test(
        "an upload that waits for its next attempt outside a window shows both holds, each with its key and value"
    )
    func backoffBehindWindow() async throws {
        let clocks = try Times.clocks(23)
        let scene = try await DaemonScene(retry: .seconds(86_400), clocks: clocks) { $0.policy.rules = Times.night }
        scene.remote.standard = .fail(.retry(after: nil))
        let id = try await scene.add("a.mp4")
        func holds() async throws -> [HoldView] { try await scene.daemon.why(id).answers.first?.holds ?? [] }
        let own = try await eventually("the upload has failed and waits for its next attempt") {
            try await holds().first { $0.kind.known == .backoff }
        }
        #expect(own.text.hasSuffix("; the next attempt follows `retry: {first: 1d, max: 4d}`"), "\(own.text)")
        scene.goOn(clocks, to: try Times.local(23).advanced(by: .seconds(36_000)))
        try await eventually("the window has closed") {
            let kinds = try await holds().map(\.kind.known)
            return kinds == [.rule, .backoff] ? kinds : nil
        }
        try await scene.stop()
    }

    @Test("a file that waits for its marker in an absent folder waits for the folder")
    func absent() async throws {
        let scene = try await DaemonScene {
            $0.folders[0].watch.exclude = []
            $0.folders[0].watch.marker = MarkerName("{name}.done")
        }
        let cam = scene.folder.path.appending("cam")
        // A file that arrives before the first scan would count as an existing one.
        try await eventually("the folder is watched") {
            try await scene.daemon.why(cam.display).answers.first?.text.hasSuffix("it is watched")
        }
        try Files.replace(cam.appending("a.mp4"), with: [1, 2, 3])
        let path = cam.appending("a.mp4").display
        try await eventually("the file waits for its marker") {
            try await scene.daemon.why(path).answers.first?.text.contains("marker") == true
        }
        try Files.rename(cam, to: scene.folder.path.appending("away"))
        let answer = try await eventually("the file waits for its absent folder") {
            let answer = try await scene.daemon.why(path).answers.first
            return answer?.text.contains("absent: ") == true ? answer : nil
        }
        #expect(!answer.text.contains("marker"), "\(answer.text)")
        try await scene.stop()
    }
}
