import Core
import Glibc
import Synchronization
import TestKit
import Testing

@testable import Linux

/// Making files of other users needs root.
@Suite(
    "Identity of a configured folder",
    .enabled(if: geteuid() == 0, "directories of several users take root: run the tests as root"))
struct SourceFolderTests {
    let temporary = TemporaryFolder()
    private let alice: uid_t = 61_001
    private let mallory: uid_t = 61_002

    private func directory(_ name: FilePath, of user: uid_t) throws -> FilePath {
        let path = temporary.path.appending(name)
        try Files.makeFolders(path)
        #expect(path.withCString { lchown($0, user, user) } == 0)
        return path
    }

    private func link(_ name: FilePath, to target: FilePath, of user: uid_t) throws -> FilePath {
        let path = temporary.path.appending(name)
        try Files.makeLink(path, to: target)
        #expect(path.withCString { lchown($0, user, user) } == 0)
        return path
    }

    private func refusal(_ folder: SourceFolder) -> String? {
        do { _ = try folder.open() } catch { return error.isOfAnotherFolder ? error.reason : "\(error)" }
        return nil
    }

    @Test("a path without links opens, and a missing one is reported as missing")
    func plain() throws {
        let folders = SourceFolders()
        #expect(refusal(folders[try directory("drop", of: alice)]) == nil)
        let error = #expect(throws: SystemError.self) { _ = try folders[temporary.path.appending("none")].open().path }
        #expect(error?.isMissing == true)
    }

    @Test("a link is followed if it belongs to root, to this user or to the owner of its target")
    func trusted() throws {
        let real = try directory("real", of: alice)
        try temporary.write("real/file", [1])
        for (name, owner) in [("root", 0), ("own", geteuid()), ("alice", alice)] as [(FilePath, uid_t)] {
            let folder = SourceFolders()[try link(name, to: real, of: owner)]
            #expect(refusal(folder) == nil, "\(name)")
            let status = try SourceFile(folder: folder, relative: "file").status()
            #expect(status.size == 1)
        }
    }

    @Test("a link of another user is not followed, at the end or on the way, and the message names its owner")
    func foreign() throws {
        let real = try directory("real/sub", of: alice).parent
        let direct = try link("direct", to: real, of: mallory)
        let text = try #require(refusal(SourceFolders()[direct]))
        #expect(text.contains("direct") && text.contains("61002") && text.contains("chown -h"))
        #expect(refusal(SourceFolders()[direct.appending("sub")]) != nil)
        // An allowed link leads through a forbidden one.
        let outer = try link("outer", to: "direct/sub", of: 0)
        #expect(refusal(SourceFolders()[outer]) != nil)
        // The link leads to a directory of root: a link of mallory still belongs to mallory.
        #expect(refusal(SourceFolders()[try link("etc", to: "/etc", of: mallory)]) != nil)
    }

    @Test("circular symbolic links are reported")
    func circle() throws {
        let a = try link("a", to: "b", of: 0)
        _ = try link("b", to: "a", of: 0)
        let error = #expect(throws: SystemError.self) { _ = try SourceFolders()[a].open().path }
        #expect(error?.code == ELOOP)
    }

    @Test("another directory of the same owner is accepted and reported; one of another user is not, until accepted")
    func replaced() throws {
        let changes = Mutex<[SourceFolders.Change]>([])
        let folders = SourceFolders { item in changes.withLock { $0.append(item) } }
        let path = try directory("drop", of: alice)
        let folder = folders[path]
        #expect(refusal(folder) == nil)
        #expect(refusal(folder) == nil)
        // Another directory of alice: a restored backup.
        try Files.rename(path, to: temporary.path.appending("old"))
        _ = try directory("drop", of: alice)
        #expect(refusal(folder) == nil)
        try Files.rename(path, to: temporary.path.appending("older"))
        _ = try directory("drop", of: mallory)
        #expect(refusal(folder)?.contains("61002") == true)
        #expect(refusal(folder) != nil, "a second check refuses it too")
        // The first directory is back.
        try Files.rename(path, to: temporary.path.appending("foreign"))
        try Files.rename(temporary.path.appending("older"), to: path)
        #expect(refusal(folder) == nil)
        try Files.rename(path, to: temporary.path.appending("older"))
        try Files.rename(temporary.path.appending("foreign"), to: path)
        #expect(refusal(folder) != nil)
        folders.accept(path)
        #expect(refusal(folder) == nil)
        let kinds = changes.withLock { changes in
            changes.map { item in if case .replaced = item { "replaced" } else { "remembered" } }
        }
        #expect(kinds == ["remembered", "replaced", "remembered"])
    }

    @Test("the identity recorded by an earlier run counts")
    func remembered() throws {
        let path = try directory("drop", of: mallory)
        let known = FolderIdentity(fileSystem: nil, inode: 1, born: nil, owner: alice)
        #expect(refusal(SourceFolders(remembered: [path: known])[path]) != nil)
        let status = try FileStatus(at: path)
        let same = FolderIdentity(fileSystem: nil, inode: status.inode, born: status.born, owner: alice)
        #expect(refusal(SourceFolders(remembered: [path: same])[path]) == nil, "a chown alone makes no other directory")
        // Without a birth time the inode number alone proves nothing: the next directory gets the same number at once.
        let ageless = FolderIdentity(fileSystem: nil, inode: status.inode, born: nil, owner: alice)
        #expect(refusal(SourceFolders(remembered: [path: ageless])[path]) != nil)
    }

    @Test("if a requirement identifies the disk, any directory is accepted")
    func requirement() throws {
        let path = try directory("drop", of: mallory)
        let known = FolderIdentity(fileSystem: nil, inode: 1, born: nil, owner: alice)
        let folders = SourceFolders(remembered: [path: known])
        var rule = WatchRule(name: "cam", path: path)
        folders.apply([rule])
        #expect(refusal(folders[path])?.contains("sluice folder accept cam") == true)
        rule.requirement = FolderRequirement(mount: "/")
        folders.apply([rule])
        #expect(refusal(folders[path]) != nil, "`mount: /` requires nothing")
        rule.requirement = FolderRequirement(file: ".here")
        folders.apply([rule])
        #expect(refusal(folders[path]) == nil)
    }

    @Test("no descriptor stays open after the work")
    func closed() throws {
        let path = try directory("drop", of: alice)
        let file = SourceFile(folder: SourceFolders()[path], relative: "a")
        func open() throws -> [FilePath] {
            try Files.names(in: "/proc/self/fd").compactMap {
                Files.linkTarget(FilePath("/proc/self/fd").appending($0))
            }
        }
        _ = try file.statusIfPresent()
        #expect(try open().allSatisfy { $0 != path && $0.relative(to: path) == nil })
    }
}
