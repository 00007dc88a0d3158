import Core
import TestKit
import Testing

@testable import Linux
@testable import Watch

@Suite("FoundFiles")
struct FoundFilesTests {
    let trees = Trees()

    private func add(_ names: some Sequence<String>, to files: inout FoundFiles) throws {
        let scan = DirectoryScan(
            trees.root.top, .first, try FolderStream(trees.folder.path), visit: 1, relative: "", rules: trees.rules,
            treeVersion: 0, device: 1, fileSystem: nil)
        for name in names {
            Array(name.utf8).withUnsafeBufferPointer {
                files.append($0, .regular(size: 1), rule: 0, of: scan, at: .start) { ("cam", nil) }
            }
        }
    }

    @Test("a query is sent when enough files were found or no more come, one query at a time")
    func queries() throws {
        var files = FoundFiles()
        try add(["a", "b"], to: &files)
        #expect(files.beginQuery(isComplete: false) == nil)
        let first = files.beginQuery(isComplete: true)
        let query = try #require(first)
        #expect(query.identities.map(\.relative) == ["a", "b"] && query.countsByRule == [0: 2])
        try add(["c"], to: &files)
        #expect(files.beginQuery(isComplete: true) == nil)
        #expect(files.unansweredCount == 3 && files.isQuerying)
        var new: [FilePath] = []
        files.endQuery([true, false]) { new.append($0.place.name) }
        #expect(new == ["b"])
        #expect(files.beginQuery(isComplete: true)?.identities.map(\.relative) == ["c"])
    }

    @Test("no slot is free when a whole query waits")
    func slots() throws {
        var files = FoundFiles()
        let before = files.freeSlots
        try add((0..<FoundFiles.queryLimit).lazy.map { "\($0)" }, to: &files)
        #expect(before == FoundFiles.queryLimit && files.freeSlots == 0)
        #expect(files.beginQuery(isComplete: false)?.identities.count == FoundFiles.queryLimit)
        #expect(files.freeSlots == FoundFiles.queryLimit)
    }

    @Test("an old file with an event is dropped, and others are passed on")
    func skipped() {
        var files = FoundFiles()
        for name: FilePath in ["a", "b"] { files.addSkipped(trees.settled(name), at: trees.place(name)) }
        files.forgetSkipped(trees.place("a"))
        #expect(files.hasSkipped && !files.isEmpty)
        #expect(files.removeSkipped().map(\.relative) == ["b"])
        #expect(files.removeSkipped().isEmpty == true)
        #expect(files.isEmpty)
    }

    @Test("files of a dropped root are not taken from the answer")
    func dropped() throws {
        var files = FoundFiles()
        try add(["a"], to: &files)
        _ = files.beginQuery(isComplete: true)
        try add(["b"], to: &files)
        files.addSkipped(trees.settled("c"), at: trees.place("c"))
        files.drop(trees.root)
        #expect(!files.hasSkipped)
        files.endQuery([false]) { Issue.record("\($0.place.name)") }
        _ = files.beginQuery(isComplete: true)
        files.endQuery([false]) { Issue.record("\($0.place.name)") }
    }

    @Test("after a change, a rule of another folder takes none of the files")
    func reassigned() throws {
        var files = FoundFiles()
        try add(["a", "b"], to: &files)
        for name: FilePath in ["x", "y"] { files.addSkipped(trees.settled(name), at: trees.place(name)) }
        files.reassign({ $0.place.name == "a" ? 0 : nil }) { place, _ in place.name == "x" }
        #expect(files.removeSkipped().map(\.relative) == ["x"])
        _ = files.beginQuery(isComplete: true)
        var new: [FilePath] = []
        files.endQuery([false, false]) { new.append($0.place.name) }
        #expect(new == ["a"])
    }
}
