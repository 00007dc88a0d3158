import Core
import Glibc
import Linux
import TestKit
import Testing

/// `sluice add -`, from the built program.
@Suite("Uploads from standard input", .serialized, .timeLimit(.minutes(Patience.minutes(3))))
struct ReceivingTests {
    /// A shell with the program in `$S` and its configuration in `$C`.
    private func shell(_ fixture: DaemonFixture, _ script: String) throws -> Child {
        let name = hexadecimal(Random.bytes(6))
        return try Child(
            "/bin/bash", ["-c", "set -o pipefail; " + script],
            environment: ["S": fixture.binary.display, "C": fixture.config.display],
            output: fixture.folder.path.appending(FilePath("\(name).out")),
            errors: fixture.folder.path.appending(FilePath("\(name).err")))
    }

    private func run(_ fixture: DaemonFixture, _ script: String) async throws -> (ending: Child.Ending, said: String) {
        let child = try shell(fixture, script)
        let ending = try await child.end(within: .seconds(60))
        return (ending, try child.standardOutput() + child.standardError())
    }

    private func ready(_ fixture: DaemonFixture, environment: [String: String] = [:]) async throws {
        try fixture.startDaemon(environment: environment)
        try await eventually("the daemon has started, or was killed as planned", every: .milliseconds(50)) {
            if environment["SLUICE_TEST_CRASH"] != nil, fixture.daemon?.ended != nil { return true }
            return try await fixture.status()?.starting == false
        }
    }

    private func staged(_ fixture: DaemonFixture) throws -> [FilePath] {
        try Outcome.files(in: fixture.staging, hidden: true)
    }

    @Test("piped bytes arrive once under their name, and their copy is removed afterwards")
    func arrives() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try await ready(fixture)
        let content = noise(200_000)
        let file = fixture.folder.path.appending("content")
        try Files.replace(file, with: content)
        let slowly = "(head -c 1000 '\(file.display)'; sleep 0.2; tail -c +1001 '\(file.display)')"
        for (name, script) in [
            ("clip.mp4", "$S add - --config $C --name clip.mp4 < '\(file.display)'"),
            ("slow.mp4", "\(slowly) | $S add - --config $C --name slow.mp4 --to nas --key k --context a=b"),
            ("none.bin", "$S add - --config $C --name none.bin < /dev/null"),
        ] {
            let (ending, said) = try await run(fixture, script)
            #expect(ending == .status(0) && said.hasPrefix("added ") && said.contains(name), "\(said)")
        }
        try await eventually("all three uploads are complete", every: .milliseconds(50)) {
            try await fixture.status()?.counts.completed == 3
        }
        #expect(try Set(Outcome.files(in: fixture.received, hidden: false)) == ["clip.mp4", "slow.mp4", "none.bin"])
        #expect(try Files.read(fixture.received.appending("clip.mp4")) == content)
        #expect(try Files.read(fixture.received.appending("slow.mp4")) == content)
        #expect(try Files.read(fixture.received.appending("none.bin")).isEmpty)
        try await eventually("the staged copies have been deleted") { try staged(fixture).isEmpty }
        let shown = try #require(try await fixture.runVerb("show", ["k"]))
        #expect(
            shown.contains("bytes received by `sluice add -` or the API") && shown.contains("delete: done"), "\(shown)")
        #expect(
            try await fixture.runVerb("list", ["--list", "completed", "--folder", "-"])?.contains("clip.mp4") == true)
        #expect(try await fixture.runVerb("why", ["/dev/stdin/clip.mp4"])?.contains("uploaded") == true)
        #expect(try await fixture.runVerb("pause", ["--folder", "-"]) != nil)
        #expect(try await fixture.stopDaemon() == .status(0))
        #expect(try Ledger.integrity(of: fixture.state) == ["ok"])
    }

    @Test(
        "a wrong argument is reported, and no byte is accepted",
        arguments: [
            ("$S add - --config $C < /dev/null", 64, "--name is missing"),
            ("$S add - a.mp4 --name x --config $C < /dev/null", 64, "must be the only argument"),
            ("$S add a.mp4 --name x --config $C < /dev/null", 64, "--name is for `-`"),
            ("$S add - --again --name x --config $C < /dev/null", 64, "always new"),
            (
                "$S add - --name a/b --config $C < /dev/null", 64,
                "nothing was added: `name` must be a file name without a folder"
            ),
            ("$S add - --name x --to nos --config $C < /dev/null", 64, "did you mean `nas`"),
            ("head -c 9M /dev/zero | $S add - --name x --to nos --config $C", 64, "did you mean `nas`"),
            ("script -qec '$S add - --name x --config $C' /dev/null", 64, "standard input is a terminal"),
        ])
    func wrong(_ script: String, _ status: Int32, _ words: String) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = "http://127.0.0.1:1/"
        try await ready(fixture)
        let (ending, said) = try await run(fixture, script)
        // The shell reports a broken pipe before its cause.
        #expect(ending == .status(status) || script.hasPrefix("head") && ending != .status(0), "\(ending) \(said)")
        #expect(said.contains(words), "\(said)")
        #expect(try staged(fixture).isEmpty)
        #expect(try await fixture.status()?.counts.ongoing == 0)
    }

    @Test("a long input needs no memory, and a full staging folder accepts none of it")
    func large() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.uploadTo = ["archive"]
        fixture.stagingKeys = ", max_size: 400MB"
        fixture.policyKeys = ["windows: [\"mon-sun 00:00-00:01\"]"]
        try await ready(fixture, environment: ["SLUICE_TEST_CLOCK": "2026-11-20T12:00:00Z"])
        let pid = try #require(fixture.daemon?.pid)
        let before = try Usage(of: pid).residentPeak
        let (ending, said) = try await run(fixture, "head -c 300M /dev/zero | $S add - --config $C --name big.bin")
        #expect(ending == .status(0), "\(said)")
        let grown = try Usage(of: pid).residentPeak - before
        // The address sanitizer keeps freed memory.
        if !Setting.isInstrumented { #expect(grown < 32 << 20, "\(grown) bytes more") }
        let (full, why) = try await run(fixture, "head -c 300M /dev/zero | $S add - --config $C --name more.bin")
        #expect(full != .status(0))
        #expect(why.contains("nothing was added: more.bin does not fit into the staging folder"), "\(why)")
        #expect(try staged(fixture).count == 1)
        // Without a broken pipe, the status is the program's own.
        let (own, _) = try await run(
            fixture, "(head -c 300M /dev/zero; true) | $S add - --config $C --name more.bin; exit ${PIPESTATUS[1]}")
        #expect(own == .status(75))
    }

    @Test("a killed sender, or one whose pipe never ends, creates no upload")
    func killed() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = "http://127.0.0.1:1/"
        try await ready(fixture)
        let pipe = fixture.folder.path.appending("pipe")
        #expect(try await run(fixture, "mkfifo '\(pipe.display)'").ending == .status(0))
        let writer = try shell(fixture, "exec > '\(pipe.display)'; head -c 3M /dev/zero; sleep 100")
        let child = try shell(fixture, "exec $S add - --config $C --name x < '\(pipe.display)'")
        try await eventually("the first half has been staged", every: .milliseconds(20)) {
            let files = try staged(fixture)
            guard let part = files.first else { return false }
            return (try FileStatus.ifPresent(at: fixture.staging.appending(part))?.size ?? 0) >= 3 << 20
        }
        child.end(with: SIGKILL)
        try await eventually("the first half has been deleted") { try staged(fixture).isEmpty }
        #expect(try await fixture.status()?.counts.ongoing == 0)
        writer.end(with: SIGKILL)
    }

    @Test(
        "killed at each step: the bytes are uploaded once or not at all, and the answer was true",
        arguments: CrashSteps.receiving + ["renamed", "claimed", "verified", "completed"]
            + (1...6).map { "committed:\($0)" })
    func steps(_ step: String) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try await ready(fixture, environment: ["SLUICE_TEST_CRASH": step])
        let content = noise(300_000)
        let file = fixture.folder.path.appending("content")
        try Files.replace(file, with: content)
        let child = try shell(fixture, "$S add - --config $C --name clip.mp4 < '\(file.display)'")
        let ending = try await child.end(within: .seconds(20))
        let said = try child.standardOutput() + child.standardError()
        // The kill may be in a transaction of the start, or in one after the answer.
        #expect(try await #require(fixture.daemon).end(within: .seconds(20)) == .signal(SIGKILL))
        let isPromised = ending == .status(0)
        if !isPromised {
            #expect(ending == .status(69), "\(ending): \(said)")
            #expect(said.contains("added"), "\(said)")
        }
        try await ready(fixture)
        let isNone = !isPromised && ["receiving", "received", "renamed"].contains(step)
        if isPromised || step == "taken" {
            try await eventually("the upload is complete", within: .seconds(30), every: .milliseconds(50)) {
                try await fixture.status()?.counts.completed == 1
            }
        }
        try await eventually("no upload and no staged copy is left", within: .seconds(30), every: .milliseconds(50)) {
            try await fixture.status()?.counts.ongoing == 0 && staged(fixture).isEmpty
        }
        let received = try Outcome.files(in: fixture.received, hidden: false)
        #expect(received == ["clip.mp4"] || received.isEmpty && !isPromised, "\(received)")
        if isNone { #expect(received.isEmpty) }
        for name in received { #expect(try Files.read(fixture.received.appending(name)) == content) }
        #expect(try await fixture.stopDaemon() == .status(0))
        #expect(try Ledger.integrity(of: fixture.state) == ["ok"])
    }

    @Test("a lost database loses no received byte, and the upload keeps its destination")
    func rebuilt() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.uploadTo = ["nas", "archive"]
        try await fixture.startReceiver()
        fixture.killReceiver()
        try await ready(fixture)
        let (ending, said) = try await run(
            fixture, "head -c 100k /dev/zero | $S add - --config $C --name clip.mp4 --to nas")
        #expect(ending == .status(0), "\(said)")
        fixture.killDaemon()
        for name in try Files.names(in: fixture.state) where name.display.hasPrefix("sluice.db") {
            try Files.removeIfPresent(fixture.state.appending(name))
        }
        let rebuilt = try await run(fixture, "$S rebuild --config $C --yes --unknown send")
        #expect(rebuilt.ending == .status(0), "\(rebuilt.said)")
        try await fixture.startReceiver()
        try await ready(fixture)
        try await eventually("the upload is complete", within: .seconds(30), every: .milliseconds(50)) {
            try await fixture.status()?.counts.completed == 1
        }
        #expect(try Outcome.files(in: fixture.received, hidden: false) == ["clip.mp4"])
        #expect(try Outcome.files(in: fixture.archive, hidden: true).isEmpty)
        try await eventually("the staged copy has been deleted") { try staged(fixture).isEmpty }
    }
}
