import API
import Core
import Testing

@testable import Control
@testable import Shell

/// Texts of file names, servers and cameras that would act on a terminal.
@Suite("Hostile texts on a screen")
struct HostileScreenTests {
    private static let now = WallTime(rfc3339: "2026-11-20T08:00:00Z") ?? WallTime(milliseconds: 0)

    /// A title for the window, a cleared screen, 8-bit controls, and a text that runs backwards.
    private static let hostile = #"\u001b]0;evil\u0007\u001b[2J\u009b31mEVIL\r\n\u202e\u2066"#

    /// The values that are left when one text after another of a reply is hostile; those that no client accepts are left
    /// out.
    private static func variants<Value: Codable>(of value: Value) throws -> [Value] {
        let text = String(decoding: try JSON.bytes(value), as: UTF8.self)
        var variants: [Value] = []
        var start = text.startIndex
        while let opening = text[start...].firstIndex(of: "\""), opening < text.endIndex {
            let inner = text.index(after: opening)
            var closing = inner
            while closing < text.endIndex, text[closing] != "\"" {
                _ = text.formIndex(&closing, offsetBy: text[closing] == "\\" ? 2 : 1, limitedBy: text.endIndex)
            }
            guard closing < text.endIndex else { break }
            start = text.index(after: closing)
            let isKey = start < text.endIndex && text[start] == ":"
            if isKey { continue }
            let changed = text[..<inner] + hostile + text[closing...]
            if let variant = try? JSON.value(Value.self, from: Array(changed.utf8)) { variants.append(variant) }
        }
        return variants
    }

    /// The lines without the styles that the program itself gives them.
    private func expectTame(_ lines: [String], _ place: String) {
        for line in lines {
            let rest = line.replacing(/\u{1B}\[(0|1|2|7|31|32|33|36)m/, with: "")
            #expect(rest == printable(rest), "\(place): \(printable(rest))")
        }
    }

    /// The lines as a terminal gets them.
    private func expectTame(printed lines: [String], _ place: String) throws {
        let screen = Screen()
        let console = screen.console(colour: true)
        for line in lines { try console.line(line) }
        for line in lines { console.error(line) }
        expectTame(screen.output.split(separator: "\n").map(String.init), place)
        expectTame(screen.errors.split(separator: "\n").map(String.init), place + ", as an error")
    }

    @Test("our own styles, tabs and lines stay, and all else that acts on a terminal becomes a code")
    func harmlessTexts() {
        #expect(harmless("\u{1B}[31mred\u{1B}[0m\ta\nb é 🎬") == "\u{1B}[31mred\u{1B}[0m\ta\nb é 🎬")
        #expect(harmless("\u{1B}[2Ja\u{1B}[8mb\u{1B}") == #"\x1b[2Ja\x1b[8mb\x1b"#)
        #expect(harmless("a\rb\u{9B}31m\u{202E}") == #"a\x0db\xc2\x9b31m\xe2\x80\xae"#)
    }

    @Test("no text of a reply acts on the terminal of `top`, `status`, `why` and `show`")
    func top() throws {
        let console = Screen().console(colour: true)
        let hold = HoldView(kind: .destination, since: "2026-11-20T07:59:00.000Z", until: nil, text: "no answer")
        let uploads = [UploadView.sample(holds: [hold])]
        let base = TopFacts(status: .sample, uploads: uploads, routes: .sample, quotas: [], at: Self.now)
        var all = [base]
        all += try Self.variants(of: StatusView.sample).map { value in
            TopFacts(status: value, uploads: uploads, routes: .sample, quotas: [], at: Self.now)
        }
        all += try Self.variants(of: uploads[0]).map { value in
            TopFacts(status: .sample, uploads: [value], routes: .sample, quotas: [], at: Self.now)
        }
        all += try Self.variants(of: RoutesView.sample).map { value in
            TopFacts(status: .sample, uploads: uploads, routes: value, quotas: [], at: Self.now)
        }
        #expect(all.count > 40)
        for facts in all {
            for question in [TopKey.letter("j"), .letter("c")] {
                var state = TopState()
                _ = state.press(question, facts.uploads, page: 10)
                let screen = TopScreen(
                    facts: facts, state: state, console: console, now: Self.now, width: 300, height: 100)
                expectTame(screen.lines, "top")
            }
            expectTame(TopScreen.plain(facts, console, now: Self.now), "top without a terminal")
            try expectTame(printed: statusLines(facts.status, console, now: Self.now), "status")
            try expectTame(printed: routeLines(facts.routes, console), "routes")
            for upload in facts.uploads {
                let detail = UploadDetail(upload: upload, attempts: [])
                try expectTame(printed: detailLines(detail, console, now: Self.now), "show")
                try expectTame(printed: uploadTable([upload], now: Self.now).lines(console), "list")
            }
        }
    }
}
