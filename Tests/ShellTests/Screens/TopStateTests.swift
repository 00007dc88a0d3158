import API
import Control
import Core
import Testing

@testable import Shell

/// What the keys of `top` do to an upload.
@Suite("Keys of top")
struct TopStateTests {
    @Test("a command concerns the chosen upload; what ends one needs a yes")
    func commands() {
        let uploads = [TopSample.upload(0), TopSample.upload(1, priority: 1000)]
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
        let foot = TopSample.screen(
            TopFacts(status: .sample, uploads: uploads, routes: .sample, quotas: [], at: TopSample.now), state,
            width: 80,
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

    @Test("with an empty list no key does anything to an upload")
    func empty() {
        var state = TopState()
        for letter in "prtwicx+-jkgG" { #expect(state.press(.letter(letter), [], page: 5) == .none) }
        for key in [TopKey.up, .down, .pageUp, .pageDown, .first, .last, .enter] {
            #expect(state.press(key, [], page: 5) == .none)
        }
    }

    @Test("a chosen upload that has left the list is not replaced by the one in its row until a person chooses again")
    func gone() throws {
        let uploads = (0..<4).map { TopSample.upload($0) }
        var state = TopState()
        state.show(uploads, isCurrent: true)
        // A new upload above the first one, before any key.
        let more = [TopSample.upload(9)] + uploads
        state.show(more, isCurrent: true)
        #expect(state.press(.letter("p"), more, page: 5) == .run(.pause, upload: uploads[0]))
        #expect(state.press(.down, uploads, page: 5) == .none)
        let left = [uploads[0], uploads[2], uploads[3]]
        state.show(left, isCurrent: true)
        for key in [TopKey.enter] + "iwprt+-cx".map({ .letter($0) }) {
            #expect(state.press(key, left, page: 5) == .none && state.question == nil && state.page == nil)
            #expect(state.answer?.isError == true && state.answer?.text.contains("choose another") == true)
        }
        var facts = TopSample.facts(0)
        facts.uploads = left
        #expect(!TopSample.screen(facts, state, width: 100, height: 20).lines.contains { $0.contains("\u{1B}[7m") })
        // The row is where it was.
        var other = state
        #expect(other.press(.up, left, page: 5) == .none && other.upload(in: left) == uploads[0])
        #expect(state.press(.down, left, page: 5) == .none && state.upload(in: left) == uploads[2])
        #expect(state.press(.letter("t"), left, page: 5) == .run(.retry, upload: uploads[2]))
        // Where nothing is left to be mistaken, the next upload is chosen.
        state.show([], isCurrent: true)
        state.show([uploads[3]], isCurrent: true)
        #expect(state.upload(in: [uploads[3]]) == uploads[3])
    }

    @Test("a question concerns the upload that it names, also when another has come into its row")
    func questionStays() {
        let uploads = [TopSample.upload(0), TopSample.upload(1)]
        var state = TopState()
        state.show(uploads, isCurrent: true)
        #expect(state.press(.letter("c"), uploads, page: 5) == .none)
        state.show([uploads[1]], isCurrent: true)
        #expect(state.press(.letter("y"), [uploads[1]], page: 5) == .run(.cancel, upload: uploads[0]))
    }

    @Test("the page that was asked for last is shown, or why there is none, and the foot says that it is asked for")
    func pages() {
        let (facts, uploads) = (TopSample.facts(2), TopSample.facts(2).uploads)
        let page = TopState.Page(title: "Why", content: .text(["because"]))
        var state = TopState()
        func foot() -> String? {
            TopSample.screen(facts, state, width: 80, height: 24).lines.last.map(withoutStyles)
        }
        // The sample is drawn at its own time.
        let first = state.ask(at: TopSample.now)
        #expect(foot()?.contains("q quit") == true)
        let second = state.ask(at: TopSample.now.advanced(by: .seconds(-1)))
        #expect(foot() == "asking…")
        state.show(.success(page), of: first)
        #expect(state.page == nil && foot() == "asking…")
        #expect(state.press(.down, uploads, page: 5) == .none)
        state.show(.success(page), of: second)
        #expect(state.page?.title == "Why" && state.askingSince == nil)
        #expect(state.press(.escape, uploads, page: 5) == .none && state.page == nil)
        let third = state.ask(at: TopSample.now)
        state.show(.failure(TopSample.absence), of: third)
        #expect(state.page == nil && state.answer?.text == "\(TopSample.absence)" && state.askingSince == nil)
    }

    @Test("a page that comes late is not shown over another page, a question or another list")
    func latePages() {
        let uploads = [TopSample.upload(0)]
        let page = TopState.Page(title: "Why", content: .text(["because"]))
        for key in [TopKey.letter("o"), .letter("?"), .letter("c"), .letter("P"), .tab] {
            for answer in [Result<TopState.Page, any Error>.success(page), .failure(TopSample.absence)] {
                var state = TopState()
                let turn = state.ask(at: TopSample.now)
                _ = state.press(key, uploads, page: 5)
                let title = state.page?.title
                #expect(state.askingSince == nil)
                state.show(answer, of: turn)
                #expect(state.page?.title == title && state.answer == nil)
                // Nor when that is over.
                _ = state.press(.escape, uploads, page: 5)
                state.show(answer, of: turn)
                #expect(state.page == nil && state.question == nil && state.answer == nil)
            }
        }
    }

    @Test("a priority is raised from the one that was asked for last, whatever the daemon shows until then")
    func priorities() {
        let uploads = [TopSample.upload(0, priority: 4), TopSample.upload(1)]
        var state = TopState()
        state.show(uploads, isCurrent: true)
        func press(_ key: Character) -> TopState.Effect { state.press(.letter(key), uploads, page: 5) }
        for priority in [5, 6, 7] { #expect(press("+") == .run(.priority(priority), upload: uploads[0])) }
        #expect(press("-") == .run(.priority(6), upload: uploads[0]))
        state.show(uploads, isCurrent: false)
        #expect(press("+") == .run(.priority(7), upload: uploads[0]))
        #expect(state.press(.down, uploads, page: 5) == .none)
        #expect(press("-") == .run(.priority(-1), upload: uploads[1]))
        // Another client may have set it.
        state.show(uploads, isCurrent: true)
        #expect(press("-") == .run(.priority(-1), upload: uploads[1]))
    }
}
