import Core
import TestKit
import Testing

@testable import Linux
@testable import Watch

@Suite("WatchTree")
struct WatchTreeTests {
    var trees = Trees()
    let start = MonotonicTime.start

    private func names(_ directories: [WatchedDirectory]) -> Set<FilePath> { Set(directories.map(\.name)) }

    @Test("a directory is found by its path, until it is removed with everything below it")
    mutating func removal() {
        let (a, b) = (trees.directory("a"), trees.directory("a", "b"))
        _ = trees.directory("a", "b", "c")
        #expect(trees.tree.directory("a/b", in: trees.root) === b)
        #expect(trees.tree.directory("a/x", in: trees.root) == nil)
        #expect(trees.tree.deepestKnown("a/x/y", in: trees.root) === a)
        #expect(b.relative == "a/b")
        let version = trees.tree.version
        #expect(names(trees.tree.remove(a)) == ["a", "b", "c"])
        #expect(a.isGone && b.isGone && b.relative == nil)
        #expect(trees.root.top.children.isEmpty && trees.tree.version > version)
    }

    @Test("a directory gets its new path when both halves of a rename have arrived")
    mutating func rename() {
        let (moved, target) = (trees.directory("a"), trees.directory("to"))
        let replaced = trees.directory("to", "b")
        trees.tree.detach("a", from: trees.root.top, cookie: 7, at: start)
        #expect(moved.relative == nil && !moved.isGone && trees.tree.isRenaming(in: trees.root))
        #expect(trees.tree.removeDetached(8, in: trees.root) == nil)
        #expect(trees.tree.removeDetached(7, in: trees.root) === moved)
        #expect(names(trees.tree.attach(moved, as: "b", to: target, visit: 2)) == ["b"])
        #expect(moved.relative == "to/b" && replaced.isGone && !trees.tree.isRenaming)
    }

    @Test("a directory whose new name does not arrive in time is removed")
    mutating func expired() {
        let moved = trees.directory("a")
        trees.tree.detach("a", from: trees.root.top, cookie: 7, at: start)
        #expect(trees.tree.expireRenames(at: start).isEmpty == true)
        let deadline = trees.tree.nextDeadline
        let removed = deadline.map { trees.tree.expireRenames(at: $0) } ?? []
        #expect(names(removed) == ["a"])
        #expect(moved.isGone && trees.tree.nextDeadline == nil)
    }

    @Test("dropping a root drops directories between two names")
    mutating func dropped() {
        let (a, b) = (trees.directory("a"), trees.directory("b"))
        trees.tree.detach("a", from: trees.root.top, cookie: 7, at: start)
        trees.tree.drop(trees.root)
        #expect(a.isGone && b.isGone && trees.root.top.isGone && !trees.tree.isRenaming)
    }

    @Test("a burst of lost events is reported once")
    mutating func overflows() {
        #expect(trees.tree.countOverflow(at: start) == true)
        #expect(trees.tree.countOverflow(at: start + .seconds(9)) == false)
        #expect(trees.tree.countOverflow(at: start + .seconds(18)) == false)
        #expect(trees.tree.countOverflow(at: start + .seconds(29)) == true)
        #expect(trees.tree.overflows == 4)
    }

    @Test("a mount over a directory that was visited without it is found, also when the mount points are as before")
    mutating func covered() throws {
        func visit(_ directory: WatchedDirectory, _ path: FilePath) throws -> UInt64 {
            try Files.makeFolders(path)
            let stream = try FolderStream(path)
            let status = try stream.status()
            _ = trees.tree.watch(directory, stream, status, path)
            return status.device
        }
        let (disk, sub) = (trees.directory("disk"), trees.directory("disk", "sub"))
        let below = try visit(trees.root.top, trees.root.path)
        _ = try visit(disk, trees.root.path.appending("disk"))
        func covered(_ point: FilePath, _ device: UInt64) -> [WatchedDirectory] {
            trees.tree.covered(by: [point: MountTable.Mounted(number: 36, device: device)], in: trees.root)
        }
        #expect(covered("disk", below + 1).map(\.name) == ["disk"])
        // A bind mount of its own file system.
        #expect(covered("disk", below).isEmpty)
        #expect(covered("elsewhere", below + 1).isEmpty)
        // Its visit is still to come.
        #expect(covered("disk/sub", below + 1).isEmpty && sub.device == 0)
        // Visited with another file system on it.
        #expect(try visit(disk, "/proc/sys") != below)
        #expect(covered("disk", below + 1).isEmpty)
    }

    @Test("each directory has one watch, kept while it is the same, and the limit is reported once")
    mutating func watches() throws {
        trees.tree = WatchTree(inotify: try Inotify(limit: 2))
        func watch(_ directory: WatchedDirectory) throws -> WatchTree.WatchResult {
            let path = trees.root.path.appending(directory.relative ?? "")
            try Files.makeFolders(path)
            let stream = try FolderStream(path)
            return trees.tree.watch(directory, stream, try stream.status(), path)
        }
        let (a, b) = (trees.directory("a"), trees.directory("b"))
        guard case .added = try watch(trees.root.top), case .added = try watch(a), case .unchanged = try watch(a)
        else { return #expect(Bool(false), "each watch is set once") }
        guard case .limitReached(isFirst: true) = try watch(b), case .limitReached(isFirst: false) = try watch(b)
        else { return #expect(Bool(false), "the limit is reported once") }
        let number = try #require(a.watch)
        #expect(trees.tree.directories(of: number)?.first === a)
        _ = trees.tree.remove(a)
        #expect(trees.tree.directories(of: number) == nil)
        guard case .added = try watch(b) else { return #expect(Bool(false), "a removed directory frees its watch") }
        #expect(names(trees.tree.endEvents()) == ["", "b"])
        guard case .unavailable = try watch(b) else { return #expect(Bool(false), "events are unavailable") }
    }
}
