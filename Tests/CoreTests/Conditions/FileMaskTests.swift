import TestKit
import Testing

@testable import Core

@Suite("Masks of files")
struct FileMaskTests {
    private static func question(_ dice: inout Dice) -> FilePredicate {
        let number = Int64.random(in: 0...20, using: &dice)
        return switch Int.random(in: 0...3, using: &dice) {
        case 0: .largerThan(number)
        case 1: .smallerThan(number)
        case 2: .longerThan(number)
        default: .kind(Set(FileKind.allCases.shuffled(using: &dice).prefix(Int.random(in: 1...3, using: &dice))))
        }
    }

    @Test("a mask gives every answer back, and says nothing about other questions", arguments: 1...200)
    func answers(_ seed: Int) {
        var dice = Dice(seed: UInt64(seed))
        let list = Array(Set((0..<Int.random(in: 1...32, using: &dice)).map { _ in Self.question(&dice) }))
        let questions = FileQuestions(number: Int.random(in: 1...1000, using: &dice), list)
        let file = FileFacts(
            size: Int64.random(in: 0...20, using: &dice), kind: FileKind.allCases.randomElement(using: &dice) ?? .video,
            duration: Bool.random(using: &dice) ? Int64.random(in: 0...20, using: &dice) : nil)
        let mask = questions.mask(of: file)
        #expect(questions.areAnswered(by: mask))
        let known = questions.answers(in: mask)
        for question in list { #expect(known.answer(to: question) == question.answer(of: file), "\(question)") }
        let later = FileQuestions(number: questions.number + 1, list)
        #expect(!later.areAnswered(by: mask) && later.answers(in: mask) == .known([:]))
        #expect(!questions.areAnswered(by: .unknown) && questions.answers(in: .unknown) == .known([:]))
    }

    @Test("a question is read back from its name in the database", arguments: 1...200)
    func code(_ seed: Int) throws {
        var dice = Dice(seed: UInt64(seed))
        let question = Self.question(&dice)
        #expect(FilePredicate(code: question.code) == question)
    }

    @Test(
        "a name in the database that is no question is left out",
        arguments: ["", "larger_than", "larger_than x", "a 1"])
    func damaged(_ code: String) {
        #expect(FilePredicate(code: code) == nil)
    }

    @Test("without a question no file differs from another")
    func none() {
        let file = FileFacts(size: 1, kind: .video, duration: nil)
        #expect(FileQuestions().mask(of: file) == .unknown && FileQuestions().areAnswered(by: FileMask("7:1")))
    }
}
