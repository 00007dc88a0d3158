import API
import Core
import Linux
import Testing

@testable import Shell

/// The commands of `top` on their way to the daemon.
@Suite("Commands of top")
struct TopCommandsTests {
    private static let now = WallTime(milliseconds: 0)

    /// Takes the answers in their order.
    private let answers: AsyncStream<TopCommands.Answer>
    private let report: AsyncStream<TopCommands.Answer>.Continuation

    init() { (answers, report) = AsyncStream.makeStream() }

    private func send(
        _ commands: inout TopCommands, within limit: Duration = .seconds(60), at now: WallTime = Self.now,
        _ work: @escaping @Sendable () async throws -> String
    ) {
        commands.send(at: now, within: limit, work) { [report] in report.yield($0) }
    }

    /// Work that a daemon never answers.
    @Sendable private static func silence() async throws -> String {
        let (never, end) = AsyncStream<Void>.makeStream()
        for await _ in never {}
        end.finish()
        throw CancellationError()
    }

    @Test("commands are sent one after another, and each is answered")
    func order() async {
        var commands = TopCommands()
        let (gate, opening) = AsyncStream<Void>.makeStream()
        send(&commands) {
            for await _ in gate { break }
            return "first"
        }
        send(&commands) { throw Refusal(.conflict, "second is refused") }
        send(&commands, at: Self.now.advanced(by: .seconds(5))) { "third" }
        #expect(commands.unanswered == 3 && commands.since == Self.now)
        opening.yield()
        var answers = self.answers.makeAsyncIterator()
        for (text, isError) in [("first", false), ("second is refused", true), ("third", false)] {
            let answer = await answers.next()
            #expect(answer?.text == text && answer?.isError == isError)
            commands.answered()
        }
        #expect(commands.unanswered == 0 && commands.since == nil)
        #expect(await commands.end(within: .seconds(60)))
    }

    @Test("after a command without an answer those that waited behind it are not sent, and later ones are")
    func silent() async {
        var commands = TopCommands()
        send(&commands, within: .milliseconds(20), Self.silence)
        for _ in 0..<2 {
            send(&commands) {
                Issue.record("it was sent")
                return "sent"
            }
        }
        var answers = self.answers.makeAsyncIterator()
        #expect(await answers.next()?.text.hasSuffix("it may still be done") == true)
        commands.answered()
        for _ in 0..<2 {
            let answer = await answers.next()
            #expect(answer?.isError == true && answer?.unsent == 1)
            commands.answered()
        }
        send(&commands) { "sent again" }
        #expect(await answers.next()?.text == "sent again")
    }

    @Test("commands that were not sent are counted before the one without an answer, in 40 columns and in 80")
    func told() async throws {
        var commands = TopCommands()
        send(&commands, within: .milliseconds(20), Self.silence)
        for _ in 0..<12 { send(&commands) { "sent" } }
        var answers = self.answers.makeAsyncIterator()
        var state = TopState()
        var last: TopCommands.Answer?
        var lines: [String?] = []
        var narrow: String?
        for _ in 0..<13 {
            let answer = try #require(await answers.next())
            state.answer = answer.after(state.answer)
            #expect(state.answer?.isError == true)
            let screen = TopSample.screen(TopSample.facts(1), state, width: 80, height: 24)
            lines.append(screen.lines.last.map(withoutStyles))
            narrow = TopSample.screen(TopSample.facts(1), state, width: 40, height: 24).lines.last.map(withoutStyles)
            last = answer
        }
        let silence = "; the first may be done: no answer within 0 s"
        #expect(lines[0] == "no answer within 0 s: it may still be done")
        #expect(lines[1] == "1 later command was not sent" + silence)
        #expect(lines[2] == "2 later commands were not sent" + silence)
        #expect(lines[12] == "12 later commands were not sent" + silence)
        #expect(narrow?.hasPrefix("12 later commands were not sent;") == true)
        // A key has taken what was shown off the screen.
        #expect(last?.after(nil).line == "1 later command was not sent")
        // One that was sent is told alone.
        let done = TopCommands.Answer(text: "paused a", isError: false)
        #expect(done.after(state.answer) == done && done.line == "paused a")
    }

    @Test("the end waits for the commands that are under way, and says when it gave up")
    func end() async {
        var commands = TopCommands()
        #expect(await commands.end(within: .seconds(60)))
        send(&commands) { "done" }
        #expect(await commands.end(within: .seconds(60)))
        var answers = self.answers.makeAsyncIterator()
        #expect(await answers.next()?.text == "done")
        send(&commands, Self.silence)
        #expect(await !commands.end(within: .milliseconds(20)))
    }
}
