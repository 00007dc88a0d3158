import Core
import FoundationEssentials
import Glibc
import Linux
import TestKit
import Testing

/// The database is lost during the work, and rebuilt.
@Suite("Rebuild", .serialized)
struct RebuildTests {
    enum Loss: String, Sendable, CaseIterable { case garbage, truncated, emptied, deleted }
    struct Case: Sendable, CustomTestStringConvertible {
        let source: DaemonFixture.Source
        let loss: Loss
        var testDescription: String { "\(source.rawValue), \(loss.rawValue)" }
    }

    @Test(
        "rebuild brings every file to the receiver once, whatever happened to the database",
        .timeLimit(.minutes(Patience.minutes(3))),
        arguments: [
            Case(source: .keep, loss: .garbage), Case(source: .delete, loss: .deleted),
            Case(source: .move, loss: .truncated), Case(source: .keep, loss: .emptied),
        ])
    func afterLoss(_ row: Case) async throws {
        let scene = try await Scene(row.source)
        try scene.lose(row.loss)
        try await scene.fixture.startReceiver()
        try await scene.expectRefusal()
        let trial = try await scene.fixture.verb("rebuild", ["--dry-run"])
        #expect(trial.status == 0)
        #expect(trial.printed.contains("nothing was changed"), "\(trial)")
        try await scene.expectRefusal()
        let rebuilt = try await scene.fixture.verb("rebuild", ["--yes"])
        #expect(rebuilt.status == 0, "\(rebuilt)")
        try await scene.expectAllOnce()
        // The old database is kept, if there was one.
        let kept = try Files.names(in: scene.fixture.state).contains { $0.text?.contains("damaged") == true }
        #expect(kept == (row.loss != .deleted))
    }

    @Test(
        "a rebuild killed at a crash point is completed by the next one", .timeLimit(.minutes(Patience.minutes(3))),
        arguments: [
            "rebuild-copy:3", "rebuild-restored:1", "rebuild-finished:1", "rebuild-aside:1", "rebuild-aside:2",
            "rebuild-set-aside:1", "rebuild-done:1",
        ])
    func killed(_ step: String) async throws {
        let scene = try await Scene(.delete)
        try scene.lose(.garbage)
        try await scene.fixture.startReceiver()
        let first = try await scene.fixture.verb("rebuild", ["--yes"], environment: ["SLUICE_TEST_CRASH": step])
        try #require(first.ending == .signal(SIGKILL), "\(step) was not reached: \(first)")
        // The database is either the old one, which is refused, or the new one, which is complete.
        if step != "rebuild-done:1" {
            try await scene.expectRefusal()
            let second = try await scene.fixture.verb("rebuild", ["--yes"])
            #expect(second.status == 0, "\(second)")
        }
        try await scene.expectAllOnce()
    }

    @Test(
        "rebuild gives back a source that a move had renamed, on either side, and moves it again",
        .timeLimit(.minutes(Patience.minutes(2))), arguments: ["release-renamed", "release-moved"])
    func caught(_ step: String) async throws {
        let fixture = try DaemonFixture(source: .move, binary: Setting.binary())
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        try camera.drop(Clip(number: 1, size: 100_000, relative: "clip.mp4"))
        try fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": "\(step):1"])
        let ending = try await #require(fixture.daemon).end(within: .seconds(20))
        try #require(ending == .signal(SIGKILL), "\(fixture.lastWords())")
        for ending in ["", "-wal", "-shm"] {
            try Files.removeIfPresent(fixture.state.appending(FilePath("sluice.db\(ending)")))
        }
        let rebuilt = try await fixture.verb("rebuild", ["--yes"])
        #expect(rebuilt.status == 0, "\(rebuilt)")
        try fixture.startDaemon()
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait()
        try await outcome.check()
        #expect(try Outcome.files(in: fixture.done, hidden: true).map(\.name) == ["clip.mp4"])
    }

    @Test("rebuild uploads a copy whose source is gone", .timeLimit(.minutes(Patience.minutes(2))))
    func onlyTheCopy() async throws {
        let scene = try await Scene(.keep)
        let lost = try #require(scene.waiting.first)
        try Files.remove(scene.fixture.drop.appending(lost.relative))
        try scene.lose(.deleted)
        try await scene.fixture.startReceiver()
        try await scene.expectRefusal()
        #expect(try await scene.fixture.verb("rebuild", ["--yes"]).status == 0)
        try scene.fixture.startDaemon()
        try await eventually("the file has been received", within: .seconds(60)) {
            let path = scene.fixture.received.appending(lost.relative)
            return try FileStatus.ifPresent(at: path) != nil && Files.read(path, limit: 64 << 20) == lost.content
        }
    }

    @Test(
        "rebuild holds files that an unreachable receiver may have, and uploads them on command",
        .timeLimit(.minutes(Patience.minutes(2))))
    func undecided() async throws {
        let scene = try await Scene(.keep)
        try scene.lose(.deleted)
        let rebuilt = try await scene.fixture.verb("rebuild", ["--yes"])
        #expect(rebuilt.status == 0, "\(rebuilt)")
        #expect(rebuilt.printed.contains("UNDECIDED: may have been sent before"), "\(rebuilt)")
        try await scene.fixture.startReceiver()
        try scene.fixture.startDaemon()
        let all = scene.camera.clips.count
        try await eventually("all uploads wait for a decision", within: .seconds(30)) {
            try await scene.fixture.status()?.counts.failed == all
        }
        #expect(try Outcome.files(in: scene.fixture.received, hidden: false).count == scene.sent.count)
        #expect(try await scene.fixture.verb("retry", ["--all"]).status == 0)
        try await scene.expectAllOnce(isRunning: true)
    }

    @Test(
        "rebuild is refused while a daemon runs, and for an intact database", .timeLimit(.minutes(Patience.minutes(1))))
    func refused() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the daemon has started") { try await fixture.status()?.starting == false }
        let busy = try await fixture.verb("rebuild", ["--yes"])
        #expect(busy.status == 75, "\(busy)")
        #expect(try await fixture.stopDaemon() == .status(0))
        let well = try await fixture.verb("rebuild", ["--yes"])
        #expect(well.status == 65, "\(well)")
        #expect(well.complained.contains("is intact"), "\(well)")
        // The refused rebuild left nothing that would stop the daemon.
        try fixture.startDaemon()
        try await eventually("the daemon has started again") { try await fixture.status()?.starting == false }
    }
}

/// About fifty clips: some are delivered, the others were staged while the receiver was away, and the daemon was killed
/// then.
private final class Scene {
    let fixture: DaemonFixture
    let camera: Camera
    let sent: [Clip]
    let waiting: [Clip]

    init(_ source: DaemonFixture.Source) async throws {
        fixture = try DaemonFixture(source: source, binary: Setting.binary())
        camera = Camera(fixture, dice: Dice(seed: 7))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        for number in 0..<30 {
            try camera.drop(Clip(number: number, size: 5000 + number, relative: FilePath("sent \(number).mp4")))
        }
        sent = camera.clips
        try await Outcome(fixture: fixture, clips: camera.clips).wait()
        // Cut off in the middle of its bytes.
        let large = Clip(number: 90, size: 48 << 20, relative: "large.mp4")
        try camera.drop(large)
        let received = fixture.received
        try await eventually("the receiver has bytes of the large file", within: .seconds(30)) {
            try Outcome.files(in: received, hidden: true).contains {
                try FileStatus.ifPresent(at: received.appending($0)).map { $0.size > 1 << 20 } ?? false
            }
        }
        fixture.killReceiver()
        for number in 30..<54 {
            try camera.drop(Clip(number: number, size: 5000 + number, relative: FilePath("waiting \(number).mp4")))
        }
        waiting = camera.clips.filter { $0.number >= 30 && $0.number != 90 }
        let (staging, count) = (fixture.staging, waiting.count)
        try await eventually("the other files are staged", within: .seconds(30)) {
            try Files.names(in: staging).filter { $0.fileExtension != "part" }.count >= count
        }
        fixture.killDaemon()
    }

    func lose(_ loss: RebuildTests.Loss) throws {
        let database = fixture.state.appending("sluice.db")
        for ending in ["-wal", "-shm"] {
            // With its log the database may still be complete: the log holds every page that was written recently.
            try Files.removeIfPresent(FilePath(bytes: database.bytes + Array(ending.utf8)))
        }
        switch loss {
        case .garbage: try Files.replace(database, with: noise(64 << 10))
        case .truncated: try Files.replace(database, with: Array(Files.read(database, limit: 64 << 20).prefix(5000)))
        case .emptied: try Files.replace(database, with: [])
        case .deleted: try Files.remove(database)
        }
    }

    func expectRefusal() async throws {
        let copies = try Files.names(in: fixture.staging)
        try fixture.startDaemon()
        #expect(try await fixture.daemon?.end(within: .seconds(20)) == .status(78))
        #expect(fixture.lastWords().contains("sluice rebuild"), "\(fixture.lastWords())")
        #expect(try Set(Files.names(in: fixture.staging)) == Set(copies))
    }

    func expectAllOnce(isRunning: Bool = false) async throws {
        if !isRunning { try fixture.startDaemon() }
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait()
        #expect(try outcome.problems() == [], "\(fixture.lastWords())")
    }
}

extension DaemonFixture {
    struct Output: CustomStringConvertible {
        let ending: Child.Ending?
        let printed: String
        let complained: String
        var status: Int32? { if case .status(let status)? = ending { status } else { nil } }
        var description: String { "\(String(describing: ending)): \(printed)\(complained)" }
    }

    /// Runs a verb to its end, and returns its whole output.
    func verb(_ verb: String, _ arguments: [String], environment: [String: String] = [:]) async throws -> Output {
        let output = folder.path.appending(FilePath("said-\(hexadecimal(Random.bytes(6)))"))
        let child = try Child(
            binary, [verb, "--config", config.display] + arguments, environment: environment, output: output,
            errors: FilePath(bytes: output.bytes + Array(".err".utf8)))
        let ending = try await child.end(within: .seconds(60))
        return Output(ending: ending, printed: try child.standardOutput(), complained: try child.standardError())
    }
}
