import Core
import Testing

@testable import Config

/// A mistake in a configuration, and the loader's complete answer.
struct Mistake: CustomTestStringConvertible, Sendable {
    let yaml: String
    let answer: String
    var testDescription: String { yaml }

    init(_ yaml: String, _ answer: String) {
        self.yaml = yaml
        self.answer = answer
    }
}

@Suite("Mistakes in the configuration")
struct MistakeTests {
    @Test("a YAML error is reported in the words of the file", arguments: syntax)
    func answersSyntax(_ mistake: Mistake) { #expect(objections(to: mistake.yaml) == mistake.answer) }

    @Test(
        "a file without settings is reported at its end",
        arguments: ["---", "--- ", "---\n...", "a: b\n---"])
    func answersInside(_ yaml: String) throws {
        let error = try #require(throws: ConfigErrors.self) { try read(yaml) }
        let lines = yaml.split(separator: "\n", omittingEmptySubsequences: false)
        for problem in error.problems {
            let line = try #require(problem.line)
            #expect(lines.indices.contains(line - 1))
            #expect(problem.excerpt != nil)
        }
    }

    @Test("an unknown key is reported with its place and a suggestion", arguments: keys)
    func answersKeys(_ mistake: Mistake) { #expect(objections(to: mistake.yaml) == mistake.answer) }

    @Test(
        "control characters are removed from the report",
        arguments: ["folders: [{key: \"{na\u{2028}me}\"}]", "state: /x\u{202E}y/..", "des\u{202E}tinations: {}"])
    func answersPrintably(_ yaml: String) throws {
        let error = try #require(throws: ConfigErrors.self) { try read("version: 1\n" + yaml) }
        for problem in error.problems { #expect(printable(problem.key + problem.text) == problem.key + problem.text) }
    }

    @Test("a wrong value is reported with the expected one", arguments: values + rules)
    func answersValues(_ mistake: Mistake) {
        let answer = mistake.answer
        #expect(objections(to: "version: 1\n" + mistake.yaml).hasPrefix("a.yaml:2:" + answer))
    }

    @Test(
        "a mistake is reported once, without its consequences",
        arguments: [
            "settle: {broken: quarantine}", "settle: {container: maybe, broken: wait}",
            "group: {by: stem, sidecars: ['*.xml']}", "settle: {marker: x}, include: [x]",
        ])
    func answersOnce(_ keys: String) throws {
        let error = try #require(throws: ConfigErrors.self) {
            try read(
                minimal.replacing(
                    "path: /srv/camera",
                    with: "path: /srv/camera\n    " + keys.replacing(", include", with: "\n    include")))
        }
        #expect(error.problems.count == 1)
    }

    @Test(
        "a key of a later version is distinguished from an unknown one",
        arguments: [
            ("folders: [{name: a, path: /a, KEY: 1}]", Section.folder), ("policy: {KEY: 1}", .policy),
            ("destinations: {a: {type: tus, KEY: 1}}", .destination), ("KEY: 1", .root),
        ] as [(String, Section)])
    func later(_ yaml: String, _ section: Section) {
        #expect(!section.futureKeys.isEmpty)
        for key in section.futureKeys {
            let answer = objections(to: "version: 1\n" + yaml.replacing("KEY", with: key))
            #expect(answer.contains("`\(key)` is not supported by this version"))
        }
    }

    @Test("a mistake does not hide the next one")
    func all() throws {
        let error = #expect(throws: ConfigErrors.self) {
            try read(
                """
                version: 1
                state: relative
                folders:
                  - name: a b
                    path: /srv
                    recursive: yes
                    upload_to: [nas, nsa]
                    settle: {quiet: 2s}
                destinations:
                  nas: {type: tus, url: "https://nas.example/"}
                """)
        }
        #expect(
            error?.problems.map { "\($0.place) \($0.key)" } == [
                "a.yaml:2:8 state", "a.yaml:4:11 folders[0].name", "a.yaml:6:16 folders[0].recursive",
                "a.yaml:7:22 folders[0].upload_to[1]", "a.yaml:8:14 folders[0].settle.quiet",
            ])
    }

    @Test("a file with a thousand mistakes or more ends the list at a limit")
    func manyMistakes() {
        let text = "version: 1\n" + (0..<3000).map { "k\($0): 1\n" }.joined()
        let error = #expect(throws: ConfigErrors.self) { try read(text) }
        #expect(error?.problems.count == 1000)
        #expect(error?.problems.last?.text.hasSuffix("(and 2000 more problems, which are not shown)") == true)
    }

    @Test("the caret is correct below tabs, wide characters and cut lines")
    func carets() {
        let wide = objections(to: "version: 1\n\"中文é\": 1\nx: \"\t\", staat: 2")
        #expect(wide.hasSuffix("x: \"→\", staat: 2\n      |       ^"))
        let answer = objections(to: "version: 1\nstate: {\"中文e\u{301}\": 1, b: 2}")
        #expect(
            answer == """
                a.yaml:2:8: state: takes an absolute path, not a mapping
                    2 | state: {"中文e\u{301}": 1, b: 2}
                      |        ^
                """)
        let long = objections(
            to:
                "version: 1\npolicy: {order: \(String(repeating: "中", count: 300)), metered: 3, x: \(String(repeating: "y", count: 300))}"
        )
        let lines = long.split(separator: "\n")
        #expect(lines.count == 9)
        #expect(lines[4].hasPrefix("    2 | …中") && lines[4].hasSuffix("y…"))
        let caret = lines[5].count - 1
        let columns = lines[4].flatMap { $0 == "中" ? [$0, $0] : [$0] }
        #expect(String(columns[caret...]).hasPrefix("3, x"))
    }
}
