import Core
import Linux
import TestKit
import Testing

@testable import Notices

@Suite("Answers of a before_upload program", .timeLimit(.minutes(Patience.minutes(1))))
struct ApprovalProgramTests {
    private func answer(_ text: String) throws -> BeforeUpload.Answer { try ApprovalProgram.answer(Array(text.utf8)) }

    @Test("go, wait and skip are understood, and an empty answer is go")
    func answers() throws {
        #expect(try answer("") == .go(.init()))
        #expect(try answer("\n") == .go(.init()))
        #expect(try answer(#"{"answer": "go"}"#) == .go(.init()))
        #expect(try answer(#"{"answer": "wait"}"#) == .wait(nil, reason: ""))
        #expect(
            try answer(#"{"answer": "wait", "for": "10m", "reason": "tide"}"#) == .wait(.seconds(600), reason: "tide"))
        #expect(try answer(#"{"answer": "wait", "for": "9w"}"#) == .wait(.seconds(7 * 86_400), reason: ""))
        #expect(try answer(#"{"answer": "skip", "reason": "empty"}"#) == .skip(reason: "empty"))
        #expect(try answer(#"{"answer": "skip"}"#) == .skip(reason: "it gave no reason"))
        #expect(
            try answer(#"{"answer":"go","name":"a//b.mp4","metadata":{"title":"x"},"context":{"who":"me"}}"#)
                == .go(.init(name: "a/b.mp4", metadata: ["title": "x"], context: ["who": "me"])))
    }

    @Test(
        "any other answer is reported with the problem",
        arguments: [
            ("yes", "it printed no answer"), ("[]", "it printed no answer"), ("{}", "it printed no answer"),
            (#"{"answer": "maybe"}"#, "its `answer` is `maybe`; there are go, wait, skip"),
            (#"{"answer": "go", "nmae": "a.mp4"}"#, "its answer has a key `nmae`; there are answer, context"),
            (#"{"answer": "wait", "for": 5}"#, "it printed no answer"),
            (#"{"answer": "wait", "for": "soon"}"#, "its `for` is `soon`"),
            (#"{"answer": "go", "name": "/etc/passwd"}"#, "its `name` is not a path below"),
            (#"{"answer": "go", "name": "a/../../b"}"#, "its `name` is not a path below"),
            (#"{"answer": "go", "name": "a/"}"#, "its `name` is not a path below"),
            (#"{"answer": "go", "name": ""}"#, "its `name` is not a path below"),
            (#"{"answer": "go", "name": "a\u0000b"}"#, "its `name` is not a path below"),
            (#"{"answer": "go", "metadata": {"a b": "x"}}"#, "its `metadata` takes names of"),
            (#"{"answer": "go", "metadata": {"a": 1}}"#, "it printed no answer"),
            (#"{"answer": "go", "context": {"ä": "x"}}"#, "its `context` takes names of"),
        ])
    func nonsense(_ text: String, _ problem: String) {
        let error = #expect(throws: ApprovalProgram.NoAnswerError.self) { _ = try answer(text) }
        #expect(error?.description.hasPrefix(problem) == true, "\(error?.description ?? "")")
    }

    @Test("damaged answers are go, wait, skip or an error message")
    func fuzz() throws {
        let seeds = [
            #"{"answer":"go","name":"a/b.mp4","metadata":{"title":"x"},"context":{"who":"me"}}"#,
            #"{"answer":"wait","for":"10m","reason":"tide"}"#,
        ]
        let words = ["\"", "{", "}", "[", "..", "/", "\\u0000", "null", "\u{301}", "99999999999999999999w", "\0"]
        let mutator = Mutator(seeds.map { Array($0.utf8) }, words: words, limit: 2000)
        try Fuzz("answer", rounds: 1000).each(mutator) { round in
            guard case .go(let changes)? = try? ApprovalProgram.answer(round.input) else { return }
            let parts = changes.name?.components ?? []
            try round.expect(!parts.contains("..") && !parts.contains("."), "the name leads upwards")
            try round.expect(contextProblem(changes.context) == nil, "the context is invalid")
        }
    }

    private func ask(_ script: String, _ timeout: Duration = .seconds(20)) async throws -> BeforeUpload.Answer {
        let rule = BeforeUpload(command: ["/bin/sh", "-c", script], timeout: timeout)
        return try await ApprovalProgram.run(rule, about: Array("{\"id\":\"x\"}\n".utf8))
    }

    @Test("the program reads the upload, and its exit status and time count")
    func program() async throws {
        let copied = "read line; printf '{\"answer\":\"skip\",\"reason\":\"%s\"}' \"$(echo $line | tr -d '\"')\""
        #expect(try await ask(copied) == .skip(reason: "{id:x}"))
        #expect(try await ask("cat > /dev/null") == .go(.init()))
        for (script, text) in [
            ("exit 3", "it ended with status 3"), ("echo '{\"answer\":\"go\"}'; exit 1", "it ended with status 1"),
            ("kill -9 $$", "it was ended by signal 9"), ("echo hunter2 >&2; echo hunter2", "it printed no answer"),
        ] {
            let error = await #expect(throws: ApprovalProgram.NoAnswerError.self) { _ = try await ask(script) }
            #expect(error?.description.hasPrefix(text) == true)
            #expect(error?.description.contains("hunter2") == false)
        }
        let late = await #expect(throws: ApprovalProgram.NoAnswerError.self) {
            _ = try await ask("sleep 1000", .milliseconds(300))
        }
        #expect(late?.description == "it did not end in time")
    }

    @Test("cancellation kills the program without an answer")
    func cancelled() async throws {
        let task = Task { try await ask("sleep 1000") }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
