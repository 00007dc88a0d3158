import Core
import Digests
import Linux
import Staging
import TestKit
import Testing

@Suite("Release of a source")
struct SourceReleaseTests {
    let folder = TemporaryFolder()
    let content = noise(50_000)

    func identity(_ path: FilePath) throws -> SourceRelease.AssetIdentity {
        let status = try FileStatus(at: path)
        return SourceRelease.AssetIdentity(
            id: 42, source: SourceFile(path), size: status.size, modified: status.modified, inode: status.inode,
            changed: status.changed, sha256: Hasher.digest(.sha256, of: try Files.read(path, limit: 1 << 30)))
    }

    @Test(
        "times in whole seconds prove nothing if the file was found within two seconds of its last change",
        arguments: [(0, true), (1_999, true), (2_000, false)])
    func racilyClean(_ later: Int64, _ isDoubted: Bool) throws {
        let path = try folder.write("a.mp4", content)
        var staged = try identity(path)
        var status = try FileStatus(at: path)
        status.changed -= status.changed % 1_000_000_000
        staged.acquiredAt = WallTime(milliseconds: status.changed / 1_000_000 + later)
        let folder = try OpenFolder(following: path.parent)
        let isHidden = staged.mayHideWrite(status, at: path.name, in: folder)
        staged.acquiredAt = nil
        let isHiddenAlways = staged.mayHideWrite(status, at: path.name, in: folder)
        // With finer times, each write changes one of them.
        status.changed += 1
        let isHiddenInFine = staged.mayHideWrite(status, at: path.name, in: folder)
        #expect(isHidden == isDoubted && isHiddenAlways && !isHiddenInFine)
    }

    func isReleased(_ result: SourceRelease.Result) -> Bool {
        if case .released = result { true } else { false }
    }

    func isChanged(_ result: SourceRelease.Result) -> Bool {
        if case .changed = result { true } else { false }
    }

    func isKept(_ result: SourceRelease.Result) -> Bool {
        if case .kept = result { true } else { false }
    }

    func names() throws -> Set<FilePath> { Set(try Files.names(in: folder.path)) }

    @Test("delete removes the staged source, and a second run finds nothing to do")
    func delete() throws {
        let source = try folder.write("a.mp4", content)
        let release = SourceRelease(try identity(source), .delete)
        #expect(isReleased(try release.run()))
        #expect(try names().isEmpty)
        #expect(try release.run() == .gone)
    }

    @Test("move creates folders, and picks a new name if the target has other bytes")
    func move() throws {
        let source = try folder.write("a.mp4", content)
        try folder.write("done/2026/a.mp4", [1])
        let target = folder.path.appending("done/2026/a.mp4")
        #expect(isReleased(try SourceRelease(try identity(source), .move(to: MoveTarget(target))).run()))
        #expect(try Files.read(folder.path.appending("done/2026/a (2).mp4")) == content)
        #expect(try Files.read(target) == [1])
    }

    @Test("an unreachable target leaves the source under its own name for a retry")
    func targetFails() throws {
        let source = try folder.write("a.mp4", content)
        let wall = try folder.write("done", [1])
        let staged = try identity(source)
        let release = SourceRelease(staged, .move(to: MoveTarget(wall.appending("deeper/a.mp4"))))
        for _ in 0..<2 {
            #expect(throws: SystemError.self) { try release.run() }
            #expect(try names() == ["a.mp4", "done"])
        }
        try Files.remove(wall)
        #expect(isReleased(try release.run()))
        #expect(try Files.read(wall.appending("deeper/a.mp4")) == content)
    }

    @Test("a target with the same bytes is the move's own, from before a crash")
    func movedBefore() throws {
        let source = try folder.write("a.mp4", content)
        try folder.write("done/a.mp4", content)
        #expect(
            isReleased(
                try SourceRelease(try identity(source), .move(to: MoveTarget(folder.path.appending("done/a.mp4"))))
                    .run()))
        #expect(try Files.names(in: folder.path.appending("done")) == ["a.mp4"])
        #expect(try names() == ["done"])
    }

    @Test("a target under an alternative name with the same bytes is the move's own as well")
    func movedBeforeUnderAnotherName() throws {
        let source = try folder.write("a.mp4", content)
        let target = try folder.write("done/a.mp4", [1])
        try folder.write("done/a (2).mp4", content)
        #expect(isReleased(try SourceRelease(try identity(source), .move(to: MoveTarget(target))).run()))
        #expect(Set(try Files.names(in: target.parent)) == ["a.mp4", "a (2).mp4"])
        #expect(try names() == ["done"])
    }

    @Test("any other file under the name is left unchanged")
    func replaced() throws {
        let source = try folder.write("a.mp4", content)
        let staged = try identity(source)
        try Files.remove(source)
        let other = noise(50_000, seed: 2)
        try folder.write("a.mp4", other)
        #expect(isChanged(try SourceRelease(staged, .delete).run()))
        #expect(try Files.read(source) == other)
    }

    @Test("another file with the same size, time and content is no other version, and is left unchanged")
    func sameContent() throws {
        let source = try folder.write("a.mp4", content)
        let staged = try identity(source)
        // The inode of the first is in use as long as that file exists.
        try Files.rename(source, to: folder.path.appending("first"))
        let file = try Descriptor.open(source, for: .creating)
        try file.write(content, named: source)
        try file.setModified(staged.modified, named: source)
        try file.close(named: source)
        #expect(isKept(try SourceRelease(staged, .delete).run()))
        #expect(try names() == ["a.mp4", "first"])
    }

    @Test("a file rewritten in place with size and time restored is detected by its ctime and bytes")
    func rewritten() throws {
        let source = try folder.write("a.mp4", content)
        let staged = try identity(source)
        let file = try Descriptor.open(source, for: .updating)
        try file.write(noise(100, seed: 3), named: source)
        try file.setModified(staged.modified, named: source)
        try file.close(named: source)
        #expect(isChanged(try SourceRelease(staged, .delete).run()))
        #expect(try names() == ["a.mp4"])
    }

    @Test("with only changed permissions, the bytes are compared and the source is released")
    func touched() throws {
        let source = try folder.write("a.mp4", content)
        let staged = try identity(source)
        let aside = folder.path.appending("b")
        try Files.rename(source, to: aside)
        try Files.rename(aside, to: source)
        #expect(try FileStatus(at: source).changed != staged.changed)
        #expect(isReleased(try SourceRelease(staged, .delete).run()))
    }

    @Test("after a crash between rename and deletion, the renamed file is judged by its digest")
    func caught() throws {
        let source = try folder.write("a.mp4", content)
        let staged = try identity(source)
        let aside = folder.path.appending(SourceRelease.token.name(of: 42))
        try Files.rename(source, to: aside)
        let newcomer = noise(20, seed: 5)
        try folder.write("a.mp4", newcomer)
        #expect(isReleased(try SourceRelease(staged, .delete).run()))
        #expect(try names() == ["a.mp4"])
        #expect(try Files.read(source) == newcomer)
    }

    @Test("a renamed file of another owner gets its name back, or one beside it if taken")
    func givenBack() throws {
        let source = try folder.write("a.mp4", content)
        let staged = try identity(source)
        try Files.remove(source)
        try folder.write(SourceRelease.token.name(of: 42), [9, 9])
        #expect(isChanged(try SourceRelease(staged, .delete).run()))
        #expect(try Files.read(source) == [9, 9])
        try folder.write(SourceRelease.token.name(of: 42), [8])
        #expect(isKept(try SourceRelease(staged, .delete).run()))
        #expect(try Files.read(folder.path.appending("a (2).mp4")) == [8])
        #expect(try Files.read(source) == [9, 9])
    }

    @Test("if open writers cannot be determined, nothing is released, unless accepted")
    func unknown() throws {
        let source = try folder.write("a.mp4", content)
        let staged = try identity(source)
        let blind = FixedWriters(answer: .unknown(.notReported))
        #expect(try SourceRelease(staged, .delete, writers: blind).run() == .unsure(.notReported))
        #expect(try FileStatus(at: source).changed == staged.changed, "the source was renamed and restored")
        #expect(isReleased(try SourceRelease(staged, .delete, inDoubt: .accept, writers: blind).run()))
        #expect(try names().isEmpty)
    }

    @Test("a comparing release reads the bytes, even if size and both times are unchanged")
    func compared() throws {
        let source = try folder.write("a.mp4", content)
        var staged = try identity(source)
        staged.sha256 = Hasher.digest(.sha256, of: noise(50_000, seed: 9))
        let blind = FixedWriters(answer: .unknown(.elsewhere))
        #expect(isChanged(try SourceRelease(staged, .delete, inDoubt: .compare, writers: blind).run()))
        staged = try identity(source)
        #expect(isReleased(try SourceRelease(staged, .delete, inDoubt: .compare, writers: blind).run()))
    }

    @Test("a renamed file whose state cannot be determined gets its name back")
    func unknownCaught() throws {
        let source = try folder.write("a.mp4", content)
        let staged = try identity(source)
        try Files.rename(source, to: folder.path.appending(SourceRelease.token.name(of: 42)))
        let blind = FixedWriters(answer: .unknown(.elsewhere))
        #expect(try SourceRelease(staged, .delete, writers: blind).run() == .unsure(.elsewhere))
        #expect(try names() == ["a.mp4"])
    }

    @Test("a detected writer counts, whatever is accepted", arguments: [SourceRelease.InDoubt.accept, .compare])
    func seen(_ inDoubt: SourceRelease.InDoubt) throws {
        let source = try folder.write("a.mp4", content)
        let seen = FixedWriters(answer: .present)
        let release = SourceRelease(try identity(source), .delete, inDoubt: inDoubt, writers: seen)
        guard case .later = try release.run() else {
            Issue.record("an open file was released")
            return
        }
        #expect(try names() == ["a.mp4"])
    }

    @Test("a source that another process has open for writing waits")
    func openForWriting() throws {
        let source = try folder.write("a.mp4", content)
        let staged = try identity(source)
        let writer = try Descriptor.open(source, for: .updating)
        guard case .later = try SourceRelease(staged, .delete).run() else {
            Issue.record("an open file was released")
            return
        }
        #expect(try names() == ["a.mp4"])
        try writer.close(named: source)
        #expect(isReleased(try SourceRelease(staged, .delete).run()))
    }
}
