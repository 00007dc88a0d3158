import Core
import Digests
import Glibc
import Linux
import TestKit
import Testing

/// Several programs change files in every usual way, while disks come and go, events get lost and the daemon is killed.
@Suite("Random changes in a folder", .serialized, .timeLimit(.minutes(Patience.minutes(10))))
struct ModelTests {
    @Test("every finished file is staged once, and no unfinished one")
    func model() async throws {
        let seed = Setting.seed
        var dice = Dice(seed: seed)
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        // No server is listening there: copies stay where they can be counted.
        fixture.destination = "http://127.0.0.1:9/"
        let finished = SettledContents()
        do {
            var writers: [ModelWriter] = []
            for name in ["one", "two", "three"] {
                writers.append(
                    try ModelWriter(
                        name, finished, drop: fixture.drop, beside: fixture.beside, dice: Dice(seed: dice.next())))
            }
            if await LoopDisk.isPossible.value {
                let place = fixture.drop.appending("disk")
                let disk = try await LoopDisk(.ext4, at: place)
                let out = place.appending(".out")
                try Files.makeFolders(out)
                writers.append(
                    try ModelWriter(
                        "disk", finished, drop: fixture.drop, beside: out, dice: Dice(seed: dice.next()), disk: disk))
            }
            try fixture.startDaemon()
            for phase in 1...(Setting.isThorough ? 40 : 3) {
                try await work(writers, for: .seconds(Setting.isThorough ? 6 : 3), fixture, &dice)
                try await check(writers, finished, fixture, phase)
            }
            #expect(try await fixture.stopDaemon() == .status(0))
            #expect(try Ledger.integrity(of: fixture.state) == ["ok"])
        } catch {
            Issue.record(error, "seed \(seed); run again with SLUICE_SEED=\(seed)")
        }
    }

    private func work(
        _ writers: [ModelWriter], for time: Duration, _ fixture: DaemonFixture, _ dice: inout Dice
    ) async throws {
        let end = ContinuousClock.now.advanced(by: time)
        // Begun here, since the fixture belongs to one task.
        let work = writers.map { writer in Task { try await writer.work(until: end) } }
        do { try await weather(until: end, fixture, &dice) } catch {
            for one in work { one.cancel() }
            throw error
        }
        for one in work { try await one.value }
    }

    /// Disturbances of the daemon during the work.
    private func weather(until end: ContinuousClock.Instant, _ fixture: DaemonFixture, _ dice: inout Dice) async throws
    {
        while ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(Int.random(in: 200...2_000, using: &dice)))
            switch Int.random(in: 0..<4, using: &dice) {
            case 0:
                fixture.killDaemon()
                try fixture.startDaemon()
            case 1: try await loseEvents(fixture)
            default: break
            }
        }
    }

    /// Causes more events than the kernel keeps for a stopped daemon.
    private func loseEvents(_ fixture: DaemonFixture) async throws {
        let text = String(decoding: try Files.read("/proc/sys/fs/inotify/max_queued_events"), as: UTF8.self)
        guard let queue = Int(text.dropLast()), queue <= 65_536, let daemon = fixture.daemon else { return }
        // A daemon that is not ready yet has no events to lose.
        guard let status = try await fixture.status(), status.folders.allSatisfy({ $0.state == "watching" }) else {
            return
        }
        defer { daemon.send(SIGCONT) }
        try await daemon.stop()
        // Alternating: the kernel merges equal events that follow each other.
        let paths = [".flood-1", ".flood-2"].map { fixture.drop.appending(FilePath($0)) }
        for number in 0..<queue + 1_000 {
            try Descriptor.open(paths[number % 2], for: .updating).close(named: paths[number % 2])
        }
        daemon.send(SIGCONT)
        do {
            try await eventually("the daemon has noticed the loss of events") {
                try await (fixture.status()?.overflows ?? 0) > status.overflows
            }
        } catch let overdue as Overdue {
            let now = try await fixture.runVerb("status") ?? "no answer"
            throw Outcome.Failed(
                problems: ["\(overdue); \(status.overflows) before", now], lastWords: fixture.lastWords())
        }
    }

    private func check(
        _ writers: [ModelWriter], _ finished: SettledContents, _ fixture: DaemonFixture, _ phase: Int
    ) async throws {
        var expected: [(path: FilePath, digest: String)] = []
        for writer in writers { expected += try await writer.expected() }
        var missing: [(path: FilePath, digest: String)] = expected
        var staged: [Ledger.Asset] = []
        do {
            try await eventually("all finished files are staged", within: .seconds(60), every: .milliseconds(100)) {
                try fixture.daemon?.requireRunning()
                staged = try Ledger.assets(of: fixture.state).filter { $0.digest != nil }
                let there = Set(staged.map { "\($0.digest ?? "") \(hexadecimal($0.relative.bytes))" })
                missing.removeAll { there.contains("\($0.digest) \(hexadecimal($0.path.bytes))") }
                return missing.isEmpty
            }
        } catch let overdue as Overdue {
            var problems = [
                "phase \(phase): \(overdue); \(missing.count) are missing of \(expected.count)",
                try await fixture.runVerb("status") ?? "no answer",
            ]
            for (path, _) in missing.prefix(5) {
                problems.append("not staged: \(path)")
                for writer in writers where writer.name == path.components.first?.display {
                    problems += await writer.history(of: path).map { "    \($0)" }
                }
                problems += staged.filter { $0.relative == path }.map { "    asset \($0.id), \($0.size) bytes" }
                let said = try fixture.daemon?.standardError().split(separator: "\n") ?? []
                problems += said.filter { $0.contains(path.display) && !$0.contains(" uploading ") }.suffix(10).map {
                    "    \($0)"
                }
            }
            throw Outcome.Failed(problems: problems, lastWords: "")
        }
        var problems = staged.filter { !finished.has($0.digest ?? "") }.map {
            "\($0.relative) (asset \($0.id), \($0.size) bytes) was never a finished file"
        }
        var last: [FilePath: Ledger.Asset] = [:]
        for asset in staged {
            if let before = last.updateValue(asset, forKey: asset.relative), before.version == asset.version {
                problems.append("\(asset.relative) was staged twice, as \(before.id) and \(asset.id)")
            }
        }
        for asset in staged where asset.isStaged {
            let path = fixture.staging.appending(FilePath("\(asset.id)"))
            // A copy that was given up meanwhile is gone.
            guard try FileStatus.ifPresent(at: path) != nil else { continue }
            if hexadecimal(Hasher.digest(.sha256, of: try Files.read(path))) != asset.digest {
                problems.append("the copy \(asset.id) is not what was digested")
            }
        }
        if !problems.isEmpty {
            throw Outcome.Failed(problems: problems.map { "phase \(phase): \($0)" }, lastWords: fixture.lastWords())
        }
    }
}
