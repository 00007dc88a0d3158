import API
import Control
import Core
import Foundation
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@testable import Daemon
@testable import Shell

/// The command line against a daemon that answers as a test wants.
private func withDaemon(
    _ uploads: [UploadView] = [.sample()], _ body: (FakeDaemon, FilePath) async throws -> Void
) async throws {
    let folder = TemporaryFolder()
    let daemon = FakeDaemon(uploads)
    let socket = folder.path.appending("control.sock")
    let server = try await ControlServer.start(socket: socket, operations: daemon)
    do { try await body(daemon, socket) } catch {
        await server.stop()
        throw error
    }
    await server.stop()
    withExtendedLifetime(folder) {}
}

private func sluice(_ words: [FilePath], at socket: FilePath, _ screen: Screen, width: Int = 120) async -> ExitCode {
    await Shell.run(words + ["--socket", socket], console: screen.console(width: width), signals: nil)
}

@Suite("Commands", .timeLimit(.minutes(Patience.minutes(1))))
struct VerbTests {
    @Test(
        "each command sends its arguments to the daemon",
        arguments: [
            (["list", "--list", "failed", "--text", "a b", "--limit", "5"], ["list failed||||a b||5"]),
            (["list"], ["list ||||||100"]),
            (["list", "--state", "waiting"], ["list |waiting|||||100"]),
            (["show", "cam1/0001"], ["show cam1/0001"]),
            (["status"], ["status"]),
            (
                ["top"],
                ["status", "list ongoing||||||100"]
                    + ["uploading", "finishing", "opening"].map { "list ongoing|\($0)|||||100" }
                    + ["routes", "usage 0|0|||"]
            ),
            (["metrics"], ["metrics"]),
            (["usage"], ["usage 7|3|||"]), (["quota"], ["quota "]), (["quota", "nas"], ["quota nas"]),
            (["usage", "--days", "2", "--by", "network"], ["usage 2|0|network||"]),
            (["usage", "--months", "1", "--days", "3", "--folder", "f", "--destination", "d"], ["usage 3|1||d|f"]),
            (["usage", "set", "lte-plan", "2GB"], ["set usage lte-plan  2000000000 bytes"]),
            (["usage", "set", "few", "17", "--folder", "f"], ["set usage few folder f 17 files"]),
            (["plan", "--rate", "2 MB/s"], ["plan |2000000"]),
            (["check", "--running"], ["check |"]),
            (["check", "--running", "--folder", "front", "--destination", "nas"], ["check front|nas"]),
            (["rescan"], ["rescan |false"]), (["rescan", "--folder", "front", "--wait"], ["rescan front|true"]),
            (["pause"], ["pause ||||"]),
            (["pause", "--folder", "b", "--for", "2h"], ["pause ||b||7200"]),
            (["pause", "--destination", "d"], ["pause |||d|"]),
            (["pause", "--after-part", "a"], ["pause a|||||after part"]),
            (["pause", "--after-part", "--for", "1m"], ["pause ||||60|after part"]),
            (["resume", "--folder", "f"], ["resume ||f||"]),
            (["cancel", "--all"], ["cancel |all|||"]),
            (["retry", "a"], ["retry a||||"]),
            (
                ["add", "/a/../b", "--to", "d", "--key", "k", "--context", "x=1=2", "--again"],
                [#"add /b|["d"]|k|["x": "1=2"]|true"#]
            ),
        ])
    func asks(_ words: [String], _ asked: [String]) async throws {
        try await withDaemon { daemon, socket in
            let screen = Screen()
            let status = await sluice(words.map { FilePath($0) }, at: socket, screen)
            #expect(status == .ok, "\(screen.errors)")
            #expect(daemon.asked == asked)
            #expect(!screen.output.isEmpty)
            #expect(screen.errors.isEmpty)
        }
    }

    @Test("limit off shows the removed limit, or that there was none")
    func limitOff() async throws {
        try await withDaemon { daemon, socket in
            let none = Screen()
            #expect(await sluice(["limit", "off"], at: socket, none) == .ok)
            #expect(
                none.output == "`sluice limit` has set no limit; the limits of the configuration stay as they are\n")
            let limit = """
                {"scope": "all", "kind": "rate", "rate": 1000000, "since": "2026-11-20T08:00:00.000Z", "until": \
                "2026-11-20T09:00:00.000Z", "by": "anna"}
                """
            let ended = try JSONDecoder().decode(OverrideView.self, from: Data(limit.utf8))
            daemon.state.withLock { $0.ended = [ended] }
            let screen = Screen()
            #expect(await sluice(["limit", "off"], at: socket, screen) == .ok)
            #expect(screen.output.hasPrefix("ended: all transfers: at most 1.0 MB/s until "), "\(screen.output)")
            #expect(screen.output.hasSuffix(", by anna\n"))
        }
    }

    @Test("status --follow fits a resized window, and continues when the daemon is back")
    func following() async throws {
        let folder = TemporaryFolder()
        let socket = folder.path.appending("control.sock")
        let screen = Screen()
        func follow() async -> ExitCode {
            await Shell.run(
                ["status", "--follow", "--socket", socket], console: screen.console(width: 100, isTerminal: true),
                signals: nil)
        }
        // No daemon has answered so far.
        #expect(await follow() == .notRunning)
        let first = try await ControlServer.start(socket: socket, operations: FakeDaemon())
        let following = Task { await follow() }
        try await eventually("the status is drawn") { screen.output.contains("archive") }
        await first.stop()
        try await eventually("the status says that it waits for the daemon") {
            screen.output.contains("waiting for the daemon, which answered last at")
        }
        #expect(!screen.output.contains("\u{1B}[2J"))
        screen.resized.withLock { $0 = (30, 5) }
        try await eventually("the status has been drawn again") { screen.output.contains("\u{1B}[H\u{1B}[2J") }
        let second = try await ControlServer.start(socket: socket, operations: FakeDaemon())
        func last() -> Substring {
            screen.output[
                (screen.output.range(of: "A\u{1B}[2Ksluice", options: .backwards)?.lowerBound ?? screen.output.endIndex)...
            ]
        }
        try await eventually("the status shows the uploads again") { last().contains("uploads") }
        for line in last().split(separator: "\n") {
            let shown = line.replacing("\u{1B}[2K", with: "").replacing("\u{1B}[J", with: "")
            #expect(displayWidth(String(shown)) <= 31)
        }
        #expect(last().contains("more lines"))
        following.cancel()
        _ = await following.value
        await second.stop()
    }

    @Test(
        "a refusal has its exit status and message",
        arguments: [
            (Refusal.Code.notFound, ExitCode.notFound), (.ambiguous, .notFound), (.conflict, .conflict),
            (.duplicate, .conflict), (.sourceMissing, .conflict), (.badRequest, .usage), (.unavailable, .notNow),
            (.forbidden, .notNow), (.destination, .remote),
        ])
    func refusals(_ code: Refusal.Code, _ expected: ExitCode) async throws {
        try await withDaemon { daemon, socket in
            daemon.refuse(Refusal(code, "not so"))
            for words: [FilePath] in [["show", "a"], ["add", "/a"], ["pause"], ["events"]] {
                let screen = Screen()
                let status = await sluice(words, at: socket, screen)
                #expect(status == expected)
                #expect(screen.errors.hasSuffix("not so\n"))
                #expect(screen.output.isEmpty)
            }
        }
    }

    @Test("a list with a repeating next page is abandoned", arguments: [true, false])
    func endlessList(_ isForeign: Bool) async throws {
        try await withDaemon { daemon, socket in
            let screen = Screen()
            // All items are ours, and each page says that `2` is the next.
            let status = await sluice(["remote", "nas"] + (isForeign ? ["--foreign"] : []), at: socket, screen)
            #expect(status == .remote)
            #expect(
                screen.errors.contains("`nas` sends the same page again and again; its list has no end"),
                "\(screen.errors)")
            #expect(daemon.asked == ["remote nas ", "remote nas 2"])
        }
    }

    @Test("a rescan shows its results, and without --wait only that it runs")
    func rescan() async throws {
        try await withDaemon { _, socket in
            let (waiting, asking) = (Screen(), Screen())
            #expect(await sluice(["rescan", "--wait"], at: socket, waiting) == .ok)
            #expect(waiting.output == "front (/srv/front): 120 files found, 2 of them new; 1 settling\n")
            #expect(await sluice(["rescan"], at: socket, asking) == .ok)
            #expect(asking.output == "front (/srv/front): is being scanned\n")
        }
    }

    @Test("exit statuses are the numbers of the manual")
    func numbers() {
        #expect(ExitCode.allCases.map(\.rawValue) == [0, 1, 64, 65, 66, 69, 75, 76, 78])
    }

    @Test(
        "a failed start has status 78 only if a person must act, so that systemd does not restart",
        arguments: [
            (EACCES, ExitCode.config), (EROFS, .config), (ENOENT, .config), (ENAMETOOLONG, .config), (ENOSPC, .failed),
            (EIO, .failed), (EMFILE, .failed), (ENOMEM, .failed), (EADDRINUSE, .failed),
        ])
    func failedStart(_ code: CInt, _ status: ExitCode) {
        let error = startError(SystemError(call: "open", subject: "/srv/state", code: code)) as? CommandError
        #expect(error?.status == status)
    }

    @Test("without a daemon: status 69, the socket it tried, and how to start one")
    func notRunning() async throws {
        let folder = TemporaryFolder()
        let socket = folder.path.appending("none.sock")
        for verb in ["list", "status", "events", "pause"] as [FilePath] {
            let screen = Screen()
            let status = await sluice([verb], at: socket, screen)
            #expect(status == .notRunning)
            #expect(
                screen.errors.hasPrefix("sluice: the daemon does not answer on \(socket): there is no such socket\n"))
            #expect(screen.errors.contains("Start it with its service or `sluice run`"))
        }
        let screen = Screen()
        #expect(await sluice(["reload"], at: socket, screen) == .notRunning)
        #expect(!screen.errors.contains("sluice reload --socket"), "no advice to pass a socket that was passed")
        let file = try folder.write("c.yaml", Array("version: 1\ncontrol: {socket: \(socket.display)}\n".utf8))
        let named = Screen()
        let status = await Shell.run(["reload", "--config", file], console: named.console(width: 120), signals: nil)
        #expect(status == .notRunning)
        #expect(named.errors.contains("`sluice reload --socket OLD`"), "\(named.errors)")
    }

    @Test("--json prints the daemon's objects, one a line")
    func json() async throws {
        try await withDaemon { daemon, socket in
            func output(_ words: [FilePath]) async -> String {
                let screen = Screen()
                _ = await sluice(words + ["--json"], at: socket, screen)
                return screen.output
            }
            let status = try JSON.text(StatusView.sample)
            #expect(await output(["status"]) == status + "\n")
            let uploads = try JSON.text(UploadsReply(uploads: [.sample()]))
            #expect(await output(["pause"]) == uploads + "\n")
            let list = await output(["list", "--list", "ongoing"])
            let page = try JSON.value(UploadPage.self, from: Array(list.utf8))
            #expect(page.uploads == [.sample()])
        }
    }

    @Test(
        "a path is accepted as it is, as displayed, and relative to the working directory",
        arguments: [
            ("/srv/cam/a.mp4", "/srv/cam/a.mp4"), ("/srv/./cam/../b", "/srv/b"), (#"/srv/a\xff"#, #"/srv/a\xff"#),
            (#"/srv/a\odd"#, #"/srv/a\x5codd"#), ("01M7YAX2", "01M7YAX2"), ("cam/0001", "cam/0001"),
        ])
    func references(_ operand: String, _ expected: String) throws {
        #expect(try reference(FilePath(operand)) == expected)
    }

    @Test("bytes that are no text are a path, and so is the name of an existing file")
    func referencesOfFiles() throws {
        let here = try absolute("").display
        #expect(try reference(FilePath(bytes: [0x61, 0xFF])) == here + #"/a\xff"#)
        let folder = TemporaryFolder()
        let file = try folder.write(#"b\xfe"#, [1])
        // Up to the root and down again: relative, wherever the tests run.
        let up = Array(repeating: "..", count: try absolute("").components.count).joined(separator: "/")
        #expect(try reference(FilePath(up + file.bytes.map { String(UnicodeScalar($0)) }.joined())) == file.display)
    }

    @Test("where folders are accepted, the name of an existing one is a path")
    func referencesOfFolders() throws {
        let name = try #require(
            try Files.names(in: try absolute("")).first { name in
                try FileStatus(at: try absolute(name)).isDirectory && name.text?.hasPrefix(".") == false
            })
        #expect(try referenceOrFolder(name) == absolute(name).display)
        #expect(try reference(name) == name.text)
    }

    @Test("events are followed until the reader closes the pipe")
    func events() async throws {
        try await withDaemon { daemon, socket in
            for seq in 1...4 as ClosedRange<Int64> {
                daemon.emit(EventView(seq: seq, ts: "2026-11-20T08:00:00.000Z", type: .added, op: .sample()))
            }
            let screen = Screen(patience: 2)
            let status = await sluice(["events", "--since", "1", "--json"], at: socket, screen)
            #expect(status == .ok)
            let lines = screen.output.split(separator: "\n")
            #expect(lines.count == 2)
        }
    }

    @Test("one refused file delays no other")
    func addMany() async throws {
        try await withDaemon { daemon, socket in
            daemon.refuse(Refusal(.duplicate, "was uploaded"))
            let screen = Screen()
            let status = await sluice(["add", "/a", "/b\u{1B}"], at: socket, screen)
            #expect(status == .conflict)
            #expect(daemon.asked.count == 2)
            #expect(screen.errors == "sluice add: /a: was uploaded\nsluice add: /b\\x1b: was uploaded\n")
        }
    }

    @Test("a pause without effect yet is confirmed anyway")
    func emptyPause() async throws {
        try await withDaemon([]) { _, socket in
            let screen = Screen()
            _ = await sluice(["pause", "--folder", "front"], at: socket, screen)
            #expect(screen.output == "paused folder front\n")
            let other = Screen()
            _ = await sluice(["retry", "--all"], at: socket, other)
            #expect(other.output == "nothing to do\n")
        }
    }

    @Test(
        "while the configuration has a mistake, the service is still reached",
        arguments: ["status", "metrics", "reload"])
    func mistake(_ verb: FilePath) async throws {
        try await withDaemon { daemon, socket in
            let folder = TemporaryFolder()
            let file = try folder.write("sluice.yaml", Array("version: 1\npolicy: {bandwith: 1}\n".utf8))
            func call(_ environment: [String: String]) async -> (ExitCode, String) {
                let screen = Screen()
                let status = await Shell.run(
                    [verb, "--config", file], console: screen.console(environment: environment), signals: nil)
                return (status, screen.errors)
            }
            // As systemd tells `ExecReload=`.
            let (reached, words) = await call(["RUNTIME_DIRECTORY": socket.parent.display])
            #expect(reached == .ok, "\(words)")
            let asked = daemon.asked
            #expect(asked == ["\(verb.display)"])

            let (unreached, mistake) = await call(["RUNTIME_DIRECTORY": folder.path.display])
            #expect(unreached == .config)
            #expect(mistake.contains("did you mean `bandwidth`?"), "\(mistake)")
            #expect(
                await call([:]).0 == .config, "the file may belong to another daemon than the one on the usual socket")
            #expect(daemon.asked == asked)
        }
    }

    @Test("a reload shows the changes, or each mistake with its place and that nothing was applied")
    func reload() async throws {
        try await withDaemon { daemon, socket in
            var screen = Screen()
            #expect(await sluice(["reload"], at: socket, screen) == .ok)
            #expect(screen.output == "reloaded; nothing changed\n")
            daemon.answer(
                ReloadView(
                    applied: true,
                    changes: [
                        ChangeView(what: "folder", name: "cam", change: "added", keys: []),
                        ChangeView(what: "policy", name: nil, change: "changed", keys: ["order", "retry"]),
                    ], warnings: [ProblemView(place: "/s.yaml:1:2", key: "x", text: "careful\u{1B}[31m")]))
            screen = Screen()
            #expect(await sluice(["reload"], at: socket, screen) == .ok)
            #expect(screen.output == "folder cam added\npolicy changed (order, retry)\n")
            #expect(screen.errors == "/s.yaml:1:2: warning: x: careful\\x1b[31m\n")
            daemon.answer(
                ReloadView(
                    applied: false,
                    errors: [
                        ProblemView(
                            place: "/s.yaml:4:7", key: "folders[0].path", text: "is not there",
                            excerpt: "    4 | path: /x\n      |       ^"),
                        ProblemView(place: "/s.yaml", key: "state", text: "cannot change"),
                    ]))
            screen = Screen()
            #expect(await sluice(["reload"], at: socket, screen) == .config)
            #expect(
                screen.errors == """
                    /s.yaml:4:7: folders[0].path: is not there
                        4 | path: /x
                          |       ^
                    /s.yaml: state: cannot change
                    Nothing was reloaded: the old configuration stays in force.

                    """)
            screen = Screen()
            #expect(await sluice(["reload", "--json"], at: socket, screen) == .config)
            #expect(screen.output.hasPrefix(#"{"applied":false,"changes":[],"errors":[{"excerpt":"#))
            daemon.refuse(Refusal(.unavailable, "the daemon is stopping: nothing was reloaded"))
            #expect(await sluice(["reload"], at: socket, Screen()) == .notNow)
            #expect(daemon.asked == Array(repeating: "reload", count: 5))
        }
    }
}
