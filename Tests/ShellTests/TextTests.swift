import API
import Core
import Linux
import TestKit
import Testing

@testable import Daemon
@testable import Shell

private let now = ManualClocks().wall()

private func screenOf(_ width: Int) -> Console { Screen().console(width: width) }

@Suite("Status of a removable disk")
struct CardTextTests {
    private func text(
        _ level: String, unstaged: Int = 0, unverified: Int = 0, failed: Int = 0, unreleased: Int = 0,
        waiting: GatheringView? = nil
    ) -> String {
        cardText(
            CardView(
                level: level, settling: level == "busy" && unstaged == 0, unstaged: unstaged, unverified: unverified,
                failed: failed, unreleased: unreleased), waiting: waiting)
    }

    @Test("the status shows whether it may be removed, and why not")
    func words() {
        #expect(text("busy", unstaged: 1) == "do not remove: 1 file is not staged yet")
        #expect(text("busy") == "do not remove: files on it are still being examined")
        #expect(
            text("busy", waiting: GatheringView(path: "/c/a.xml", reason: "a sidecar file that waits for its a.*"))
                == "do not remove: /c/a.xml: a sidecar file that waits for its a.*")
        #expect(
            text("staged", unverified: 3, failed: 1)
                == "safe to remove: every file is staged; 2 uploads continue without it; 1 upload failed: "
                + "`sluice list --list failed` names them")
        #expect(
            text("staged", unreleased: 2)
                == "safe to remove: every file is staged; 2 sources on it still to be released")
        #expect(text("verified") == "safe to remove: every file is verified")
    }
}

@Suite("Tables")
struct TableTests {
    static let uploads: [UploadView] = [
        .sample("01JD3K8QXW0000000000000002", name: "2026-11-20 front door garden gate.mp4", below: "2026/11"),
        .sample(
            "01JD3K8QXW0100000000000001", name: "b.mp4", state: .waiting,
            holds: [
                HoldView(
                    kind: .destination, since: "2026-11-20T07:59:00.000Z", until: nil,
                    text: "nas.example does not answer")
            ]),
    ]
    private static let at = WallTime(milliseconds: 1_795_000_000_000)
    private static let clock = Units.shortMoment("2026-11-20T08:00:00.000Z", now: at)

    static let shown: [(Int, [String])] = [
        (
            120,
            [
                "ID            STATE            ADDED  DONE    SIZE      RATE  LEFT  TO       FILE",
                "01JD3K8QXW00  uploading  \(clock)   42%  118 MB  1.3 MB/s   57s  archive  2026/11/2026-11-20 fr… door garden gate.mp4",
                "01JD3K8QXW01  waiting    \(clock)   42%  118 MB                  archive  b.mp4",
                "  destination: nas.example does not answer",
            ]
        ),
        (
            80,
            [
                "ID            STATE            ADDED  DONE    SIZE  LEFT  TO       FILE",
                "01JD3K8QXW00  uploading  \(clock)   42%  118 MB   57s  archive  2026/1…te.mp4",
                "01JD3K8QXW01  waiting    \(clock)   42%  118 MB        archive  b.mp4",
                "  destination: nas.example does not answer",
            ]
        ),
        (
            40,
            [
                "ID            STATE      FILE",
                "01JD3K8QXW00  uploading  2026/11…ate.mp4",
                "01JD3K8QXW01  waiting    b.mp4",
                "  destination: nas.e…ple does not answer",
            ]
        ),
    ]

    @Test("a table fits the terminal: names lose their middle, then columns are dropped", arguments: shown)
    func widths(_ width: Int, _ lines: [String]) {
        let table = uploadTable(Self.uploads, now: Self.at)
        #expect(table.lines(Screen().console(width: width, isTerminal: true)) == lines)
        for line in lines { #expect(displayWidth(line) <= width) }
    }

    @Test("output for another program is not cut")
    func piped() {
        let text = uploadTable(Self.uploads, now: Self.at).lines(screenOf(40)).joined(separator: "\n")
        #expect(text.contains("archive  2026/11/2026-11-20 front door garden gate.mp4\n"))
        #expect(text.contains("1.3 MB/s"))
        #expect(text.contains("  destination: nas.example does not answer"))
    }

    @Test("times in a column show the clock for today, the day for this year, else the date")
    func times() {
        let time = WallTime(milliseconds: 1_763_600_000_000)
        let local = LocalTime(time)
        #expect(Units.shortMoment(time.description, now: time) == String(local.clock.prefix(5)))
        #expect(
            Units.shortMoment(time.description, now: time.advanced(by: .seconds(3 * 86_400)))
                == "\(local.date.dropFirst(5)) \(local.clock.prefix(5))")
        #expect(Units.shortMoment(time.description, now: time.advanced(by: .seconds(400 * 86_400))) == local.date)
    }

    @Test("ids are shown as long as needed to differ, and longer than the daemon requires")
    func ids() {
        #expect(distinctLength(["01JD3K8QXW0000000000000001"]) == 12)
        #expect(distinctLength(["01JD3K8QXW0000AA", "01JD3K8QXW0000AB", "01JD3K8QXW0000AB"]) == 16)
    }

    @Test(
        "width counts terminal columns",
        arguments: [("abc", 3), ("ü", 1), ("u\u{308}", 1), ("日本", 4), ("🎬", 2), ("", 0)])
    func columns(_ text: String, _ width: Int) {
        #expect(displayWidth(text) == width)
    }

    @Test(
        "text is cut in the middle, never wider than requested",
        arguments: [
            ("abcdef", 6, "abcdef"), ("abcdefg", 6, "ab…efg"), ("日本語日本語", 5, "日…語"), ("abc", 1, "…"), ("abc", 0, ""),
        ])
    func cuts(_ text: String, _ width: Int, _ expected: String) {
        #expect(cut(text, to: width) == expected)
    }
}

@Suite("Units")
struct UnitsTests {
    @Test(
        "bytes have three digits",
        arguments: [
            (Int64(0), "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_250_000, "1.3 MB"), (99_940, "99.9 kB"),
            (99_960, "100 kB"), (999_499, "999 kB"), (999_500, "1.0 MB"), (3_400_000_000, "3.4 GB"),
            (Int64.max, "9.2 EB"),
        ])
    func bytes(_ count: Int64, _ text: String) { #expect(Units.bytes(count) == text) }

    @Test(
        "durations have two units",
        arguments: [
            (Int64(0), "0s"), (59, "59s"), (60, "1m 00s"), (200, "3m 20s"), (7500, "2h 05m"), (273_600, "3d 4h"),
            (-5, "0s"),
        ])
    func durations(_ seconds: Int64, _ text: String) { #expect(Units.duration(seconds) == text) }

    @Test(
        "a duration is parsed, nonsense is refused",
        arguments: [
            ("90s", Int64?.some(90)), ("2h", 7200), ("1h30m", 5400), ("1d", 86_400), ("2", nil), ("h", nil), ("", nil),
            ("0s", nil), ("9999999999d", nil), ("2 h", 7200), ("2x", nil), ("-2h", nil),
        ])
    func reads(_ text: String, _ seconds: Int64?) { #expect(Units.seconds(text) == seconds) }

    @Test(
        "sizes are parsed with their units",
        arguments: [
            ("20 GB", Int64?.some(20_000_000_000)), ("8MiB", 8 << 20), ("500", 500), ("1 gb", nil), ("GB", nil),
            ("", nil),
            ("99999999999 TB", nil),
        ])
    func sizes(_ text: String, _ bytes: Int64?) { #expect(byteCount(in: text) == bytes) }

    @Test(
        "times of the daemon are parsed back",
        arguments: [Int64(0), 951_782_400_123, 1_795_161_600_000, 4_102_444_799_999, -1])
    func times(_ milliseconds: Int64) {
        let time = WallTime(milliseconds: milliseconds)
        #expect(WallTime(described: time.description) == time)
    }

    @Test(
        "an invalid time is shown unchanged", arguments: ["", "soon", "2026-13-01T00:00:00Z", "2026-1a-01T00:00:00Z"])
    func noTime(_ text: String) { #expect(Units.moment(text, now: now) == text) }

    @Test("100 % is shown only when complete", arguments: zip([0, 0.004, 0.999, 1], ["0%", "0%", "99%", "100%"]))
    func percent(_ fraction: Double, _ text: String) { #expect(Units.percent(fraction) == text) }
}

@Suite("Text output")
struct TextTests {
    @Test("the status shows running uploads, holds and reasons")
    func status() {
        let since = Units.moment("2026-11-20T07:00:00.000Z", now: now)
        let until = Units.moment("2026-11-20T08:05:00.000Z", now: now)
        let paused = Units.moment("2026-11-20T07:30:00.000Z", now: now)
        let seen = Units.moment("2026-11-20T07:58:00.000Z", now: now)
        #expect(
            statusLines(.sample, screenOf(120), now: now) == [
                "sluice    0.1.0, pid 77, since \(since)",
                "uploads   3 ongoing, 120 completed, 1 failed, 0 cancelled",
                "now       12 of 20 files, 1.2 GB of 3.4 GB (35%), 11.0 MB/s, 3m 20s left",
                "paused    folder back since \(paused), until `sluice resume --folder back`",
                "folder    front  /srv/front  watching, 2 settling",
                "          /srv/front/long.mp4  48.0 MB, growing by 1.3 MB/s, another process has it open for writing, "
                    + "since \(seen)",
                "to        archive  tus  held, 0 running, 3 waiting, 1.2 GB sent and 34.0 MB received today",
                "          destination: nas.example does not answer (until \(until), in 5m 00s)",
                "          1 from back waits: metered: wwan0 costs",
                "staging   /var/lib/sluice/staging  1.0 MB used of 200 GB, 300 GB free on its disk",
                "warning   staging is on a memory file system",
            ])
    }

    @Test("a failed upload shows its error, with control characters removed")
    func detail() {
        let error = ErrorView(
            kind: "permanent", code: "http_413", http: 413, message: "too \u{1B}[31mlarge", retryable: false,
            at: "2026-11-20T07:59:00.000Z")
        let upload = UploadView.sample(state: .failed, error: error)
        let attempts = [AttemptView(generation: 1, attempt: 2, error: error)]
        let media = MediaView(
            MediaFacts(
                recorded: WallTime(milliseconds: 1_714_558_830_000), duration: 65_400, width: 1920, height: 1080,
                make: "Acme", model: "5"))
        let lines = detailLines(
            UploadDetail(upload: upload, attempts: attempts, media: media), screenOf(120), now: now)
        let at = Units.moment(error.at, now: now)
        #expect(lines.contains("error         \(at)  permanent http_413 (HTTP 413): too \\x1b[31mlarge (final)"))
        #expect(lines.last == "  1.2  \(at)  permanent http_413 (HTTP 413): too \\x1b[31mlarge (final)")
        #expect(lines.contains("sha256        " + String(repeating: "ab", count: 32)))
        #expect(lines.contains("settled by    lease"))
        #expect(lines.contains("recording     1m 05s, 1920 × 1080, Acme 5"))
        #expect(lines.contains("recorded      " + Units.moment("2024-05-01T10:20:30.000Z", now: now)))
        #expect(lines.contains("context       Camera_Name=door"))
        #expect(lines.contains("source        delete: pending"))
    }

    @Test("an unfinished upload that the destination drops shows how far it came, and until when")
    func resumable() {
        var upload = UploadView.sample(state: .waiting)
        upload.remote = RemoteView(
            resumable: ResumableView(offset: 12_000_000, expiresAt: "2026-11-20T09:00:00.000Z"))
        let lines = detailLines(UploadDetail(upload: upload, attempts: []), screenOf(120), now: now)
        let at = Units.moment("2026-11-20T09:00:00.000Z", now: now)
        #expect(lines.contains("remote        continues at 12.0 MB, dropped there at \(at)"))
    }

    @Test("a coloured status line is wrapped where a plain one is")
    func wrappedStatus() {
        func lines(isColoured: Bool) -> [String] {
            let console = Screen().console(width: 50, colour: isColoured, isTerminal: true)
            return statusLines(.sample, console, now: now).flatMap { $0.split(separator: "\n").map(String.init) }
        }
        let (plain, coloured) = (lines(isColoured: false), lines(isColoured: true))
        #expect(coloured.map(withoutStyles) == plain)
        #expect(coloured != plain)
        #expect(plain.contains { $0.hasPrefix(" ") } && plain.allSatisfy { displayWidth($0) <= 50 }, "\(plain)")
    }

    @Test("an event is one line")
    func events() {
        let at = Units.moment("2026-11-20T08:00:00.000Z", now: now)
        func line(_ type: EventType, _ op: UploadView?, _ detail: [String: String] = [:]) -> String {
            eventLine(
                EventView(seq: 1, ts: "2026-11-20T08:00:00.000Z", type: type, op: op, detail: detail), screenOf(120),
                now: now)
        }
        let id = UploadView.sample().id
        #expect(line(.progress, .sample()) == "\(at) progress  \(id) a.mp4 -> archive  42% 1.3 MB/s 57s left")
        #expect(
            line(.state, .sample(), ["from": "queued", "to": "uploading"])
                == "\(at) state     \(id) a.mp4 -> archive  queued to uploading")
        #expect(
            line(.source, .sample(), ["state": "released", "note": "moved to /srv/\u{1b}a"])
                == "\(at) source    \(id) a.mp4 -> archive  released, moved to /srv/\\x1ba")
        #expect(line(.source, .sample(), ["state": "kept", "note": ""]).hasSuffix("archive  kept"))
        #expect(
            line(.paused, nil, ["until": "x\ny", "reason": "asked"]) == "\(at) paused     reason=asked  until=x\\x0ay")
    }

    @Test(
        "a bar has the given width",
        arguments: zip(
            [0, 0.5, 1, 7, -1], ["[..........]", "[#####.....]", "[##########]", "[##########]", "[..........]"]))
    func bars(_ fraction: Double, _ text: String) { #expect(bar(fraction, width: 12) == text) }

    @Test("a cut line keeps the end of its colour")
    func trims() {
        #expect(trimmed("\u{1B}[31mabcdef\u{1B}[0m", to: 3) == "\u{1B}[31mabc\u{1B}[0m")
    }
}
