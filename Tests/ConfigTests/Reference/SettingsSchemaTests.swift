import Core
import Foundation
import Linux
import TestKit
import Testing

@testable import Config

@Suite(
    "The JSON Schema of the configuration",
    .enabled(if: SchemaCheck.isPossible, "python3-jsonschema and python3-yaml are wanted: scripts/install-deps --tests")
)
struct SettingsSchemaTests {
    private let check = SchemaCheck()

    /// Each mistake with whether the schema refuses it; `nil` for a text that is no YAML.
    private func refused(_ mistakes: [Mistake], prefix: String = "") throws -> [String: Bool?] {
        let texts = Dictionary(mistakes.map { (prefix + $0.yaml, prefix + $0.yaml) }) { first, _ in first }
        return try check.problems(of: texts, by: SettingsSchema(types: types)).mapValues { $0.map { !$0.isEmpty } }
    }

    @Test("a complete configuration is valid")
    func valid() throws {
        let answers = try check.problems(of: ["minimal": minimal], by: SettingsSchema(types: types))
        #expect(answers == ["minimal": []])
    }

    @Test("an unknown key is refused in each section")
    func unknownKeys() throws {
        let answers = try refused(MistakeTests.keys)
        // Readers of YAML merge keys that are set twice before a schema sees them.
        #expect(answers.filter { $0.value == false }.keys.sorted() == ["version: 1\nversion: 1"])
    }

    @Test("each mistake is refused, except those that a form does not show")
    func values() throws {
        let start = "version: 1\n"
        let answers = try refused(MistakeTests.values + MistakeTests.rules, prefix: start)
        let accepted = answers.filter { $0.value == false }.keys.map { $0.dropFirst(start.count) }
        let list = Repository.root.appending("Tests/Fixtures/schema-accepts.txt")
        let known = String(decoding: try Files.read(list), as: UTF8.self).split(separator: "\n")
            .filter { !$0.hasPrefix("#") }
        #expect(Set(accepted).subtracting(known).sorted() == [], "the schema accepts more than before")
        #expect(Set(known).subtracting(accepted).sorted() == [], "take these out of \(list.display)")
        #expect(answers.count > 2 * accepted.count)
    }
}

/// Runs the validator of others.
struct SchemaCheck {
    private static let python: FilePath = "/usr/bin/python3"
    private let folder = TemporaryFolder()

    static var isPossible: Bool {
        let folder = TemporaryFolder()
        let out = folder.path.appending("out")
        // Without Python there are no packages for it either.
        let child = try? Child(python, ["-c", "import jsonschema, yaml"], output: out, errors: out)
        return child?.wait() == .status(0)
    }

    func problems(of texts: [String: String], by schema: SettingsSchema) throws -> [String: [String]?] {
        let text = try JSONSerialization.data(withJSONObject: json(schema.document))
        let schema = try folder.write("schema.json", Array(text))
        let input = try folder.write("texts.json", Array(JSONEncoder().encode(texts)))
        let child = try Child(
            Self.python,
            [
                Repository.root.appending("Tests/Fixtures/schema_check.py").display, schema.display, "texts",
                input.display,
            ],
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
        let ending = child.wait()
        let errors = try child.standardError()
        #expect(ending == .status(0), "\(errors)")
        return try JSONDecoder().decode([String: [String]?].self, from: Data(child.standardOutput().utf8))
    }

    private func json(_ value: WrittenValue) -> Any {
        switch value {
        case .text(let text), .plain(let text): text
        case .number(let number): number
        case .flag(let flag): flag
        case .list(let items): items.map(json)
        case .mapping(let fields): Dictionary(fields.map { ($0.key, json($0.value)) }) { first, _ in first }
        }
    }
}
