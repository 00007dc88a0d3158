import Core
import Digests
import Linux
import Staging
import TestKit
import Testing

@Suite("Staging")
struct StagingTests {
    let folder = TemporaryFolder()
    let area: StagingArea

    init() throws {
        area = StagingArea(folder: folder.path.appending("staging"))
        try area.prepare()
    }

    func identity(_ path: FilePath) throws -> (FileIdentity, FileStatus) {
        let status = try FileStatus(at: path)
        let identity = FileIdentity(
            folder: "f", relative: path.name, size: status.size, modified: status.modified,
            inode: status.inode, born: nil,
            fileSystem: nil)
        return (identity, status)
    }

    @Test(
        "the copy has every byte, and the digest is the content's",
        arguments: [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20, (9 << 20) + 7])
    func whole(_ size: Int) throws {
        let content = noise(size, seed: UInt64(size))
        let source = try folder.write("source.mp4", content)
        let (identity, status) = try identity(source)
        let copied = try area.copy(CopyRequest(SourceFile(source), identity, changed: status.changed), as: "1")
        #expect(copied.sha256 == Hasher.digest(.sha256, of: content))
        #expect(try area.size(of: "1") == nil)
        try area.publish([copied])
        #expect(try Files.read(area.path("1"), limit: 1 << 30) == content)
    }

    @Test(
        "copies with their final names are on disk, and survive a power cut",
        .enabled("\(LoopDisk.need)") {
            await LoopDisk.isPossible.value
        }, arguments: LoopDisk.Kind.allCases)
    func durable(_ kind: LoopDisk.Kind) async throws {
        let disk = try await LoopDisk(kind)
        let area = StagingArea(folder: disk.path.appending("staging"), method: .copy)
        try area.prepare()
        var (copies, contents) = ([StagingArea.FreshCopy](), [[UInt8]]())
        for (number, size) in [0, 1, 4096, 300_000, 3 << 20].enumerated() {
            contents.append(noise(size, seed: UInt64(number)))
            let source = try folder.write(FilePath("source \(number)"), contents[number])
            let (identity, status) = try identity(source)
            copies.append(
                try area.copy(
                    CopyRequest(SourceFile(source), identity, changed: status.changed), as: FilePath("\(number + 1)")))
        }
        try area.publish(copies)
        try await disk.cutPower()
        for (number, content) in contents.enumerated() {
            #expect(try Files.read(area.path(FilePath("\(number + 1)")), limit: 1 << 30) == content)
        }
    }

    @Test("a source that differs from its record is refused, and leaves no copy")
    func changed() throws {
        let source = try folder.write("source.mp4", noise(1000))
        let (identity, status) = try identity(source)
        for spoil in [
            { (i: inout FileIdentity, c: inout Int64) in i.size = 999 }, { i, c in i.modified -= 1 },
            { i, c in c -= 1 }, { i, c in i.inode = 1 },
        ] {
            var (other, ctime) = (identity, status.changed)
            spoil(&other, &ctime)
            let error = #expect(throws: StagingError.self) {
                try area.copy(CopyRequest(SourceFile(source), other, changed: ctime), as: "1")
            }
            guard case .changed? = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
        #expect(try Files.names(in: area.folder).isEmpty)
    }

    enum Meddling: String, CaseIterable, Sendable { case written, grown, truncated, replaced, removed, touched }

    @Test(
        "a source that changes during the copy is never accepted, and leaves no copy",
        arguments: Meddling.allCases)
    func changedMeanwhile(_ meddling: Meddling) throws {
        let source = try folder.write("source.mp4", noise(8 << 20))
        let (identity, status) = try identity(source)
        func meddle() throws {
            switch meddling {
            case .written: try Descriptor.open(source, for: .updating).write([1, 2, 3], named: source)
            case .grown: try Descriptor.open(source, for: .updating).setSize(9 << 20, named: source)
            case .truncated: try Descriptor.open(source, for: .updating).setSize(5 << 20, named: source)
            case .replaced: try Files.replace(source, with: noise(8 << 20, seed: 2))
            case .removed: try Files.remove(source)
            case .touched: try Descriptor.open(source, for: .updating).setModified(status.modified, named: source)
            }
        }
        var blocks = 0
        let error = #expect(throws: StagingError.self) {
            _ = try area.copy(
                CopyRequest(SourceFile(source), identity, changed: status.changed), as: "1",
                pace: CopyProgress(isStopped: {
                    blocks += 1
                    if blocks == 3 { do { try meddle() } catch { Issue.record(error) } }
                    return false
                }))
        }
        switch error {
        case .missing? where meddling == .removed: break
        case .changed? where meddling != .removed: break
        default: Issue.record("\(String(describing: error))")
        }
        #expect(try Files.names(in: area.folder).isEmpty)
    }

    @Test("a stop ends the copy between two blocks")
    func stopped() throws {
        let source = try folder.write("source.mp4", noise(4 << 20))
        let (identity, status) = try identity(source)
        let request = CopyRequest(SourceFile(source), identity, changed: status.changed)
        let error = #expect(throws: StagingError.self) {
            try area.copy(request, as: "1", pace: CopyProgress(isStopped: { true }))
        }
        guard case .stopped? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("a missing source and one that is no file are distinguished from a change")
    func missing() throws {
        let source = try folder.write("source.mp4", noise(10))
        let (identity, status) = try identity(source)
        try Files.remove(source)
        let error = #expect(throws: StagingError.self) {
            try area.copy(CopyRequest(SourceFile(source), identity, changed: status.changed), as: "1")
        }
        guard case .missing? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test("a sweep removes partial copies and lists complete ones, some at a time")
    func sweep() async throws {
        for number in 1...9 { try folder.write(FilePath("staging/\(number)"), noise(10)) }
        try folder.write("staging/17.part", noise(10))
        try folder.write("staging/notes.txt", noise(10))
        let sweep = StagingWalk(area)
        var named: [Int64] = []
        while let numbers = try await sweep.next(atMost: 4) {
            #expect(numbers.count <= 4 && numbers == numbers.sorted())
            named += numbers
        }
        #expect(named.sorted() == Array(1...9))
        #expect(Set(try Files.names(in: area.folder)) == Set((1...9).map { FilePath("\($0)") } + ["notes.txt"]))
    }
}
