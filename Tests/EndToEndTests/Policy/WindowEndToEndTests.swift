import Core
import FoundationEssentials
import Linux
import TestKit
import Testing

/// Windows and holds from the built program, whose clock a test sets.
@Suite("Windows, with the built program", .timeLimit(.minutes(Patience.minutes(3))))
struct WindowEndToEndTests {
    /// The part of `sluice why --json` that these tests read.
    private struct Why: Decodable {
        struct Answer: Decodable {
            struct Hold: Decodable { var kind, text, since: String; var until: String? }
            var state, text: String
            var holds: [Hold]
        }
        var answers: [Answer]
    }

    private func why(_ fixture: DaemonFixture, _ path: FilePath) async throws -> Why.Answer? {
        guard let text = try await fixture.runVerb("why", ["--json", path.display]) else { return nil }
        return try JSONDecoder().decode(Why.self, from: Data(text.utf8)).answers.first
    }

    /// Seconds to add to the clock so that it shows a time of the day.
    private func shift(to hour: Int, _ minute: Int, _ second: Int) throws -> Int64 {
        let now = SystemClocks().wall()
        let time = Int64(hour * 3600 + minute * 60 + second) * 1000
        // Tomorrow: a clock that is set back a day may show a time before this program was made.
        let tomorrow = Zone.local.localTime(at: now).day + 1
        let moment = try #require(Zone.local.moments(tomorrow, time).first)
        return (moment.milliseconds - now.milliseconds) / 1000
    }

    @Test("outside its window a file waits, `why` gives reason and end, and it starts when the window opens")
    func opens() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.policyKeys = ["windows: [\"22:00-23:00\"]"]
        try await fixture.startReceiver()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 0, size: 100_000, relative: "clip.mp4"))
        try fixture.startDaemon(environment: ["SLUICE_TEST_CLOCK": "\(try shift(to: 21, 59, 50))"])
        let waiting = try await eventually("the upload waits") {
            try await why(fixture, fixture.drop.appending("clip.mp4")).flatMap { $0.state == "waiting" ? $0 : nil }
        }
        let hold = try #require(waiting.holds.first)
        #expect(hold.kind == "rule")
        #expect(hold.text.hasPrefix("outside the windows of policy (sluice.yaml:"))
        #expect(hold.until != nil)
        #expect(try Outcome.files(in: fixture.received, hidden: false).isEmpty)
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(30))
        try await outcome.check()
        #expect(try await why(fixture, fixture.drop.appending("clip.mp4"))?.text.hasPrefix("it was uploaded") == true)
    }

    @Test("an unset clock opens no window and is reported; uploads that need no clock continue")
    func unset() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.policyKeys = ["windows: [\"00:00-12:00\", \"12:00-24:00\"]"]
        try await fixture.startReceiver()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 0, size: 1000, relative: "clip.mp4"))
        // Like a machine without a battery.
        let shift = 86_400 - SystemClocks().wall().milliseconds / 1000
        try fixture.startDaemon(environment: ["SLUICE_TEST_CLOCK": "\(shift)"])
        let waiting = try await eventually("the upload waits") {
            try await why(fixture, fixture.drop.appending("clip.mp4")).flatMap { $0.state == "waiting" ? $0 : nil }
        }
        #expect(waiting.holds.first?.kind == "clock")
        #expect(waiting.holds.first?.text.contains("the clock is not set") == true)
        fixture.killDaemon()
        fixture.policyKeys = []
        try fixture.startDaemon(environment: ["SLUICE_TEST_CLOCK": "\(shift)"])
        try await Outcome(fixture: fixture, clips: camera.clips).wait(within: .seconds(30))
    }

    @Test(
        "when the machine's time zone changes, windows follow it at once",
        .enabled(if: NetworkNamespace.isPossible, "\(NetworkNamespace.need)"))
    func zone() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.policyKeys = ["windows: [\"00:00-00:01\"]", "quotas: [{per: day, bytes: 1 GB}]"]
        try await fixture.startReceiver()
        let settings = fixture.folder.path.appending("etc")
        let zone = settings.appending("localtime").display
        func link(_ name: String) -> String {
            "ln -sfn /usr/share/zoneinfo/\(name) \(zone).new && mv -T \(zone).new \(zone)"
        }
        try fixture.startDaemon(
            inMounts:
                "unset TZ; cp -a /etc \(settings.display); \(link("Etc/UTC")); mount --bind \(settings.display) /etc")
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 0, size: 1000, relative: "clip.mp4"))
        func opens() async throws -> String? {
            try await why(fixture, fixture.drop.appending("clip.mp4"))?.holds.first { $0.kind == "rule" }?.until
        }
        try await eventually("the upload waits for midnight") { try await opens()?.hasSuffix("T00:00:00.000Z") }
        let change = try Child("/bin/sh", ["-ec", link("Asia/Tokyo")], output: "/dev/null", errors: "/dev/null")
        #expect(try await change.end(within: .seconds(20)) == .status(0))
        try await eventually("the upload waits for midnight in the new time zone") {
            try await opens()?.hasSuffix("T15:00:00.000Z")
        }
        let usage = try await fixture.runVerb("usage", ["--json"])
        #expect(usage?.contains("T15:00:00.000Z") == true && usage?.contains("T00:00:00") == false, "\(usage ?? "")")
    }

    enum Place: String, CaseIterable { case policy, destination, folder }

    @Test("a bandwidth limit is kept wherever it is set, and shown", arguments: Place.allCases)
    func limit(_ place: Place) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let key = "bandwidth: 500 kB/s"
        switch place {
        case .policy: fixture.policyKeys = [key]
        case .destination: fixture.destinationKeys = ", " + key
        case .folder: fixture.folderKeys = [key]
        }
        try await fixture.startReceiver()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        let clock = ContinuousClock()
        let start = clock.now
        for number in 0..<2 {
            try camera.drop(Clip(number: number, size: 1_000_000, relative: FilePath("clip \(number).mp4")))
        }
        try fixture.startDaemon()
        let status = try await eventually("`status` shows the limit") {
            try await fixture.runVerb("status").flatMap { $0.contains("500 kB/s") ? $0 : nil }
        }
        #expect(status.contains(place == .policy ? "for all transfers" : "at most 500 kB/s"))
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        // Two megabytes, less the amount that may be sent at once; a busy machine takes longer, which is no fault.
        #expect(start.duration(to: clock.now) > .milliseconds(3700))
        try await outcome.check()
    }

    @Test("a changed limit applies to running transfers at once")
    func limitChanges() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.policyKeys = ["bandwidth: [{limit: 20 kB/s, when: {between: \"00:00-24:00\"}}]"]
        try await fixture.startReceiver()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        // More than five minutes' worth.
        try camera.drop(Clip(number: 0, size: 8_000_000, relative: "clip.mp4"))
        try fixture.startDaemon()
        let path = fixture.drop.appending("clip.mp4")
        let slow = try await eventually("the file is being uploaded") {
            try await why(fixture, path).flatMap { $0.state == "uploading" ? $0 : nil }
        }
        #expect(slow.text.hasSuffix("; the bandwidth of policy limits it to 20.0 kB/s"))
        fixture.policyKeys = ["bandwidth: 0"]
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload")?.contains("policy changed (bandwidth)") == true)
        let still = try await eventually("the upload is held") {
            try await why(fixture, path).flatMap { $0.state == "waiting" ? $0 : nil }
        }
        #expect(still.text.hasPrefix("the bandwidth of policy (sluice.yaml:") && still.text.hasSuffix("`bandwidth: 0`"))
        fixture.policyKeys = ["bandwidth: unlimited"]
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload") != nil)
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(30))
        try await outcome.check()
    }

    @Test("`why` of a file without an upload names the rule that skips it")
    func leftAlone() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.folderKeys = ["include: [\"*.mp4\"]"]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try fixture.write("notes.txt", [1])
        let answer = try await eventually("`why` answers") {
            try await why(fixture, fixture.drop.appending("notes.txt"))
        }
        #expect(answer.state == "left_alone")
        #expect(answer.text == "it matches none of `include: [*.mp4]`")
        let text = try #require(try await fixture.runVerb("why", [fixture.drop.appending("notes.txt").display]))
        #expect(text.contains("left alone"))
        #expect(text.contains("it matches none of"))
        #expect(try await why(fixture, "/etc/hostname")?.state == "outside")
    }
}

extension DaemonFixture {
    fileprivate func write(_ name: FilePath, _ content: [UInt8]) throws {
        let path = drop.appending(name)
        let file = try Descriptor.open(path, for: .creating)
        try file.write(content, named: path)
        try file.close(named: path)
    }
}
