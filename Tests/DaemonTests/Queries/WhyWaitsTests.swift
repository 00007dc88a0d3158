import API
import Core
import Linux
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Reasons for waits: key, value, and remaining time", .timeLimit(.minutes(Patience.minutes(2))))
struct WhyWaitsTests {
    /// A daemon that watches its folder `cam`, and has scanned it.
    private func watching(_ shape: (inout FolderSettings) -> Void) async throws -> (DaemonScene, FilePath) {
        let scene = try await DaemonScene {
            $0.folders[0].watch.exclude = []
            shape(&$0.folders[0])
        }
        let cam = scene.folder.path.appending("cam")
        try await eventually("the folder is watched") {
            try await scene.daemon.why(cam.display).answers.first?.text.hasSuffix("it is watched")
        }
        return (scene, cam)
    }

    private func hold(of path: FilePath, _ scene: DaemonScene, _ kind: String) async throws -> HoldView {
        try await eventually("the file waits") {
            try await scene.daemon.why(path.display).answers.first?.holds.first { $0.kind.rawValue == kind }
        }
    }

    /// Seconds from its beginning to its end.
    private func length(_ hold: HoldView) throws -> Int64 {
        let since = try #require(CivilTime(hold.since.utf8)).moment()
        let until = try #require(hold.until.flatMap { CivilTime($0.utf8) }).moment()
        return (until.milliseconds - since.milliseconds) / 1000
    }

    @Test("a file that must be quiet names `settle.quiet_for` and its end")
    func quiet() async throws {
        let (scene, cam) = try await watching { $0.watch.quietFor = .seconds(3600) }
        try Files.replace(cam.appending("a.mp4"), with: [1])
        let hold = try await hold(of: cam.appending("a.mp4"), scene, "settling")
        #expect(hold.text.hasSuffix(": `settle.quiet_for: 1h`"), "\(hold.text)")
        #expect((3600...3602).contains(try length(hold)), "\(hold)")
        let answer = try #require(try await scene.daemon.why(cam.appending("a.mp4").display).answers.first)
        #expect(answer.state == .settling && answer.text == "it is settling: \(hold.text)")
        try await scene.stop()
    }

    @Test("a file that is too recent names `min_age` and its end, however rarely it is checked")
    func age() async throws {
        let (scene, cam) = try await watching { $0.watch.limits.minAge = .seconds(7200) }
        try Files.replace(cam.appending("a.mp4"), with: [1])
        let hold = try await eventually("the file waits for its minimum age") {
            let hold = try await scene.daemon.why(cam.appending("a.mp4").display).answers.first?.holds.first
            return hold?.text.contains("min_age") == true ? hold : nil
        }
        #expect(hold.text == "it is too recent: `min_age: 2h`")
        #expect((7198...7202).contains(try length(hold)), "\(hold)")
        try await scene.stop()
    }

    @Test("a file without its marker names `settle.marker`, and no time")
    func marker() async throws {
        let (scene, cam) = try await watching { $0.watch.marker = MarkerName("{name}.done") }
        try Files.replace(cam.appending("a.mp4"), with: [1])
        let hold = try await eventually("the file waits for its marker") {
            let hold = try await scene.daemon.why(cam.appending("a.mp4").display).answers.first?.holds.first
            return hold?.text.contains("marker") == true ? hold : nil
        }
        #expect(hold.text == "its marker a.mp4.done does not exist yet: `settle.marker: \"{name}.done\"`")
        #expect(hold.until == nil)
        try await scene.stop()
    }

    @Test("a file that a program has open names `settle.writers` and the time of the next check")
    func writer() async throws {
        let (scene, cam) = try await watching { _ in }
        let path = cam.appending("a.mp4")
        let file = try Descriptor.open(path, for: .creating)
        try file.write([1, 2, 3], named: path)
        let hold = try await eventually("another process has the file open", within: .seconds(30)) {
            let hold = try await scene.daemon.why(path.display).answers.first?.holds.first
            return hold?.text.hasPrefix("another process has it open") == true ? hold : nil
        }
        #expect(hold.text.contains("`settle.writers: lease`; the check is repeated"), "\(hold.text)")
        #expect(hold.until != nil)
        try file.close(named: path)
        try await scene.stop()
    }

    @Test("a file that waits for its group names `group.wait` and its end; a sidecar names `group.sidecars`")
    func group() async throws {
        let (scene, cam) = try await watching {
            $0.watch.quietFor = .milliseconds(10)
            $0.group = GroupRule(wait: .seconds(3600), sidecars: ["xml"])
        }
        try Files.replace(cam.appending("a.mp4"), with: [1])
        let hold = try await hold(of: cam.appending("a.mp4"), scene, "gathering")
        #expect(hold.text == "waits for further files of its group: `group.wait: 1h`")
        #expect((3599...3602).contains(try length(hold)), "\(hold)")
        try await scene.stop()
        let (other, place) = try await watching {
            $0.watch.quietFor = .milliseconds(10)
            $0.group = GroupRule(wait: .milliseconds(10), sidecars: ["xml", "srt"])
        }
        try Files.replace(place.appending("b.xml"), with: [1])
        let sidecar = try await eventually("the sidecar waits for its video") {
            let hold = try await other.daemon.why(place.appending("b.xml").display).answers.first?.holds.first
            return hold?.text.contains("sidecar") == true ? hold : nil
        }
        #expect(sidecar.text == "a sidecar file that waits for its b.*: `group.sidecars: [xml, srt]`")
        #expect(sidecar.kind.known == .gathering && sidecar.until == nil)
        try await other.stop()
    }

    @Test("an upload without staging space names the key and its value")
    func staging() async throws {
        let scene = try await DaemonScene(cap: 1000)
        _ = try await scene.daemon.pause(Selection(destination: "nas"))
        try await scene.reach(.queued, [try await scene.add("a.mp4", size: 600)])
        let id = try await scene.add("b.mp4", size: 600)
        let hold = try await eventually("the upload waits for staging space") {
            try await scene.daemon.why(id).answers.first?.holds.first { $0.kind.known == .disk }
        }
        #expect(hold.text.contains("of at most 1.0 kB (`staging.max_size`)"), "\(hold.text)")
        try await scene.stop()
    }

    @Test(
        "a held destination names `retry` and the next attempt; one that refuses the credential names its keys")
    func destination() async throws {
        let cases: [(Remedy, String, String)] = [
            (
                .holdDestination(after: nil), "destination",
                "; the next attempt follows `retry: {first: 10m, max: 40m}`, 5m apart at most"
            ),
            (.misconfigured, "destination", "; the next attempt follows `retry: {first: 10m, max: 40m}`"),
            (.rateLimit(after: nil), "rate_limit", "; the next attempt follows `retry: {first: 10m, max: 40m}`"),
            (.rateLimit(after: .seconds(60)), "rate_limit", "; the destination set the time of the next attempt"),
            (
                .outOfSpace(after: nil), "quota",
                "; the next attempt waits for 5m at first, 40m at most (`retry: {first: 10m, max: 40m}`)"
            ),
            (.authenticate, "auth", "; `headers.Authorization`, `token` of destinations.nas are read again every 15m"),
        ]
        for (remedy, kind, words) in cases {
            let scene = try await DaemonScene(retry: .seconds(600)) {
                $0.destinations[0].values = [
                    "token": .secret(.literal("t")), "password": .secret(.literal("p")),
                    "headers": .map(["Authorization": .literal("x"), "X-Trace": .literal("y")]),
                ]
            }
            scene.remote.standard = .fail(remedy)
            let id = try await scene.add("a.mp4")
            let hold = try await eventually("the upload is held") {
                try await scene.daemon.why(id).answers.first?.holds.first { $0.kind.rawValue == kind }
            }
            #expect(hold.text.hasSuffix(words), "\(hold.text)")
            #expect(hold.until != nil)
            try await scene.stop()
        }
    }
}
