import Core
import Linux
import TestKit
import Testing

/// The programs of docs/api/examples, as a person who copied them would run them.
@Suite("Examples for the API", .timeLimit(.minutes(Patience.minutes(2))))
struct ExampleTests {
    enum Example: String, Sendable, CaseIterable {
        case shell, swift

        /// - Returns: The program, and the arguments before its own.
        func program(in folder: FilePath) async throws -> (FilePath, [String]) {
            let examples = Repository.root.appending("docs/api/examples")
            switch self {
            case .shell: return ("/bin/sh", [examples.appending("uploads.sh").display])
            case .swift:
                let made = folder.appending("Uploads")
                let compiler = try Child(
                    "/usr/bin/env",
                    ["swiftc", "-swift-version", "6", "-o", made.display, examples.appending("Uploads.swift").display],
                    output: folder.appending("compiler.out"), errors: folder.appending("compiler.err"))
                let ending = try await compiler.end(within: .seconds(60))
                let complaint = try compiler.standardError()
                try #require(ending == .status(0), "\(complaint)")
                return (made, [])
            }
        }
    }

    @Test(
        "the examples wait for uploads, list and retry failed ones, and pause everything, over the socket and TCP",
        arguments: Tier.sample(Example.allCases), Tier.sample([false, true]))
    func works(_ example: Example, overTCP: Bool) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.uploadTo = ["nas", "archive"]
        fixture.archiveKeys = ", taken: fail"
        // Only files that are added by hand.
        fixture.folderKeys = ["exclude: [\"*\"]"]
        let token = fixture.folder.path.appending("token")
        try Files.replace(token, with: Array("word\n".utf8))
        if overTCP {
            fixture.controlKeys = ", listen: \"127.0.0.1:0\", tokens: [{name: me, secret: {file: \(token.display)}}]"
        }
        try await fixture.startReceiver()
        try fixture.startDaemon()
        var environment = ["SLUICE_SOCKET": fixture.folder.path.appending("control.sock").display]
        if overTCP {
            let port = try await eventually("the log names the port of the API", every: .milliseconds(50)) {
                try fixture.daemon?.standardError().firstMatch(of: /\(port ([0-9]+)\)/)?.1
            }
            environment = [
                "SLUICE_URL": "http://127.0.0.1:\(port)", "SLUICE_ADDRESS": "127.0.0.1:\(port)",
                "SLUICE_TOKEN_FILE": token.display, "no_proxy": "127.0.0.1",
            ]
        }
        try await eventually("the daemon has started", every: .milliseconds(50)) {
            try await fixture.status()?.starting == false
        }
        let (program, first) = try await example.program(in: fixture.folder.path)
        var runs = 0
        func run(_ words: [String]) async throws -> (Child.Ending, String) {
            runs += 1
            let child = try Child(
                program, first + words, environment: environment,
                output: fixture.folder.path.appending(FilePath("run-\(runs).out")),
                errors: fixture.folder.path.appending(FilePath("run-\(runs).err")))
            do {
                return (try await child.end(within: .seconds(30)), try child.standardOutput() + child.standardError())
            } catch let overdue as Overdue {
                // Shows which of them it was, and the trouble at the other side.
                Issue.record(overdue, "\(words) printed `\(try child.standardOutput())`\n\(fixture.lastWords())")
                throw overdue
            }
        }

        let file = fixture.drop.appending("a \"good\" näme.mp4")
        try Files.replace(file, with: noise(300_000))
        let (ending, said) = try await run(["add", file.display, "nas"])
        #expect(ending == .status(0), "\(said)")
        let lines = said.split(separator: "\n")
        #expect(lines.count == 2 && lines[0].hasSuffix(" added") && lines[1].hasSuffix(" completed"), "\(said)")
        #expect(try Files.read(fixture.received.appending("a \"good\" näme.mp4")) == noise(300_000))
        // The daemon refuses: the program does not wait.
        let (again, refusal) = try await run(["add", file.display, "nas"])
        #expect(again == .status(1) && refusal.contains("duplicate"), "\(refusal)")

        let bad = fixture.drop.appending("bad.mp4")
        try Files.replace(bad, with: noise(1000))
        let blocker = fixture.archive.appending("bad.mp4")
        try Files.replace(blocker, with: Array("somebody else's".utf8))
        let (failed, how) = try await run(["add", bad.display, "archive"])
        #expect(failed == .status(1) && how.contains(" failed"), "\(how)")
        let (listed, list) = try await run(["failed"])
        #expect(listed == .status(0) && list.split(separator: "\n").count == 1 && list.contains("/bad.mp4"), "\(list)")
        try Files.removeIfPresent(blocker)
        let (retried, count) = try await run(["retry"])
        #expect(retried == .status(0) && count == "1 retried\n", "\(count)")
        try await eventually("the retried file is in the archive") {
            try FileStatus.ifPresent(at: blocker)?.size == 1000
        }

        #expect(try await run(["pause"]).0 == .status(0))
        let held = try await fixture.runVerb("status") ?? ""
        #expect(held.contains("paused") || held.contains("held"), "\(held)")
        #expect(try await fixture.runVerb("status", ["--json"])?.contains(#""scope":"all""#) == true)
        #expect(try await run(["resume"]).0 == .status(0))
        #expect(try await run(["nonsense"]).0 == .status(64))
    }
}
