import API
import Core
import Testing

@testable import Shell

/// `top`: its keys, and what it shows in windows of any size.
@Suite("top")
struct TopTests {
    private static let now = WallTime(rfc3339: "2026-11-20T08:00:00Z") ?? WallTime(milliseconds: 0)

    private static func upload(_ number: Int, _ state: ShownState = .waiting, priority: Int = 0) -> UploadView {
        var view = UploadView.sample()
        view.id = "01JD3K8QWEDJ3T069W6KMA\(number + 1000)"
        view.name = "clip \(number).mp4"
        view.relative = view.name
        view.state = state
        view.priority = priority
        return view
    }

    private static func facts(_ count: Int) -> TopFacts {
        TopFacts(
            status: .sample, uploads: (0..<count).map { upload($0) }, routes: .sample, quotas: [.sample], at: now)
    }

    private static func screen(
        _ facts: TopFacts, _ state: TopState = TopState(), width: Int, height: Int
    ) -> TopScreen {
        TopScreen(
            facts: facts, state: state, console: Screen().console(colour: true), now: now, width: width, height: height)
    }

    @Test("in a window of any size there are exactly its lines, and none is wider", arguments: [0, 1, 7, 150])
    func sizes(uploads: Int) {
        var state = TopState()
        for isLost in [false, true] {
            if isLost { state.lost = (since: Self.now, reason: "the socket exists, but no daemon listens on it") }
            for (width, height) in [(20, 5), (40, 12), (80, 24), (132, 43), (300, 90), (1, 1)] {
                let lines = Self.screen(Self.facts(uploads), state, width: width, height: height).lines
                #expect(lines.count == height, "\(width) x \(height)")
                for line in lines { #expect(displayWidth(line) <= width, "\(width) x \(height): \(line)") }
            }
        }
    }

    @Test("the chosen upload stays on the screen while a person moves through a long list")
    func choice() {
        let facts = Self.facts(100)
        var state = TopState()
        for key in [TopKey.down, .pageDown, .last, .pageUp, .up, .first] + Array(repeating: .down, count: 30) {
            let screen = Self.screen(facts, state, width: 100, height: 20)
            #expect(state.press(key, facts.uploads, page: screen.rows) == .none)
            let name = facts.uploads[state.index(in: facts.uploads)].name
            let chosen = Self.screen(facts, state, width: 100, height: 20).lines.filter { $0.contains("\u{1B}[7m") }
            #expect(chosen.count == 1 && chosen[0].contains(name), "\(name): \(chosen)")
        }
        // It is the same upload when others arrive above it.
        let before = facts.uploads[state.index(in: facts.uploads)].id
        var more = facts
        more.uploads.insert(contentsOf: (200..<210).map { Self.upload($0) }, at: 0)
        #expect(more.uploads[state.index(in: more.uploads)].id == before)
    }

    @Test("everything that the daemon reports has its place: holds, ways, quotas, disk, pauses and warnings")
    func content() {
        let text = Self.screen(Self.facts(3), width: 160, height: 60).lines.map(withoutStyles).joined(separator: "\n")
        for word in [
            "3 ongoing", "1 failed", "11.0 MB/s", "paused: folder back", "warning: staging is on a memory file system",
            "2 from front to archive", "nas.example does not answer", "archive  by wan0, from 192.0.2.7",
            "archive  not by wwan0: metered, and policy forbids that", "QUOTAS", "300 GB free", "clip 0.mp4",
        ] { #expect(text.contains(word), "\(word) is not in:\n\(text)") }
    }

    @Test("without a terminal all uploads are printed, whole and without escape sequences")
    func plain() {
        let lines = TopScreen.plain(Self.facts(40), Screen().console(), now: Self.now)
        #expect(lines.filter { $0.contains("clip ") }.count == 40)
        #expect(!lines.joined().contains("\u{1B}") && !lines.joined().contains("…"))
    }

    @Test("a command concerns the chosen upload; what ends one needs a yes")
    func commands() {
        let uploads = [Self.upload(0), Self.upload(1, priority: 1000)]
        var state = TopState()
        func press(_ keys: TopKey...) -> TopState.Effect {
            var effect = TopState.Effect.none
            for key in keys { effect = state.press(key, uploads, page: 10) }
            return effect
        }
        #expect(press(.letter("p")) == .run(.pause, upload: uploads[0]))
        #expect(press(.down, .letter("r")) == .run(.resume, upload: uploads[1]))
        #expect(press(.letter("+")) == .run(.priority(1000), upload: uploads[1]))
        #expect(press(.letter("-")) == .run(.priority(999), upload: uploads[1]))
        #expect(press(.letter("t")) == .run(.retry, upload: uploads[1]))
        #expect(press(.letter("w")) == .why(uploads[1]))
        #expect(press(.enter) == .show(uploads[1]))
        #expect(press(.letter("c")) == .none)
        let foot = Self.screen(
            TopFacts(status: .sample, uploads: uploads, routes: .sample, quotas: [], at: Self.now), state, width: 80,
            height: 24
        ).lines.last
        #expect(foot?.contains("Cancel: clip 1.mp4") == true)
        #expect(press(.letter("n")) == .none)
        #expect(press(.letter("y")) == .none)
        #expect(press(.letter("c"), .letter("y")) == .run(.cancel, upload: uploads[1]))
        #expect(press(.letter("x"), .letter("y")) == .run(.remove, upload: uploads[1]))
        for (key, command) in [("P", .pauseAll), ("R", .resumeAll)] as [(Character, TopState.Command)] {
            #expect(press(.letter(key)) == .none)
            #expect(press(.letter("n")) == .none)
            #expect(press(.letter(key), .letter("y")) == .run(command, upload: nil))
        }
        #expect(press(.letter("c"), .interrupt) == .quit)
        #expect(press(.escape) == .none && state.question == nil)
        #expect(press(.tab) == .refresh && state.list == .failed)
        #expect(press(.letter("?")) == .none && state.page?.title == "Keys")
        #expect(press(.letter("q")) == .none && state.page == nil)
        #expect(press(.letter("q")) == .quit)
    }

    @Test("a question is answerable in a window of any size: it has more lines, and loses its middle before its keys")
    func questions() {
        var upload = Self.upload(1)
        upload.name = "a rather long name\u{1B}[2J of a recording 録画 of the front door.mp4"
        var facts = Self.facts(3)
        facts.uploads[0] = upload
        for key in "cxPR" {
            var state = TopState()
            _ = state.press(.letter(key), facts.uploads, page: 5)
            let question = state.question?.text ?? ""
            for (width, height) in [
                (20, 5), (20, 24), (21, 6), (40, 12), (80, 24), (5, 4), (9, 4), (9, 7), (7, 1), (3, 1),
            ] {
                let lines = Self.screen(facts, state, width: width, height: height).lines.map(withoutStyles)
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

    @Test("with an empty list no key does anything to an upload")
    func empty() {
        var state = TopState()
        for letter in "prtwicx+-jkgG" { #expect(state.press(.letter(letter), [], page: 5) == .none) }
        for key in [TopKey.up, .down, .pageUp, .pageDown, .first, .last, .enter] {
            #expect(state.press(key, [], page: 5) == .none)
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

extension QuotaView {
    fileprivate static let sample = QuotaView(
        place: "policy", text: "20 GB a day", counts: "bytes", direction: "sent", limit: 20_000_000_000,
        used: 5_000_000_000, reserved: 0, left: 15_000_000_000, from: "2026-11-20T00:00:00.000Z",
        until: "2026-11-21T00:00:00.000Z")
}
