import Config
import Core
import Destinations
import Linux
import TestKit
import Testing

@testable import Shell

/// The manual pages, as `make man` writes them.
@Suite("Manual pages", .timeLimit(.minutes(Patience.minutes(1))))
struct ManualPageTests {
    let folder = TemporaryFolder()

    /// Writes both pages with the program that was built beside this test.
    private func write() async throws {
        let binary = try #require(Files.real("/proc/self/exe")).parent.appending("Manual")
        let errors = folder.path.appending("err")
        let child = try Child(
            binary, [folder.path.display, "2026-11-27"], output: folder.path.appending("out"), errors: errors)
        let ending = try await child.end(within: .seconds(20))
        let complaint = try child.standardError()
        #expect(ending == .status(0), "\(complaint)")
    }

    /// A page without its markup.
    private func page(_ name: FilePath) async throws -> String {
        try await write()
        let text = String(decoding: try Files.read(folder.path.appending(name)), as: UTF8.self)
        return text.replacing("\\fB", with: "").replacing("\\fR", with: "").replacing("\\-", with: "-")
            .replacing("\\e", with: "\\").replacing("\\(ti", with: "~").replacing("\\(aq", with: "'")
    }

    /// The whole text in one line, for sentences that are broken into lines.
    private func joined(_ text: some StringProtocol) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    @Test("sluice(1) has every verb, option, example and exit status")
    func program() async throws {
        let text = try await page("sluice.1")
        for verb in Shell.verbs {
            let start = try #require(text.firstRange(of: "\n.SS \(verb.name)\n"), "\(verb.name)").upperBound
            let part = text[start...].prefix(upTo: text[start...].firstRange(of: "\n.S")?.lowerBound ?? text.endIndex)
            for form in verb.usageForms { #expect(part.contains("\n\(form)\n") || part.hasPrefix(".nf\n\(form)\n")) }
            for option in verb.options { #expect(part.contains("\n.TP\n\(option.written)\n"), "\(option.name)") }
            for example in verb.examples { #expect(part.contains("\n    \(example.command)\n")) }
            #expect(joined(part).contains(joined(verb.sentence.replacing("`", with: ""))))
        }
        for status in ExitCode.allCases { #expect(text.contains("\n.TP\n\(status.rawValue)\n")) }
        #expect(text.contains("\n.SH NAME\nsluice - uploads the files"))
        for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"] {
            #expect(text.contains("\n.SH \(heading)\n"))
        }
    }

    @Test("sluice(1) names the variables of the environment that the code reads")
    func environment() async throws {
        let text = try await page("sluice.1")
        let part = try #require(text.split(separator: "\n.SH ").first { $0.hasPrefix("ENVIRONMENT\n") })
        let named = Set(part.split(separator: "\n.TP\n").dropFirst().compactMap { $0.split(separator: "\n").first })
        var (read, sources) = (Set<Substring>(), "")
        for file in try Repository.swiftFiles(below: "Sources") {
            let path = file.relative(to: Repository.root.appending("Sources"))?.display ?? ""
            // Tests, figures, and the switches that only tests and a debugger set.
            guard !["TestKit/", "TestTraits/", "Benchmarks/"].contains(where: { path.hasPrefix($0) }) else { continue }
            let code = String(decoding: try Files.read(file), as: UTF8.self)
            if !path.hasPrefix("Manual/") { sources += code }
            for mark in ["getenv(\"", "environment(\""] {
                for piece in code.split(separator: mark, omittingEmptySubsequences: false).dropFirst() {
                    let name = piece.prefix { $0 != "\"" }
                    if !name.hasPrefix("SLUICE_TEST_") && name != "SLUICE_DUMPABLE" { read.insert(name) }
                }
            }
        }
        #expect(read.subtracting(named) == [])
        // Some names reach these calls in a variable.
        #expect(named.filter { !sources.contains("\"\($0)\"") } == [])
    }

    @Test("sluice.yaml(5) has every key of the configuration, and those of each type of destination")
    func settings() async throws {
        let text = try await page("sluice.yaml.5")
        let parts = text.split(separator: "\n.SS ")
        func keys(_ title: String) -> Set<Substring> {
            let part = parts.first { $0.hasPrefix(title + "\n") } ?? ""
            return Set(part.split(separator: "\n.TP\n").dropFirst().compactMap { $0.split(separator: "\n").first })
        }
        for mapping in SettingsReference.mappings {
            let names = mapping.keys.map { $0.name[...] }
            #expect(keys(mapping.path.isEmpty ? "the top of the file" : mapping.path) == Set(names), "\(mapping.path)")
        }
        for type in DestinationTable.builtIn.map(\.type) {
            let names = type.keys.flatMap(\.flat).map { $0.name[...] }
            #expect(keys("type: \(type.name)").isSuperset(of: names), "\(type.name)")
        }
    }

    @Test("man and mandoc find no fault in the pages", arguments: ["sluice.1", "sluice.yaml.5"])
    func lint(_ name: String) async throws {
        try await write()
        let file = folder.path.appending(FilePath(name))
        for command in [["mandoc", "-T", "lint", file.display], ["man", "--warnings", "-l", file.display]] {
            let child = try Child(
                "/usr/bin/env", command, environment: ["MAN_KEEP_STDERR": "1", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"],
                output: folder.path.appending("lint"), errors: folder.path.appending("lint.err"))
            #expect(try await child.end(within: .seconds(20)) == .status(0), "\(command)")
            if command[0] == "mandoc" { #expect(try child.standardOutput() == "") }
            #expect(try child.standardError() == "", "\(command)")
        }
    }
}
