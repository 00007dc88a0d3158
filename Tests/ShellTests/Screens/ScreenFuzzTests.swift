import API
import Core
import TestKit
import TestTraits
import Testing

@testable import Control
@testable import Daemon
@testable import Shell

/// A daemon of another version, or a faulty one: every reply that can be read can be shown.
@Suite("Fuzz: answers of a daemon on a screen", .ownThreads, .timeLimit(.minutes(Fuzz.minutes)))
struct ScreenFuzzTests {
    @Test("every list, detail, status, usage and event that can be decoded can be shown")
    func views() throws {
        let upload = UploadView.sample(
            holds: [HoldView(kind: .destination, since: "2026-11-20T07:59:00.000Z", until: nil, text: "no answer")])
        let seeds = [
            try JSON.bytes(
                UploadPage(uploads: [upload, .sample("01JD")], counts: Counts(ongoing: 1), seq: 7, next: nil)),
            try JSON.bytes(UploadDetail(upload: upload, attempts: [])), try JSON.bytes(StatusView.sample),
            try JSON.bytes(
                UsageView(
                    days: [
                        UsagePeriodView(
                            name: "2026-11-20", from: "2026-11-20T00:00:00.000Z", until: "2026-11-21T00:00:00.000Z",
                            bytes: 9, received: 2, files: 1,
                            parts: [UsagePartView(name: "nas", bytes: 9, received: 2, files: 1)])
                    ], months: [], by: "destination",
                    quotas: [
                        QuotaView(
                            place: "policy", text: "20 GB a day", counts: "bytes",
                            direction: "sent", limit: 20, used: 9, reserved: 1, left: 10,
                            from: "2026-11-20T00:00:00.000Z", until: "2026-11-21T00:00:00.000Z")
                    ])),
            try JSON.bytes(
                EventView(seq: 1, ts: "2026-11-20T07:59:00.000Z", type: .state, op: upload, detail: ["to": "x"])),
        ]
        let words = [
            "null", "true", "-1e300", "1e300", "0.0000001", "-0.0", "\"\"", "[]", "{}", "\\u0000", "\\ud83c",
            "\u{1B}[2J", "é", "🎬",
            "9999-99-99T99:99:99.999Z", "-999-01-01T00:00:00Z", "-1",
        ]
        let now = ManualClocks().wall()
        let mutator = Mutator(seeds, words: words)
        var shown = 0
        let fuzz = Fuzz("views", rounds: 1000, share: 4)
        try fuzz.each(mutator) { round in
            let console = Screen().console(width: Int.random(in: 0...200, using: &round.dice), colour: true)
            // An unreadable reply is refused by the client, which has its own tests.
            if let page = try? JSON.value(UploadPage.self, from: round.input) {
                shown += uploadTable(page.uploads, now: now).lines(console).count
            }
            if let detail = try? JSON.value(UploadDetail.self, from: round.input) {
                shown += detailLines(detail, console, now: now).count
            }
            if let status = try? JSON.value(StatusView.self, from: round.input) {
                shown += statusLines(status, console, now: now).count
                _ = bar(Double(status.bytesDone) / Double(status.bytesTotal), width: 20)
            }
            if let usage = try? JSON.value(UsageView.self, from: round.input) {
                shown += usageLines(usage, console, now: now).isEmpty ? 0 : 1
            }
            if let event = try? JSON.value(EventView.self, from: round.input) {
                shown += eventLine(event, console, now: now).isEmpty ? 0 : 1
            }
        }
        if fuzz.rounds >= 1000 { #expect(shown > fuzz.rounds / 10) }
    }

    @Test("a typed amount is a number or refused, and never overflows")
    func units() throws {
        let seeds = ["1h30m", "20 GB", "8MiB", "2026-11-20T08:00:00.000Z", "90s", "500"]
        let mutator = Mutator(
            seeds.map { Array($0.utf8) }, words: ["w", "d", "999999999w", "TiB", "Z", "T", "-", "٣"], limit: 32 << 10)
        try Fuzz("typed amounts", rounds: 2000).each(mutator) { round in
            let text = String(decoding: round.input, as: UTF8.self)
            if let seconds = Units.seconds(text) { try round.expect((1...315_360_000).contains(seconds), "\(seconds)") }
            if let bytes = byteCount(in: text) { try round.expect(bytes >= 0, "\(bytes)") }
            if let time = WallTime(described: text) { _ = Units.moment(time.description, now: time) }
            for number in [Int64.min, -1, 999_499, 999_950, Int64.max] {
                _ = Units.bytes(number) + Units.duration(number)
            }
            for fraction in [-1e300, -0.0, 0.999, 1e300, .infinity, -.infinity, .nan] {
                let percent = Units.percent(fraction)
                try round.expect(percent.count <= 4 && percent.hasSuffix("%"), "\(fraction) is \(percent)")
            }
        }
    }
}
