import API
import Core
import Testing

@testable import Shell

@Suite("Help")
struct HelpTests {
    @Test("help for each command has its usage and an example", arguments: Shell.verbs.map(\.name))
    func each(_ name: String) async throws {
        let screen = Screen()
        #expect(await Shell.run([FilePath(name), "--help"], console: screen.console(), signals: nil) == .ok)
        let verb = try #require(Shell.verbs.first { $0.name == name })
        #expect(screen.output.hasPrefix("usage: sluice \(name)"))
        #expect(screen.output.contains("\nExamples:\n  "))
        for option in verb.options { #expect(screen.output.contains("--\(option.name)")) }
        // An example that the parser refuses is wrong.
        for example in verb.examples {
            let words = shellWords(example.command[...]).prefix { $0 != ">" && $0 != "|" }.drop { $0 != "sluice" }
                .dropFirst()
            guard words.first == name else { continue }
            _ = try Arguments(words.dropFirst().map { FilePath($0) }, of: verb)
        }
    }

    @Test("help fits the width", arguments: [40, 80, 120])
    func width(_ width: Int) {
        for text in [generalHelp(Shell.verbs, width: width)] + Shell.verbs.map({ $0.help(width: width) }) {
            for line in text.split(separator: "\n") where !line.hasPrefix("usage:") && !line.contains("sluice ") {
                #expect(displayWidth(String(line)) <= width, "\(line)")
            }
        }
    }

    @Test("the usage line has required options, and a line for each form of a verb")
    func usage() {
        #expect(
            Verb.receive.help(width: 80).hasPrefix("usage: sluice receive --into DIR [OPTION...]\n\nReceive uploads: "))
        #expect(
            Verb.limit.help(width: 80).hasPrefix(
                """
                usage: sluice limit --for DURATION [OPTION...] RATE
                       sluice limit [OPTION...] off

                """))
    }

    @Test("help marks options that may be repeated")
    func repeats() throws {
        let line = try #require(Verb.list.help(width: 100).split(separator: "\n").first { $0.contains("--context") })
        #expect(line.hasSuffix("; may be repeated"))
    }

    @Test("help explains ID, KEY and PATH once, and verbs that take them refer to it")
    func references() {
        let general = generalHelp(Shell.verbs, width: 80)
        for word in ["hold", "ID", "KEY", "PATH"] { #expect(general.contains("\n  \(word) ")) }
        for verb in Shell.verbs {
            #expect(
                verb.help(width: 80).contains("`sluice help` explains ID, KEY and PATH.")
                    == verb.operands.contains("KEY"), "\(verb.name)")
        }
    }

    @Test("help names every exit status")
    func statuses() {
        let text = generalHelp(Shell.verbs, width: 80)
        for status in ExitCode.allCases { #expect(text.contains("  \(status.rawValue) ")) }
    }

    @Test("every command with JSON output has --json, and all have --config")
    func options() {
        for verb in Shell.verbs where verb.name != "help" {
            let names = verb.options.map(\.name)
            // The kinds of destination are the program's own.
            #expect(names.contains("config") || verb.name == "destinations")
            // The output of `metrics` is for programs, that of `systemd-paths` for systemd; `demo`, `edit`, `init`,
            // `report` and `top` are for people.
            let never = ["run", "receive", "demo", "metrics", "edit", "init", "systemd-paths", "top", "report"]
            #expect(never.contains(verb.name) || names.contains("json"))
            #expect(Set(names).count == names.count)
        }
    }
}
