import API
import Core
import Linux
import TestKit
import Testing

@testable import Daemon
@testable import Shell

@Suite("Plans as text")
struct PlanTextTests {
    private static let now = WallTime(described: "2026-11-20T08:00:00.000Z") ?? WallTime(milliseconds: 0)

    private static func clock(_ text: String) -> String {
        WallTime(described: text).map { String(LocalTime($0).clock.prefix(5)) } ?? ""
    }

    @Test("a plan shows what runs when, how fast, its end and limit; what waits; and what does not fit")
    func whole() throws {
        let lines = planLines(.sample, Screen().console(width: 120), now: Self.now)
        let text = lines.joined(separator: "\n")
        #expect(lines.contains { $0.hasSuffix(":00") == false && $0.contains("at 2.0 MB/s to archive (measured)") })
        #expect(lines.contains("  front -> archive 412 files, 38.0 GB at 1.3 MB/s by wlan0"))
        #expect(text.contains("then outside the windows of policy, until "))
        #expect(text.contains("front -> archive 500 files, 50.0 GB: rule: outside the windows of policy"))
        #expect(text.contains("3 files still to be copied"))
        #expect(text.contains("1 file paused by a person, not planned"))
        #expect(text.contains("Will not fit before "))
        #expect(text.contains("88 files, 12.0 GB left; rule: outside the windows of policy, for 1d 16h"))
        #expect(text.contains("it would be sent by "))
        #expect(text.contains(Self.clock("2026-11-22T23:30:00.000Z")))
    }

    @Test("an unpredictable upload shows the reason, and never that it will not fit")
    func endless() {
        var plan = PlanView.sample
        for (kind, title) in [
            ("speed", "End not known"), ("clock", "End not known"), ("never", "Never, with this configuration"),
        ] {
            plan.queues[0].ends = nil
            plan.queues[0].obstacles = [PlanObstacleView(kind: kind, text: "because", files: 88, bytes: 12_000_000_000)]
            let lines = planLines(plan, Screen().console(width: 120), now: Self.now)
            #expect(lines.contains(title))
            #expect(lines.contains { $0.contains("88 files, 12.0 GB: \(kind == "never" ? "" : "\(kind): ")because") })
            #expect(!lines.joined().contains("Will not fit") && !lines.joined().contains("would be sent"))
        }
        // The other files are only late.
        plan.queues[0].obstacles = [PlanObstacleView(kind: "never", text: "because", files: 8, bytes: 1_000_000_000)]
        let text = planLines(plan, Screen().console(width: 120), now: Self.now).joined(separator: "\n")
        #expect(text.contains("Never, with this configuration") && text.contains("Will not fit"))
    }

    @Test("no line is wider than the screen", arguments: [40, 60, 80])
    func narrow(_ width: Int) {
        for line in planLines(.sample, Screen().console(width: width), now: Self.now) {
            #expect(displayWidth(line) <= width, "\(line)")
        }
    }

    @Test("an end is shown as a time, a day, both, or a duration, and omitted if past")
    func ends() throws {
        let day = LocalTime(Self.now).date
        func local(_ text: String) throws -> WallTime { try #require(CivilTime(Array(text.utf8))).localMoment }
        #expect(moment(meant: "2d", .toCome, now: Self.now) == Self.now.advanced(by: .seconds(172_800)))
        #expect(moment(meant: "2026-11-25", .toCome, now: Self.now) == (try local("2026-11-25T00:00:00")))
        #expect(moment(meant: "2026-11-25T18:30", .toCome, now: Self.now) == (try local("2026-11-25T18:30:00")))
        let evening = try #require(moment(meant: "23:59", .toCome, now: Self.now))
        #expect(LocalTime(evening).clock == "23:59:00" && evening > Self.now)
        #expect(moment(meant: "00:00", .toCome, now: Self.now).map { LocalTime($0).date != day } == true)
        for text in ["2026-11-19", "25:00", "2026-13-01", "tomorrow", "", "1", "2026-11-19T10:00", "18.00"] {
            #expect(moment(meant: text, .toCome, now: Self.now) == nil, "\(text)")
        }
    }

    @Test("a start is shown the same way, and omitted if in the future")
    func beginnings() throws {
        let now = Self.now
        #expect(moment(meant: "2d", .past, now: now) == now.advanced(by: .seconds(-172_800)))
        for text in ["00:00", "23:59", "12:00"] {
            let time = try #require(moment(meant: text, .past, now: now))
            #expect(
                LocalTime(time).clock == text + ":00" && time <= now
                    && now.milliseconds - time.milliseconds < 90_000_000)
        }
        #expect(moment(meant: "2026-11-19T10:00", .past, now: now) != nil)
        for text in ["2099-01-01", "25:00", "tomorrow", ""] {
            #expect(moment(meant: text, .past, now: now) == nil, "\(text)")
        }
    }
}
