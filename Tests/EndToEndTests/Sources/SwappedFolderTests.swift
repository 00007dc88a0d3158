import Core
import Glibc
import Linux
import TestKit
import Testing

/// The helpers of tests about folders that other users control.
protocol FolderScenes {}

extension FolderScenes {
    /// Another user.
    var mallory: uid_t { 61_002 }

    func run(_ fixture: DaemonFixture, _ words: [String]) async throws -> (Child.Ending, String) {
        let name = hexadecimal(Random.bytes(6))
        let child = try Child(
            fixture.binary, words + ["--config", fixture.config.display],
            output: fixture.folder.path.appending(FilePath("\(name).out")),
            errors: fixture.folder.path.appending(FilePath("\(name).err")))
        let ending = try await child.end(within: .seconds(20))
        // Tables contain line breaks.
        let words = try (child.standardOutput() + child.standardError()).split(whereSeparator: \.isWhitespace)
        return (ending, words.joined(separator: " "))
    }

    func completed(_ fixture: DaemonFixture, _ count: Int) async throws {
        try await eventually("\(count) uploads are complete; \(fixture.lastWords())", within: .seconds(40)) {
            try await fixture.status()?.counts.completed == count
        }
    }

    func state(_ fixture: DaemonFixture, _ isIt: @escaping (String) -> Bool) async throws {
        try await eventually("the folder has the expected state; \(fixture.lastWords())", within: .seconds(40)) {
            try await fixture.status()?.folders.first.map { isIt($0.state) } ?? false
        }
    }
}

/// Directories and links that another user puts in a folder's place.
@Suite(
    "Replaced folders, with the built program",
    .enabled(if: geteuid() == 0, "directories of several users take root: run the tests as root"),
    .timeLimit(.minutes(Patience.minutes(3))))
struct SwappedFolderTests: FolderScenes {
    @Test(
        "below another user's directory, even a directory or link of root at the folder's path is absent",
        arguments: [false, true])
    func beside(isLink: Bool) async throws {
        let folder = TemporaryFolder()
        let theirs = folder.path.appending("theirs")
        let fixture = try DaemonFixture(
            source: .delete, binary: Setting.binary(), places: ["drop": theirs])
        let private1 = theirs.appending("private")
        let place = isLink ? folder.path.appending("rootsown") : private1
        try Files.makeFolders(place)
        try Files.replace(place.appending("secret.mp4"), with: noise(5000))
        if isLink { try Files.makeLink(private1, to: place) }
        #expect(theirs.withCString { chown($0, mallory, mallory) } == 0)
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending("first.mp4"), with: noise(1000))
        try await completed(fixture, 1)
        try Files.rename(fixture.drop, to: theirs.appending("away"))
        try Files.rename(private1, to: fixture.drop)
        try await state(fixture) {
            $0.contains("another directory is there") && $0.contains("belongs to user 61002")
        }
        #expect(try Files.read((isLink ? place : fixture.drop).appending("secret.mp4")) == noise(5000))
        try Files.rename(fixture.drop, to: private1)
        try Files.rename(theirs.appending("away"), to: fixture.drop)
        try Files.replace(fixture.drop.appending("second.mp4"), with: noise(2000))
        try await completed(fixture, 2)
        #expect(Set(try Outcome.files(in: fixture.received, hidden: false)) == ["first.mp4", "second.mp4"])
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    /// Puts another directory in the folder's place, which makes the folder absent; with the first one back, it
    /// continues.
    private func swap(
        _ fixture: DaemonFixture, for other: FilePath, at place: FilePath? = nil, why: String
    ) async throws {
        let place = place ?? fixture.drop
        try Files.makeFolders(other)
        try Files.replace(other.appending("secret.mp4"), with: noise(5000))
        if fixture.receiver == nil { try await fixture.startReceiver() }
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending("first.mp4"), with: noise(1000))
        try await completed(fixture, 1)
        let away = place.parent.appending("away")
        try Files.rename(place, to: away)
        try Files.rename(other, to: place)
        try await eventually("the folder is absent; \(fixture.lastWords())", within: .seconds(40)) {
            _ = try await run(fixture, ["rescan"])
            let state = try await fixture.status()?.folders.first?.state
            return state?.contains("another directory is there") == true && state?.contains(why) == true
        }
        try Files.rename(place, to: other)
        try Files.rename(away, to: place)
        try Files.replace(fixture.drop.appending("second.mp4"), with: noise(2000))
        try await completed(fixture, 2)
        #expect(Set(try Outcome.files(in: fixture.received, hidden: false)) == ["first.mp4", "second.mp4"])
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test("a user with write access above the folder by ACL cannot replace its directory")
    func listed() async throws {
        let folder = TemporaryFolder()
        let above = folder.path.appending("above")
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["drop": above])
        // Owner, user 61002, group, mask, others (linux/posix_acl_xattr.h).
        let entries: [(kind: UInt16, rights: UInt16, number: UInt32)] = [
            (0x01, 7, .max), (0x02, 7, mallory), (0x04, 5, .max), (0x10, 7, .max), (0x20, 5, .max),
        ]
        var list: [UInt8] = [2, 0, 0, 0]
        for entry in entries {
            for part in [UInt32(entry.kind) | UInt32(entry.rights) << 16, entry.number] {
                list += withUnsafeBytes(of: part.littleEndian) { Array($0) }
            }
        }
        let opened = try Descriptor.open(above, for: .folder)
        try opened.setAttribute("system.posix_acl_access", to: list, named: above)
        try await fixture.startReceiver()
        try fixture.writeConfiguration()
        let (_, said) = try await run(fixture, ["check"])
        #expect(said.contains("by its access control list"), "\(said)")
        try await swap(fixture, for: above.appending("private"), why: "by its access control list")
    }

    @Test("the owner of the folder and its parents cannot put a directory of root in its place")
    func owned() async throws {
        let folder = TemporaryFolder()
        let theirs = folder.path.appending("theirs")
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["drop": theirs])
        for path in [theirs, fixture.drop] {
            try #require(path.withCString { chown($0, mallory, mallory) } == 0)
        }
        try await swap(fixture, for: theirs.appending("private"), why: "belongs to user 61002")
    }

    @Test("a link behind a link in another user's directory is not followed to another directory")
    func chained() async throws {
        let folder = TemporaryFolder()
        let theirs = folder.path.appending("theirs")
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["drop": folder.path])
        let real = folder.path.appending("real")
        try Files.makeFolders(theirs)
        try Files.rename(fixture.drop, to: real)
        try Files.makeLink(theirs.appending("current"), to: real)
        try Files.makeLink(fixture.drop, to: theirs.appending("current"))
        let secret = folder.path.appending("secret")
        try Files.makeLink(theirs.appending("other"), to: secret)
        try #require(theirs.withCString { chown($0, mallory, mallory) } == 0)
        try Files.makeFolders(secret)
        try Files.replace(secret.appending("secret.mp4"), with: noise(5000))
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending("first.mp4"), with: noise(1000))
        try await completed(fixture, 1)
        try Files.rename(theirs.appending("other"), to: theirs.appending("current"))
        try await eventually("the folder is absent; \(fixture.lastWords())", within: .seconds(40)) {
            _ = try await run(fixture, ["rescan"])
            return try await fixture.status()?.folders.first?.state.contains("another directory is there") == true
        }
        #expect(try Outcome.files(in: fixture.received, hidden: false) == ["first.mp4"])
        #expect(try Files.read(secret.appending("secret.mp4")) == noise(5000))
        #expect(try await fixture.stopDaemon() == .status(0))
    }

    @Test("a rebuild does not accept a refused directory, and names folders without a recorded identity")
    func rebuilt() async throws {
        let folder = TemporaryFolder()
        let fixture = try DaemonFixture(source: .delete, binary: Setting.binary(), places: ["drop": folder.path])
        try await fixture.startReceiver()
        try fixture.startDaemon()
        try Files.replace(fixture.drop.appending("first.mp4"), with: noise(1000))
        try await completed(fixture, 1)
        #expect(try await fixture.stopDaemon() == .status(0))
        try Files.rename(fixture.drop, to: folder.path.appending("away"))
        try Files.makeFolders(fixture.drop)
        try Files.replace(fixture.drop.appending("secret.mp4"), with: noise(5000))
        try #require(fixture.drop.withCString { chown($0, mallory, mallory) } == 0)
        let (ending, said) = try await run(fixture, ["rebuild", "--yes", "--force"])
        #expect(ending == .status(0), "\(said)")
        try fixture.startDaemon()
        try await state(fixture) { $0.contains("another directory is there") }
        #expect(try await fixture.stopDaemon() == .status(0))
        // Without --force it is not begun.
        let database = fixture.state.appending("sluice.db")
        for name in try Files.names(in: fixture.state) where name.display.hasPrefix("sluice.db") {
            try Files.removeIfPresent(fixture.state.appending(name))
        }
        let (_, unknown) = try await run(fixture, ["rebuild", "--yes"])
        #expect(unknown.contains("the identity of the directory of folder camera is lost"), "\(unknown)")
        #expect(try FileStatus.ifPresent(at: database) != nil)
        #expect(try Outcome.files(in: fixture.received, hidden: false) == ["first.mp4"])
    }
}
