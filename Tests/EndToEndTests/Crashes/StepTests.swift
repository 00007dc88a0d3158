import Core
import Glibc
import Linux
import TestKit
import Testing

/// SIGKILL exactly after each durable step.
///
/// `SLUICE_TEST_CRASH=STEP:N` makes the daemon kill itself when it has passed `STEP` for the Nth time. One at a time:
/// thirty daemons at once would test the machine's patience and not the steps.
@Suite("Kills after durable steps", .serialized)
struct StepTests {
    struct Kill: CustomTestStringConvertible, Sendable {
        let step: String
        var nth = 1
        let source: DaemonFixture.Source
        /// Further keys of the folder.
        var keeping: String?
        var testDescription: String {
            "\(step):\(nth), source \(source.rawValue)" + (keeping.map { ", \($0)" } ?? "")
        }
    }

    /// After the Nth transaction of any kind.
    static let committed = [1, 2, 3, 4, 5, 6, 8, 10, 13].map { Kill(step: "committed", nth: $0, source: .delete) }
    static let all =
        CrashSteps.onTheWay.map { Kill(step: $0, source: .delete) } + released + committed + inPlace + exported
    static let inPlace =
        (CrashSteps.onTheWay.filter { $0 != "copied" && $0 != "renamed" } + CrashSteps.release).map {
            Kill(step: $0, source: .delete, keeping: "staging: {copy: in-place}")
        }
    static let exported = (["copied", "renamed", "staged", "verified"] + CrashSteps.release).map {
        Kill(
            step: $0, source: .move,
            keeping: "export: {command: [cp, \"{input}\", \"{output}\"], output: \"{name}\"}")
    }
    static let released =
        CrashSteps.release.flatMap { step in
            [DaemonFixture.Source.delete, .move].map { Kill(step: step, source: $0) }
        } + CrashSteps.within.map { Kill(step: $0, source: .move) }

    @Test(
        "the next start continues from the step", .timeLimit(.minutes(Patience.minutes(3))),
        arguments: all)
    func goesOn(_ kill: Kill) async throws {
        let fixture = try DaemonFixture(source: kill.source, binary: Setting.binary())
        fixture.folderKeys = kill.keeping.map { [$0] } ?? []
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        for number in 0..<4 {
            try camera.drop(Clip(number: number, size: 100_000, relative: FilePath("clip \(number).mp4")))
        }
        try await runUntilKilled(fixture, by: kill)
        try expectRecords(of: camera.clips, fixture)
        try fixture.startDaemon()
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        try await outcome.check()
    }

    @Test(
        "a new file under the source's name survives and is uploaded too", .timeLimit(.minutes(Patience.minutes(3))),
        arguments: released + [Kill(step: "completed", source: .delete), Kill(step: "verified", source: .move)])
    func newcomer(_ kill: Kill) async throws {
        let fixture = try DaemonFixture(source: kill.source, binary: Setting.binary())
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        let name: FilePath = "clip.mp4"
        let first = Clip(number: 1, size: 100_000, relative: name)
        let second = Clip(number: 2, size: 100_000, relative: name)
        try camera.drop(first)
        try await runUntilKilled(fixture, by: kill)
        try camera.drop(second)
        try fixture.startDaemon()
        // Here the receiver and the template determine the names: no content may be missing or occur twice.
        try await expect([first, second], in: [fixture.received], hidden: false, of: fixture)
        // Until the release has taken the first one away under another name, the second has replaced it for good.
        let sources = ["verified", "completed", "release-begun"].contains(kill.step) ? [second] : [first, second]
        switch kill.source {
        case .delete, .keep: try await expect([], in: [fixture.drop, fixture.done], hidden: true, of: fixture)
        // A source may have stayed in place if its target name is taken.
        case .move: try await expect(sources, in: [fixture.drop, fixture.done], hidden: true, of: fixture)
        }
        try await expect([], in: [fixture.staging], hidden: true, of: fixture)
    }

    static let changes: [Kill?] =
        [nil]
        + (["verified", "completed", "release-begun"] + CrashSteps.changed).map { Kill(step: $0, source: .delete) }

    @Test(
        "a file rewritten with the same size and time before its release is uploaded in both versions, each once",
        .timeLimit(.minutes(Patience.minutes(3))), arguments: changes)
    func rewritten(_ kill: Kill?) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let camera = Camera(fixture, dice: Dice(seed: 1))
        // The upload waits until the file has been replaced.
        try await fixture.startReceiver()
        fixture.killReceiver()
        let first = Clip(number: 1, size: 100_000, relative: "clip.mp4")
        let second = Clip(number: 2, size: 100_000, relative: "clip.mp4")
        try camera.drop(first)
        try fixture.startDaemon(environment: kill.map { ["SLUICE_TEST_CRASH": "\($0.step):1"] } ?? [:])
        try await eventually("the copy is staged and waits", every: .milliseconds(50)) {
            try await fixture.runVerb("list", ["--json"])?.contains("\"waiting\"") == true
        }
        let path = fixture.drop.appending("clip.mp4")
        let status = try FileStatus(at: path)
        let file = try Descriptor.open(path, for: .updating)
        try file.write(second.content, named: path)
        try file.setModified(status.modified, named: path)
        try file.close(named: path)
        try await fixture.startReceiver()
        if let kill {
            let ending = try await #require(fixture.daemon).end(within: .seconds(20))
            try #require(ending == .signal(SIGKILL), "\(kill.step) was not reached: \(fixture.lastWords())")
            try fixture.startDaemon()
        }
        try await expect([first, second], in: [fixture.received], hidden: false, of: fixture)
        try await expect([], in: [fixture.drop, fixture.staging], hidden: true, of: fixture)
        try await eventually("both uploads count as completed") {
            try await fixture.status()?.counts == Status.Counts(ongoing: 0, completed: 2, failed: 0, cancelled: 0)
        }
    }

    @Test(
        "a receiver that was killed at a step is consistent after its next start",
        .timeLimit(.minutes(Patience.minutes(3))),
        arguments: CrashSteps.receiver)
    func receiver(_ step: String) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver(environment: ["SLUICE_TEST_CRASH": "\(step):2"])
        for number in 0..<4 {
            try camera.drop(Clip(number: number, size: 100_000, relative: FilePath("clip \(number).mp4")))
        }
        try fixture.startDaemon()
        let ending = try await #require(fixture.receiver).end(within: .seconds(20))
        try #require(ending == .signal(SIGKILL), "\(step) was not reached: \(fixture.lastWords())")
        try await fixture.startReceiver()
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(60))
        try await outcome.check()
    }

    @Test(
        "the partial copy of a killed run is removed at the next start, if its source is gone",
        .timeLimit(.minutes(Patience.minutes(1))))
    func partialCopy() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        try camera.drop(Clip(number: 0, size: 100_000, relative: "clip.mp4"))
        try await runUntilKilled(fixture, by: Kill(step: "copied", source: .delete))
        #expect(try Outcome.files(in: fixture.staging, hidden: true).count == 1)
        try Files.remove(fixture.drop.appending("clip.mp4"))
        try fixture.startDaemon()
        try await eventually("the staging folder is empty", every: .milliseconds(50)) {
            try Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
    }

    @Test(
        "a cancelled upload stays cancelled: its copy is removed, its source stays, and no byte is sent",
        .timeLimit(.minutes(Patience.minutes(1))))
    func cancelled() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let camera = Camera(fixture, dice: Dice(seed: 1))
        // No server is listening yet, so that there is something to cancel.
        try await fixture.startReceiver()
        fixture.killReceiver()
        try camera.drop(Clip(number: 0, size: 100_000, relative: "clip.mp4"))
        try fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": "cancelled"])
        try await eventually("the copy is staged and waits", every: .milliseconds(50)) {
            try await fixture.runVerb("list", ["--json"])?.contains("\"waiting\"") == true
        }
        _ = try await fixture.runVerb("cancel", [fixture.drop.appending("clip.mp4").display])
        #expect(try await fixture.daemon?.end(within: .seconds(20)) == .signal(SIGKILL), "\(fixture.lastWords())")
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the staged copy has been deleted", every: .milliseconds(50)) {
            try await fixture.status()?.counts == Status.Counts(ongoing: 0, completed: 0, failed: 0, cancelled: 1)
                && Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
        #expect(try Outcome.files(in: fixture.drop, hidden: true) == ["clip.mp4"])
        #expect(try Outcome.files(in: fixture.received, hidden: false).isEmpty)
    }

    @Test(
        "a dismissed or failed upload stays so after a kill, and the only copy of its file is kept",
        .timeLimit(.minutes(Patience.minutes(1))), arguments: ["dismissed", "copy-rescued"])
    func dismissed(_ step: String) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try await fixture.startReceiver()
        fixture.killReceiver()
        let clip = Clip(number: 0, size: 100_000, relative: "clip.mp4")
        try camera.drop(clip)
        try fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": step])
        try await eventually("the copy is staged and waits", every: .milliseconds(50)) {
            try await fixture.runVerb("list", ["--json"])?.contains("\"waiting\"") == true
        }
        let path = fixture.drop.appending("clip.mp4")
        try Files.remove(path)
        _ = try await fixture.runVerb("cancel", [path.display])
        if step == "dismissed" {
            try await eventually("the upload is cancelled") { try await fixture.status()?.counts.cancelled == 1 }
            _ = try await fixture.runVerb("remove", [path.display])
        }
        #expect(try await fixture.daemon?.end(within: .seconds(20)) == .signal(SIGKILL), "\(fixture.lastWords())")
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let shown = try await eventually("`show` names the place of the copy", every: .milliseconds(50)) {
            try await fixture.runVerb("show", [path.display]).flatMap { $0.contains("/rescued/") ? $0 : nil }
        }
        let rescued = fixture.staging.appending("rescued")
        let names = try Files.names(in: rescued)
        #expect(names.count == 1 && shown.contains(rescued.appending(names[0]).display), "\(names) \(shown)")
        #expect(try Files.read(rescued.appending(names[0])) == clip.content)
        if step == "dismissed" {
            #expect(
                try await fixture.status()?.counts == Status.Counts(ongoing: 0, completed: 0, failed: 0, cancelled: 0))
            #expect(try await fixture.runVerb("list", ["--list", "history"])?.contains("clip.mp4") == true)
        }
        #expect(try Outcome.files(in: fixture.received, hidden: false).isEmpty)
    }

    /// A source is missing only if an upload of it is completed on disk.
    private func expectRecords(of clips: [Clip], _ fixture: DaemonFixture) throws {
        let sources = Set(try Outcome.files(in: fixture.drop, hidden: true))
        let missing = Set(clips.map(\.relative)).subtracting(sources)
        let early = missing.subtracting(try Ledger.completed(of: fixture.state))
        #expect(early.isEmpty, "their sources are gone before their completion is on disk: \(early)")
    }

    private func runUntilKilled(_ fixture: DaemonFixture, by kill: Kill) async throws {
        try fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": "\(kill.step):\(kill.nth)"])
        let ending = try await #require(fixture.daemon).end(within: .seconds(20))
        try #require(ending == .signal(SIGKILL), "\(kill.step) was not reached: \(fixture.lastWords())")
    }

    /// Waits until `folders` together contain exactly the contents of `clips`, under any names.
    private func expect(_ clips: [Clip], in folders: [FilePath], hidden: Bool, of fixture: DaemonFixture) async throws {
        let wanted = Set(clips.map(\.content))
        let names = folders.map { $0.name.display }.joined(separator: " and ")
        var seen: [FilePath] = []
        do {
            try await eventually(
                "\(names) have the expected \(clips.count) files", within: .seconds(60), every: .milliseconds(50)
            ) {
                seen = try folders.flatMap { folder in
                    try Outcome.files(in: folder, hidden: hidden).map { folder.appending($0) }
                }
                guard seen.count == clips.count else { return false }
                // A file that is moved between inspection and reading is read on the next try.
                return try Set(seen.filter { try FileStatus.ifPresent(at: $0) != nil }.map { try Files.read($0) })
                    == wanted
            }
        } catch let overdue as Overdue {
            Issue.record(overdue, "there are \(seen); \(fixture.lastWords())")
        }
    }
}
