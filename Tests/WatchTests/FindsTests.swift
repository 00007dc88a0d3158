import Core
import TestKit
import Testing

@testable import Linux
@testable import Watch

@Suite("What a scan came across")
struct FindsTests {
    /// A directory that is listed, for rules that are distinguished by the ends of names.
    private struct Listing {
        let folder = TemporaryFolder()
        let rules = ["a", "b"].map { name in
            Rule(WatchRule(name: name, path: "/", include: ["*." + name]), skipsExisting: false)
        }
        let root: Root

        init() {
            root = Root(
                SourceFolders()[folder.path], rules: [0, 1], of: rules, nextLook: MonotonicTime(nanoseconds: 0))
        }

        func cursor(_ origin: Origin, visit: Int, relative: FilePath = "") throws -> Cursor {
            Cursor(
                root.top, origin, try FolderStream(folder.path), visit: visit, relative: relative, rules: rules,
                moves: 1,
                device: 1, fileSystem: FileSystemIdentity(name: "uuid", type: "ext4", keepsInodes: true))
        }
    }

    private static func look(_ inode: UInt64, device: UInt64 = 1) -> FileLook {
        FileLook(
            device: device, inode: inode, size: 10 + Int64(inode), modified: 20, changed: 30,
            born: inode == 2 ? nil : 40,
            mode: 0o100644)
    }

    private static func add(
        _ name: String, _ look: FileLook, rule: Int, of cursor: Cursor, at time: Int64, to finds: inout Finds,
        _ place: () -> (String, FileSystemIdentity?)
    ) {
        Array(name.utf8).withUnsafeBufferPointer {
            finds.append($0, look, rule: rule, of: cursor, at: MonotonicTime(nanoseconds: time), place: place)
        }
    }

    @Test("each comes out as it was found: its rule, its look, its place, what told of it")
    func found() throws {
        let listing = Listing()
        var finds = Finds()
        var asked = 0
        let card = FileSystemIdentity(name: "card", type: "vfat", keepsInodes: false)
        let rows: [(name: String, rule: Int, device: UInt64, origin: Origin, visit: Int, relative: FilePath)] = [
            ("1.a", 0, 1, .first, 1, ""), ("2.a", 0, 1, .first, 1, ""), ("3.b", 1, 1, .first, 1, ""),
            ("4.b", 1, 9, .first, 1, ""), ("5.b", 1, 9, .event, 2, "day"), ("6.a", 0, 1, .event, 2, "day"),
        ]
        for (index, row) in rows.enumerated() {
            let cursor = try listing.cursor(row.origin, visit: row.visit, relative: row.relative)
            let look = Self.look(UInt64(index + 1), device: row.device)
            Self.add(row.name, look, rule: row.rule, of: cursor, at: Int64(index), to: &finds) {
                asked += 1
                return (listing.rules[row.rule].settings.name, row.device == 9 ? card : cursor.fileSystem)
            }
        }
        // The second file has the file system of the first.
        #expect(asked == rows.count - 1)
        #expect(finds.count == rows.count)
        for (index, row) in rows.enumerated() {
            let file = try #require(finds[index])
            let look = Self.look(UInt64(index + 1), device: row.device)
            #expect(file.directory === listing.root.top)
            #expect(file.rule == row.rule)
            #expect(file.look == look)
            #expect(file.at == MonotonicTime(nanoseconds: Int64(index)))
            #expect(file.evidence == (row.origin == .event ? .heard : .found))
            #expect(file.place == Place(directory: listing.root.top, name: FilePath(row.name)))
            let system = row.device == 9 ? card : FileSystemIdentity(name: "uuid", type: "ext4", keepsInodes: true)
            let relative = row.relative.appending(FilePath(row.name))
            #expect(
                file.identity
                    == StoredIdentity(look, folder: ["a", "b"][row.rule], relative: relative, on: system))
            #expect(finds.identities[index] == file.identity)
        }
    }

    @Test("what no folder takes any more is left out, and the others keep their positions")
    func leftOut() throws {
        let listing = Listing()
        var finds = Finds()
        let cursor = try listing.cursor(.reconcile, visit: 1)
        for (index, name) in ["1.a", "2.b", "3.a"].enumerated() {
            let rule = name.hasSuffix("a") ? 0 : 1
            Self.add(name, Self.look(7), rule: rule, of: cursor, at: Int64(index), to: &finds) {
                (["a", "b"][rule], cursor.fileSystem)
            }
        }
        // The rules have changed their positions, and one is gone.
        finds.revise { $0.identity.folder == "a" ? 1 : nil }
        #expect(finds.indices.map { finds[$0]?.rule } == [1, nil, 1])
        #expect(finds.identities.map(\.relative) == ["1.a", "2.b", "3.a"])
        finds.leaveOut { $0 === listing.root.top }
        #expect(finds.indices.allSatisfy { finds[$0] == nil })
        #expect(finds.count == 3)
        // A file that is found next in that directory is a new entry.
        Self.add("4.a", Self.look(8), rule: 0, of: cursor, at: 4, to: &finds) { ("a", cursor.fileSystem) }
        #expect(finds[3]?.rule == 0)
        #expect(finds[3]?.directory === listing.root.top)
    }

    @Test("a directory whose claims have changed asks anew who takes its names")
    func claims() throws {
        let listing = Listing()
        listing.root.claimants = Claimant.all(for: listing.root, among: [listing.root], rules: listing.rules)
        let cursor = try listing.cursor(.first, visit: 1)
        func winner(_ name: String) -> Int? {
            Array(name.utf8).withUnsafeBufferPointer { cursor.contenders.winner(for: $0) }
        }
        #expect(winner("x.a") == 0 && winner("x.b") == 1 && winner("x.c") == nil)
        let others = Array(listing.rules.reversed())
        listing.root.claimants = Claimant.all(for: listing.root, among: [listing.root], rules: others)
        #expect(cursor.refresh(others, after: 1))
        #expect(winner("x.a") == 0)
        #expect(cursor.refresh(others, after: 2))
        #expect(winner("x.a") == 1 && winner("x.b") == 0)
    }
}
