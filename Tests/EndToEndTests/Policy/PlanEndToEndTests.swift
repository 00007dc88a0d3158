import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// A plan from the built program, whose clock a test sets.
@Suite("plan, with the built program", .timeLimit(.minutes(Patience.minutes(3))))
struct PlanEndToEndTests {
    /// The part of `sluice plan --json` that these tests read.
    private struct Plan: Decodable {
        struct Step: Decodable {
            var from, to, folder, destination, end: String
            var files, bytes, rate: Int64
        }
        struct Queue: Decodable { var files, left_files: Int64 }
        var steps: [Step]
        var queues: [Queue]
    }

    @Test("a file that waits for its window is planned for it and starts as planned; files that do not fit are named")
    func window() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.policyKeys = ["windows: [\"22:00-23:00\"]"]
        try await fixture.startReceiver()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 0, size: 100_000, relative: "clip.mp4"))
        let now = SystemClocks().wall()
        let tomorrow = Zone.local.localTime(at: now).day + 1
        let opens = try #require(Zone.local.moments(tomorrow, 22 * 3_600_000).first)
        // The clock is set to some seconds before the window opens.
        let shift = (opens.milliseconds - now.milliseconds) / 1000 - 25
        try fixture.startDaemon(environment: ["SLUICE_TEST_CLOCK": "\(shift)"])
        let plan = try await eventually("the waiting file is planned") { () -> Plan? in
            guard let text = try await fixture.runVerb("plan", ["--json", "--rate", "50 kB/s"]) else { return nil }
            let plan = try JSONDecoder().decode(Plan.self, from: Data(text.utf8))
            return plan.queues.first?.files == 1 ? plan : nil
        }
        let step = try #require(plan.steps.first)
        #expect(plan.steps.count == 1)
        #expect(step.from == opens.description)
        #expect(step.to == opens.advanced(by: .seconds(2)).description)
        #expect(step.files == 1 && step.bytes == 100_000 && step.rate == 50_000 && step.end == "done")
        #expect(plan.queues.first?.left_files == 0)
        #expect(try Outcome.files(in: fixture.received, hidden: false).isEmpty)
        let text = try #require(try await fixture.runVerb("plan", ["--rate", "1 kB/s", "--until", "2d"]))
        #expect(text.contains("All sent by"), "\(text)")
        let late = try #require(try await fixture.runVerb("plan", ["--rate", "1 B/s", "--until", "2d"]))
        #expect(late.contains("Will not fit before"), "\(late)")
        #expect(late.contains("rule: outside the windows of policy"), "\(late)")
        let unknown = try #require(try await fixture.runVerb("plan"))
        #expect(unknown.contains("--rate '2 MB/s'"), "\(unknown)")
        #expect(unknown.contains("End not known") && unknown.contains("speed: the rate to"), "\(unknown)")
        #expect(!unknown.contains("Will not fit") && !unknown.contains("sent by"), "\(unknown)")
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        try await outcome.check()
    }
}
