import Core
import Glibc
import Linux
import TestKit
import Testing

/// `sluice top` in a real terminal: tmux, with its own server and socket.
@Suite("top in a terminal", .timeLimit(.minutes(Patience.minutes(2))))
struct TopEndToEndTests {
    private static let needed: Comment = "needs tmux: apt-get install tmux"

    private static let isPossible = access("/usr/bin/tmux", X_OK) == 0

    /// A window of tmux that runs a program.
    private final class Window: Sendable {
        private let socket: FilePath
        private let folder: FilePath

        init(_ folder: FilePath, width: Int, height: Int, _ words: [String]) async throws {
            self.folder = folder
            socket = folder.appending("tmux.sock")
            let line = words.map { "'\($0)'" }.joined(separator: " ")
            // The window outlives the program, so that its last screen can be read.
            try await run([
                "-f", "/dev/null", "new-session", "-d", "-x", "\(width)", "-y", "\(height)",
                "exec env TERM=screen LC_ALL=C.UTF-8 sh -c '\(line.replacing("'", with: "'\\''")); echo \"ended with $?\"; sleep 600'",
            ])
        }

        @discardableResult
        func run(_ arguments: [String]) async throws -> String {
            let output = folder.appending(FilePath("tmux-\(UInt64.random(in: 0 ... .max))"))
            let child = try Child(
                "/usr/bin/tmux", ["-S", socket.display] + arguments, output: output,
                errors: folder.appending("tmux.err"))
            guard try await child.end(within: .seconds(20)) == .status(0) else {
                Issue.record("tmux \(arguments): \(try child.standardError())")
                return ""
            }
            return String(decoding: try Files.read(output, limit: 1 << 20), as: UTF8.self)
        }

        var text: String { get async throws { try await run(["capture-pane", "-p"]) } }
        /// The process of a program that the window's shell has started.
        func process(of program: FilePath) async throws -> pid_t {
            let shell = try await run(["display", "-p", "#{pane_pid}"]).trimmed
            func text(_ path: String) -> String? {
                (try? Files.read(FilePath(path), limit: 1 << 16)).map { String(decoding: $0, as: UTF8.self) }
            }
            return try await eventually("the shell has started \(program)") {
                // The window's shell has started the one that runs the program.
                var rest = [String(shell)]
                while let id = rest.popLast() {
                    if text("/proc/\(id)/cmdline")?.hasPrefix(program.display + "\0") == true { return pid_t(id) }
                    rest += (text("/proc/\(id)/task/\(id)/children") ?? "").split(separator: " ").map(String.init)
                }
                return nil
            }
        }

        func press(_ keys: String...) async throws { try await run(["send-keys"] + keys) }
        func end() async throws { try await run(["kill-server"]) }
    }

    /// A daemon with a running and two waiting uploads.
    private func scene() async throws -> DaemonFixture {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.policyKeys = ["bandwidth: 50 kB/s"]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let camera = Camera(fixture, dice: Dice(seed: 1))
        for number in 0..<3 {
            try camera.drop(Clip(number: number, size: 3_000_000, relative: FilePath("clip-\(number).mp4")))
        }
        try await eventually("an upload runs") {
            try await fixture.runVerb("list", ["--state", "uploading"])?.contains("clip-") == true
        }
        return fixture
    }

    private func shows(_ window: Window, _ words: String...) async throws {
        do {
            try await eventually("the window shows \(words)") {
                let text = try await window.text
                return words.allSatisfy { text.contains($0) }
            }
        } catch {
            Issue.record("\(words) not in:\n\(try await window.text)")
            throw error
        }
    }

    /// Waits for the prompt of bash. What is typed before the terminal is the shell's again is lost.
    private func prompts(_ window: Window) async throws {
        try await eventually("the shell waits for a command") {
            let last = try await window.text.split(separator: "\n").map(\.trimmed).last { !$0.isEmpty } ?? ""
            return last.hasPrefix("bash-") && (last.hasSuffix("#") || last.hasSuffix("$"))
        }
    }

    @Test(
        "in three sizes it shows the transfer with a bar, and obeys a resize",
        .enabled(if: Self.isPossible, Self.needed),
        arguments: [(60, 15), (100, 30), (200, 60)])
    func sizes(width: Int, height: Int) async throws {
        let fixture = try await scene()
        let window = try await Window(
            fixture.folder.path, width: width, height: height,
            [fixture.binary.display, "top", "--config", fixture.config.display])
        do {
            try await shows(window, "3 ongoing", "clip-", "%", "q quit")
            try await window.run(["resize-window", "-x", "\(width + 17)", "-y", "\(height - 4)"])
            try await eventually("the last line of the smaller window has the keys") {
                let lines = try await window.text.split(separator: "\n", omittingEmptySubsequences: false)
                return lines.count >= height - 4 && lines[height - 5].hasPrefix("q quit")
            }
            try await window.press("q")
            try await shows(window, "ended with 0")
        } catch {
            try await window.end()
            throw error
        }
        try await window.end()
    }

    @Test(
        "its keys pause, resume, explain, change the priority and cancel; it outlives a lost daemon",
        .enabled(if: Self.isPossible, Self.needed))
    func keys() async throws {
        let fixture = try await scene()
        let window = try await Window(
            fixture.folder.path, width: 120, height: 40,
            [fixture.binary.display, "top", "--config", fixture.config.display])
        do {
            try await shows(window, "3 ongoing")
            try await window.press("End", "p")
            try await shows(window, "paused clip-")
            try await window.press("w")
            try await shows(window, "Why", "operator")
            try await window.press("Escape")
            try await window.press("r")
            try await shows(window, "resumed clip-")
            try await window.press("+")
            try await shows(window, "priority 1: clip-")
            #expect(try await fixture.runVerb("list", ["--json"])?.contains("\"priority\":1") == true)
            // Faster than the daemon answers.
            try await window.press("+", "+", "-", "+")
            try await shows(window, "priority 3: clip-")
            #expect(try await fixture.runVerb("list", ["--json"])?.contains("\"priority\":3") == true)
            try await window.press("Tab")
            try await shows(window, "failed uploads", "none", "Tab failed")
            try await window.press("Tab", "Tab", "Tab", "End")
            try await shows(window, "Tab ongoing", "clip-2")
            try await window.press("P")
            try await shows(window, "Pause everything? y/n")
            try await window.press("n", "c")
            try await shows(window, "Cancel: clip-")
            try await window.press("y")
            try await shows(window, "cancelled clip-", "2 ongoing")
            fixture.killDaemon()
            try await shows(window, "No daemon since")
            try await window.press("Tab")
            try await shows(window, "failed uploads", "not known without the daemon")
            try fixture.startDaemon()
            try await eventually("the daemon is back on the screen") {
                try await !window.text.contains("No daemon since")
            }
            try await shows(window, "failed uploads", "none")
            try await window.press("C-c")
            try await shows(window, "ended with 0")
        } catch {
            try await window.end()
            throw error
        }
        try await window.end()
    }

    @Test(
        "Ctrl-Z gives the terminal back to the shell, whose next words are no keys, and `fg` shows the screen again",
        .enabled(if: Self.isPossible, Self.needed))
    func suspended() async throws {
        let fixture = try await scene()
        let window = try await Window(fixture.folder.path, width: 120, height: 40, ["bash", "--norc", "-i"])
        do {
            try await window.press("'\(fixture.binary.display)' top --config '\(fixture.config.display)'", "Enter")
            try await shows(window, "3 ongoing")
            try await window.press("C-z")
            try await shows(window, "Stopped")
            // Each letter is a command of `top`.
            try await window.press("echo pcr+-$((1+1))", "Enter")
            try await shows(window, "pcr+-2")
            try await window.press("fg", "Enter")
            try await shows(window, "3 ongoing", "q quit")
            try await window.press("q")
            try await prompts(window)
            try await window.press("echo ended with $?", "Enter")
            try await shows(window, "ended with 0")
            #expect(try await fixture.runVerb("list", ["--json"])?.contains("paused") == false)
        } catch {
            try await window.end()
            throw error
        }
        try await window.end()
    }

    @Test(
        "a request to stop gives the terminal back like Ctrl-Z, and `fg` shows the screen again",
        .enabled(if: Self.isPossible, Self.needed))
    func stopped() async throws {
        let fixture = try await scene()
        let window = try await Window(fixture.folder.path, width: 120, height: 40, ["bash", "--norc", "-i"])
        do {
            try await window.press("'\(fixture.binary.display)' top --config '\(fixture.config.display)'", "Enter")
            for _ in 0..<2 {
                try await shows(window, "3 ongoing", "q quit")
                kill(try await window.process(of: fixture.binary), SIGTSTP)
                try await shows(window, "Stopped")
                #expect(try await window.run(["display", "-p", "#{alternate_on} #{cursor_flag}"]) == "0 1\n")
                try await window.press("echo pcr+-$((1+1))", "Enter")
                try await shows(window, "pcr+-2")
                try await window.press("clear; fg", "Enter")
            }
            try await shows(window, "3 ongoing", "q quit")
            try await window.press("q")
            try await prompts(window)
            try await window.press("echo ended with $?", "Enter")
            try await shows(window, "ended with 0")
            #expect(try await fixture.runVerb("list", ["--json"])?.contains("paused") == false)
        } catch {
            try await window.end()
            throw error
        }
        try await window.end()
    }

    @Test(
        "a terminal that is not known, or takes no sequences, gets the plain text once",
        .enabled(if: Self.isPossible, Self.needed), arguments: [["-u", "TERM"], ["TERM=dumb"], ["TERM="]])
    func dumb(_ environment: [String]) async throws {
        let fixture = try await scene()
        let typed = fixture.folder.path.appending("typed")
        let program =
            "env \(environment.joined(separator: " ")) \(fixture.binary.display) top --config \(fixture.config.display)"
        let window = try await Window(
            fixture.folder.path, width: 120, height: 40, ["script", "-qec", program, typed.display])
        do {
            try await shows(window, "clip-0.mp4", "DESTINATIONS", "ended with 0")
        } catch {
            try await window.end()
            throw error
        }
        try await window.end()
        #expect(try !Files.read(typed, limit: 1 << 20).contains(0x1B))
    }

    @Test("without a terminal it prints once, as plain text; without a daemon it says so")
    func plain() async throws {
        let fixture = try await scene()
        let text = try #require(try await fixture.runVerb("top"))
        #expect(text.contains("clip-0.mp4") && text.contains("DESTINATIONS") && !text.contains("\u{1B}"))
        _ = try await fixture.stopDaemon()
        let child = try Child(
            fixture.binary, ["top", "--config", fixture.config.display],
            output: fixture.folder.path.appending("top.out"), errors: fixture.folder.path.appending("top.err"))
        #expect(try await child.end(within: .seconds(20)) != .status(0))
        #expect(try child.standardError().contains("daemon"))
    }
}
