import Core
import Linux
import TestKit
import Testing

/// The notices to hooks about an upload that has trouble, from the built program.
@Suite("Trouble and recovery", .timeLimit(.minutes(Patience.minutes(2))))
struct RecoveryTests {
    @Test(
        "a lost server is reported as failed attempts and once as recovered, even if the daemon was killed in between")
    func lostServer() async throws {
        let scene = try HookFixture.Scene()
        let fixture = scene.fixture
        fixture.uploadTo = ["nas"]
        fixture.policyKeys = ["bandwidth: 2 MB/s"]
        let tell = try scene.script("tell", "cat >> \(scene.out.display)")
        fixture.topKeys = [
            "hooks:",
            "  - {name: tell, command: [\(tell.display)], on: [attempt, attempt_failed, recovered, completed]}",
        ]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try scene.camera.drop(Clip(number: 0, size: 4_000_000, relative: "clip.mp4"))
        try await eventually("the clip is being uploaded") {
            try await fixture.runVerb("list", ["--state", "uploading"])?.contains("clip.mp4") == true
        }
        fixture.killReceiver()
        try await eventually("a failed attempt has been reported", within: .seconds(30)) {
            try scene.delivered().contains { $0.type == "attempt" }
        }
        fixture.killDaemon()
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the completion has been reported", within: .seconds(60)) {
            try scene.delivered().contains { $0.type == "completed" }
        }
        var delivered = try scene.delivered()
        // A notice that was being sent at the kill may arrive once more.
        delivered = delivered.enumerated().filter { index, event in
            !delivered[..<index].contains { $0.seq == event.seq }
        }.map(
            \.element)
        delivered.sort { $0.seq < $1.seq }
        // The server was at fault, and not this upload.
        #expect(delivered.map(\.type).suffix(2) == ["recovered", "completed"])
        #expect(delivered.dropLast(2).allSatisfy { $0.type == "attempt" && $0.detail["code"]?.isEmpty == false })
        #expect(Set(delivered.map { $0.op?.id }).count == 1)
        let recovered = try #require(delivered.first { $0.type == "recovered" })
        #expect(recovered.detail["attempt"] == "1" && recovered.detail["after"].flatMap { Int($0) } != nil)
        let outcome = Outcome(fixture: fixture, clips: scene.camera.clips)
        try await outcome.wait()
        try await outcome.check()
    }
}
