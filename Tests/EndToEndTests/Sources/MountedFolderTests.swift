import Core
import Glibc
import Linux
import TestKit
import Testing

/// Watched folders that are mount points: for a card, or by an automounter.
@Suite("Mounted folders, with the built program", .timeLimit(.minutes(Patience.minutes(3))))
struct MountedFolderTests: FolderScenes {
    @Test(
        "an automount at the folder's path continues, also after it expired, and after a restart",
        .enabled(Comment(rawValue: Automount.need)) { await Automount.isPossible.value })
    func automounted() async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        let real = fixture.folder.path.appending("real")
        try Files.makeFolders(real)
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending("1.mp4"), with: noise(1000, seed: 1))
        try await completed(fixture, 1)
        let mount = try await Automount(of: real, at: fixture.drop)
        try Files.replace(real.appending("2.mp4"), with: noise(1000, seed: 2))
        try await completed(fixture, 2)
        #expect(mount.times >= 1)
        try await expire(mount)
        // Another user writes there, as to a disk of another machine.
        try Files.replace(real.appending("3.mp4"), with: noise(1000, seed: 3))
        _ = try await run(fixture, ["rescan"])
        try await completed(fixture, 3)
        fixture.killDaemon()
        try await expire(mount)
        try Files.replace(real.appending("4.mp4"), with: noise(1000, seed: 4))
        try fixture.startDaemon()
        try await completed(fixture, 4)
        try await eventually("all sources have been released") { try Files.names(in: real).isEmpty }
        #expect(
            Set(try Outcome.files(in: fixture.received, hidden: false)) == ["1.mp4", "2.mp4", "3.mp4", "4.mp4"])
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    private func expire(_ mount: Automount) async throws {
        try await eventually("the mount has expired") {
            do throws(SystemError) { try mount.expire() } catch {
                // EBUSY: a program is reading at this moment. EINVAL: nothing is mounted.
                guard [EBUSY, EINVAL].contains(error.code) else { throw error }
                return error.code == EINVAL
            }
            return true
        }
    }

    @Test(
        "a second card continues, whatever user owns its files, and after a restart",
        .enabled(Comment(rawValue: OwnerlessDisk.need)) { await OwnerlessDisk.isPossible.value })
    func secondCard() async throws {
        let fixture = try DaemonFixture(source: .keep, binary: Setting.binary())
        let card = try OwnerlessDisk(at: fixture.drop)
        try await card.mount(owner: 0)
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending("1.mp4"), with: noise(1000, seed: 1))
        try await completed(fixture, 1)
        for (number, isDown) in [(2, false), (3, true)] {
            if isDown { fixture.killDaemon() }
            try await eventually("the card has been unmounted") {
                do throws(SystemError) { try card.pullOut() } catch {
                    guard error.code == EBUSY else { throw error }
                    return false
                }
                return true
            }
            // Each is formatted again, and one belongs to another user.
            try await card.mount(owner: mallory + UInt32(number))
            if isDown { try fixture.startDaemon() }
            let name = FilePath("\(number).mp4")
            try Files.replace(fixture.drop.appending(name), with: noise(1000, seed: UInt64(number)))
            try await completed(fixture, number)
        }
        #expect(Set(try Outcome.files(in: fixture.received, hidden: false)) == ["1.mp4", "2.mp4", "3.mp4"])
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test(
        "with `require:` a second disk of another owner continues; without it, it counts as another directory",
        .enabled(Comment(rawValue: LoopDisk.need)) { await LoopDisk.isPossible.value }, arguments: [true, false])
    func secondDisk(isRequired: Bool) async throws {
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary())
        if isRequired { fixture.folderKeys = ["require: {mount: \(fixture.drop.display)}"] }
        let first = try await LoopDisk(.ext4, at: fixture.drop)
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending("1.mp4"), with: noise(1000, seed: 1))
        try await completed(fixture, 1)
        try await eventually("the source has been released") { try !Files.names(in: fixture.drop).contains("1.mp4") }
        try await first.unmount()
        let second = try await LoopDisk(.ext4)
        try Files.replace(second.path.appending("2.mp4"), with: noise(1000, seed: 2))
        try #require(second.path.withCString { chown($0, mallory, mallory) } == 0)
        let bind = try BindMount(of: second.path, at: fixture.drop)
        if isRequired {
            try await completed(fixture, 2)
            try await eventually("the source has been released") {
                try !Files.names(in: fixture.drop).contains("2.mp4")
            }
        } else {
            try await state(fixture) { $0.hasPrefix("absent: another directory is there, owned by user 61002") }
            #expect(try Files.read(second.path.appending("2.mp4")) == noise(1000, seed: 2))
        }
        #expect(try await fixture.stopDaemon() == .status(0))
        withExtendedLifetime(bind) {}
    }
}
