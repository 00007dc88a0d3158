import Core
import TestKit
import Testing

@testable import Linux
@testable import Watch

@Suite("ScanBatch")
struct ScanBatchTests {
    /// A directory that is listed, for rules that are distinguished by the ends of names.
    private struct Listing {
        let folder = TemporaryFolder()
        let rules = ["a", "b"].map { name in
            CompiledRule(WatchRule(name: name, path: "/", include: ["*." + name]), skipsExisting: false)
        }
        let root: Root

        init() {
            root = Root(
                SourceFolders()[folder.path], rules: [0, 1], of: rules, nextCheck: MonotonicTime(nanoseconds: 0))
        }

        func cursor(_ origin: VisitReason, visit: Int, relative: FilePath = "") throws -> DirectoryScan {
            DirectoryScan(
                root.top, origin, try FolderStream(folder.path), visit: visit, relative: relative, rules: rules,
                treeVersion: 1, device: 1, fileSystem: FileSystemIdentity(name: "uuid", type: "ext4", keepsInodes: true)
            )
        }
    }

    private static func status(_ inode: UInt64, device: UInt64 = 1) -> FileStatus {
        FileStatus(
            device: device, inode: inode, size: 10 + Int64(inode), modified: 20, changed: 30,
            born: inode == 2 ? nil : 40,
            mode: 0o100644)
    }

    private static func add(
        _ name: String, _ status: FileStatus, rule: Int, of cursor: DirectoryScan, at time: Int64,
        to batch: inout ScanBatch,
        _ place: () -> (String, FileSystemIdentity?)
    ) {
        Array(name.utf8).withUnsafeBufferPointer {
            batch.append($0, status, rule: rule, of: cursor, at: MonotonicTime(nanoseconds: time), place: place)
        }
    }

    @Test("each file keeps its rule, status, place and source of the report")
    func found() throws {
        let listing = Listing()
        var batch = ScanBatch()
        var asked = 0
        let card = FileSystemIdentity(name: "card", type: "vfat", keepsInodes: false)
        let rows: [(name: String, rule: Int, device: UInt64, origin: VisitReason, visit: Int, relative: FilePath)] = [
            ("1.a", 0, 1, .first, 1, ""), ("2.a", 0, 1, .first, 1, ""), ("3.b", 1, 1, .first, 1, ""),
            ("4.b", 1, 9, .first, 1, ""), ("5.b", 1, 9, .event, 2, "day"), ("6.a", 0, 1, .event, 2, "day"),
        ]
        for (index, row) in rows.enumerated() {
            let cursor = try listing.cursor(row.origin, visit: row.visit, relative: row.relative)
            let status = Self.status(UInt64(index + 1), device: row.device)
            Self.add(row.name, status, rule: row.rule, of: cursor, at: Int64(index), to: &batch) {
                asked += 1
                return (listing.rules[row.rule].settings.name, row.device == 9 ? card : cursor.fileSystem)
            }
        }
        // The second file has the file system of the first.
        #expect(asked == rows.count - 1)
        #expect(batch.count == rows.count)
        for (index, row) in rows.enumerated() {
            let file = try #require(batch[index])
            let status = Self.status(UInt64(index + 1), device: row.device)
            #expect(file.directory === listing.root.top)
            #expect(file.rule == row.rule)
            #expect(file.status == status)
            #expect(file.at == MonotonicTime(nanoseconds: Int64(index)))
            #expect(file.evidence == (row.origin == .event ? .event : .found))
            #expect(file.place == WatchedFile(directory: listing.root.top, name: FilePath(row.name)))
            let system = row.device == 9 ? card : FileSystemIdentity(name: "uuid", type: "ext4", keepsInodes: true)
            let relative = row.relative.appending(FilePath(row.name))
            #expect(
                file.identity
                    == FileIdentity(status, folder: ["a", "b"][row.rule], relative: relative, on: system))
            #expect(batch.identities[index] == file.identity)
        }
    }

    @Test("files that no folder takes any longer are dropped, and others keep their positions")
    func leftOut() throws {
        let listing = Listing()
        var batch = ScanBatch()
        let cursor = try listing.cursor(.reconcile, visit: 1)
        for (index, name) in ["1.a", "2.b", "3.a"].enumerated() {
            let rule = name.hasSuffix("a") ? 0 : 1
            Self.add(name, Self.status(7), rule: rule, of: cursor, at: Int64(index), to: &batch) {
                (["a", "b"][rule], cursor.fileSystem)
            }
        }
        // The rules have changed their positions, and one is gone.
        batch.reassign { $0.identity.folder == "a" ? 1 : nil }
        #expect(batch.indices.map { batch[$0]?.rule } == [1, nil, 1])
        #expect(batch.identities.map(\.relative) == ["1.a", "2.b", "3.a"])
        batch.drop { $0 === listing.root.top }
        #expect(batch.indices.allSatisfy { batch[$0] == nil })
        #expect(batch.count == 3)
        // A file that is found next in that directory is a new entry.
        Self.add("4.a", Self.status(8), rule: 0, of: cursor, at: 4, to: &batch) { ("a", cursor.fileSystem) }
        #expect(batch[3]?.rule == 0)
        #expect(batch[3]?.directory === listing.root.top)
    }

    @Test("a directory whose matches have changed determines again which rule takes its names")
    func claims() throws {
        let listing = Listing()
        listing.root.match(among: [listing.root], rules: listing.rules)
        let cursor = try listing.cursor(.first, visit: 1)
        func winner(_ name: String) -> Int? {
            Array(name.utf8).withUnsafeBufferPointer { cursor.contenders.firstMatch(for: $0) }
        }
        #expect(winner("x.a") == 0 && winner("x.b") == 1 && winner("x.c") == nil)
        let others = Array(listing.rules.reversed())
        listing.root.match(among: [listing.root], rules: others)
        #expect(cursor.refresh(others, treeVersion: 1))
        #expect(winner("x.a") == 0)
        #expect(cursor.refresh(others, treeVersion: 2))
        #expect(winner("x.a") == 1 && winner("x.b") == 0)
    }
}
