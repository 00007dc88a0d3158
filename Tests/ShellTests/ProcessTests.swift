import Core
import Foundation
import Glibc
import Linux
import TestKit
import Testing

/// The output of `check` and `doctor` with `--json`.
private struct Report: Decodable {
    struct Check: Decodable { let about, name, verdict, detail: String }
    let ok: Bool
    let checks: [Check]
}

/// The program itself: behaviour that only a process can show.
@Suite("The built program", .timeLimit(.minutes(Patience.minutes(1))))
struct ProcessTests {
    let folder = TemporaryFolder()

    /// The program that was built beside this test.
    private var binary: FilePath {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = buffer.withUnsafeMutableBytes { buffer in
            buffer.baseAddress.map { readlink("/proc/self/exe", $0, buffer.count) } ?? -1
        }
        return FilePath(bytes: buffer.prefix(max(0, count))).parent.appending("sluice")
    }

    private func start(_ arguments: [String], environment: [String: String] = [:]) throws -> Child {
        let name = hexadecimal(Random.bytes(4))
        return try Child(
            binary, arguments, environment: environment, output: folder.path.appending(FilePath(name + ".out")),
            errors: folder.path.appending(FilePath(name + ".err")))
    }

    @Test("the process exits with the status of its command")
    func status() async throws {
        #expect(try await start(["version"]).end(within: .seconds(20)) == .status(0))
        #expect(try await start(["lsit"]).end(within: .seconds(20)) == .status(64))
        let none = folder.path.appending("none.yaml").display
        #expect(try await start(["run", "--config", none]).end(within: .seconds(20)) == .status(78))
        #expect(try await start(["list", "--socket", none]).end(within: .seconds(20)) == .status(69))
    }

    /// Started by a shell that has closed `closed` for it.
    private func start(_ arguments: [String], closed: String) throws -> Child {
        let name = hexadecimal(Random.bytes(4))
        return try Child(
            "/bin/sh", ["-c", "exec \"$0\" \"$@\" \(closed)", binary.display] + arguments,
            output: folder.path.appending(FilePath(name + ".out")),
            errors: folder.path.appending(FilePath(name + ".err")))
    }

    @Test("failed output is an error, and a closed pipe is none")
    func unwritten() async throws {
        for closed in ["> /dev/full", ">&-"] {
            let child = try start(["completions", "bash"], closed: closed)
            #expect(try await child.end(within: .seconds(20)) == .status(1))
            #expect(try child.standardError().contains("the output could not be written"))
        }
        #expect(try await start(["completions", "bash"], closed: "| :").end(within: .seconds(20)) == .status(0))
    }

    @Test("without standard input the program does not wait, and without standard output it writes into no other file")
    func closed() async throws {
        let none = folder.path.appending("none.yaml").display
        let add = try start(["add", "-", "--name", "a", "--socket", none], closed: "<&-")
        #expect(try await add.end(within: .seconds(20)) == .status(64))
        #expect(try add.standardError().contains("standard input is closed"))
        let into = folder.path.appending("in")
        let receiver = try start(
            ["receive", "--listen", "127.0.0.1:0", "--into", into.display], closed: "<&- >&- 2>&-")
        let lock = into.appending(".sluice-receive/lock")
        try await eventually("the receiver has created its lock") { try FileStatus.ifPresent(at: lock) != nil }
        for number in 0...2 {
            let link = "/proc/\(receiver.pid)/fd/\(number)"
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "/dev/null")
        }
        receiver.send(SIGTERM)
        #expect(try await receiver.end(within: .seconds(20)) == .status(0))
    }

    @Test("a receiver prints its address, and a signal ends it cleanly", arguments: [SIGTERM, SIGINT])
    func receiver(_ signal: Int32) async throws {
        let into = folder.path.appending("in")
        let child = try start(["receive", "--listen", "127.0.0.1:0", "--into", into.display])
        let url = try await child.line(after: "listening on ")
        #expect(url.hasPrefix("http://127.0.0.1:"))
        #expect(url.hasSuffix("/files/"))
        child.send(SIGHUP)
        child.send(SIGPIPE)
        child.send(SIGIO)
        child.send(signal)
        #expect(try await child.end(within: .seconds(20)) == .status(0))
    }

    @Test("an event reader is told that the daemon was killed, and where to continue: status 69")
    func killedDaemon() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: binary)
        fixture.destination = "http://127.0.0.1:1/"
        try fixture.startDaemon()
        try await eventually("the daemon answers", every: .milliseconds(50)) {
            try await fixture.runVerb("status") != nil
        }
        let events = try start(["events", "--since", "0", "--json", "--config", fixture.config.display])
        _ = try await events.line(after: "{")
        fixture.killDaemon()
        #expect(try await events.end(within: .seconds(20)) == .status(69))
        let words = try events.standardError()
        #expect(words.contains("the daemon stopped"), "\(words)")
        #expect(words.contains("`sluice events --since 1`"), "\(words)")
    }

    @Test("a check reports the answer of each server with a remedy: status 76")
    func servers() async throws {
        let server = try FakeServer { exchange in
            let name = exchange.target.dropFirst().prefix { $0 != "/" }
            switch name {
            case "html": exchange.reply(200, [("Content-Type", "text/html")], "<html>")
            case "301": exchange.reply(301, [("Location", "/elsewhere")])
            default: exchange.reply(Int(name) ?? 204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation")])
            }
        }
        let expected: [(name: String, verdict: String, words: String)] = [
            ("ready", "ok", "tus 1.0.0 with creation"),
            ("401", "failed", "answered 401 to OPTIONS: check `token` or `http.auth`: none is configured"),
            ("403", "failed", "answered 403 to OPTIONS: check `token` or `http.auth`: none is configured"),
            ("404", "failed", "answered 404 to OPTIONS: nothing is there; check the address"),
            ("301", "failed", "answered 301 to OPTIONS, which redirects elsewhere; check the address"),
            ("500", "failed", "answered 500 to OPTIONS; uploads wait until it works"),
            ("html", "warning", "answered 200 to OPTIONS with a web page"),
        ]
        try Files.makeFolders(folder.path.appending("drop"))
        let root = folder.path.display
        let text = """
            version: 1
            state: \(root)/state
            staging: {path: \(root)/staging}
            folders: [{name: cam, path: \(root)/drop, upload_to: [to-ready]}]
            destinations:
            \(expected.map { "  to-\($0.name): {type: tus, url: \"\(server.url)/\($0.name)/\"}" }.joined(separator: "\n"))
            control: {socket: \(root)/control.sock}

            """
        let file = try folder.write("servers.yaml", Array(text.utf8))
        let child = try start(["check", "--config", file.display])
        #expect(try await child.end(within: .seconds(20)) == .status(76))
        // Long texts continue on the next lines, indented.
        let said = try child.standardOutput().split(whereSeparator: { $0 == " " || $0 == "\n" }).joined(separator: " ")
        for (name, verdict, words) in expected {
            #expect(said.contains("\(verdict) destination to-\(name) \(words)"), "\(said)")
        }
    }

    @Test("a check fails at a proxy of the environment that cannot be used, and names its variable and no password")
    func environment() async throws {
        try Files.makeFolders(folder.path.appending("drop"))
        let root = folder.path.display
        let text = """
            version: 1
            state: \(root)/state
            staging: {path: \(root)/staging}
            folders: [{name: cam, path: \(root)/drop, upload_to: [nas]}]
            destinations: {nas: {type: tus, url: "http://192.0.2.7/files/"}}
            control: {socket: \(root)/control.sock}

            """
        let file = try folder.write("proxy.yaml", Array(text.utf8))
        let child = try start(
            ["check", "--config", file.display], environment: ["http_proxy": "http://bob:planted@bücher:3128"])
        #expect(try await child.end(within: .seconds(20)) == .status(76))
        let said = try child.standardOutput().split(whereSeparator: { $0 == " " || $0 == "\n" }).joined(separator: " ")
        #expect(said.contains("`http_proxy` of the environment is no address of a proxy"), "\(said)")
        #expect(!said.contains("planted") && !said.contains("check the address"), "\(said)")
    }

    @Test("a mistake in an item of a list of a destination has the place of the item")
    func item() async throws {
        let text = """
            version: 1
            folders: []
            destinations:
              nas:
                type: tus
                url: https://nas.example/
                http:
                  no_proxy:
                    - example.org
                    - http://example.org
                  resolve: ["nas.example:443:192.0.2.7", nas]

            """
        let file = try folder.write("items.yaml", Array(text.utf8))
        let child = try start(["check", "--config", file.display])
        #expect(try await child.end(within: .seconds(20)) == .status(78))
        let words = try child.standardError()
        #expect(words.contains("\(file):10:11: destinations.nas.http.no_proxy[1]: "), "\(words)")
        #expect(words.contains("\(file):11:46: destinations.nas.http.resolve[1]: "), "\(words)")
    }

    @Test("a configuration error starts its line with the place, as editors expect")
    func configuration() async throws {
        let file = try folder.write("bad.yaml", Array("bogus: 1\n".utf8))
        let child = try start(["check", "--config", file.display])
        #expect(try await child.end(within: .seconds(20)) == .status(78))
        #expect(try child.standardError().hasPrefix("\(file):1:1: bogus:"))
    }

    @Test("the doctor checks the machine and every secret, names remedies, and shows no secret")
    func doctor() async throws {
        try Files.makeFolders(folder.path.appending("drop/2026/11"))
        let root = folder.path.display
        let text = """
            version: 1
            state: \(root)/state
            staging: {path: \(root)/staging}
            folders: [{name: cam, path: \(root)/drop, upload_to: [good, bad]}]
            destinations:
              good: {type: tus, url: "http://127.0.0.1:1/files/", token: {command: [/bin/echo, hunter2]}}
              bad: {type: tus, url: "http://127.0.0.1:1/files/", token: {command: [/bin/false]}}
            control: {socket: \(root)/c.sock}

            """
        let file = try folder.write("s.yaml", Array(text.utf8))
        let child = try start(["doctor", "--json", "--config", file.display])
        #expect(try await child.end(within: .seconds(30)) == .status(78))
        let said = try child.standardOutput()
        #expect(!said.contains("hunter2"))
        let report = try JSONDecoder().decode(Report.self, from: Data(said.utf8))
        #expect(!report.ok)
        func check(_ about: String, _ name: String) -> Report.Check? {
            report.checks.first { $0.about == about && $0.name == name }
        }
        #expect(check("secret", "good")?.verdict == "ok")
        #expect(check("secret", "bad")?.verdict == "failed")
        #expect(check("secret", "bad")?.detail.contains("/bin/false") == true)
        #expect(check("kernel", "watches")?.detail.contains("3 directories need") == true)
        for about in ["kernel", "rights", "clock", "power", "daemon", "network", "folder", "destination"] {
            #expect(report.checks.contains { $0.about == about }, "\(about)")
        }
    }

    @Test("check tests whether the `metrics` files can be written; the folder of the socket may be missing")
    func checkOfMetrics() async throws {
        let root = folder.path.display
        let text = """
            version: 1
            state: \(root)/state
            folders: []
            control: {socket: \(root)/run/c.sock}
            metrics: {textfile: \(root)/none/a.prom, status_file: \(root)/run/status.json}

            """
        let file = try folder.write("m.yaml", Array(text.utf8))
        let child = try start(["check", "--json", "--config", file.display])
        #expect(try await child.end(within: .seconds(20)) == .status(78))
        let report = try JSONDecoder().decode(Report.self, from: Data(try child.standardOutput().utf8))
        let found = report.checks.filter { $0.about == "metrics" }
        #expect(found.map(\.name) == ["\(root)/none/a.prom", "\(root)/run/status.json"])
        #expect(found.map(\.verdict) == ["failed", "ok"])
        #expect(found.first?.detail.contains("create it") == true)
    }

    @Test("check names problems and exits with the status of the worst")
    func check() async throws {
        try Files.makeFolders(folder.path.appending("drop"))
        let root = folder.path.display
        let text = """
            version: 1
            state: \(root)/state
            staging: {path: \(root)/staging, keep_free: 1 GB}
            folders:
              - {name: cam, path: \(root)/drop, upload_to: [nas]}
            destinations:
              nas: {type: tus, url: "http://127.0.0.1:1/files/"}
            control: {socket: \(root)/c.sock}

            """
        let file = try folder.write("s.yaml", Array(text.utf8))
        let child = try start(["check", "--config", file.display])
        #expect(try await child.end(within: .seconds(30)) == .status(76))
        let lines = try child.standardOutput().split(separator: "\n").map(String.init)
        #expect(lines.contains { $0.hasPrefix("ok       folder       cam") })
        #expect(lines.contains { $0.hasPrefix("failed   destination  nas") })
        #expect(try FileStatus.ifPresent(at: folder.path.appending("state")) == nil)

        let refused = try start(["check", "--config", file.display, "--json"])
        #expect(try await refused.end(within: .seconds(30)) == .status(76))
        #expect(try refused.standardOutput().contains(#""ok":false"#))
    }
}
