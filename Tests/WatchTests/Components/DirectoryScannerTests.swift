import Core
import TestKit
import Testing

@testable import Linux
@testable import Watch

@Suite("DirectoryScanner")
struct DirectoryScannerTests {
    let trees = Trees([WatchRule(name: "cam", path: "/", include: ["*.mp4"])])
    let scanner = DirectoryScanner()

    private func visits() -> [String] {
        var visits: [String] = []
        while let (directory, reason) = scanner.popVisit() {
            visits.append("\(directory.name.display) \(reason)")
            scanner.endVisit(directory)
        }
        return visits
    }

    @Test("directories with events are scanned before all others, each once, with the strongest reason")
    func order() {
        let (a, b, c) = (trees.directory("a"), trees.directory("b"), trees.directory("c"))
        scanner.enqueue(a, .poll)
        scanner.enqueue(b, .reconcile)
        scanner.enqueue(a, .first)
        scanner.enqueue(a, .poll)
        scanner.enqueue(c, .event)
        scanner.enqueue(b, .event)
        #expect(!scanner.isIdle && trees.root.state.visits == 3)
        #expect(visits() == ["c event", "b event", "a first"])
        #expect(scanner.isIdle && trees.root.state.visits == 0)
    }

    @Test("removed directories are not queued, and those of a dropped root are dropped")
    mutating func dropped() {
        var trees = trees
        let other = Trees()
        let gone = trees.directory("a")
        _ = trees.tree.remove(gone)
        scanner.enqueue(gone, .event)
        scanner.enqueue(trees.directory("b"), .event)
        scanner.enqueue(trees.directory("c"), .poll)
        scanner.enqueue(other.directory("d"), .poll)
        scanner.drop(trees.root)
        #expect(visits() == ["d poll"])
        #expect(scanner.isIdle)
    }

    @Test("a disk error is reported again after all scans have ended without an error")
    func disk() {
        let later = MonotonicTime.start + .seconds(9)
        #expect(trees.root.state.diskFailed(again: later) == true)
        scanner.enqueue(trees.root.top, .reconcile)
        _ = visits()
        #expect(trees.root.state.diskFailed(again: later) == false)
        scanner.enqueue(trees.root.top, trees.root.state.beginScan(next: later))
        _ = visits()
        #expect(trees.root.state.diskFailed(again: later) == true)
    }

    @Test("a scan lists matching files and directories in pieces, and other names only on request")
    func listing() throws {
        for name in ["1.mp4", "2.mp4", "3.txt", ".4.mp4"] { try trees.folder.write(FilePath(name), [1]) }
        try Files.makeFolders(trees.folder.path.appending("below"))
        try Files.makeFolders(trees.folder.path.appending(".hidden"))
        for includesNames in [false, true] {
            let stream = try FolderStream(trees.folder.path)
            scanner.begin(
                DirectoryScan(
                    trees.root.top, .first, stream, visit: scanner.nextVisitNumber(), relative: "",
                    rules: trees.rules, treeVersion: 0, device: try stream.status().device, fileSystem: nil))
            var (files, directories, names): ([String], [String], [String]) = ([], [], [])
            var ended: (directory: WatchedDirectory, end: DirectoryScanner.End)?
            var pieces = 0
            while ended == nil {
                let list = scanner.list(limit: 2, trees.rules, treeVersion: 0, includesNames: includesNames) { entry in
                    switch entry {
                    case .file(let name, let status, let rule):
                        #expect(status.size == 1 && rule == 0)
                        files.append(FilePath(fromKernel: name).display)
                    case .directory(let name): directories.append(FilePath(fromKernel: name).display)
                    case .name(let name): names.append(FilePath(fromKernel: name).display)
                    case .unreadable(let error), .broken(let error): Issue.record("\(error)")
                    }
                }
                #expect(list.count <= 2)
                ended = list.ended
                pieces += 1
            }
            #expect(ended?.directory === trees.root.top && ended?.end == .complete && pieces > 2)
            #expect(files.sorted() == ["1.mp4", "2.mp4"] && directories == ["below"])
            #expect(names.sorted() == (includesNames ? [".4.mp4", "1.mp4", "2.mp4", "3.txt"] : []))
            #expect(scanner.current == nil)
        }
    }

    @Test("the scan of a directory that left the tree ends without a conclusion about its content")
    mutating func gone() throws {
        var trees = trees
        let directory = trees.directory("a")
        scanner.begin(
            DirectoryScan(
                directory, .first, try FolderStream(trees.folder.path), visit: 1, relative: "a", rules: trees.rules,
                treeVersion: trees.tree.version, device: 1, fileSystem: nil))
        _ = trees.tree.remove(directory)
        let list = scanner.list(limit: 9, trees.rules, treeVersion: trees.tree.version, includesNames: false) { _ in }
        #expect(list.ended?.directory === directory && list.ended?.end == .incomplete)
    }
}
