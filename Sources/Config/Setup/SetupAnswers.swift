package import Core

/// Answers to the questions of `sluice init`, from its options, from a file, or typed.
package struct SetupAnswers: Sendable {
    package enum Question: String, CaseIterable, Sendable {
        case folder, to
        case tokenFile = "token_file"
        case after, metered, hours, start
    }

    /// What happens to a source after its upload.
    package enum SourceChoice: Hashable, Sendable {
        case keep, delete
        /// The template of the target, as written.
        case move(to: String)
    }

    /// An answer of a wrong form: a text that follows the name of its question.
    package struct Problem: Error, Hashable, Sendable { package let text: String }

    private var texts: [Question: String] = [:]
    /// The types of destinations that the program knows.
    private let types: [DestinationSchema]

    package init(types: [DestinationSchema]) { self.types = types }

    /// The answer as written, if there is one.
    package subscript(question: Question) -> String? { texts[question] }

    package var folder: FilePath? { texts[.folder].map { FilePath($0).normalised } }
    package var target: SetupTarget? {
        // The text was accepted when it was set.
        texts[.to].flatMap { try? SetupTarget($0, types: types) }
    }
    package var tokenFile: FilePath? { texts[.tokenFile].map { FilePath($0).normalised } }
    package var start: Bool? { texts[.start].map { $0 == "true" } }
    package var after: SourceChoice {
        switch texts[.after] {
        case "delete": .delete
        case let text? where text.hasPrefix(Self.move): .move(to: String(text.dropFirst(Self.move.count)))
        default: .keep
        }
    }

    /// - Throws: ``Problem`` for a text of a wrong form.
    package mutating func set(_ question: Question, _ text: String) throws(Problem) {
        let reader = reader(of: question)
        do throws(ValueError) { texts[question] = try reader.read(text) } catch {
            throw Problem(text: error.text ?? "takes \(reader.expected), not \(quoted(text))")
        }
    }

    /// Reads answers from a YAML file: a mapping of questions and answers.
    ///
    /// - Throws: All errors, with their places.
    package static func load(_ file: FilePath, types: [DestinationSchema]) throws(ConfigErrors) -> SetupAnswers {
        let findings = ProblemCollector()
        var answers = SetupAnswers(types: types)
        if let bytes = Settings.content(of: file, named: file, as: .answers, findings),
            let root = Settings.node(file, bytes, as: .answers, SecretMasker(types: []), findings)
        {
            let fields = MappingReader(root, section, path: "", start: root.start, findings: findings)
            for question in Question.allCases {
                if let found = fields.read(question.rawValue, as: answers.reader(of: question)) {
                    answers.texts[question] = found.value
                }
            }
        }
        if let failure = findings.failure { throw failure }
        return answers
    }

    private static let section = Section(path: "", keys: Question.allCases.map(\.rawValue))
    private static let move = "move="

    private func reader(of question: Question) -> Reader<String> {
        switch question {
        case .folder, .tokenFile: Self.text(.path)
        case .to: place
        case .after: Self.source
        case .metered: .word(of: ["pause", "allow"])
        case .hours: Self.text(.window)
        case .start: Self.text(.flag)
        }
    }

    /// A reader that keeps the text.
    private static func text<Value>(_ reader: Reader<Value>) -> Reader<String> {
        Reader(expected: reader.expected, isPlain: reader.isPlain) { text throws(ValueError) in
            _ = try reader.read(text)
            return text
        }
    }

    private var place: Reader<String> {
        let types = types
        return Reader(expected: SetupTarget.expected(types)) { text throws(ValueError) in
            _ = try SetupTarget(text, types: types)
            return text
        }
    }

    private static var source: Reader<String> {
        Reader(expected: "`keep`, `delete`, or `move=/srv/done/{name}`") { text throws(ValueError) in
            if text == "keep" || text == "delete" { return text }
            guard text.hasPrefix(move) else { throw .plain }
            _ = try Reader<Template>.target.read(String(text.dropFirst(move.count)))
            return text
        }
    }
}
