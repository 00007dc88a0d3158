import Core
import Glibc
import Linux
import TestKit
import Testing

/// The daemon with a folder as its destination: beside a receiver, killed after each step, absent, and full.
@Suite("Folder as destination", .serialized, .timeLimit(.minutes(Patience.minutes(3))))
struct ArchiveTests {
    private func fixture(_ uploadTo: [String]) throws -> DaemonFixture {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.uploadTo = uploadTo
        return fixture
    }

    /// Waits until `folder` contains exactly `clips`, including hidden names, the daemon is done, and nothing is
    /// staged.
    private func expect(_ clips: [Clip], in folder: FilePath, of fixture: DaemonFixture) async throws {
        try await waiting(for: "\(clips.count) files in \(folder.name)", fixture) {
            guard let status = try await fixture.status() else { return false }
            return !status.starting && status.counts.ongoing == 0
        }
        try check(clips, in: folder)
        #expect(try await fixture.status()?.counts.completed == clips.count)
        #expect(try Outcome.files(in: fixture.staging, hidden: true) == [])
        #expect(try Outcome.files(in: fixture.drop, hidden: true) == [])
    }

    private func check(_ clips: [Clip], in folder: FilePath) throws {
        let names = try Outcome.files(in: folder, hidden: true)
        #expect(Set(names) == Set(clips.map(\.relative)))
        for clip in clips { #expect(try Files.read(folder.appending(clip.relative), limit: 1 << 30) == clip.content) }
    }

    private func waiting(
        for what: String, _ fixture: DaemonFixture, _ condition: () async throws -> Bool
    ) async throws {
        do {
            try await eventually(what, within: .seconds(90), every: .milliseconds(50)) {
                try fixture.daemon?.requireRunning()
                return try await condition()
            }
        } catch let overdue as Overdue {
            Issue.record(overdue, "\(fixture.lastWords())")
            throw overdue
        }
    }

    static let steps = [
        "claimed:1", "opening:1", "opened:1", "opened:2", "part-synced:1", "part-verified:1", "part-verified:3",
        "part-renamed:1", "part-renamed:2", "verified:1", "completed:1", "release-done:1",
    ]

    @Test(
        "killed at a step, the next start continues: no file is lost or duplicated",
        arguments: Tier.sample(steps))
    func killed(behind step: String) async throws {
        let fixture = try fixture(["archive"])
        let camera = Camera(fixture, dice: Dice(seed: 1))
        for number in 0..<4 {
            try Files.makeFolders(fixture.drop.appending(FilePath("day \(number % 2)")))
            try camera.drop(Clip(number: number, size: 100_000, relative: FilePath("day \(number % 2)/\(number).mp4")))
        }
        try fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": step])
        let ending = try await #require(fixture.daemon).end(within: .seconds(20))
        try #require(ending == .signal(SIGKILL), "\(step) was not reached: \(fixture.lastWords())")
        try fixture.startDaemon()
        try await expect(camera.clips, in: fixture.archive, of: fixture)
    }

    @Test("killed at a durable point within a large file, the upload continues from there")
    func killedInTheMiddle() async throws {
        let fixture = try fixture(["archive"])
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try camera.drop(Clip(number: 1, size: 65 << 20, relative: "large.mp4"))
        try fixture.startDaemon(environment: ["SLUICE_TEST_CRASH": "accepted:1"])
        let ending = try await #require(fixture.daemon).end(within: .seconds(60))
        try #require(ending == .signal(SIGKILL), "the point was not reached: \(fixture.lastWords())")
        try fixture.startDaemon()
        try await expect(camera.clips, in: fixture.archive, of: fixture)
        #expect(fixture.lastWords().contains("sent=\(1 << 20)"), "only the missing part is copied")
    }

    @Test("two destinations share one staged copy, and the source is released when both have the file")
    func both() async throws {
        let fixture = try fixture(["nas", "archive"])
        let camera = Camera(fixture, dice: Dice(seed: 1))
        // Absent at first: the archive is done long before.
        try await fixture.startReceiver()
        fixture.killReceiver()
        try fixture.startDaemon()
        for number in 0..<3 {
            try camera.drop(Clip(number: number, size: 200_000, relative: FilePath("clip \(number).mp4")))
        }
        try await waiting(for: "the archive has them", fixture) {
            try await fixture.status()?.counts.completed == camera.clips.count
        }
        try check(camera.clips, in: fixture.archive)
        #expect(try Outcome.files(in: fixture.staging, hidden: true).count == camera.clips.count)
        #expect(try Outcome.files(in: fixture.drop, hidden: true).count == camera.clips.count)
        try await fixture.startReceiver()
        try await waiting(for: "both have them", fixture) { try await fixture.status()?.counts.ongoing == 0 }
        try await waiting(for: "sources and copies are gone", fixture) {
            try Outcome.files(in: fixture.drop, hidden: true).isEmpty
                && Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
        try check(camera.clips, in: fixture.archive)
        #expect(try await fixture.status()?.counts.completed == 2 * camera.clips.count)
    }

    @Test("an absent folder is not created; its uploads wait and continue when it is back")
    func away() async throws {
        let fixture = try fixture(["archive"])
        let camera = Camera(fixture, dice: Dice(seed: 1))
        let aside = fixture.folder.path.appending("archive-away")
        try Files.rename(fixture.archive, to: aside)
        try fixture.startDaemon()
        for number in 0..<3 {
            try camera.drop(Clip(number: number, size: 200_000, relative: FilePath("clip \(number).mp4")))
        }
        try await waiting(for: "the destination is held", fixture) {
            fixture.lastWords().contains("destination held destination=archive hold=destination")
        }
        #expect(try FileStatus.ifPresent(at: fixture.archive) == nil)
        #expect(try Outcome.files(in: aside, hidden: true) == [])
        try Files.rename(aside, to: fixture.archive)
        try await expect(camera.clips, in: fixture.archive, of: fixture)
    }

    @Test(
        "an unmounted folder receives no file, and a mounted one all files",
        .enabled(if: SmallDisk.isPossible, "mounting needs root"))
    func mounted() async throws {
        let fixture = try fixture(["archive"])
        fixture.archiveMount = fixture.archive
        let camera = Camera(fixture, dice: Dice(seed: 1))
        try fixture.startDaemon()
        try camera.drop(Clip(number: 1, size: 200_000, relative: "clip.mp4"))
        try await waiting(for: "the destination is held", fixture) {
            fixture.lastWords().contains("nothing is mounted at \(fixture.archive)")
                && fixture.lastWords().contains("mount the file system that belongs there")
        }
        #expect(try Outcome.files(in: fixture.archive, hidden: true) == [])
        let disk = try SmallDisk(at: fixture.archive)
        try await expect(camera.clips, in: disk.path, of: fixture)
    }

    @Test(
        "files that do not fit on the disk wait, smaller files continue, and all continue when space is free",
        .enabled(if: SmallDisk.isPossible, "mounting needs root"))
    func full() async throws {
        let fixture = try fixture(["archive"])
        let camera = Camera(fixture, dice: Dice(seed: 1))
        let disk = try SmallDisk(at: fixture.archive)
        let filler = disk.path.appending("filler")
        try Files.replace(filler, with: [UInt8](repeating: 1, count: 3 << 20))
        try fixture.startDaemon()
        try camera.drop(Clip(number: 1, size: 2 << 20, relative: "large.mp4"))
        try camera.drop(Clip(number: 2, size: 300_000, relative: "small.mp4"))
        try await waiting(for: "the small one is there", fixture) {
            try Set(Outcome.files(in: disk.path, hidden: true)) == ["filler", "small.mp4"]
        }
        for (verb, more) in [("status", []), ("list", []), ("why", ["large.mp4"])] {
            try await waiting(for: "\(verb) says what is free, where, and what is needed", fixture) {
                guard let text = try await fixture.runVerb(verb, ["--json"] + more) else { return false }
                return ["\"quota\"", " free at archive", "large.mp4 needs 2.1 MB", "\"until\""].allSatisfy {
                    text.contains($0)
                }
            }
        }
        let words = try #require(fixture.daemon).standardError()
        #expect(words.split(separator: "waits for free space at its destination").count == 2, "logged once: \(words)")
        #expect(
            try Set(Outcome.files(in: disk.path, hidden: true)) == ["filler", "small.mp4"],
            "no copy of the large file was begun")
        #expect(try Outcome.files(in: fixture.drop, hidden: true) == ["large.mp4"])
        try Files.remove(filler)
        try await expect(camera.clips, in: disk.path, of: fixture)
        try await waiting(for: "status tells of the room, and of no hold", fixture) {
            guard let text = try await fixture.runVerb("status", ["--json"]) else { return false }
            return text.contains("\"space\"") && text.contains("\"limit\":4194304") && !text.contains("\"quota\"")
        }
    }

    @Test(
        "a disk that reports space and refuses files holds the destination, which continues when it accepts files",
        .enabled(if: SmallDisk.isPossible, "mounting needs root"))
    func refuses() async throws {
        let fixture = try fixture(["archive"])
        let camera = Camera(fixture, dice: Dice(seed: 1))
        // The root, and the filler file: bytes are free, but no inode is.
        let disk = try SmallDisk(at: fixture.archive, files: 2)
        let wedge = disk.path.appending("wedge")
        try Files.replace(wedge, with: [1])
        try fixture.startDaemon()
        for number in 1...3 { try camera.drop(Clip(number: number, size: 5_000, relative: FilePath("\(number).mp4"))) }
        for verb in ["status", "list"] {
            try await waiting(for: "\(verb) says what is full, where, and what to do", fixture) {
                guard let text = try await fixture.runVerb(verb, ["--json"]) else { return false }
                return ["\"quota\"", "\(disk.path)", "No space left", "free space", "\"until\""].allSatisfy {
                    text.contains($0)
                }
            }
        }
        let words = try #require(fixture.daemon).standardError()
        #expect(words.split(separator: "destination held").count == 2, "logged once for all files: \(words)")
        #expect(
            try Outcome.files(in: disk.path, hidden: true) == ["wedge"], "a file that cannot fit leaves nothing behind")
        try await blocking { try SmallDisk.resize(disk.path, files: 40) }
        try Files.remove(wedge)
        try await expect(camera.clips, in: disk.path, of: fixture)
    }
}
