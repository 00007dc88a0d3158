import Core
import Linux
import TestKit
import Testing

/// Watching as a user sees it: absent folders, waiting files, and limits of the kernel.
@Suite("Watching, with the built program", .serialized, .timeLimit(.minutes(Patience.minutes(4))))
struct WatchingTests {
    private func status(_ fixture: DaemonFixture, says words: String) async throws -> String {
        try await eventually("`status` contains: \(words)") {
            guard let text = try await fixture.runVerb("status"), text.contains(words) else { return nil }
            return text
        }
    }

    private func arrives(_ fixture: DaemonFixture, _ name: FilePath, _ content: [UInt8]) async throws {
        // A directory without a watch is inspected every minute at least.
        try await eventually("\(name) has been received; \(fixture.lastWords())", within: .seconds(100)) {
            try FileStatus.ifPresent(at: fixture.received.appending(name)) != nil
        }
        #expect(try Files.read(fixture.received.appending(name)) == content)
    }

    @Test("a folder that is missing at start is absent, delays nothing, and is watched when it appears")
    func absentAtStart() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        let away = fixture.folder.path.appending("away")
        try Files.rename(fixture.drop, to: away)
        try fixture.writeConfiguration()
        let check = try #require(try await fixture.runVerb("check", ["--json"]))
        #expect(check.contains("absent"))
        #expect(check.contains("does not exist now, and is watched when it appears"))
        try fixture.startDaemon()
        _ = try await status(fixture, says: "absent: it does not exist")
        try Descriptor.open(away.appending("a.mp4"), for: .creating).write(noise(1000), named: "a.mp4")
        try Files.rename(away, to: fixture.drop)
        // Found by the check for absent folders, at most 10 s later.
        try await arrives(fixture, "a.mp4", noise(1000))
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test("check does not wait for an unreachable server, and reports it", .enabled(if: DeadDisk.isPossible))
    func deadServer() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.afterKeys = ", for: 1h"
        fixture.folderKeys = ["staging: {copy: reflink}"]
        try await fixture.startReceiver()
        try fixture.writeConfiguration()
        let dead = try DeadDisk(at: fixture.drop)
        let check = try #require(try await fixture.runVerb("check", ["--json"]))
        #expect(check.contains("has not responded for 5s: check the server"))
        withExtendedLifetime(dead) {}
    }

    @Test(
        "files of a remote folder are found, uploaded and released; an unreachable folder is reported",
        .enabled("\(RemoteFolder.need)") { await RemoteFolder.isPossible.value })
    func remoteFolder() async throws {
        let remote = try RemoteFolder()
        try await remote.mount()
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["drop": remote.path])
        try await fixture.startReceiver()
        // A program on the other machine may have the file open, which this machine cannot know.
        fixture.folderKeys = ["require: {file: .here}", "release_unsure: after 1s"]
        func write(_ name: FilePath) throws {
            let path = remote.there.appending("drop").appending(name)
            try Files.makeFolders(path.parent)
            let file = try Descriptor.open(path, for: .creating)
            try file.write(noise(200_000), named: path)
            try file.close(named: path)
        }
        try write(".here")
        try fixture.startDaemon()
        _ = try await status(fixture, says: "directory polled")
        // The write does not go through this machine, so no event reports it.
        for name: FilePath in ["a.mp4", "day/cam/b.mp4"] {
            try write(name)
            try await arrives(fixture, name, noise(200_000))
            try await eventually("the source has been released") {
                try FileStatus.ifPresent(at: remote.there.appending("drop").appending(name)) == nil
            }
        }
        remote.cut()
        try await eventually("`status` reports the folder; \(fixture.lastWords())", within: .seconds(100)) {
            let text = try await fixture.runVerb("status")
            return text?.contains("failed:") == true || text?.contains("absent:") == true
        }
        remote.lose()
        try await remote.mount()
        try write("c.mp4")
        try await arrives(fixture, "c.mp4", noise(200_000))
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test("a --once run leaves an absent folder, and regards none of its sources as deleted")
    func absentOnce() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        fixture.folderKeys = ["require: {file: .sluice-here}"]
        try fixture.writeConfiguration()
        let file = try Descriptor.open(fixture.drop.appending("a.mp4"), for: .creating)
        try file.write(noise(1000), named: "a.mp4")
        try file.close(named: "a.mp4")
        let out = fixture.folder.path.appending("once")
        let child = try Child(
            fixture.binary, ["run", "--once", "--config", fixture.config.display], output: out,
            errors: fixture.folder.path.appending("once.err"))
        #expect(try await child.end(within: .seconds(30)) == .status(75))
        #expect(try child.standardOutput().contains(".sluice-here is missing (require.file)"))
        #expect(try FileStatus.ifPresent(at: fixture.received.appending("a.mp4")) == nil)
        try Descriptor.open(fixture.drop.appending(".sluice-here"), for: .creating).close(named: "here")
        try fixture.startDaemon()
        try await arrives(fixture, "a.mp4", noise(1000))
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test(
        "files settling in a folder that becomes absent are kept, and none of its sources is released until it is back")
    func absentMeanwhile() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        fixture.killReceiver()
        fixture.settleKeys = ", writers: skip"
        fixture.folderKeys = ["require: {file: .here}"]
        let mark = fixture.drop.appending(".here")
        func put(_ name: FilePath) throws {
            let path = fixture.drop.appending(name)
            let file = try Descriptor.open(path, for: .creating)
            try file.write(noise(1000), named: path)
            try file.close(named: path)
        }
        try put(".here")
        try put("staged.mp4")
        try fixture.startDaemon()
        try await eventually("the file is staged") { try !Outcome.files(in: fixture.staging, hidden: true).isEmpty }
        try put("settling.mp4")
        try Files.remove(mark)
        _ = try await status(fixture, says: ".here is missing")
        try await fixture.startReceiver()
        try await arrives(fixture, "staged.mp4", noise(1000))
        try await eventually("the release waits for the folder") {
            try fixture.daemon?.standardError().contains("files wait for the disk of their folder") == true
        }
        #expect(try FileStatus.ifPresent(at: fixture.drop.appending("staged.mp4")) != nil)
        #expect(try FileStatus.ifPresent(at: fixture.received.appending("settling.mp4")) == nil)
        try put(".here")
        try await arrives(fixture, "settling.mp4", noise(1000))
        try await eventually("both sources have been released", within: .seconds(60)) {
            try Files.names(in: fixture.drop) == [".here"]
        }
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test("a file waits for its marker; status reports it, and show names the rung")
    func marker() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        try await fixture.startReceiver()
        fixture.settleKeys = ", marker: \"{name}.ok\", report_after: 1s"
        try fixture.startDaemon()
        let file = try Descriptor.open(fixture.drop.appending("a.mp4"), for: .creating)
        try file.write(noise(1000), named: "a.mp4")
        try file.close(named: "a.mp4")
        let text = try await status(fixture, says: "does not settle")
        #expect(text.contains("a.mp4.ok does not exist yet"))
        let json = try #require(try await fixture.runVerb("status", ["--json"]))
        #expect(json.contains("\"overdue\":true"))
        try Descriptor.open(fixture.drop.appending("a.mp4.ok"), for: .creating).close(named: "ok")
        try await arrives(fixture, "a.mp4", noise(1000))
        let shown = try await eventually("`show` answers") { try await fixture.runVerb("show", ["a.mp4"]) }
        #expect(shown.contains("marker"))
        #expect(try FileStatus.ifPresent(at: fixture.received.appending("a.mp4.ok")) == nil)
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    /// A program that runs the daemon with limits of its own: those of a user namespace (user_namespaces(7)).
    private func limited(_ limit: String, _ fixture: TemporaryFolder) throws -> FilePath {
        try fixture.writeProgram(
            "sluice",
            """
            exec unshare --user --map-root-user /bin/sh -c '\(limit) && exec "$0" "$@"' \(try Setting.binary().display) "$@"
            """)
    }

    static let canLimit = Task { () -> Bool in
        let folder = TemporaryFolder()
        let child = try? Child(
            "/usr/bin/env",
            [
                "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "unshare", "--user", "--map-root-user", "/bin/sh", "-c",
                "echo 16 >/proc/sys/user/max_inotify_watches",
            ], output: folder.path.appending("out"), errors: folder.path.appending("err"))
        return (try? await child?.end(within: .seconds(10))) == .status(0)
    }

    struct Limit: Sendable, CustomTestStringConvertible {
        let file: String
        let count: Int
        /// The lines of the log.
        let words: String
        var testDescription: String { "\(file) \(count)" }
    }

    @Test(
        "with exhausted inotify watches every file is found, and the remedy is reported",
        .enabled("user namespaces with limits of their own: sudo make test") { await canLimit.value },
        arguments: [
            Limit(
                file: "max_inotify_watches", count: 16,
                words: "Raise it with `sysctl fs.inotify.max_user_watches=524288`"),
            Limit(
                file: "max_inotify_instances", count: 0,
                words: "raise it with `sysctl fs.inotify.max_user_instances=512`"),
        ])
    func kernelLimits(_ limit: Limit) async throws {
        let folder = TemporaryFolder()
        let fixture = try DaemonFixture(
            source: .keep, binary: try limited("echo \(limit.count) >/proc/sys/user/\(limit.file)", folder))
        try await fixture.startReceiver()
        for number in 0..<40 { try Files.makeFolders(fixture.drop.appending(FilePath("d\(number)"))) }
        try fixture.startDaemon()
        _ = try await status(fixture, says: "directories polled")
        for number in 0..<40 {
            let path = fixture.drop.appending(FilePath("d\(number)/\(number).mp4"))
            let file = try Descriptor.open(path, for: .creating)
            try file.write(noise(100, seed: UInt64(number + 1)), named: path)
            try file.close(named: path)
        }
        for number in 0..<40 {
            try await arrives(
                fixture, FilePath("d\(number)/\(number).mp4"), noise(100, seed: UInt64(number + 1)))
        }
        #expect(try #require(fixture.daemon).standardError().components(separatedBy: limit.words).count == 2)
        #expect(try await fixture.stopDaemon() == .status(0))
    }
}

extension String {
    fileprivate func components(separatedBy words: String) -> [Substring] {
        split(separator: words, omittingEmptySubsequences: false)
    }
}
