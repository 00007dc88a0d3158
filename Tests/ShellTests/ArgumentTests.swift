import API
import Core
import Testing

@testable import Shell

@Suite("Arguments")
struct ArgumentTests {
    @Test(
        "a wrong argument is named, with the nearest valid one",
        arguments: [
            (["lsit"], "sluice: no verb `lsit`; did you mean `list`?\nSee `sluice help`.\n"),
            (["frobnicate"], "sluice: no verb `frobnicate`\nSee `sluice help`.\n"),
            (
                ["list", "--jsno"],
                "sluice list: no option `--jsno`; did you mean `--json`?\nSee `sluice list --help`.\n"
            ),
            (["list", "-x"], "sluice list: no option `-x`\nSee `sluice list --help`.\n"),
            (
                ["pause", "--destnation=a"],
                "sluice pause: no option `--destnation`; did you mean `--destination`?\nSee `sluice pause --help`.\n"
            ),
            (["list", "--json=1"], "sluice list: --json takes no value\nSee `sluice list --help`.\n"),
            (["list", "--limit"], "sluice list: --limit needs a value: --limit N\nSee `sluice list --help`.\n"),
            (["list", "--limit="], "sluice list: --limit needs a value: --limit N\nSee `sluice list --help`.\n"),
            (["list", "--limit", "0"], "sluice list: --limit is from 1 to 1000, not `0`\nSee `sluice list --help`.\n"),
            (
                ["list", "--limit", "1", "--limit", "2"],
                "sluice list: --limit may be given only once\nSee `sluice list --help`.\n"
            ),
            (["list", "a"], "sluice list: `a` is one argument too many\nSee `sluice list --help`.\n"),
            (["show"], "sluice show: ID|KEY|PATH is missing\nSee `sluice show --help`.\n"),
            (
                ["why", ""],
                "sluice why: an argument is empty; is a variable of your script not set?\n"
                    + "See `sluice why --help`.\n"
            ),
            (["add"], "sluice add: PATH... is missing\nSee `sluice add --help`.\n"),
            (
                ["add", "a", "b", "--key", "k"],
                "sluice add: --key names one upload, and there are 2 files\nSee `sluice add --help`.\n"
            ),
            (
                ["add", "a", "--context", "x"],
                "sluice add: --context takes NAME=VALUE, not `x`\nSee `sluice add --help`.\n"
            ),
            (
                ["add", "a", "--context", "x=1", "--context", "x=2"],
                "sluice add: --context names `x` twice\nSee `sluice add --help`.\n"
            ),
            (
                ["limit", "off", "--for", "2h"],
                "sluice limit: `off` removes the limit at once, so --for does not go with it; it goes with a rate, "
                    + "like `2MB/s --for 2h`\nSee `sluice limit --help`.\n"
            ),
            (
                ["allow", "a", "--quota", "--end", "--for", "2h"],
                "sluice allow: --end ends the exception at once, so --for does not go with it\n"
                    + "See `sluice allow --help`.\n"
            ),
            (
                ["allow", "a", "--quota"],
                "sluice allow: name a length of time, like --for 2h, or end it with --end\nSee `sluice allow --help`.\n"
            ),
            (
                ["pause", "--for", "soon"],
                "sluice pause: --for takes a length of time like 30m or 2h, not `soon`\nSee `sluice pause --help`.\n"
            ),
            (
                ["pause", "a", "--for", "2h"],
                "sluice pause: --for goes with everything, a folder or a destination, not with ids\n"
                    + "See `sluice pause --help`.\n"
            ),
            (
                ["cancel"],
                "sluice cancel: name an ID, a folder or a destination, or use --all\nSee `sluice cancel --help`.\n"
            ),
            (
                ["retry"],
                "sluice retry: name an ID, a folder or a destination, or use --all\nSee `sluice retry --help`.\n"
            ),
            (
                ["events", "--since", "-1"],
                "sluice events: --since takes the number of an event, not `-1`\nSee `sluice events --help`.\n"
            ),
            (["receive"], "sluice receive: --into DIR is missing\nSee `sluice receive --help`.\n"),
            (
                ["rebuild", "--unknown", "hold"],
                "sluice rebuild: --unknown is fail, send or assume-sent, not `hold`\nSee `sluice rebuild --help`.\n"
            ),
            (["help", "lits"], "sluice help: no verb `lits`; did you mean `list`?\n"),
            (["--json"], "sluice: `--json` needs a verb\nSee `sluice help`.\n"),
            (["li\u{1B}st"], "sluice: no verb `li\\x1bst`; did you mean `list`?\nSee `sluice help`.\n"),
        ])
    func wrong(_ words: [String], _ message: String) async {
        let screen = Screen()
        #expect(await Shell.run(words.map { FilePath($0) }, console: screen.console(), signals: nil) == .usage)
        #expect(screen.errors == message)
        #expect(screen.output.isEmpty)
    }

    @Test("options may be anywhere, with = or without, and -- ends them")
    func anywhere() throws {
        let arguments = try Arguments(
            ["a", "--to=x", "--again", "--to", "y", "--key", "k=1", "--", "--json", "-"], of: .add)
        #expect(arguments.operands == ["a", "--json", "-"])
        #expect(arguments.texts("to") == ["x", "y"])
        #expect(arguments.text("key") == "k=1")
        #expect(arguments.has("again") && !arguments.has("json"))
    }

    @Test("names keep their bytes")
    func bytes() throws {
        let name = FilePath(bytes: [0xFF, 0x0A, 0x80])
        let config = FilePath(bytes: Array("--config=/".utf8) + [0xFE])
        let arguments = try Arguments([name, config], of: .add)
        #expect(arguments.operands == [name])
        #expect(arguments.path("config") == FilePath(bytes: [0x2F, 0xFE]))
    }

    @Test("without a command, the commands are listed as an error")
    func nothing() async {
        let screen = Screen()
        #expect(await Shell.run([], console: screen.console(), signals: nil) == .usage)
        #expect(screen.errors.contains("Verbs:\n"))
    }

    @Test("options that all commands share may precede the command")
    func before() async {
        let screen = Screen()
        #expect(await Shell.run(["--config", "list", "version"], console: screen.console(), signals: nil) == .ok)
        #expect(screen.output == "sluice \(sluiceVersion)\n")
    }

    @Test("--version is the same as the version command", arguments: [["--version"], ["version"]])
    func version(_ words: [FilePath]) async {
        let screen = Screen()
        #expect(await Shell.run(words, console: screen.console(), signals: nil) == .ok)
        #expect(screen.output == "sluice \(sluiceVersion)\n")
    }
}
