import Core
import Linux
import TestKit
import Testing

/// Files whose facts a program reads before they are recorded, with the built program.
@Suite("Files that are read before they are recorded", .timeLimit(.minutes(Patience.minutes(3))))
struct MediaQueueTests {
    @Test("files of other folders do not wait for them, and after a kill each one arrives once")
    func hanging() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        let slow = fixture.folder.path.appending("slow")
        fixture.moreFolders = [
            "{name: slow, path: \(slow.display), upload_to: [\(fixture.uploadTo[0])], settle: {quiet_for: 1s}, "
                + "existing: upload, remote_name: \"slow-{name}\", metadata: {camera: \"{camera}\"}}"
        ]
        let names = (10..<40).map { FilePath("\($0).mkv") }
        for name in names { try fixture.folder.write(FilePath("slow").appending(name), noise(1000)) }
        // Killed after 20 s, one after another: the last one has its turn after ten minutes.
        try fixture.folder.writeProgram("bin/ffprobe", "exec sleep 1000")
        let environment = ["PATH": fixture.folder.path.appending("bin").display + ":/usr/bin:/bin"]
        try fixture.startDaemon(environment: environment)
        let last = slow.appending("39.mkv").display
        var answer = ""
        try await eventually("the last file waits to be read: \(answer); \(fixture.lastWords())") {
            answer = try await fixture.runVerb("why", [last]) ?? ""
            return answer.contains("one file after another")
        }
        #expect(try await fixture.runVerb("status")?.contains("one file after another") == true)
        try Files.publish(fixture.drop.appending("a.mp4"), noise(1000), mode: 0o600)
        try await arrive(["a.mp4"], fixture)
        fixture.killDaemon()
        try fixture.folder.writeProgram("bin/ffprobe", "exit 1")
        try fixture.startDaemon(environment: environment)
        let expected = names.map { FilePath("slow-\($0.display)") }
        try await arrive(expected, fixture)
        #expect(try await fixture.stopDaemon()?.ending == .status(0))
        #expect(try Set(Outcome.files(in: fixture.received, hidden: false)) == Set(expected + ["a.mp4"]))
    }

    private func arrive(_ names: [FilePath], _ fixture: DaemonFixture) async throws {
        try await eventually("\(names) arrive; \(fixture.lastWords())", within: .seconds(40)) {
            try names.allSatisfy { try FileStatus.ifPresent(at: fixture.received.appending($0)) != nil }
        }
    }
}
