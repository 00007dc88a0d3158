import Core
import Glibc
import Linux
import TestKit
import Testing

/// The harness itself: a crash test depends on its kills.
@Suite("Test helpers")
struct HarnessTests {
    let folder = TemporaryFolder()

    private func shell(_ script: String, environment: [String: String] = [:]) throws -> Child {
        try Child(
            "/bin/sh", ["-c", script], environment: environment, output: folder.path.appending("out"),
            errors: folder.path.appending("err"))
    }

    @Test("the exit of a child distinguishes status and signal")
    func endings() async throws {
        #expect(try await shell("exit 7").end(within: .seconds(10)) == .status(7))
        #expect(try await shell("kill -TERM $$").end(within: .seconds(10)) == .signal(SIGTERM))
        #expect(try shell("exec sleep 60").end(with: SIGKILL) == .signal(SIGKILL))
    }

    @Test(
        "a disk whose power is cut comes back, even if another process had copied all mounts",
        .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value })
    func copiedMounts() async throws {
        let disk = try await LoopDisk(.ext4)
        let device = try FileStatus(at: disk.path).device
        let other = try shell("exec unshare --mount /bin/sh -c 'echo has them; exec sleep 600'")
        _ = try await other.line(after: "has ")
        try await disk.shutDown()
        async let back: Void = disk.remount()
        try await eventually("the disk is unmounted in this namespace") {
            try FileStatus(at: disk.path).device != device
        }
        other.end(with: SIGKILL)
        try await back
        try Descriptor.open(disk.path.appending("file"), for: .creating).close(named: "file")
    }

    @Test("both outputs are kept, and a line is found once it is complete")
    func outputs() async throws {
        let child = try shell(
            "printf 'listening on http://'; echo '127.0.0.1:1/files/'; echo trouble >&2; exec sleep 60")
        #expect(try await child.line(after: "listening on ") == "http://127.0.0.1:1/files/")
        try await eventually("the child has written to stderr") { try child.standardError() == "trouble\n" }
        #expect(child.ended == nil)
    }

    @Test("a child that exits before its line reports the reason")
    func endedEarly() async throws {
        let child = try shell("echo 'no such folder' >&2; exit 66")
        let error = await #expect(throws: Child.Ended.self) { try await child.line(after: "listening") }
        #expect(error?.how == .status(66))
        #expect(error?.errors == "no such folder\n")
    }

    @Test("no signal is inherited blocked or ignored, and the environment is the caller's")
    func clean() async throws {
        let child = try shell("echo $GIVEN; grep -E 'Sig(Blk|Ign)' /proc/self/status", environment: ["GIVEN": "yes"])
        #expect(try await child.end(within: .seconds(10)) == .status(0))
        let lines = try child.standardOutput().split(separator: "\n")
        #expect(lines.first == "yes")
        for line in lines.dropFirst() {
            let mask = try #require(line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) }, "\(line)")
            // Signals 32 and 33 are glibc's own, and its posix_spawn leaves them ignored.
            #expect(mask & 0x7FFF_FFFF == 0, "\(line)")
        }
        #expect(lines.count == 3)
    }

    @Test("a child does not outlive its last reference")
    func noOrphans() throws {
        let pid = try shell("exec sleep 60").pid
        #expect(kill(pid, 0) == -1)
        #expect(errno == ESRCH)
    }

    /// Not a test: the process that the next test kills, in a process of its own.
    @Test("a test whose process is killed", .enabled(if: Setting.orphanage != nil, "another test starts it"))
    func killed() throws {
        let path = try #require(Setting.orphanage)
        let child = try Child(
            "/bin/sleep", ["600"], output: folder.path.appending("out"), errors: folder.path.appending("err"))
        let disk = SmallDisk.isPossible ? try SmallDisk(at: folder.path.appending("disk")) : nil
        try Files.replace(path, with: Array("\(child.pid) \(folder.path.display)\n".utf8))
        kill(getpid(), SIGKILL)
        _ = disk
    }

    @Test(
        "processes, mounts and files of a test do not outlive its killed process"
    )
    func noOrphansOfTheKilled() async throws {
        let note = folder.path.appending("note")
        let runner = try Child(
            Setting.runner(), ["--testing-library", "swift-testing", "--filter", "HarnessTests.killed"],
            environment: ["SLUICE_TEST_ORPHANAGE": note.display], output: folder.path.appending("out"),
            errors: folder.path.appending("err"))
        let ending = try await runner.end(within: .seconds(60))
        let said = try runner.standardOutput()
        try #require(ending == .signal(SIGKILL), "\(said)")
        let words = String(decoding: try Files.read(note, limit: 4096), as: UTF8.self).split(
            whereSeparator: \.isWhitespace)
        let pid = try #require(Int32(words[0]))
        // Another process reaps the zombie.
        try await eventually("process \(pid) is gone") { kill(pid, 0) == -1 && errno == ESRCH }
        let place = FilePath(String(words[1]))
        try await eventually("the folder of the test has been removed") { try FileStatus.ifPresent(at: place) == nil }
        let mounts = String(decoding: try Files.read("/proc/self/mounts", limit: 1 << 20), as: UTF8.self)
        #expect(!mounts.contains(place.display))
    }

    @Test("a wait that times out names its condition")
    func overdue() async {
        let error = await #expect(throws: Overdue.self) {
            try await eventually("pigs fly", within: .milliseconds(20)) { false }
        }
        #expect(error?.description.contains("pigs fly") == true)
    }

    @Test("the same seed gives the same values, another seed others")
    func dice() {
        func rolls(_ seed: UInt64) -> [Int] {
            var dice = Dice(seed: seed)
            return (0..<10).map { _ in Int.random(in: 0..<1000, using: &dice) }
        }
        #expect(rolls(7) == rolls(7))
        #expect(rolls(7) != rolls(8))
    }

    @Test("clips differ in name and, from eight bytes on, in content")
    func clips() {
        var dice = Dice(seed: 3)
        let clips = (0..<200).map { Clip(number: $0, dice: &dice) }
        #expect(Set(clips.map(\.relative)).count == clips.count)
        #expect(clips.allSatisfy { $0.content.count == $0.size })
        let long = clips.filter { $0.size >= 8 }
        #expect(Set(long.map { $0.content.prefix(64) }).count == long.count)
        #expect(clips.contains { $0.relative.text == nil })
        #expect(clips.allSatisfy { $0.relative.name.bytes.count <= 255 })
    }

    @Test("the result of an unfinished test lists missing, unexpected and leftover files")
    func outcome() throws {
        let fixture = try DaemonFixture(source: .move, binary: "/bin/false")
        let camera = Camera(fixture, dice: Dice(seed: 1))
        let right = Clip(number: 0, size: 10, relative: "right.mp4")
        let wrong = Clip(number: 1, size: 10, relative: "wrong.mp4")
        try camera.drop(right)
        let outcome = Outcome(fixture: fixture, clips: [right, wrong])
        for folder in [fixture.received, fixture.done] {
            try fixture.folder.write(
                folder.appending("right.mp4").relative(to: fixture.folder.path) ?? "", right.content)
        }
        try fixture.folder.write("received/wrong.mp4", Array("else".utf8))
        try fixture.folder.write("received/stray", [1])
        try fixture.folder.write("staging/x.part", [1])
        #expect(
            try outcome.problems() == [
                "received: other content in wrong.mp4", "received: unexpected stray",
                "source: unexpected right.mp4", "moved: missing wrong.mp4 (10 bytes)", "still staged: x.part",
            ])
        #expect(try !outcome.looksDone())
    }

    @Test("a database is found by its header and checked for integrity")
    func ledger() throws {
        try folder.write("state/lock", [])
        #expect(try Ledger.integrity(of: folder.path.appending("state")) == [])
        try folder.write("state/queue.db", Array("SQLite format 3\0 but nothing more".utf8))
        #expect(try Ledger.integrity(of: folder.path.appending("state")) != ["ok"])
    }
}
