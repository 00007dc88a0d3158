import Core
import Glibc
import Linux
import TestKit
import Testing

/// Staging in use: in place, by a command, from a failing disk, and stopped in the middle.
@Suite("Staging, with the built program", .timeLimit(.minutes(Patience.minutes(3))))
struct StagingEndToEndTests {
    private func finish(_ fixture: DaemonFixture, _ clips: [Clip]) async throws {
        let outcome = Outcome(fixture: fixture, clips: clips)
        try await outcome.wait()
        try await outcome.check()
    }

    private func says(_ words: [String], _ fixture: DaemonFixture, _ verb: [String]) async throws {
        try await eventually("the output of \(verb) contains \(words)", within: .seconds(60), every: .milliseconds(100))
        {
            guard let text = try await fixture.runVerb(verb[0], Array(verb.dropFirst()) + ["--json"]) else {
                return false
            }
            return words.allSatisfy { text.contains($0) }
        }
    }

    /// A file of `size` bytes that uses almost no space.
    private func sparse(_ path: FilePath, size: Int64) throws {
        let file = try Descriptor.open(path, for: .creating)
        try file.setSize(size, named: path)
        #expect(noise(5000).withUnsafeBytes { file.write($0, at: size - 5000, named: path).error } == nil)
    }

    @Test(
        "a corrupted staged copy is reported as such if the server notices; if its source exists, it is staged again",
        arguments: [true, false])
    func rotten(_ hasSource: Bool) async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await eventually("the daemon has paused", every: .milliseconds(50)) {
            try await fixture.runVerb("pause") != nil
        }
        let source = try fixture.folder.write("drop/a.mp4", noise(300_000))
        try await says([#""waiting""#, "a.mp4"], fixture, ["list"])
        let name = try #require(try Files.names(in: fixture.staging).first { Int($0.display) != nil })
        let copy = fixture.staging.appending(name)
        #expect(
            noise(9, seed: 3).withUnsafeBytes {
                try? Descriptor.open(copy, for: .updating).write($0, at: 70_000, named: copy).error
            } == nil)
        if !hasSource { try Files.remove(source) }
        _ = try await fixture.runVerb("resume")
        if hasSource {
            try await says([#""completed":1"#], fixture, ["status"])
            #expect(try Files.read(fixture.received.appending("a.mp4"), limit: 1 << 20) == noise(300_000))
        } else {
            try await says(
                [#""code":"staged_changed""#, "no longer has the content that was staged, and its source"],
                fixture, ["list", "--list", "failed"])
        }
    }

    // MARK: In place

    @Test("in place: killed at any moment, every file arrives once and complete, and none is staged")
    func inPlaceKilled() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.stagingKeys = ", copy: in-place"
        fixture.destinationKeys = ", chunk_size: 1 MB"
        var dice = Dice(seed: 5)
        let camera = Camera(fixture, dice: dice)
        try await fixture.startReceiver()
        try fixture.startDaemon()
        for number in 0..<6 {
            try camera.drop(
                Clip(number: number, size: 12_000_000 + number, relative: FilePath("large \(number).mp4")))
        }
        for round in 0..<6 {
            let wanted = Int64(round + 1) * 8_000_000
            try await eventually("the receiver has some bytes", within: .seconds(60)) {
                let names = try Outcome.files(in: fixture.received, hidden: true)
                let sizes = try names.map { try FileStatus.ifPresent(at: fixture.received.appending($0))?.size ?? 0 }
                return sizes.reduce(0, +) >= wanted
            }
            #expect(try Outcome.files(in: fixture.staging, hidden: true).isEmpty)
            fixture.killDaemon()
            try await Alarms.shared.sleep(for: .milliseconds(Int.random(in: 0...20, using: &dice)))
            try fixture.startDaemon()
        }
        try await finish(fixture, camera.clips)
    }

    @Test("in place: a file overwritten during its upload never counts as uploaded, and its last version arrives")
    func inPlaceChanged() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.folderKeys = ["staging: {copy: in-place}"]
        fixture.destinationKeys = ", chunk_size: 1 MB"
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let path = fixture.drop.appending("clip.mp4")
        try sparse(path, size: 150_000_000)
        try await eventually("the receiver has bytes of the file", within: .seconds(60), every: .milliseconds(5)) {
            try Outcome.files(in: fixture.received, hidden: true).contains {
                try FileStatus.ifPresent(at: fixture.received.appending($0)).map { $0.size > 2 << 20 } ?? false
            }
        }
        // In the middle of it, even on a busy machine.
        try await fixture.receiver?.stop()
        let file = try Descriptor.open(path, for: .updating)
        try file.write(noise(5000, seed: 3), named: path)
        try file.close(named: path)
        fixture.receiver?.send(SIGCONT)
        try await eventually("the receiver has only the last version", within: .seconds(90)) {
            guard try Outcome.files(in: fixture.received, hidden: false) == ["clip.mp4"] else { return false }
            return try Files.read(fixture.received.appending("clip.mp4"), limit: 1 << 30)
                == Files.read(path, limit: 1 << 30)
        }
        try await says(["source_changed", "uploaded in place"], fixture, ["list", "--list", "cancelled"])
        try await says(["\"completed\":1", "\"cancelled\":1", "\"ongoing\":0"], fixture, ["status"])
    }

    @Test(
        "in place: a file replaced during its upload is removed at the server without a failure; the new one arrives",
        arguments: [DaemonFixture.Source.keep, .delete])
    func inPlaceReplaced(_ source: DaemonFixture.Source) async throws {
        let fixture = try DaemonFixture(source: source, binary: Setting.binary())
        fixture.folderKeys = ["staging: {copy: in-place}"]
        fixture.destinationKeys = ", chunk_size: 1 MB"
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let path = fixture.drop.appending("clip.mp4")
        try sparse(path, size: 150_000_000)
        try await eventually("the receiver has bytes of the file", within: .seconds(60), every: .milliseconds(5)) {
            try Outcome.files(in: fixture.received, hidden: true).contains {
                try FileStatus.ifPresent(at: fixture.received.appending($0)).map { $0.size > 2 << 20 } ?? false
            }
        }
        try await fixture.receiver?.stop()
        let next = fixture.beside.appending("clip.mp4")
        let content = noise(3_000_000, seed: 3)
        try Files.replace(next, with: content)
        try Files.rename(next, to: path)
        fixture.receiver?.send(SIGCONT)
        try await eventually("the receiver has only the new version", within: .seconds(90)) {
            guard try Outcome.files(in: fixture.received, hidden: false) == ["clip.mp4"] else { return false }
            return try Files.read(fixture.received.appending("clip.mp4"), limit: 1 << 30) == content
        }
        try await says(["source_changed", "uploaded in place"], fixture, ["list", "--list", "cancelled"])
        try await says(
            ["\"completed\":1", "\"cancelled\":1", "\"failed\":0", "\"ongoing\":0"], fixture, ["status"])
        try await eventually("the receiver has deleted the bytes of the old version") {
            try Outcome.files(in: fixture.received, hidden: true).allSatisfy {
                try FileStatus.ifPresent(at: fixture.received.appending($0)).map { $0.size < 4 << 20 } ?? true
            }
        }
        if source == .delete {
            try await eventually("the new version has been released") {
                try Outcome.files(in: fixture.drop, hidden: true).isEmpty
            }
        }
    }

    // MARK: Export

    @Test("an export killed with the daemon leaves no process behind, and runs again")
    func exportKilled() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let pid = fixture.folder.path.appending("pid")
        let ready = fixture.folder.path.appending("ready")
        let script =
            "echo $$ > \(pid.display); echo 25%; while ! test -e \(ready.display); do sleep 0.1; done; "
            + "tr a-z A-Z < \\\"$1\\\" > \\\"$2\\\""
        fixture.folderKeys = [
            "export: {command: [sh, -c, \"\(script)\", sh, \"{input}\", \"{output}\"], output: \"{stem}.mp4\"}"
        ]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let clip = fixture.drop.appending("clip.mov")
        try Files.replace(clip, with: Array("abcdef".utf8))
        try await says(["\"exporting\"", "0.25"], fixture, ["list"])
        let runs = try #require(Int32(String(decoding: try Files.read(pid).dropLast(), as: UTF8.self)))
        fixture.killDaemon()
        try await eventually("the export program has ended with the daemon") { kill(runs, 0) == -1 }
        #expect(try Outcome.files(in: fixture.staging, hidden: true) != ["1"])
        try Files.replace(ready, with: [])
        try fixture.startDaemon()
        try await eventually("the exported file has been received", within: .seconds(60)) {
            let names = try Outcome.files(in: fixture.received, hidden: false)
            return try names == ["clip.mp4"] && Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
        #expect(try Files.read(fixture.received.appending("clip.mp4")) == Array("ABCDEF".utf8))
        try await eventually("the source has been released") { try FileStatus.ifPresent(at: clip) == nil }
    }

    // MARK: Copies

    @Test("a copy of 20 GB stops with its cancel and with the daemon, and leaves no file")
    func stops() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try sparse(fixture.drop.appending("one.mp4"), size: 20_000_000_000)
        try await says(["\"copying\"", "one.mp4"], fixture, ["list"])
        try await says(["\"running\"", "one.mp4"], fixture, ["status"])
        _ = try await fixture.runVerb("cancel", ["--all"])
        try await eventually("no copy is left", within: .seconds(20)) {
            try Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
        try sparse(fixture.drop.appending("two.mp4"), size: 20_000_000_000)
        try await says(["\"copying\"", "two.mp4"], fixture, ["list"])
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    /// Root may read everything, so a refusal has to be simulated as well.
    @Test(
        "an unreadable source waits with a remedy, and is copied when it is readable",
        arguments: [
            ("EIO", ["Input/output error", "its disk may be failing"]),
            ("EACCES", ["Permission denied", "give the daemon's user the right to read it"]),
        ])
    func readErrors(_ fault: String, _ words: [String]) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        let flag = try await start(fixture, fault, of: "ill.mp4")
        let camera = Camera(fixture, dice: Dice(seed: 7))
        try camera.drop(Clip(number: 1, size: 8_000_000, relative: "ill.mp4"))
        try camera.drop(Clip(number: 2, size: 8_000_000, relative: "well.mp4"))
        try await says(["\"backoff\""] + words, fixture, ["list"])
        try await eventually("the other file has been received", within: .seconds(60)) {
            try Outcome.files(in: fixture.received, hidden: false) == ["well.mp4"]
        }
        try await eventually("no copy of the unreadable source is left") {
            try Outcome.files(in: fixture.staging, hidden: true).isEmpty
        }
        #expect(try FileStatus.ifPresent(at: fixture.drop.appending("ill.mp4")) != nil)
        try Files.remove(flag)
        try await finish(fixture, camera.clips)
    }

    @Test(
        "data lost by a failed sync is written again, in staging and in a destination folder",
        arguments: ["staging", "archive"])
    func lostWrites(_ place: String) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.stagingKeys = ", copy: copy"
        fixture.uploadTo = ["archive"]
        let flag = try await start(fixture, "LOST", of: place == "staging" ? "/1.part" : ".part", in: place)
        let camera = Camera(fixture, dice: Dice(seed: 9))
        try camera.drop(Clip(number: 1, size: 3_000_000, relative: "one.mp4"))
        try await eventually("a sync has failed") { try FileStatus.ifPresent(at: flag) == nil }
        try await finish(fixture, camera.clips)
    }

    /// Starts a daemon for which files of a name fail, as described in Tests/Fixtures/failing_disk.c.
    ///
    /// - Returns: The file whose removal ends the fault.
    private func start(
        _ fixture: DaemonFixture, _ fault: String, of name: String, in folder: String = ""
    ) async throws -> FilePath {
        let flag = fixture.folder.path.appending("ill")
        let library = fixture.folder.path.appending("failing_disk.so")
        let code = Repository.root.appending("Tests/Fixtures/failing_disk.c")
        let compiler = try Child(
            "/usr/bin/env", ["cc", "-shared", "-fPIC", "-o", library.display, code.display, "-ldl"],
            output: fixture.folder.path.appending("cc.out"), errors: fixture.folder.path.appending("cc.err"))
        #expect(try await compiler.end(within: .seconds(60)) == .status(0))
        try Files.replace(flag, with: [])
        let preloads = [getenv("LD_PRELOAD").map { String(cString: $0) }, library.display].compactMap { $0 }
        try fixture.startDaemon(environment: [
            "LD_PRELOAD": preloads.joined(separator: ":"), "FAULT_NAME": name, "FAULT_FROM": "3000000",
            "FAULT_WHILE": flag.display, "FAULT_KIND": fault, "FAULT_FOLDER": folder,
        ])
        return flag
    }

    @Test("`reflink` to another file system fails in `check` and waits with its remedy, and a reload corrects it")
    func reflinkRefused() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        fixture.stagingKeys = ", copy: reflink"
        guard try Files.refusesSharing(from: OpenFolder(following: fixture.drop), into: fixture.staging) != nil else {
            return
        }
        try await fixture.startReceiver()
        try fixture.startDaemon()
        let camera = Camera(fixture, dice: Dice(seed: 8))
        for number in 0..<3 {
            try camera.drop(Clip(number: number, size: 5000, relative: FilePath("\(number).mp4")))
        }
        try await says(["\"disk\"", "copy: reflink is set", "set copy: auto"], fixture, ["list"])
        #expect(try await fixture.runVerb("check") == nil)
        try await eventually("all three files have been tried", within: .seconds(30)) {
            let text = try await fixture.runVerb("list", ["--json"]) ?? ""
            return text.components(of: "copy: reflink is set") == 3
        }
        let complaints = try #require(fixture.daemon).standardError()
        #expect(complaints.components(of: "copy: reflink is set") == 1, "\(complaints)")
        fixture.stagingKeys = ""
        try fixture.writeConfiguration()
        #expect(try await fixture.runVerb("reload") != nil)
        try await finish(fixture, camera.clips)
    }
}

extension String {
    /// The number of occurrences of `text`.
    fileprivate func components(of text: String) -> Int {
        var (count, rest) = (0, self[...])
        while let found = rest.firstRange(of: text) {
            count += 1
            rest = rest[found.upperBound...]
        }
        return count
    }
}
