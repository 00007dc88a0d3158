import API
import Control
import Core
import TestTraits
import Testing

@testable import Shell

/// `top`: its keys, and what it shows in windows of any size.
@Suite("top", .ownThreads)
struct TopTests {
    @Test("in a window of any size there are exactly its lines, and none is wider", arguments: [0, 1, 7, 150])
    func sizes(uploads: Int) {
        var state = TopState()
        for isLost in [false, true] {
            if isLost { state.lost = TopState.Loss(since: TopSample.now, TopSample.absence) }
            for (width, height) in [(20, 5), (40, 12), (80, 24), (132, 43), (300, 90), (1, 1)] {
                let lines = TopSample.screen(TopSample.facts(uploads), state, width: width, height: height).lines
                #expect(lines.count == height, "\(width) x \(height)")
                for line in lines { #expect(displayWidth(line) <= width, "\(width) x \(height): \(line)") }
            }
        }
    }

    @Test("the chosen upload stays on the screen while a person moves through a long list")
    func choice() {
        let facts = TopSample.facts(100)
        var state = TopState()
        for key in [TopKey.down, .pageDown, .last, .pageUp, .up, .first] + Array(repeating: .down, count: 30) {
            let screen = TopSample.screen(facts, state, width: 100, height: 20)
            #expect(state.press(key, facts.uploads, page: screen.rows) == .none)
            let name = facts.uploads[state.index(in: facts.uploads)].name
            let chosen = TopSample.screen(facts, state, width: 100, height: 20).lines.filter {
                $0.contains("\u{1B}[7m")
            }
            #expect(chosen.count == 1 && chosen[0].contains(name), "\(name): \(chosen)")
        }
        // It is the same upload when others arrive above it.
        let before = facts.uploads[state.index(in: facts.uploads)].id
        var more = facts
        more.uploads.insert(contentsOf: (200..<210).map { TopSample.upload($0) }, at: 0)
        #expect(more.uploads[state.index(in: more.uploads)].id == before)
    }

    @Test("everything that the daemon reports has its place: holds, ways, quotas, disk, pauses and warnings")
    func content() {
        let text = TopSample.screen(TopSample.facts(3), width: 160, height: 60).lines.map(withoutStyles).joined(
            separator: "\n")
        for word in [
            "3 ongoing", "1 failed", "11.0 MB/s", "paused: folder back", "warning: staging is on a memory file system",
            "2 from front to archive, 96.0 MB  destination: nas.example does not answer", "1 from back to archive",
            "archive  by wan0, from 192.0.2.7",
            "archive  not by wwan0: metered, and policy forbids that", "QUOTAS", "300 GB free", "clip 0.mp4",
        ] { #expect(text.contains(word), "\(word) is not in:\n\(text)") }
    }

    @Test("what has no room below many uploads is in the overview, which a key opens also without an upload")
    func overview() {
        var state = TopState()
        let screen = TopSample.screen(TopSample.facts(100), state, width: 80, height: 24)
        #expect(screen.lines.contains { $0.contains("more lines: o shows all") })
        #expect(state.press(.letter("o"), [], page: 5) == .none)
        let page = TopSample.screen(TopSample.facts(100), state, width: 80, height: 24)
        let text = page.pageText.map(withoutStyles).joined(separator: "\n")
        for word in ["paused: folder back", "DESTINATIONS", "WAYS", "QUOTAS", "300 GB free"] {
            #expect(text.contains(word), "\(word) is not in:\n\(text)")
        }
        #expect(page.lines.count == 24 && page.lines.allSatisfy { displayWidth($0) <= 80 })
        #expect(TopState.help.contains { $0.hasPrefix("o ") })
    }

    @Test("an open overview shows what the daemon says now; a lost daemon shows over every page")
    func liveOverview() {
        var (facts, state) = (TopSample.facts(100), TopState())
        #expect(state.press(.letter("o"), [], page: 5) == .none)
        facts.status.staging.free = 7_000_000_000
        func text(_ height: Int = 40) -> [String] {
            TopSample.screen(facts, state, width: 120, height: height).lines.map(withoutStyles)
        }
        #expect(text().contains { $0.contains("7.0 GB free") })
        state.lost = TopState.Loss(since: TopSample.now, TopSample.absence)
        for page in [state.page, TopState.Page(title: "Why", content: .text(["it is held"]))] {
            state.page = page
            #expect(text().contains { $0.hasPrefix("No daemon since") })
            for height in 1...5 { #expect(text(height).count == height) }
        }
    }

    @Test(
        "the line of keys shows as many as have room, each whole",
        arguments: [(80, "r resume"), (40, "o overview"), (200, "+ - priority")])
    func keyLine(width: Int, last: String) {
        let line = TopSample.screen(TopSample.facts(3), width: width, height: 24).lines.last.map(withoutStyles)
        #expect(line?.hasPrefix("q quit  ? keys  Tab ongoing  o overview") == true)
        #expect(line?.hasSuffix(last) == true, "\(line ?? "")")
    }

    @Test("the queue shows what waits by folder and destination, and each hold with the number of uploads it binds")
    func queue() {
        var facts = TopSample.facts(1)
        let hold = HoldView(kind: .metered, since: "2026-11-20T07:59:00.000Z", text: "wwan0 costs")
        let other = HoldView(kind: .quota, since: "2026-11-20T07:59:00.000Z", text: "the quota is used up")
        facts.status.queue = [
            QueuedView(folder: "a", destination: "nas", waiting: 7, bytes: 70_000_000),
            QueuedView(folder: "b", destination: "nas", waiting: 5, bytes: 50_000_000),
            QueuedView(folder: "c", destination: "nas", waiting: 3, bytes: 30_000_000),
        ]
        facts.status.classes = [
            ClassView(folder: "b", destination: "nas", waiting: 5, hold: hold),
            ClassView(folder: "c", destination: "nas", waiting: 1, hold: hold),
            ClassView(folder: "c", destination: "nas", waiting: 1, hold: other),
            ClassView(folder: "a", destination: "cloud", waiting: 7, hold: other),
        ]
        let lines = TopSample.screen(facts, width: 160, height: 60).lines.map(withoutStyles)
        let queue = lines.drop { $0 != "QUEUE" }.dropFirst().prefix { $0.hasPrefix("  ") }
        #expect(
            Array(queue) == [
                "  7 from a to nas, 70.0 MB", "  5 from b to nas, 50.0 MB  metered: wwan0 costs",
                "  3 from c to nas, 30.0 MB", "    1 of them  metered: wwan0 costs",
                "    1 of them  quota: the quota is used up",
            ])
    }

    @Test("a pause names the command that ends it", arguments: ["all", "folder", "destination"])
    func pauses(scope: String) {
        let name = scope == "all" ? nil : "nas"
        let pause = PauseView(scope: scope, name: name, since: "2026-11-20T07:30:00.000Z")
        let command = name.map { "sluice resume --\(scope) \($0)" } ?? "sluice resume"
        #expect(pauseText(pause, TopSample.now).hasSuffix(", until `\(command)`"))
        var facts = TopSample.facts(1)
        facts.status.paused = [pause]
        let lines = TopSample.screen(facts, width: 160, height: 40).lines.map(withoutStyles)
        #expect(lines.contains { $0.hasSuffix("until `\(command)`") }, "\(lines)")
    }

    @Test("without a terminal all uploads are printed, whole and without escape sequences")
    func plain() {
        let lines = TopScreen.plain(TopSample.facts(40), Screen().console(), now: TopSample.now)
        #expect(lines.filter { $0.contains("clip ") }.count == 40)
        #expect(!lines.joined().contains("\u{1B}") && !lines.joined().contains("…"))
    }

    @Test("a question is answerable in a window of any size: it has more lines, and loses its middle before its keys")
    func questions() {
        var upload = TopSample.upload(1)
        upload.name = "a rather long name\u{1B}[2J of a recording 録画 of the front door.mp4"
        var facts = TopSample.facts(3)
        facts.uploads[0] = upload
        for key in "cxPR" {
            var state = TopState()
            _ = state.press(.letter(key), facts.uploads, page: 5)
            let question = state.question?.text ?? ""
            for (width, height) in [
                (20, 5), (20, 24), (21, 6), (40, 12), (80, 24), (5, 4), (9, 4), (9, 7), (7, 1), (3, 1),
            ] {
                let lines = TopSample.screen(facts, state, width: width, height: height).lines.map(withoutStyles)
                #expect(lines.count == height, "\(width) x \(height)")
                #expect(lines.allSatisfy { displayWidth($0) <= width }, "\(width) x \(height): \(lines)")
                #expect(lines.last?.hasSuffix("y/n") == true, "\(width) x \(height): \(lines)")
                if width >= 20, height >= 12 {
                    let text = lines.joined().filter { $0 != " " }
                    #expect(text.hasSuffix("\(question)y/n".filter { $0 != " " }), "\(width) x \(height): \(lines)")
                }
            }
        }
    }

    @Test("an ongoing upload with an error shows the hold for which it waits, a failed one the error")
    func waits() {
        var facts = TopSample.facts(1)
        facts.uploads[0].error = ErrorView(
            kind: "network", code: "timeout", message: "no answer", retryable: true, at: "2026-11-20T07:59:00.000Z")
        facts.uploads[0].holds = [
            HoldView(kind: .backoff, since: "2026-11-20T07:59:00.000Z", text: "tries again after an error")
        ]
        func text() -> String {
            TopSample.screen(facts, width: 200, height: 30).lines.map(withoutStyles).joined(separator: "\n")
        }
        #expect(text().contains("backoff: tries again after an error") && !text().contains("timeout: no answer"))
        facts.uploads[0].list = Shown(.failed)
        #expect(text().contains("timeout: no answer"))
    }

    @Test("while a file is copied the bar is that of the copy, with its word, and DONE is that of the upload")
    func staging() {
        var facts = TopSample.facts(1)
        facts.uploads[0].progress.fraction = 0
        facts.uploads[0].staging = StagingRunView(
            path: "/cam/a.mp4", work: "copying", fraction: 0.5, done: 50, total: 100)
        let line = TopSample.screen(facts, width: 200, height: 30).lines.map(withoutStyles).first {
            $0.contains("clip 0.mp4")
        }
        #expect(line?.contains("copying [######......]") == true && line?.contains(" 0%") == true, "\(line ?? "")")
        #expect(line?.contains("50%") == false)
        facts.uploads[0].staging?.fraction = nil
        #expect(
            TopSample.screen(facts, width: 200, height: 30).lines.contains {
                $0.contains("copying") && !$0.contains("[#")
            })
    }

    @Test("a page is read whole in a window of any size: long lines are broken, and the last one can be reached")
    func pages() {
        let words = (0..<300).map { "word\($0)" }
        let console = Screen().console(colour: true)
        var state = TopState()
        state.page = TopState.Page(
            title: "Why",
            content: .text(
                [console.styled("/srv/録画/front door.mp4", .bold)] + ["  " + words.joined(separator: " ")]
                    + (0..<30).map { "line\($0)\nnext\($0)" }))
        for (width, height) in [(20, 5), (40, 12), (80, 24), (300, 90)] {
            var (state, seen) = (state, Set<String>())
            for _ in 0..<1_000 {
                let screen = TopSample.screen(TopSample.facts(7), state, width: width, height: height)
                let lines = screen.lines.map(withoutStyles)
                #expect(lines.count == height && lines.allSatisfy { displayWidth($0) <= width })
                let text = lines.dropFirst().dropLast().flatMap { $0.split(separator: " ") }.map(String.init)
                let isNew = !seen.isSuperset(of: text)
                seen.formUnion(text)
                if !isNew, !lines.joined().contains("down: more") { break }
                #expect(state.press(.pageDown, [], page: screen.rows, of: screen.pageText.count) == .none)
            }
            #expect(seen.isSuperset(of: words + ["line29", "next29", "door.mp4"]), "\(width) x \(height)")
            // The last screen is full, and one key leads up from there.
            let last = TopSample.screen(TopSample.facts(7), state, width: width, height: height)
            #expect(state.press(.up, [], page: last.rows, of: last.pageText.count) == .none)
            #expect(state.page?.offset == max(0, last.pageText.count - last.rows - 1))
        }
    }

    @Test(
        "until the daemon has told the uploads of a list it is not called empty, and no upload of another one is in it")
    func otherList() {
        let facts = TopSample.facts(3)
        var state = TopState()
        state.show(facts.uploads, isCurrent: true)
        #expect(state.press(.tab, facts.uploads, page: 5) == .refresh)
        func text() -> String {
            TopSample.screen(facts, state, width: 100, height: 30).lines.map(withoutStyles).joined(separator: "\n")
        }
        #expect(text().contains("failed uploads\n  …") && !text().contains("clip") && !text().contains("  none"))
        #expect(TopSample.screen(facts, state, width: 100, height: 30).uploads.isEmpty)
        state.lost = TopState.Loss(since: TopSample.now, TopSample.absence)
        #expect(text().contains("failed uploads\n  not known without the daemon"))
        for _ in 1..<TopState.lists.count { _ = state.press(.tab, [], page: 5) }
        #expect(text().contains("clip 0.mp4"))
    }

    @Test("a daemon that refuses this user, or that cannot be understood, is not said to be absent")
    func losses() {
        let cases: [(ControlError, String)] = [
            (TopSample.absence, "No daemon since "), (.ended(last: nil), "No daemon since "),
            (.denied(socket: "/run/sluice/control.sock"), "No access to the daemon since "),
            (.protocolFault("it is no JSON"), "No answer that can be read since "),
        ]
        for (error, headline) in cases {
            var state = TopState()
            state.lost = TopState.Loss(since: TopSample.now, error)
            let lines = TopSample.screen(TopSample.facts(1), state, width: 200, height: 30).lines.map(withoutStyles)
            #expect(lines.contains { $0.hasPrefix(headline) && $0.contains("\(error)") }, "\(lines)")
        }
    }

    @Test("the terminal's own size counts; a serial line has that of the environment, or 80 columns and 24 rows")
    func size() {
        let named = ["COLUMNS": "132", "LINES": "43"]
        let cases: [((width: Int, height: Int)?, [String: String], (Int, Int))] = [
            ((0, 0), [:], (80, 24)), ((0, 0), named, (132, 43)), ((0, 0), ["LINES": "no"], (80, 24)),
            ((100, 30), [:], (100, 30)), ((100, 30), named, (100, 30)), ((0, 30), [:], (80, 30)),
            ((0, 30), named, (132, 30)),
            (nil, [:], (100, .max)), (nil, named, (132, .max)),
        ]
        for (reported, environment, expected) in cases {
            let size = Console.size(reported: reported) { environment[$0] }
            #expect(size == expected, "\(String(describing: reported)), \(environment)")
        }
    }

    @Test("keys are read as terminals send them, also several at once; strange bytes are ignored")
    func bytes() {
        #expect(TopKey.keys(in: Array("\u{1B}[A\u{1B}OBq".utf8)) == [.up, .down, .letter("q")])
        #expect(
            TopKey.keys(in: Array("\u{1B}[5~\u{1B}[6~\u{1B}[1~\u{1B}[4~".utf8)) == [.pageUp, .pageDown, .first, .last])
        #expect(TopKey.keys(in: [0x1B]) == [.escape])
        #expect(TopKey.keys(in: [0x03, 0x0D, 0x09, 0x1A]) == [.interrupt, .enter, .tab, .suspend])
        #expect(TopKey.keys(in: Array("\u{1B}[1;5C\u{1B}[200~é".utf8)).isEmpty)
        var dice = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            _ = TopKey.keys(in: (0..<Int.random(in: 0...20)).map { _ in UInt8.random(in: 0...255, using: &dice) })
        }
    }
}
