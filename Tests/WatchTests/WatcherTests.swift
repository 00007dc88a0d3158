import Core
import Glibc
import Linux
import TestKit
import Testing
import Watch

@Suite("Watcher", .timeLimit(.minutes(Patience.minutes(2))))
struct WatcherTests {
    let folder = TemporaryFolder()
    let scene = Scene()

    /// The watched folder, and another one on the same file system.
    var watched: FilePath { folder.path.appending("in") }
    var outside: FilePath { folder.path.appending("out") }

    init() throws {
        try Files.makeFolders(watched)
        try Files.makeFolders(outside)
    }

    func rule(_ name: String = "cam") -> WatchRule { WatchRule(name: name, path: watched) }

    @Test("a file that was written and closed is delivered, with the lease as the reason")
    func closed() async throws {
        try await scene.watch([rule()]) { _ in
            let path = try folder.write("in/a.mp4", noise(5000))
            try await scene.settled("a.mp4")
            let file = try #require(scene.reports.settled.first)
            #expect(file.settledBy == .lease)
            #expect(file.path == path)
            #expect(try file.status == FileStatus(at: path))
            #expect(file.identity.size == 5000)
            #expect(file.identity.fileSystem != nil)
        }
    }

    @Test("an empty file is delivered; the daemon decides about it")
    func empty() async throws {
        try await scene.watch([rule()]) { _ in
            try folder.write("in/empty.mp4", [])
            try await scene.settled("empty.mp4")
        }
    }

    @Test("a rename into the folder counts as a close")
    func renamedIn() async throws {
        let path = try folder.write("out/a", noise(10))
        try await scene.watch([rule()]) { _ in
            try Files.rename(path, to: watched.appending("b.mp4"))
            try await scene.settled("b.mp4")
            #expect(scene.reports.settled.first?.settledBy == .lease)
        }
    }

    @Test("files published by a hard link are found, although no close event reports them")
    func linkedIn() async throws {
        let path = try folder.write("out/a", noise(10))
        try await scene.watch([rule()]) { _ in
            let target = watched.appending("linked.mp4")
            #expect(path.withCString { from in target.withCString { link(from, $0) } } == 0)
            try await scene.settled("linked.mp4")
            #expect(scene.reports.settled.first?.settledBy == .quiet)
        }
    }

    @Test("a nameless file that is linked into place is found")
    func nameless() async throws {
        try await scene.watch([rule()]) { _ in
            let number = watched.withCString { open($0, O_WRONLY | 0o20000000 | O_DIRECTORY, 0o600) }
            try #require(number >= 0)
            let file = Descriptor(adopting: number)
            try file.write(noise(100), named: "nameless")
            let target = watched.appending("made.mp4")
            let linked = "/proc/self/fd/\(number)".withCString { from in
                target.withCString { linkat(AT_FDCWD, from, AT_FDCWD, $0, AT_SYMLINK_FOLLOW) }
            }
            #expect(linked == 0)
            try file.close(named: target)
            try await scene.settled("made.mp4")
        }
    }

    @Test("a file renamed before its writer was done waits for the writer")
    func renamedWhileOpen() async throws {
        let source = outside.appending("a")
        try await scene.watch([rule()]) { watcher in
            let file = try Descriptor.open(source, for: .creating)
            try file.write(noise(10), named: source)
            try Files.rename(source, to: watched.appending("b.mp4"))
            try await busy(watcher, "b.mp4")
            try file.write(noise(10), named: source)
            try file.close(named: source)
            try await scene.settled("b.mp4")
            #expect(scene.reports.settled.first?.status.size == 20)
        }
    }

    @Test("a file waits for the second of two writers, and other files pass meanwhile")
    func twoWriters() async throws {
        let path = watched.appending("a.mp4")
        try await scene.watch([rule()]) { watcher in
            let first = try Descriptor.open(path, for: .creating)
            let second = try Descriptor.open(path, for: .updating)
            try first.write(noise(10), named: path)
            try first.close(named: path)
            try await busy(watcher, "a.mp4")
            try folder.write("in/other.mp4", noise(1))
            try await scene.settled("other.mp4")
            try second.write(noise(30), named: path)
            try second.close(named: path)
            try await scene.settled("a.mp4", "other.mp4")
            #expect(scene.reports.settled.last?.status.size == 30)
        }
    }

    /// Waits until the watcher has found a writer of the file.
    func busy(_ watcher: Watcher, _ name: FilePath) async throws {
        try await eventually("the watcher has noticed a writer of \(name)") {
            watcher.settlingFiles().contains { $0.path.name == name && $0.isBusy }
        }
    }

    @Test("every file of a tree that grows faster than it can be watched is found")
    func deepTree() async throws {
        try await scene.watch([rule()]) { _ in
            var expected: [String] = []
            for tree in 0..<20 {
                var relative = "t\(tree)"
                for depth in 0..<25 {
                    expected.append("\(relative)/f.mp4")
                    try folder.write(FilePath("in/\(relative)/f.mp4"), [1])
                    relative += "/d\(depth)"
                }
            }
            try await scene.settled(expected)
        }
    }

    @Test("every file of a thousand nested directories, created during the scan, is found")
    func deepestTree() async throws {
        try await scene.watch([rule()]) { _ in
            var expected: [String] = []
            var relative = "d"
            for depth in 0..<1_000 {
                if depth % 50 == 0 {
                    expected.append("\(relative)/f.mp4")
                    try folder.write(FilePath("in/\(relative)/f.mp4"), [1])
                } else {
                    try Files.makeFolders(watched.appending(FilePath(relative)))
                }
                relative += "/d"
            }
            try await scene.settled(expected)
        }
    }

    @Test("files of a moved-in directory, and later ones, are found")
    func movedInDirectory() async throws {
        try folder.write("out/trip/day/a.mp4", noise(10))
        try await scene.watch([rule()]) { _ in
            try Files.rename(outside.appending("trip"), to: watched.appending("trip"))
            try await scene.settled("trip/day/a.mp4")
            try folder.write("in/trip/day/b.mp4", noise(10))
            try await scene.settled("trip/day/a.mp4", "trip/day/b.mp4")
        }
    }

    @Test("a directory renamed while files in it settle is followed")
    func renamedDirectory() async throws {
        try Files.makeFolders(watched.appending("old/deep"))
        try await scene.watch([rule()]) { _ in
            try folder.write("in/old/deep/a.mp4", noise(10))
            try Files.rename(watched.appending("old"), to: watched.appending("new"))
            try await scene.settled("new/deep/a.mp4")
            try folder.write("in/new/deep/b.mp4", noise(10))
            try await scene.settled("new/deep/a.mp4", "new/deep/b.mp4")
        }
    }

    @Test("a directory that leaves is dropped, and found when it returns")
    func leavingDirectory() async throws {
        try Files.makeFolders(watched.appending("d"))
        try await scene.watch([rule()]) { _ in
            try Files.rename(watched.appending("d"), to: outside.appending("d"))
            try folder.write("out/d/a.mp4", noise(10))
            try folder.write("in/b.mp4", noise(10))
            try await scene.settled("b.mp4")
            try Files.rename(outside.appending("d"), to: watched.appending("d"))
            try await scene.settled("b.mp4", "d/a.mp4")
            try folder.write("in/d/c.mp4", noise(10))
            try await scene.settled("b.mp4", "d/a.mp4", "d/c.mp4")
        }
    }

    @Test("a file that is removed while it settles is not delivered")
    func removed() async throws {
        try await scene.watch([rule()]) { _ in
            let path = try folder.write("in/a.mp4", noise(10))
            try Files.remove(path)
            try folder.write("in/b.mp4", noise(10))
            try await scene.settled("b.mp4")
        }
    }

    @Test("files present at the start settle without events")
    func present() async throws {
        try folder.write("in/a.mp4", noise(10))
        try folder.write("in/x/y/b.mp4", noise(10))
        try await scene.watch([rule()]) { _ in
            try await scene.settled("a.mp4", "x/y/b.mp4")
            #expect(scene.reports.settled.allSatisfy { $0.settledBy == .quiet })
        }
    }

    @Test("a known file does not settle again")
    func known() async throws {
        try folder.write("in/old.mp4", noise(10))
        try await scene.watch([rule()], known: { $0.relative == "old.mp4" ? true : nil }) { watcher in
            watcher.rescan()
            try folder.write("in/new.mp4", noise(10))
            try await scene.settled("new.mp4")
            try await scene.wait("both scans and the new file have asked") { $0.asked >= 3 }
            #expect(scene.names == ["new.mp4"])
        }
    }

    @Test("with existing: skip, old files are reported and new ones are delivered")
    func skipExisting() async throws {
        try folder.write("in/old.mp4", noise(10))
        try folder.write("in/x/older.mp4", noise(10))
        try await scene.watch([rule()], skipExisting: ["cam"]) { _ in
            #expect(scene.reports.skipped.map(\.relative.display).sorted() == ["old.mp4", "x/older.mp4"])
            try folder.write("in/x/new.mp4", noise(10))
            try folder.write("in/old.mp4", noise(20))
            try await scene.settled("old.mp4", "x/new.mp4")
        }
    }

    @Test("a file that the daemon saw changing settles again")
    func reconsidered() async throws {
        try await scene.watch([rule()], known: { _ in false }) { watcher in
            try folder.write("in/x/a.mp4", noise(10))
            try await scene.settled("x/a.mp4")
            watcher.reconsider(folder: "cam", relative: "x/a.mp4")
            try await scene.settled("x/a.mp4", "x/a.mp4")
        }
    }
}
