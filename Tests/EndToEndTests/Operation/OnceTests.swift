import Core
import Glibc
import Linux
import TestKit
import Testing

/// `sluice run --once`, as cron starts it.
@Suite("run --once", .serialized, .timeLimit(.minutes(Patience.minutes(3))))
struct OnceTests {
    private struct Ran {
        let ending: Child.Ending
        let output: String
        let errors: String
    }

    private func start(_ fixture: DaemonFixture, _ words: [String]) throws -> Child {
        let name = hexadecimal(Random.bytes(4))
        return try Child(
            fixture.binary, ["run", "--once", "--log-level", "warning", "--config", fixture.config.display] + words,
            output: fixture.folder.path.appending(FilePath(name + ".out")),
            errors: fixture.folder.path.appending(FilePath(name + ".err")))
    }

    private func once(_ fixture: DaemonFixture, _ words: String...) async throws -> Ran {
        let child = try start(fixture, words)
        let ending = try await child.end(within: .seconds(60))
        return Ran(ending: ending, output: try child.standardOutput(), errors: try child.standardError())
    }

    /// A fixture with a written configuration, and no daemon.
    private func fixture(_ source: DaemonFixture.Source = .delete) async throws -> DaemonFixture {
        let fixture = try DaemonFixture(source: source, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.writeConfiguration()
        return fixture
    }

    @Test("with an empty folder the run ends at once without output")
    func nothing() async throws {
        let fixture = try await fixture()
        let ran = try await once(fixture)
        #expect(ran.ending == .status(0), "\(ran.errors)")
        #expect(ran.output == "")
        #expect(ran.errors == "")
        let told = try await once(fixture, "--json")
        #expect(told.output.hasPrefix(#"{"absent":[],"completed":0,"done":true,"failed":0,"#))
    }

    @Test("with files added between runs, each arrives once and its source is released")
    func again() async throws {
        let fixture = try await fixture()
        let camera = Camera(fixture, dice: Dice(seed: 7))
        for round in 0..<8 {
            for number in 0..<(round % 3) {
                try camera.drop(
                    Clip(number: round * 3 + number, size: 20_000 * round, relative: FilePath("\(round)-\(number).mp4"))
                )
            }
            let ran = try await once(fixture)
            #expect(ran.ending == .status(0), "\(ran.output)\(ran.errors)")
        }
        #expect(try Outcome(fixture: fixture, clips: camera.clips).problems() == [])
    }

    @Test("a file that is being written is named and waits for the next run")
    func writing() async throws {
        let fixture = try await fixture()
        let path = fixture.drop.appending("growing.mp4")
        do {
            let writer = try Descriptor.open(path, for: .updating)
            let ran = try await once(fixture)
            #expect(ran.ending == .status(75))
            #expect(
                ran.output.contains("settling  \(path.display): another process has it open for writing"),
                "\(ran.output)")
            #expect(ran.output.hasSuffix("0 uploaded, 1 waiting, 0 failed\n"))
            try fixture.folder.write("drop/growing.mp4", noise(5000))
            withExtendedLifetime(writer) {}
        }
        let ran = try await once(fixture)
        #expect(ran.ending == .status(0), "\(ran.output)")
        #expect(try Files.read(fixture.received.appending("growing.mp4"), limit: 1 << 20) == noise(5000))
    }

    @Test("files younger than min_age are left for the next run: status 0 at once, and the last line counts them")
    func young() async throws {
        let fixture = try await fixture()
        fixture.folderKeys = ["min_age: 1h"]
        try fixture.writeConfiguration()
        for number in 0..<3 { try fixture.folder.write(FilePath("drop/\(number).mp4"), noise(100)) }
        try fixture.folder.write("drop/old.mp4", noise(200))
        let old = fixture.drop.appending("old.mp4")
        let now = SystemClocks().wall().milliseconds
        try Descriptor.open(old, for: .updating).setModified((now - 7_200_000) * 1_000_000, named: old)
        let ran = try await once(fixture)
        #expect(ran.ending == .status(0), "\(ran.output)\(ran.errors)")
        #expect(
            ran.output == "1 uploaded, 0 waiting, 0 failed, 3 younger than min_age: left for the next run\n",
            "\(ran.output)")
        #expect(try Outcome.files(in: fixture.received, hidden: false) == ["old.mp4"])
        let told = try await once(fixture, "--json", "--wait", "10m")
        #expect(told.ending == .status(0))
        #expect(told.output.contains(#""done":true"#) && told.output.contains(#""young":3"#), "\(told.output)")
    }

    @Test("a group that waits only for a file younger than min_age is left for the next run, too")
    func youngGroup() async throws {
        let fixture = try await fixture()
        fixture.folderKeys = ["min_age: 1h", "group: {by: stem, wait: 100ms}"]
        try fixture.writeConfiguration()
        try fixture.folder.write("drop/a.mp4", noise(100))
        try fixture.folder.write("drop/a.srt", noise(200))
        let old = fixture.drop.appending("a.srt")
        let now = SystemClocks().wall().milliseconds
        try Descriptor.open(old, for: .updating).setModified((now - 7_200_000) * 1_000_000, named: old)
        let ran = try await once(fixture)
        #expect(ran.ending == .status(0), "\(ran.output)\(ran.errors)")
        #expect(
            ran.output == "0 uploaded, 0 waiting, 0 failed, 2 younger than min_age: left for the next run\n",
            "\(ran.output)")
    }

    @Test("a file without its marker is named, waits, and delays no run")
    func unmarked() async throws {
        let fixture = try await fixture()
        fixture.settleKeys += ", marker: \"{name}.done\""
        try fixture.writeConfiguration()
        try fixture.folder.write("drop/a.mp4", noise(100))
        let ran = try await once(fixture)
        #expect(ran.ending == .status(75))
        #expect(ran.output.contains("a.mp4: its marker a.mp4.done does not exist yet"), "\(ran.output)")
        #expect(ran.output.hasSuffix("0 uploaded, 1 waiting, 0 failed\n"))
    }

    @Test("a run does not wait for a server that is down and names its files; with --wait the server may come back")
    func away() async throws {
        let fixture = try await fixture()
        fixture.killReceiver()
        for number in 0..<25 { try fixture.folder.write(FilePath("drop/\(number).mp4"), noise(100 + number)) }
        let ran = try await once(fixture)
        #expect(ran.ending == .status(75))
        #expect(ran.output.contains("/drop/24.mp4 to nas: destination: nas: "), "\(ran.output)")
        #expect(ran.output.contains("and 5 more"), "\(ran.output)")
        #expect(ran.output.hasSuffix("0 uploaded, 25 waiting, 0 failed\n"))
        let waiting = try start(fixture, ["--wait", "60s", "--json"])
        try await eventually("the run answers while it waits", every: .milliseconds(50)) {
            try await fixture.status()?.counts.ongoing == 25
        }
        try await fixture.startReceiver()
        #expect(try await waiting.end(within: .seconds(60)) == .status(0))
        #expect(try waiting.standardOutput().contains(#""completed":25,"done":true"#))
        #expect(try Outcome.files(in: fixture.received, hidden: false).count == 25)
    }

    @Test("a signal ends the run and lists the rest; meanwhile another run on the same state is refused")
    func signal() async throws {
        let fixture = try await fixture()
        fixture.killReceiver()
        try fixture.folder.write("drop/a.mp4", noise(100))
        let child = try start(fixture, ["--wait", "1h"])
        try await eventually("the run waits", every: .milliseconds(50)) {
            try await fixture.status()?.counts.ongoing == 1
        }
        let second = try await once(fixture)
        #expect(second.ending == .status(75))
        #expect(second.errors.contains("is in use by process \(child.pid)"))
        child.send(SIGTERM)
        #expect(try await child.end(within: .seconds(20)) == .status(75))
        #expect(try child.standardOutput().contains("a.mp4 to nas"))
    }

    @Test("without a usable control socket the run works and reports it")
    func deaf() async throws {
        let fixture = try await fixture()
        try fixture.folder.write("drop/a.mp4", noise(100))
        try Files.makeFolders(fixture.folder.path.appending("control.sock"))
        let ran = try await once(fixture)
        #expect(ran.ending == .status(0))
        #expect(ran.errors.contains("this run cannot open its control socket"))
        #expect(try Outcome.files(in: fixture.received, hidden: false) == ["a.mp4"])
    }

    @Test("a refused file is failed, by name, until it is retried or removed")
    func failed() async throws {
        let server = try FakeServer { exchange in
            switch exchange.method {
            case "OPTIONS":
                exchange.reply(
                    204, [("Tus-Version", "1.0.0"), ("Tus-Extension", "creation"), ("Tus-Max-Size", "10")])
            default: exchange.reply(413)
            }
        }
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.destination = server.url + "/files"
        try fixture.writeConfiguration()
        try fixture.folder.write("drop/a.mp4", noise(100))
        for _ in 0..<2 {
            let ran = try await once(fixture)
            #expect(ran.ending == .status(75))
            #expect(ran.output.contains("failed    \(fixture.drop.display)/a.mp4 to nas: "), "\(ran.output)")
            #expect(ran.output.hasSuffix("0 uploaded, 0 waiting, 1 failed\n"))
        }
    }
}
