import API
import Core
import TestKit
import Testing

@testable import Daemon
@testable import Shell

@Suite("Usage as text")
struct UsageTextTests {
    private let now = ManualClocks().wall()

    private static func period(_ name: String, _ bytes: Int64, _ parts: [(String, Int64)]? = nil) -> UsagePeriodView {
        UsagePeriodView(
            name: name, from: "2026-11-19T23:00:00.000Z", until: "2026-11-20T23:00:00.000Z", bytes: bytes,
            received: bytes / 4, files: 12,
            parts: parts?.map { UsagePartView(name: $0, bytes: $1, received: 3, files: 6) })
    }

    private static func quota(
        _ limit: Int64, _ used: Int64, reserved: Int64 = 0, counts: String = "bytes", direction: String = "sent"
    ) -> QuotaView {
        QuotaView(
            place: "destinations.archive", text: "a rule, as it was written, over metered networks", counts: counts,
            direction: direction, limit: limit, used: used, reserved: reserved,
            left: max(0, limit - used - reserved),
            from: "2026-11-20T00:00:00.000Z", until: "2026-11-20T09:00:00.000Z")
    }

    private static let view = UsageView(
        days: [period("2026-11-19", 5_000_000), period("2026-11-20", 10_000_000)],
        months: [period("2026-10", 0), period("2026-11", 1)], by: nil,
        quotas: [
            quota(1_000_000, 250_000, reserved: 50_000), quota(0, 0), quota(10, 10, counts: "files"),
        ])

    private static let byName = UsageView(
        days: [
            period("2026-11-19", 0, []),
            period("2026-11-20", 10, [("网关后面的摄像机-with-a-long-name", 9), ("", 1), ("any", 0)]),
        ], months: [], by: "folder", quotas: [])

    private func lines(_ view: UsageView, width: Int, terminal: Bool = true, locale: String = "C.UTF-8") -> [String] {
        var console = Screen().console(width: width, environment: ["LC_ALL": "", "LANG": locale])
        console.isTerminal = terminal
        return usageLines(view, console, now: now)
    }

    @Test("bars are proportional to sent bytes, and quotas show the rest and its end")
    func wide() {
        let until = Units.moment("2026-11-20T09:00:00.000Z", now: now)
        #expect(
            lines(Self.view, width: 70) == [
                "day                sent  received  files",
                "2026-11-19 thu   5.0 MB    1.3 MB     12  " + String(repeating: "█", count: 14),
                "2026-11-20 fri  10.0 MB    2.5 MB     12  " + String(repeating: "█", count: 28),
                "", "month    sent  received  files",
                "2026-10   0 B       0 B     12",
                "2026-11   1 B       0 B     12  " + String(repeating: "█", count: 38),
                "", "destinations.archive  a rule, as it was written, over metered networks",
                "  " + String(repeating: "█", count: 10) + String(repeating: "░", count: 30) + "  25%",
                "  250 kB sent, 50.0 kB under way, 700 kB left until \(until)",
                "destinations.archive  a rule, as it was written, over metered networks",
                "  " + String(repeating: "█", count: 40) + " 100%  nothing may be sent",
                "destinations.archive  a rule, as it was written, over metered networks",
                "  " + String(repeating: "█", count: 40) + " 100%",
                "  10 sent, 0 left until \(until)",
            ])
    }

    @Test("names are shown beside their day, and traffic without a file is marked")
    func names() {
        #expect(
            lines(Self.byName, width: 90, terminal: false) == [
                "day                                                sent  received  files",
                "2026-11-19 thu                                      0 B       0 B     12",
                "2026-11-20 fri  网关后面的摄像机-with-a-long-name   9 B       3 B      6  ################",
                "                (no file)                           1 B       3 B      6  ##",
                "                (not asked)                         0 B       3 B      6",
            ])
    }

    @Test(
        "no line is wider than the screen, and no amount is omitted",
        arguments: [28, 34, 40, 47, 60, 80, 200])
    func narrow(_ width: Int) {
        for view in [Self.view, Self.byName] {
            let lines = lines(view, width: width)
            #expect(lines.allSatisfy { displayWidth($0) <= width }, "\(lines)")
            let text = lines.joined(separator: "\n")
            for period in view.days + view.months {
                #expect(text.contains(period.name))
                #expect(period.parts != nil || text.contains(Units.bytes(period.bytes)))
            }
        }
    }

    @Test(
        "block characters are used on a terminal with a matching locale, and `#` elsewhere",
        arguments: [(true, "de_DE.UTF-8", true), (true, "C", false), (true, "", false), (false, "C.UTF-8", false)])
    func ascii(_ terminal: Bool, _ locale: String, _ hasBlocks: Bool) {
        let text = lines(Self.view, width: 80, terminal: terminal, locale: locale).joined()
        #expect(text.contains("█") == hasBlocks)
        #expect(text.utf8.allSatisfy { $0 < 0x80 } == !hasBlocks)
    }

    @Test("a bar is proportional, and never empty for a non-zero value")
    func bars() {
        var console = Screen().console(environment: ["LC_ALL": "C.UTF-8"])
        console.isTerminal = true
        let blocks = UsageBar(console)
        #expect(blocks.solid(0, width: 10) == "")
        #expect(blocks.solid(0.00001, width: 10) == "▏")
        #expect(blocks.solid(0.5, width: 3) == "█▌")
        #expect(blocks.solid(1, width: 3) == "███")
        #expect(blocks.framed(0.99, width: 4) == "███░")
        console.isTerminal = false
        #expect(UsageBar(console).solid(0.00001, width: 10) == "#")
        #expect(UsageBar(console).framed(0.5, width: 6) == "[##..]")
    }
}
