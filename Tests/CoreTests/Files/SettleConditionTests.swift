import Core
import Testing

/// Reasons for a quiet file to wait, the rate of growth, and when a wait is reported.
@Suite("Settling: conditions and reports")
struct SettleConditionTests {
    static func at(_ seconds: Double) -> MonotonicTime { SettlingTests.at(seconds) }
    static func status(_ version: Int64 = 0, size: Int64 = 100) -> FileStatus {
        SettlingTests.status(version, size: size)
    }

    @Test("a marker replaces a missed close, and only a writer overrides it")
    func marker() {
        var settling = Settling<String>()
        settling.note("a", .found, status: Self.status(), at: Self.at(0))
        #expect(settling.evaluated(at: "a", Self.status(), writer: .present, isMarked: true, at: Self.at(1)) == nil)
        #expect(settling.evaluated(at: "a", Self.status(), writer: .unknown, isMarked: true, at: Self.at(2)) == .marker)
    }

    @Test("a file that waits continues to, with its reason, and is checked again in time")
    func holds() {
        var settling = Settling<String>()
        settling.note("a", .closed, status: Self.status(), at: Self.at(0))
        #expect(settling.due(at: Self.at(1)) == ["a"])
        let by = settling.evaluated(at: "a", Self.status(), writer: .absent, isMarked: false, at: Self.at(1)) {
            unchanged in
            #expect(unchanged == .seconds(1))
            return (.marker, Self.at(50))
        }
        #expect(by == nil)
        #expect(settling["a"]?.waiting == .marker)
        #expect(settling.due(at: Self.at(49)).isEmpty)
        // The marker appears.
        settling.postpone("a", until: Self.at(10))
        #expect(settling.due(at: Self.at(10)) == ["a"])
        #expect(settling.evaluated(at: "a", Self.status(), writer: .absent, isMarked: true, at: Self.at(10)) == .marker)
    }

    @Test("other conditions are not checked before the file is quiet")
    func order() {
        var settling = Settling<String>()
        settling.note("a", .event, status: Self.status(), at: Self.at(0))
        let by = settling.evaluated(at: "a", Self.status(), writer: .unseen, at: Self.at(9)) { _ in
            Issue.record("the condition was checked too early")
            return nil
        }
        #expect(by == nil)
    }

    @Test("a search of all open files is its own rung, with the short quiet time")
    func unseen() {
        var settling = Settling<String>()
        settling.note("a", .closed, status: Self.status(), at: Self.at(0))
        #expect(settling.evaluated(at: "a", Self.status(), writer: .unseen, at: Self.at(1)) == .proc)
    }

    @Test("growth is shown in bytes a second, and ends with the growth")
    func rate() {
        var settling = Settling<String>()
        settling.note("a", .closed, status: Self.status(0, size: 0), at: Self.at(0))
        #expect(settling["a"]?.rate == nil)
        _ = settling.evaluated(at: "a", Self.status(1, size: 4_000), writer: .present, at: Self.at(2))
        #expect(settling["a"]?.rate == 2_000)
        // An event right after a check says nothing about the rate, and does not disturb its measurement.
        settling.note("a", .event, status: Self.status(2, size: 5_000), at: Self.at(2.1))
        #expect(settling["a"]?.rate == 2_000)
        _ = settling.evaluated(at: "a", Self.status(3, size: 8_000), writer: .present, at: Self.at(4))
        #expect(settling["a"]?.rate == 2_000)
        _ = settling.evaluated(at: "a", Self.status(3, size: 8_000), writer: .present, at: Self.at(6))
        #expect(settling["a"]?.rate == 0)
        // Truncated.
        _ = settling.evaluated(at: "a", Self.status(4, size: 0), writer: .present, at: Self.at(8))
        #expect(settling["a"]?.rate == 0)
    }

    @Test("a file that does not settle is reported once, and again only for another reason")
    func reports() {
        var settling = Settling<String>()
        let hour = Duration.seconds(3600)
        settling.note("a", .closed, status: Self.status(0), at: Self.at(0))
        var version: Int64 = 1
        func status(_ writer: OpenWriter, _ seconds: Double, changed: Bool) -> Bool {
            if changed { version += 1 }
            _ = settling.evaluated(at: "a", Self.status(version), writer: writer, isMarked: false, at: Self.at(seconds))
            {
                _ in
                (.marker, Self.at(seconds + 10))
            }
            return settling.shouldReport("a", after: hour, at: Self.at(seconds))
        }
        #expect(!status(.present, 10, changed: true))
        #expect(status(.present, 3600, changed: true))
        #expect(!status(.present, 3610, changed: false))
        // The writer pauses and continues, which is no new reason.
        #expect(!status(.absent, 3620, changed: true))
        #expect(!status(.present, 3630, changed: true))
        // The file is quiet now, and lacks its marker: this is a new reason, reported once.
        #expect(status(.absent, 4000, changed: false))
        #expect(!status(.absent, 4010, changed: false))
    }
}
