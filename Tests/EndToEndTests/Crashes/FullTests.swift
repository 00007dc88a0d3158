import Core
import Linux
import TestKit
import Testing

/// Disks that are full, out of inodes, or read-only, and recover. In parallel, since they mostly wait.
@Suite(
    "Full disks", .timeLimit(.minutes(Patience.minutes(3))),
    .enabled(if: SmallDisk.isPossible, "small file systems need root: sudo make test"))
struct FullTests {
    private let dice = Dice(seed: 1)

    /// Drops clips that each fit on all disks of these tests.
    private func drop(_ count: Int, size: Int = 60_000, _ camera: Camera) throws {
        let first = camera.clips.count
        for number in first..<first + count {
            try camera.drop(Clip(number: number, size: size + number, relative: FilePath("clip \(number).mp4")))
        }
    }

    /// Waits until `status` contains all of `words`, and returns its output.
    @discardableResult
    private func says(_ words: [String], _ fixture: DaemonFixture, _ verb: String = "status") async throws -> String {
        try await eventually("the output of \(verb) contains \(words)", within: .seconds(60), every: .milliseconds(100))
        {
            guard let text = try await fixture.runVerb(verb, ["--json"]) else { return nil }
            return words.allSatisfy { text.contains($0) } ? text : nil
        }
    }

    private func finish(_ fixture: DaemonFixture, _ camera: Camera) async throws {
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait()
        try await outcome.check()
    }

    @Test("a file that is too large for the staging file system waits alone with the reason; smaller ones continue")
    func tooLarge() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        // In blocks of 512 bytes, as LimitFSIZE= would set it; the state needs some as well.
        try fixture.startDaemon(inMounts: "ulimit -f 12000")
        let large = Clip(number: 0, size: 30_000_000, relative: "large.mp4")
        let camera = Camera(fixture, dice: dice)
        try camera.drop(large)
        try await says(["cannot hold a file of", "File too large"], fixture, "list")
        let others = Camera(fixture, dice: dice)
        for number in 1..<10 {
            try others.drop(Clip(number: number, size: 60_000, relative: FilePath("clip \(number).mp4")))
        }
        try await eventually("the small files have been received", within: .seconds(40), every: .milliseconds(100)) {
            try Outcome.files(in: fixture.received, hidden: false).count == 9
        }
        #expect(try await fixture.runVerb("status", ["--json"])?.contains("staging folder does not work") == false)
        #expect(try FileStatus.ifPresent(at: fixture.drop.appending("large.mp4"))?.size == 30_000_000)
        // Without the limit the file is uploaded as well.
        #expect(try await fixture.stopDaemon() == .status(0))
        try fixture.startDaemon()
        try await eventually("the large file has been received", within: .seconds(40), every: .milliseconds(100)) {
            try FileStatus.ifPresent(at: fixture.received.appending("large.mp4"))?.size == 30_000_000
        }
    }

    @Test(
        "a file size limit that stops the state is named at start and by the doctor",
        .enabled(if: !Setting.isInstrumented, "the thread sanitizer itself maps a file that the limit makes too short"))
    func limited() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.writeConfiguration()
        for (verb, ending) in [("run", Child.Ending.status(1)), ("doctor", .status(0))] {
            let child = try Child(
                "/bin/sh",
                [
                    "-c", "ulimit -f 40; exec \"$@\"", "sh", fixture.binary.display, verb, "--config",
                    fixture.config.display,
                ], output: fixture.folder.path.appending("said"), errors: fixture.folder.path.appending("errors"))
            #expect(try await child.end(within: .seconds(20)) == ending, "\(verb)")
            let said = try child.standardOutput() + child.standardError()
            #expect(said.contains("LimitFSIZE=") && said.contains("20.5 kB"), "\(verb): \(said)")
        }
    }

    /// 3 MB is less than the log of the database uses where there is space.
    @Test("full state disk: intake stops with one log line, and continues when space is free", arguments: [3, 24])
    func state(megabytes: Int) async throws {
        let disk = try SmallDisk(size: megabytes << 20)
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["state": disk.path])
        let camera = Camera(fixture, dice: dice)
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try drop(5, camera)
        try await finish(fixture, camera)
        let filler = Filler(in: disk.path)
        for _ in 0..<(megabytes == 3 ? 2 : 1) {
            try filler.fill()
            // More than the database can store in its own file and log.
            try drop(150, size: 10, camera)
            // Space that was freed by a change that was undone is used again too.
            try await eventually(
                "the daemon reports that the state cannot be written", within: .seconds(60), every: .milliseconds(100)
            ) {
                try filler.fill()
                return try await fixture.runVerb("status", ["--json"])?.contains("cannot be written") == true
            }
            let text = try await says(
                ["\(fixture.state) cannot be written", "bytes free", "needed"], fixture)
            #expect(text.contains("\"counts\""))
            // A small commit may still find space at this moment, and clears the hold for a moment.
            try await eventually(
                "each waiting upload names the full disk", within: .seconds(60), every: .milliseconds(100)
            ) {
                try filler.fill()
                let waiting = try await fixture.runVerb("list", ["--list", "ongoing", "--json"])
                return waiting?.contains("\"uploads\":[]") == true || waiting?.contains("\"disk\"") == true
            }
            #expect(try Outcome.files(in: fixture.drop, hidden: true).count > 0)
            #expect(try Outcome.files(in: fixture.received, hidden: false).count < camera.clips.count)
            try filler.remove()
            try await finish(fixture, camera)
        }
        let complaints = try #require(fixture.daemon).standardError().split(separator: "\n").filter {
            $0.contains("error cannot write the state")
        }
        #expect(complaints.count < 8, "\(complaints)")
        #expect(try await fixture.stopDaemon() == .status(0))
        #expect(try Ledger.integrity(of: fixture.state) == ["ok"])
    }

    @Test(
        "full state disk at start: the daemon waits with a message and starts when space is free",
        arguments: [true, false])
    func stateAtStart(isFirst: Bool) async throws {
        let disk = try SmallDisk(size: 4 << 20)
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["state": disk.path])
        let camera = Camera(fixture, dice: dice)
        try await fixture.startReceiver()
        if !isFirst {
            try fixture.startDaemon()
            try drop(3, camera)
            try await finish(fixture, camera)
            #expect(try await fixture.stopDaemon() == .status(0))
            // Also removes a write-ahead log: a start would find space in that.
            #expect(try Ledger.integrity(of: fixture.state) == ["ok"])
            #expect(try Files.names(in: fixture.state).sorted() == ["lock", "sluice.db"])
        }
        let filler = Filler(in: disk.path)
        try filler.fill()
        // A run that ends by itself.
        if !isFirst {
            let once = try Child(
                fixture.binary, ["run", "--once", "--config", fixture.config.display],
                output: fixture.folder.path.appending("once.out"), errors: fixture.folder.path.appending("once.err"))
            let ending = try await once.end(within: .seconds(40))
            let words = try once.standardError()
            #expect(ending == .status(75) && words.contains("\(fixture.state) cannot be written"), "\(words)")
        }
        try fixture.startDaemon()
        try await waits(fixture, times: 1)
        #expect(try await fixture.stopDaemon() == .status(0))
        try fixture.startDaemon()
        try await waits(fixture, times: 2)
        try drop(5, camera)
        try filler.remove()
        try await finish(fixture, camera)
        let complaints = try #require(fixture.daemon).standardError().split(separator: "\n")
        #expect(
            complaints.filter { $0.contains("not enough disk space to start") }.count == 2,
            "one line for each start: \(complaints)")
        #expect(complaints.contains { $0.contains("there is enough disk space") }, "\(complaints)")
        #expect(try await fixture.stopDaemon() == .status(0))
        #expect(try Ledger.integrity(of: fixture.state) == ["ok"])
    }

    /// In the log, and in the answers.
    ///
    /// - Parameter times: The number of starts that the log reports.
    private func waits(_ fixture: DaemonFixture, times: Int) async throws {
        try await eventually(
            "the log reports that the start waits for disk space", within: .seconds(30), every: .milliseconds(50)
        ) {
            let lines = try fixture.daemon?.standardError().split(separator: "\n") ?? []
            return lines.filter { $0.contains("not enough disk space to start") }.count == times
        }
        // The log comes first.
        let said = try await eventually(
            "the waiting daemon refuses `status`", within: .seconds(30), every: .milliseconds(50)
        ) {
            let asking = try Child(
                fixture.binary, ["status", "--config", fixture.config.display],
                output: fixture.folder.path.appending("asked.out"), errors: fixture.folder.path.appending("asked.err"))
            let ending = try await asking.end(within: .seconds(20))
            return ending == .status(75) ? try asking.standardError() : nil
        }
        #expect(said.contains("waits for disk space") && said.contains("bytes free"), "\(said)")
    }

    @Test("full state disk during uploads: they stop, and continue from their checkpoints")
    func stateWhileSending() async throws {
        let disk = try SmallDisk(size: 3 << 20)
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["state": disk.path])
        // The end of each chunk is recorded, so a record meets the full disk.
        fixture.destinationKeys = ", chunk_size: 256 kB"
        let camera = Camera(fixture, dice: dice)
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try drop(3, size: 24 << 20, camera)
        try await eventually("the receiver has bytes of a large file", within: .seconds(30)) {
            try Outcome.files(in: fixture.received, hidden: true).contains {
                try FileStatus.ifPresent(at: fixture.received.appending($0)).map { $0.size > 1 << 20 } ?? false
            }
        }
        let filler = Filler(in: disk.path)
        try filler.fill()
        // Files that fit into the log as it is continue; the rest waits for space.
        try drop(100, size: 10, camera)
        try await eventually(
            "the daemon reports that the state cannot be written", within: .seconds(60), every: .milliseconds(50)
        ) {
            try filler.fill()
            return try await fixture.runVerb("status", ["--json"])?.contains("cannot be written") == true
        }
        try filler.remove()
        try await finish(fixture, camera)
    }

    @Test("full staging disk: files wait with the reason, and continue when space is free")
    func staging() async throws {
        let disk = try SmallDisk(size: 4 << 20)
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["staging": disk.path])
        fixture.stagingKeys = ", keep_free: 0 B"
        let filler = Filler(in: disk.path)
        try filler.fill()
        let camera = Camera(fixture, dice: dice)
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try drop(10, camera)
        let words = ["\"disk\"", "\(fixture.staging)", " free, "]
        try await says(words, fixture)
        try await says(words, fixture, "list")
        #expect(try Outcome.files(in: fixture.drop, hidden: true).count == 10)
        try filler.remove()
        try await finish(fixture, camera)
    }

    @Test("staging without inodes for a second file: files are staged one after another")
    func names() async throws {
        // Inodes for the root, the folder and one copy.
        let disk = try SmallDisk(size: 4 << 20, files: 3)
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["staging": disk.path])
        fixture.stagingKeys = ", keep_free: 0 B"
        let camera = Camera(fixture, dice: dice)
        try await fixture.startReceiver()
        let wedge = try Descriptor.open(disk.path.appending("wedge"), for: .creating)
        try fixture.startDaemon()
        try drop(2, camera)
        try await says(["\"disk\"", "\(fixture.staging)", "0 more files"], fixture)
        try Files.remove(disk.path.appending("wedge"))
        try wedge.close(named: "wedge")
        try await finish(fixture, camera)
    }

    @Test(
        "read-only staging: files wait with the reason, and continue when it is writable",
        .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value })
    func readOnly() async throws {
        let disk = try await LoopDisk(.ext4)
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["staging": disk.path])
        fixture.stagingKeys = ", keep_free: 0 B"
        let camera = Camera(fixture, dice: dice)
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try drop(2, camera)
        try await finish(fixture, camera)
        try await disk.setReadOnly(true)
        try drop(3, camera)
        try await says(["\"disk\"", "\(fixture.staging)", "Read-only"], fixture)
        try await disk.setReadOnly(false)
        try await finish(fixture, camera)
    }

    @Test("full receiver: uploads wait and show free and needed space, and continue when space is free")
    func receiver() async throws {
        let disk = try SmallDisk(size: 16 << 20)
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["received": disk.path])
        let filler = Filler(in: disk.path)
        let camera = Camera(fixture, dice: dice)
        try await fixture.startReceiver()
        try filler.fill()
        try fixture.startDaemon()
        try drop(5, size: 400_000, camera)
        for verb in ["status", "list"] {
            try await says(["\"quota\"", "0 B free at nas", " needs 400 kB", "\"until\""], fixture, verb)
        }
        try await says(["\"space\"", "\"asked_at\"", "\"free\":0"], fixture)
        try await says(["\"space\"", "\"free\":0"], fixture, "check")
        #expect(try Outcome.files(in: fixture.drop, hidden: true).count == 5)
        try filler.remove()
        try await finish(fixture, camera)
        // Now some of them fit.
        try filler.fill(atMost: 12 << 20)
        try drop(5, size: 1_000_000, camera)
        // By the reported space, or because the receiver has refused one that it had no space for any more.
        try await says(["\"quota\""], fixture)
        try filler.remove()
        try await finish(fixture, camera)
        let own = try Outcome.files(in: fixture.received.appending(".sluice-receive"), hidden: true)
        #expect(own.filter { $0.fileExtension != "json" } == ["lock"])
    }
}
