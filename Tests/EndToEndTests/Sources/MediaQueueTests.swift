import Core
import Linux
import TestKit
import Testing

/// Files whose facts a program reads before they are recorded, with the built program.
@Suite("Files that are read before they are recorded", .timeLimit(.minutes(Patience.minutes(3))))
struct MediaQueueTests {
    private static func folder(_ fixture: DaemonFixture, _ keys: String = "") -> String {
        "{name: slow, path: \(fixture.folder.path.appending("slow").display), upload_to: [\(fixture.uploadTo[0])], "
            + "settle: {quiet_for: 1s}, existing: upload, remote_name: \"slow-{name}\", "
            + "metadata: {camera: \"{camera}\"}\(keys)}"
    }

    private static func environment(_ fixture: DaemonFixture) -> [String: String] {
        ["PATH": fixture.folder.path.appending("bin").display + ":/usr/bin:/bin"]
    }

    private func waits(_ name: FilePath, _ fixture: DaemonFixture) async throws {
        let path = fixture.folder.path.appending("slow").appending(name).display
        var answer = ""
        try await eventually("\(name) waits to be read: \(answer); \(fixture.lastWords())") {
            answer = try await fixture.runVerb("why", [path]) ?? ""
            return answer.contains("one file after another")
        }
    }

    @Test("a file of a folder that is absent meanwhile is recorded when the folder is back; an excluded one is not")
    func changed() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        fixture.moreFolders = [Self.folder(fixture)]
        for name in ["1.mkv", "2.mkv", "3.mkv"] as [FilePath] {
            try fixture.folder.write(FilePath("slow").appending(name), noise(1000))
        }
        let go = fixture.folder.path.appending("go")
        try fixture.folder.writeProgram("bin/ffprobe", "until [ -e \(go.display) ]; do sleep 0.1; done; exit 1")
        try fixture.startDaemon(environment: Self.environment(fixture))
        try await waits("3.mkv", fixture)
        fixture.moreFolders = [Self.folder(fixture, ", exclude: [3.mkv]")]
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload") != nil)
        let (slow, away) = (fixture.folder.path.appending("slow"), fixture.folder.path.appending("away"))
        try Files.rename(slow, to: away)
        try await eventually("the folder is absent; \(fixture.lastWords())") {
            try await fixture.runVerb("status")?.contains("absent") == true
        }
        try fixture.folder.write("go", [])
        try await eventually("no file waits any more; \(fixture.lastWords())") {
            try await fixture.runVerb("status")?.contains("one file after another") == false
        }
        #expect(try await fixture.runVerb("list")?.contains(".mkv") == false)
        try Files.rename(away, to: slow)
        try await arrive(["slow-1.mkv", "slow-2.mkv"], fixture)
        #expect(try await fixture.status()?.counts.failed == 0)
        #expect(try await fixture.stopDaemon() == .status(0))
        let arrived = try Outcome.files(in: fixture.received, hidden: false)
        #expect(Set(arrived) == ["slow-1.mkv", "slow-2.mkv"])
    }

    @Test("files of other folders do not wait for them, and after a kill each one arrives once")
    func hanging() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        fixture.moreFolders = [Self.folder(fixture)]
        let names = (10..<40).map { FilePath("\($0).mkv") }
        for name in names { try fixture.folder.write(FilePath("slow").appending(name), noise(1000)) }
        // Killed after 20 s, one after another: the last one has its turn after ten minutes.
        try fixture.folder.writeProgram("bin/ffprobe", "exec sleep 1000")
        try fixture.startDaemon(environment: Self.environment(fixture))
        try await waits("39.mkv", fixture)
        #expect(try await fixture.runVerb("status")?.contains("one file after another") == true)
        try Files.publish(fixture.drop.appending("a.mp4"), noise(1000), mode: 0o600)
        try await arrive(["a.mp4"], fixture)
        fixture.killDaemon()
        try fixture.folder.writeProgram("bin/ffprobe", "exit 1")
        try fixture.startDaemon(environment: Self.environment(fixture))
        let expected = names.map { FilePath("slow-\($0.display)") }
        try await arrive(expected, fixture)
        #expect(try await fixture.stopDaemon() == .status(0))
        #expect(try Set(Outcome.files(in: fixture.received, hidden: false)) == Set(expected + ["a.mp4"]))
    }

    private func arrive(_ names: [FilePath], _ fixture: DaemonFixture) async throws {
        try await eventually("\(names) arrive; \(fixture.lastWords())", within: .seconds(40)) {
            try names.allSatisfy { try FileStatus.ifPresent(at: fixture.received.appending($0)) != nil }
        }
    }
}
