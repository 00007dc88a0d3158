import Control
import Core
import Glibc
import Linux
import TestKit
import Testing

@testable import Shell

/// The root of the repository in which this file was compiled.
private let top = Repository.root

@Suite("Completions", .timeLimit(.minutes(Patience.minutes(1))))
struct CompletionTests {
    @Test(
        "the scripts in packaging equal the program's output",
        arguments: [("bash", "sluice.bash"), ("zsh", "_sluice"), ("fish", "sluice.fish")])
    func packaged(_ shell: String, _ name: String) async throws {
        let screen = Screen()
        #expect(await Shell.run(["completions", FilePath(shell)], console: screen.console(), signals: nil) == .ok)
        let file = top.appending("packaging/completions").appending(FilePath(name))
        let kept = String(decoding: try Files.read(file), as: UTF8.self)
        #expect(
            kept == screen.output, "renew it: .build/debug/sluice completions \(shell) > packaging/completions/\(name)")
    }

    @Test("every option with fixed values accepts exactly those that completion offers")
    func words() {
        let fixed = Shell.verbs.flatMap { verb in
            verb.options.compactMap { option in option.hint.fixed([]).map { (verb.name, option.name, $0) } }
        }
        #expect(
            Set(fixed.map(\.1)) == [
                "list", "state", "by", "unknown", "metered", "roaming", "lan", "log-level", "log-format", "test-file",
                "format",
            ],
            "a new option needs a test line in its shell")
        for (_, _, words) in fixed {
            #expect(!words.isEmpty && words.allSatisfy { !$0.isEmpty && !$0.contains { " '\"$".contains($0) } })
        }
    }

    @Test("an unknown shell is refused, with the known ones")
    func unknown() async {
        let screen = Screen()
        #expect(await Shell.run(["completions", "fisch"], console: screen.console(), signals: nil) == .usage)
        #expect(
            screen.errors
                == "sluice completions: there are bash, zsh, fish, not `fisch`; did you mean `fish`?\n"
                + "See `sluice completions --help`.\n")
    }

    @Test("ids and names come from the daemon; without it names come from the configuration, and errors print nothing")
    func asked() async throws {
        let folder = TemporaryFolder()
        let (socket, none) = (folder.path.appending("control.sock"), folder.path.appending("none"))
        // With a longer time limit than for a person at a keyboard, since the machine may be busy.
        func output(_ words: [FilePath]) async throws -> [String] {
            let screen = Screen()
            let arguments = try Arguments(words, of: .completions)
            let call = Invocation(arguments: arguments, console: screen.console(), signals: nil)
            let found = await candidates(arguments.operands.map(\.display), call, within: .seconds(30))
            #expect(screen.errors.isEmpty)
            return found
        }
        let daemon = FakeDaemon([.sample()])
        let server = try await ControlServer.start(socket: socket, operations: daemon)
        let ids = try await output(["uploads", "ongoing", "--socket", socket])
        let names = try await output(["folders", "--socket", socket]) + output(["destinations", "--socket", socket])
        await server.stop()
        #expect(ids == ["01JD3K8QXW0000000000000001\ta.mp4 -> archive"])
        #expect(daemon.asked.first == "list ongoing||||||100")
        #expect(names == ["front", "archive"])
        let config = try folder.write(
            "c.yaml",
            Array(
                """
                version: 1
                control: {socket: \(none.display)}
                folders: [{name: door, path: /srv/door, upload_to: [nas]}]
                destinations: {nas: {type: tus, url: "http://nas/"}}
                """.utf8))
        #expect(try await output(["folders", "--config", config]) == ["door"])
        #expect(try await output(["destinations", "--config", config]) == ["nas"])
        #expect(try await output(["uploads", "--config", config]).isEmpty)
        #expect(try await output(["folders", "--config", none]).isEmpty)
        let screen = Screen()
        let status = await Shell.run(
            ["completions", "folders", "--config", none], console: screen.console(), signals: nil)
        #expect(status == .ok)
        #expect(screen.output.isEmpty && screen.errors.isEmpty)
    }
}

/// The keys, with a tab after each word that is to be completed, and the words that the program is then called with.
private let typed: [(keys: String, words: [String])] = [
    ("stat\t", ["status"]), ("list --lis\tfai\t", ["list", "--list", "failed"]),
    ("list --list=fai\t", ["list", "--list=failed"]),
    ("usage --by net\t--mon\t2", ["usage", "--by", "network", "--months", "2"]),
    ("rebuild --unknown assume\t", ["rebuild", "--unknown", "assume-sent"]),
    ("check --test-file rem\t", ["check", "--test-file", "removable"]),
    ("list --state fin\t", ["list", "--state", "finishing"]),
    ("run --log-level de\t--log-format j\t", ["run", "--log-level", "debug", "--log-format", "json"]),
    ("check --config na\t", ["check", "--config", "nas 1.yaml"]), ("add clip\t", ["add", "clip_12:30.mp4"]),
    ("receive --into fol\t", ["receive", "--into", "folder/"]), ("help comp\t", ["help", "completions"]),
    ("--config na\tvers\t", ["--config", "nas 1.yaml", "version"]), ("limit o\t", ["limit", "off"]),
    ("completions f\t", ["completions", "fish"]), ("pause 01J\t", ["pause", "01JD3K8QXW0000000000000001"]),
    ("pause --folder fr\t", ["pause", "--folder", "front"]),
    ("list --destination ar\t--folder fr\t", ["list", "--destination", "archive", "--folder", "front"]),
]

/// The real shells, with simulated typing, and a program that records its arguments.
@Suite("Completion in shells", .timeLimit(.minutes(Patience.minutes(1))))
struct ShellCompletionTests {
    let folder = TemporaryFolder()

    init() throws {
        try folder.write("nas 1.yaml", [])
        try folder.write("clip_12:30.mp4", [])
        try folder.write("folder/file", [])
        try folder.writeProgram(
            "bin/sluice",
            """
            case "$1 $2" in
            "completions uploads") printf '01JD3K8QXW0000000000000001\\ta.mp4 -> archive\\n' ;;
            "completions folders") echo front ;;
            "completions destinations") echo archive ;;
            *) printf '<<'; printf '%s|' "$@"; echo '>>' ;;
            esac
            """)
    }

    /// The arguments of the program after each line.
    private func calls(_ shell: String, after typed: [String], _ environment: [String: String]) async throws -> [String]
    {
        try folder.write("keys", Array((typed.map { "sluice \($0)\n" } + ["exit\n"]).joined().utf8))
        let child = try Child(
            "/bin/sh", ["-c", "cd \"$1\" && script -qec \"$2\" /dev/null <keys", "sh", folder.path.display, shell],
            environment: environment.merging(["PATH": folder.path.display + "/bin:/usr/bin:/bin", "TERM": "dumb"]) {
                $1
            },
            output: folder.path.appending("out"), errors: folder.path.appending("err"))
        _ = try await child.end(within: .seconds(40))
        let lines = try child.standardOutput().split { $0.isNewline }
        return lines.compactMap { line in
            guard let start = line.firstRange(of: "<<"), let end = line.firstRange(of: "|>>") else { return nil }
            return String(line[start.upperBound..<end.lowerBound])
        }
    }

    @Test("completion in bash")
    func bash() async throws {
        let rc = "PS1=\nsource '\(top.display)/packaging/completions/sluice.bash'\n"
        let file = try folder.write("rc", Array(rc.utf8))
        let calls = try await calls("bash --noprofile --rcfile '\(file.display)' -i", after: typed.map(\.keys), [:])
        #expect(calls == typed.map { $0.words.joined(separator: "|") })
    }

    @Test(
        "completion in zsh", .enabled(if: OtherShell.zsh != nil, "zsh is wanted: sudo apt-get install zsh && make test")
    )
    func zsh() async throws {
        let zsh = try #require(OtherShell.zsh)
        let rc = """
            PS1=
            \(zsh.root.map { "fpath=(\($0)/usr/share/zsh/functions \($0)/usr/share/zsh/functions/**/*(N/))" } ?? "")
            autoload -Uz compinit; compinit -D -u
            source '\(top.display)/packaging/completions/_sluice'
            """
        try folder.write(".zshrc", Array(rc.utf8))
        let calls = try await calls(
            "'\(zsh.program)' -d -i", after: typed.map(\.keys), ["ZDOTDIR": folder.path.display])
        // An option that takes its value either way is written with `=`, and the slash of a folder is removed when its
        // word ends.
        func alike(_ line: String) -> String {
            line.replacing(/(--[a-z-]+)\|(?=[^|-])/) { "\($0.1)=" }.replacing("folder/", with: "folder")
        }
        #expect(calls.map(alike) == typed.map { alike($0.words.joined(separator: "|")) })
    }

    @Test(
        "completion in fish",
        .enabled(if: OtherShell.fish != nil, "fish is wanted: sudo apt-get install fish && make test"))
    func fish() async throws {
        let fish = try #require(OtherShell.fish)
        let asked = typed.flatMap { line in
            // Each tab completes the text before it; the results of earlier tabs are in the words.
            line.keys.contains("\t") ? [(line.keys.prefix { $0 != "\t" }, line.words)] : []
        }
        var script = fish.root.map { "set -p fish_function_path '\($0)/usr/share/fish/functions'\n" } ?? ""
        script += "source '\(top.display)/packaging/completions/sluice.fish'\n"
        for (keys, _) in asked { script += "complete -C 'sluice \(keys)'\necho ---\n" }
        let file = try folder.write("asked.fish", Array(script.utf8))
        let child = try Child(
            "/bin/sh",
            [
                "-c", "cd \"$1\" && exec \"$2\" --no-config \"$3\"", "sh", folder.path.display, fish.program,
                file.display,
            ],
            environment: [
                "PATH": folder.path.display + "/bin:/usr/bin:/bin", "HOME": folder.path.display,
                "LD_LIBRARY_PATH": (fish.root ?? "") + "/usr/lib/x86_64-linux-gnu", "LC_ALL": "C.UTF-8",
            ], output: folder.path.appending("out"), errors: folder.path.appending("err"))
        let ending = try await child.end(within: .seconds(40))
        let complaint = try child.standardError()
        #expect(ending == .status(0), "\(complaint)")
        let answers = try child.standardOutput().split(separator: "---\n", omittingEmptySubsequences: false)
        for ((keys, words), answer) in zip(asked, answers) {
            let offered = answer.split(separator: "\n").map { $0.prefix { $0 != "\t" } }
            let fits = offered.contains { offer in words.contains { $0 == offer || offer.hasSuffix($0) } }
            #expect(fits && offered.count == 1, "\(keys): \(offered)")
        }
    }
}

/// A shell of this machine, or Debian's, unpacked below `.build/tools`.
private struct OtherShell {
    let program: String
    /// The folder that corresponds to `/` in its package; `nil` for an installed one.
    let root: String?

    static let zsh = find("zsh", program: "bin/zsh-static")
    static let fish = find("fish", program: "usr/bin/fish")

    private static func find(_ name: String, program: String) -> OtherShell? {
        for folder in ["/usr/bin", "/bin", "/usr/local/bin"] where access("\(folder)/\(name)", X_OK) == 0 {
            return OtherShell(program: "\(folder)/\(name)", root: nil)
        }
        // On any error the test is skipped, and says what it needs.
        guard let tools = try? Tools.debian(name) else { return nil }
        return OtherShell(program: tools.appending(FilePath(program)).display, root: tools.display)
    }
}
