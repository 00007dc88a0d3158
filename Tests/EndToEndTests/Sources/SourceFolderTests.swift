import Core
import Glibc
import Linux
import TestKit
import Testing

/// Watched folders that other users control, or whose parents or subfolders they control.
@Suite(
    "Folders that others can change, with the built program",
    .enabled(if: geteuid() == 0, "directories of several users, and mounts, take root: run the tests as root"),
    .timeLimit(.minutes(Patience.minutes(3))))
struct SourceFolderTests: FolderScenes {
    @Test("a file behind a link is refused with 65 and a message, and stays")
    func added() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let victim = fixture.folder.path.appending("victim")
        try Files.makeFolders(victim)
        try Files.replace(victim.appending("secret.mp4"), with: noise(1000))
        try Files.makeLink(fixture.drop.appending("sub"), to: victim)
        try Files.makeLink(fixture.drop.appending("alone.mp4"), to: victim.appending("secret.mp4"))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await state(fixture) { $0 == "watching" }
        for name in ["sub/secret.mp4", "alone.mp4", "sub"] as [FilePath] {
            let (ending, said) = try await run(fixture, ["add", fixture.drop.appending(name).display])
            #expect(ending == .status(65) && said.contains("symbolic link"), "\(name): \(said)")
        }
        // Our own names are those of a source that is being released, and of incomplete files.
        try Files.makeFolders(fixture.drop.appending(".sluice-receive"))
        for name in [".sluice-release-5", ".sluice-release-5-00000000deadbeef", ".sluice-receive/a.mp4"] as [FilePath] {
            try Files.replace(fixture.drop.appending(name), with: noise(10))
            let (ending, said) = try await run(fixture, ["add", fixture.drop.appending(name).display])
            #expect(ending == .status(65) && said.contains("that it is deleting"), "\(name): \(said)")
        }
        try Files.replace(fixture.drop.appending("own.mp4"), with: noise(2000))
        try await completed(fixture, 1)
        #expect(try Files.read(victim.appending("secret.mp4")) == noise(1000))
        #expect(try Outcome.files(in: fixture.received, hidden: false) == ["own.mp4"])
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test(
        "another user's directory at the folder's path is absent, after a restart too, until it is accepted"
    )
    func swapped() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending("first.mp4"), with: noise(1000))
        try await completed(fixture, 1)
        try await eventually("the source has been released") { try Files.names(in: fixture.drop).isEmpty }
        // Another user moves it away, and puts a directory of his own there. It belongs to him before it has the name:
        // one of root's would be accepted.
        let (away, his) = (fixture.folder.path.appending("away"), fixture.folder.path.appending("his"))
        try Files.makeFolders(his)
        #expect(his.withCString { chown($0, mallory, mallory) } == 0)
        try Files.rename(fixture.drop, to: away)
        try Files.rename(his, to: fixture.drop)
        try Files.replace(fixture.drop.appending("planted.mp4"), with: noise(3000))
        try await state(fixture) { $0.hasPrefix("absent: another directory is there, owned by user 61002") }
        fixture.killDaemon()
        try fixture.startDaemon()
        try await state(fixture) { $0.hasPrefix("absent: another directory is there, owned by user 61002") }
        #expect(try await fixture.status()?.counts.completed == 1)
        #expect(try FileStatus.ifPresent(at: fixture.drop.appending("planted.mp4")) != nil)
        let (looked, refusal) = try await run(fixture, ["rescan", "--folder", "camera", "--wait"])
        #expect(looked == .status(65) && refusal.contains("another directory is there"), "\(refusal)")
        let (wrong, words) = try await run(fixture, ["folder", "accept", "camrea"])
        #expect(wrong == .status(66), "\(words)")
        let (ending, said) = try await run(fixture, ["folder", "accept", "camera"])
        #expect(ending == .status(0) && said.contains("camera"), "\(said)")
        try await completed(fixture, 2)
        #expect(Set(try Outcome.files(in: fixture.received, hidden: false)) == ["first.mp4", "planted.mp4"])
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test(
        "another user's link at the folder's path, to the state or to /, does not stop the daemon from starting")
    func startsAnyway() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        try Files.rename(fixture.drop, to: fixture.folder.path.appending("away"))
        for target in [fixture.state, "/"] as [FilePath] {
            try Files.makeLink(fixture.drop, to: target)
            #expect(fixture.drop.withCString { lchown($0, mallory, mallory) } == 0)
            try fixture.startDaemon()
            try await state(fixture) { $0.hasPrefix("absent") && $0.contains("symbolic link of user 61002") }
            #expect(try await fixture.stopDaemon() == .status(0))
            try Files.removeIfPresent(fixture.drop)
        }
    }

    @Test("a restored backup, a link set by root, and a bind mount at the folder's path continue")
    func goesOn() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending("1.mp4"), with: noise(1000, seed: 1))
        try await completed(fixture, 1)
        let real = fixture.folder.path.appending("elsewhere")
        try Files.rename(fixture.drop, to: fixture.folder.path.appending("away"))
        try Files.makeFolders(fixture.drop)
        try Files.replace(fixture.drop.appending("2.mp4"), with: noise(1000, seed: 2))
        try await completed(fixture, 2)
        try await eventually("the source has been released") { try Files.names(in: fixture.drop).isEmpty }
        try Files.rename(fixture.drop, to: real)
        try Files.makeLink(fixture.drop, to: "elsewhere")
        try Files.replace(real.appending("3.mp4"), with: noise(1000, seed: 3))
        try await completed(fixture, 3)
        let other = fixture.folder.path.appending("other")
        try Files.makeFolders(other)
        let mount = try BindMount(of: other, at: real)
        try Files.replace(real.appending("4.mp4"), with: noise(1000, seed: 4))
        try await completed(fixture, 4)
        #expect(try await fixture.stopDaemon() == .status(0))
        withExtendedLifetime(mount) {}
    }

    @Test(
        "doctor names files that only look like sources in release, and users who could replace a folder's directory"
    )
    func doctor() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await state(fixture) { $0 == "watching" }
        for name in [".sluice-release-5", ".sluice-release-5-0123456789abcdef"] as [FilePath] {
            try Files.replace(fixture.drop.appending(name), with: [1])
        }
        let (_, said) = try await run(fixture, ["doctor"])
        #expect(said.contains(" and 1 more looks like a source that is being released"), "\(said)")
        #expect(!said.contains("could replace it by another directory"), "\(said)")
        #expect(fixture.drop.parent.withCString { chmod($0, 0o777) } == 0)
        let (_, warned) = try await run(fixture, ["check"])
        #expect(
            warned.contains("can be written by every user, who could replace it by another directory"), "\(warned)")
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test("a directory that becomes a link while its files wait for their group stops nothing else")
    func group() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        fixture.folderKeys = ["group: {by: stem, wait: 3s}"]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await state(fixture) { $0 == "watching" }
        let directory = fixture.drop.appending("d")
        try Files.makeFolders(directory)
        try Files.replace(directory.appending("a.mp4"), with: noise(1000))
        try await eventually("the file waits for its group", within: .seconds(20), every: .milliseconds(50)) {
            try await fixture.runVerb("why", [directory.appending("a.mp4").display])?.contains("group") == true
        }
        try Files.rename(directory, to: fixture.drop.appending(".e"))
        try Files.makeLink(directory, to: "/etc")
        try await eventually("the wait for the group has ended", within: .seconds(20)) {
            fixture.lastWords().contains("files wait for their group")
        }
        try Files.replace(fixture.drop.appending("b.mp4"), with: noise(2000))
        try await completed(fixture, 1)
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test("a move between two mounts of one file system copies, and `check` says so before")
    func mountedApart() async throws {
        let fixture = try DaemonFixture(source: .move, binary: Setting.binary())
        try await fixture.startReceiver()
        try fixture.startDaemon(
            // As systemd mounts each path of ReadWritePaths=.
            inMounts: """
                mount --bind "\(fixture.drop.display)" "\(fixture.drop.display)"
                mount --bind "\(fixture.done.display)" "\(fixture.done.display)"
                """)
        try await state(fixture) { $0 == "watching" }
        let (_, said) = try await run(fixture, ["check", "--running"])
        #expect(said.contains("is a separate mount from") && said.contains("a move copies the file"), "\(said)")
        let (_, elsewhere) = try await run(fixture, ["check"])
        #expect(!elsewhere.contains("a move copies the file"), "\(elsewhere)")
        let path = fixture.drop.appending("a.mp4")
        try Files.replace(path, with: noise(5000))
        let inode = try FileStatus(at: path).inode
        let moved = fixture.done.appending("a.mp4")
        try await eventually("the source has been moved; \(fixture.lastWords())", within: .seconds(40)) {
            try FileStatus.ifPresent(at: path) == nil && FileStatus.ifPresent(at: moved) != nil
        }
        #expect(try Files.read(moved) == noise(5000) && FileStatus(at: moved).inode != inode)
        try await eventually("the log says that each file is copied") {
            try fixture.daemon?.standardError().contains("each is copied") == true
        }
    }

    @Test("the folder's file system can be unmounted while idle, and while an upload from a copy runs")
    func unmounted() async throws {
        let disk = try SmallDisk()
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary(), places: ["drop": disk.path])
        fixture.policyKeys = ["bandwidth: 200 kB/s"]
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try await state(fixture) { $0 == "watching" }
        // Not a lazy unmount: an open descriptor would prevent it.
        #expect(disk.path.withCString { umount($0) } == 0, "idle: \(String(cString: strerror(errno)))")
        try await state(fixture) { !$0.hasPrefix("failed") }
        // No descriptor is open while files wait either: here they wait for the end of a pause.
        let waiting = try SmallDisk(at: disk.path)
        try Files.makeFolders(fixture.drop)
        try await eventually("the daemon has paused") { try await fixture.runVerb("pause") != nil }
        try Files.replace(fixture.drop.appending("waits.mp4"), with: noise(100_000))
        try await eventually("the upload is staged and waits; \(fixture.lastWords())", within: .seconds(40)) {
            guard try await fixture.status()?.counts.ongoing == 1 else { return false }
            return try Outcome.files(in: fixture.staging, hidden: true).count > 0
        }
        #expect(disk.path.withCString { umount($0) } == 0, "waiting: \(String(cString: strerror(errno)))")
        withExtendedLifetime(waiting) {}
        try await eventually("the daemon has resumed") { try await fixture.runVerb("resume") != nil }
        try await completed(fixture, 1)
        let again = try SmallDisk(at: disk.path)
        try Files.makeFolders(fixture.drop)
        try Files.replace(fixture.drop.appending("a.mp4"), with: noise(600_000))
        try await eventually("the file is being uploaded; \(fixture.lastWords())", within: .seconds(40)) {
            try await fixture.runVerb("list")?.contains("uploading") == true
        }
        #expect(disk.path.withCString { umount($0) } == 0, "uploading: \(String(cString: strerror(errno)))")
        try await completed(fixture, 2)
        #expect(try await fixture.stopDaemon() == .status(0))
        withExtendedLifetime(again) {}
    }
}
