import Core
import Foundation
import Glibc
import Linux
import TestKit
import Testing

/// Events while many actions happen at once.
@Suite("Events with pause, resume, cancel, retry, lost destinations and kills", .serialized)
struct DeliveryResultTests {
    private struct Listed: Decodable {
        struct Upload: Decodable {
            let id: String
            let state: String
        }
        let uploads: [Upload]
    }

    @Test(
        "each upload is added first and ends once in each generation, and a resuming reader receives each end",
        .timeLimit(.minutes(Patience.minutes(20))))
    func interleavings() async throws {
        let seed = Setting.seed
        let rounds = Setting.isThorough ? 200 : 8
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.uploadTo = ["nas", "archive"]
        // The archive refuses a file if another program's file has its name.
        fixture.archiveKeys = ", taken: fail"
        // Slow enough for a transfer to be in progress when it is to be ended.
        fixture.destinationKeys = ", bandwidth: 3 MB/s"
        var scene = Scene(fixture: fixture, dice: Dice(seed: seed))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let socket = fixture.folder.path.appending("control.sock")
        let (faithful, fickle) = (Follower(socket), Follower(socket, leavingAfter: 50))
        let following = [faithful, fickle].map { follower in Task { await follower.follow() } }
        defer { for task in following { task.cancel() } }
        do {
            for round in 1...rounds {
                try await scene.play(round, faithful)
                let states = try await scene.settle()
                // Everything that is committed by now has a number below this one.
                let seq = try await eventually("the metrics contain the number of the last event") {
                    try await fixture.number()
                }
                for follower in [faithful, fickle] {
                    try await eventually("the follower has read all events", within: .seconds(30)) {
                        await follower.newest >= seq
                    }
                    var problems = await follower.problems
                    problems += EventChecks.problems(await follower.events, states: states)
                    let told = Set(await follower.events.compactMap(\.id))
                    problems += states.keys.filter { !told.contains($0) }.map { "\($0) was never told of" }
                    if !problems.isEmpty {
                        throw Outcome.Failed(problems: ["round \(round)"] + problems, lastWords: fixture.lastWords())
                    }
                }
            }
            #expect(await faithful.events == fickle.events)
            #expect(await fickle.connections > faithful.connections)
            let ends = await faithful.events.reduce(into: [:]) { $0[$1.type, default: 0] += 1 }
            print("events of \(rounds) interleavings: \(ends.sorted { $0.key < $1.key })")
            #expect((ends["completed"] ?? 0) > 0 && (ends["failed"] ?? 0) > 0 && (ends["cancelled"] ?? 0) > 0)
        } catch {
            Issue.record(error, "seed \(seed); run again with SLUICE_SEED=\(seed)")
        }
    }

    /// Random actions on the uploads of one daemon.
    private struct Scene {
        let fixture: DaemonFixture
        var dice: Dice
        private var dropped = 0
        private var isArchiveAway = false

        init(fixture: DaemonFixture, dice: Dice) {
            self.fixture = fixture
            self.dice = dice
        }

        private var away: FilePath { fixture.folder.path.appending("away") }

        /// Drops some files, and performs some of all possible actions, in any order.
        mutating func play(_ round: Int, _ follower: Follower) async throws {
            for _ in 0..<3 { try drop() }
            let seen = await follower.events.count
            try await eventually("the follower has received new events") { await follower.events.count > seen }
            for _ in 0..<Int.random(in: 10...16, using: &dice) {
                switch Int.random(in: 0..<12, using: &dice) {
                case 0, 1: try drop()
                case 3: _ = try await fixture.runVerb("pause", try await some(follower))
                case 4: _ = try await fixture.runVerb("resume", try await some(follower))
                case 2, 5, 6: try await ask("cancel", follower)
                case 7: try await ask("retry", follower)
                case 8:
                    if fixture.receiver == nil || fixture.receiver?.ended != nil {
                        try await fixture.startReceiver()
                    } else {
                        fixture.killReceiver()
                    }
                case 9: try moveArchive(away: !isArchiveAway)
                case 10:
                    fixture.killDaemon()
                    try fixture.startDaemon()
                default: try await Task.sleep(for: .milliseconds(Int.random(in: 0...400, using: &dice)))
                }
            }
        }

        /// One upload, or some, or all.
        private mutating func some(_ follower: Follower) async throws -> [String] {
            switch Int.random(in: 0..<4, using: &dice) {
            case 0: return []
            case 1: return ["--destination", Bool.random(using: &dice) ? "nas" : "archive"]
            default: return try await one(follower).map { [$0] } ?? []
            }
        }

        private mutating func one(_ follower: Follower) async throws -> String? {
            let events = await follower.events
            let ended = Set(events.filter { EventChecks.ends.contains($0.type) }.compactMap(\.id))
            let added = events.filter { $0.type == "added" }.compactMap(\.id)
            // Uploads in progress, as far as the events show; now and then one that has ended.
            let open = added.filter { !ended.contains($0) }
            return open.isEmpty || Int.random(in: 0..<4, using: &dice) == 0
                ? added.suffix(5).randomElement(using: &dice) : open.randomElement(using: &dice)
        }

        private mutating func ask(_ verb: String, _ follower: Follower) async throws {
            guard let id = try await one(follower) else { return }
            _ = try await fixture.runVerb(verb, [id])
        }

        private mutating func drop() throws {
            let number = dropped
            dropped += 1
            let name = FilePath("\(number).mp4")
            // Every fourth name belongs to another program at the archive.
            if number % 4 == 3, !isArchiveAway {
                try Files.replace(fixture.archive.appending(name), with: Array("somebody else's".utf8))
            }
            let sizes = [5_000, 200_000, 3_000_000]
            let clip = Clip(number: number, size: sizes.randomElement(using: &dice) ?? 1, relative: name)
            let beside = fixture.beside.appending(name)
            try Files.replace(beside, with: clip.content)
            guard rename(beside.display, fixture.drop.appending(name).display) == 0 else {
                throw SystemError(call: "rename", subject: name.display, code: errno)
            }
        }

        private mutating func moveArchive(away isAway: Bool) throws {
            guard isAway != isArchiveAway else { return }
            let (from, to) = isAway ? (fixture.archive, away) : (away, fixture.archive)
            guard rename(from.display, to.display) == 0 else {
                throw SystemError(call: "rename", subject: from.display, code: errno)
            }
            isArchiveAway = isAway
        }

        /// All servers are up again and there is no hold: every upload reaches its end.
        ///
        /// - Returns: The state of each upload.
        mutating func settle() async throws -> [String: String] {
            try moveArchive(away: false)
            if fixture.receiver?.ended != nil { try await fixture.startReceiver() }
            let fixture = fixture
            try await eventually("the daemon has resumed everything", every: .milliseconds(50)) {
                try fixture.daemon?.requireRunning()
                guard try await fixture.runVerb("resume") != nil else { return false }
                for name in ["nas", "archive"] { _ = try await fixture.runVerb("resume", ["--destination", name]) }
                return true
            }
            do {
                return try await eventually("every upload has ended", within: .seconds(60), every: .milliseconds(100)) {
                    try fixture.daemon?.requireRunning()
                    guard let listed = try await Self.listed(fixture, []) else { return nil }
                    let waiting = listed.filter { !EventChecks.ends.contains($0.state) && $0.state != "expired" }
                    if !waiting.isEmpty {
                        _ = try await fixture.runVerb("resume", waiting.map(\.id))
                        return nil
                    }
                    guard try await fixture.status()?.counts.ongoing == 0 else { return nil }
                    return Dictionary(uniqueKeysWithValues: listed.map { ($0.id, $0.state) })
                }
            } catch let overdue as Overdue {
                let shown = try await fixture.runVerb("status") ?? "no answer"
                throw Outcome.Failed(problems: ["\(overdue)", shown], lastWords: fixture.lastWords())
            }
        }

        private static func listed(_ fixture: DaemonFixture, _ words: [String]) async throws -> [Listed.Upload]? {
            guard let text = try await fixture.runVerb("list", ["--json", "--limit", "1000"] + words) else {
                return nil
            }
            return try JSONDecoder().decode(Listed.self, from: Data(text.utf8)).uploads
        }
    }
}

extension DaemonFixture {
    /// The number of the newest event.
    fileprivate func number() async throws -> Int64? {
        struct Numbered: Decodable { let seq: Int64 }
        guard let text = try await runVerb("status", ["--json"]) else { return nil }
        return try JSONDecoder().decode(Numbered.self, from: Data(text.utf8)).seq
    }
}
