import Core
import Linux
import Store
import TestKit
import Testing

@testable import Daemon

@Suite("Stored thumbnails")
struct ThumbnailCacheTests {
    private let folder = TemporaryFolder()
    private func cache(most: Int64 = 1 << 20) -> ThumbnailCache { ThumbnailCache(in: folder.path, most: most) }

    @Test("an entry is found again by another daemon; nothing is made on the disk before the first one")
    func found() throws {
        #expect(cache().find("a") == nil)
        #expect(try FileStatus.ifPresent(at: folder.path.appending("thumbnails")) == nil)
        let entries: [String: ThumbnailCache.Entry] = [
            "a": .picture([1, 2, 3]), "b": .none("broken"), "c": .overdue("slow"), "d": .picture([]),
        ]
        for (key, entry) in entries { #expect(try cache().store(entry, as: key)) }
        for (key, entry) in entries {
            let found = try #require(cache().find(key))
            #expect(found.entry == entry && found.tag == ThumbnailCache.tag(of: entry))
        }
        #expect(Set(entries.values.map(ThumbnailCache.tag)).count == 4)
    }

    @Test("an entry is replaced, and no reader sees a part of it")
    func replaced() throws {
        let cache = cache()
        try cache.store(.none("broken"), as: "a")
        try cache.store(.picture([7]), as: "a")
        #expect(cache.find("a")?.entry == .picture([7]))
        #expect(try Files.names(in: cache.folder) == ["a"])
    }

    @Test("a damaged entry is removed, whichever byte is damaged, and one that is cut too")
    func damaged() throws {
        let cache = cache()
        try cache.store(.picture([1, 2, 3]), as: "a")
        let path = cache.folder.appending("a")
        let content = try Files.read(path)
        var damages = content.indices.map { index in
            var damaged = content
            damaged[index] ^= 1
            return damaged
        }
        damages += [[], Array(content.dropLast()), content + [0], [UInt8](repeating: 0, count: 1 << 19)]
        for damaged in damages {
            try Files.replace(path, with: damaged)
            #expect(cache.find("a") == nil)
            #expect(try FileStatus.ifPresent(at: path) == nil)
        }
    }

    @Test("over its size the oldest entries go, also those of an earlier daemon")
    func size() throws {
        // Each takes a block of 4 KiB.
        let first = cache(most: 16 * 4096)
        for number in 0..<16 {
            try first.store(.picture([UInt8(number)]), as: "\(number)")
            let path = first.folder.appending(FilePath("\(number)"))
            try Descriptor.open(path, for: .updating).setModified(Int64(number) * 1_000_000_000, named: path)
        }
        #expect((0..<16).allSatisfy { first.find("\($0)") != nil })
        let second = cache(most: 16 * 4096)
        try second.store(.picture([99]), as: "new")
        // An eighth more than needed.
        let left = try Set(Files.names(in: second.folder).map(\.display))
        #expect(left == Set((3..<16).map(String.init) + ["new"]), "\(left)")
        for number in 16..<100 { try second.store(.picture([1]), as: "\(number)") }
        #expect(try Files.names(in: second.folder).count <= 16)
        #expect(second.find("99") != nil)
    }

    @Test("what was not used for a while is removed, and all of it when nothing is to be kept")
    func unused() throws {
        let cache = cache()
        try cache.removeUnused(since: WallTime(milliseconds: 1))
        try cache.removeAll()
        for key in ["a", "b", "c"] {
            try cache.store(.picture([1]), as: key)
            let path = cache.folder.appending(FilePath(key))
            try Descriptor.open(path, for: .updating).setModified(1_000_000_000, named: path)
        }
        cache.noteUse(of: "b", at: WallTime(milliseconds: 5_000))
        cache.noteUse(of: "nothing", at: WallTime(milliseconds: 5_000))
        #expect(cache.find("b")?.modified == WallTime(milliseconds: 5_000))
        try cache.removeUnused(since: WallTime(milliseconds: 1_000))
        #expect(try Files.names(in: cache.folder).count == 3)
        try cache.removeUnused(since: WallTime(milliseconds: 1_001))
        #expect(try Files.names(in: cache.folder) == ["b"])
        try cache.removeAll()
        #expect(try FileStatus.ifPresent(at: cache.folder) == nil)
    }

    @Test(
        "nothing is written while the disk of the state is short of space",
        .enabled(if: SmallDisk.isPossible, "mounting takes root: run the tests as root"))
    func scarce() throws {
        let disk = try SmallDisk()
        let cache = ThumbnailCache(in: disk.path)
        #expect(try !cache.store(.picture([1]), as: "a"))
        #expect(cache.find("a") == nil)
    }

    @Test("files have different entries by place, size, times and content, and uploads of one file the same")
    func keys() {
        func key(
            _ name: FilePath, size: Int64 = 1, modified: Int64 = 1, root: FilePath = "/cam", changed: Int64 = 1,
            sha256: [UInt8]? = nil
        ) -> String {
            ThumbnailCache.key(
                of: FileIdentity(
                    folder: "door", relative: name, size: size, modified: modified, inode: 7, born: nil,
                    fileSystem: nil), root: root, changed: changed, sha256: sha256)
        }
        let keys = [
            key("a"), key("b"), key("a", size: 2), key("a", modified: 2), key("a", root: "/other"),
            key("a", size: 11), key("a", modified: 11), key("a", changed: 2), key("a", sha256: [1]),
            key("a", sha256: [2]),
        ]
        #expect(Set(keys).count == keys.count && keys.allSatisfy { $0.utf8.count == 32 })
        #expect(key("a") == key("a"))
        #expect(key("a", sha256: [1]) == key("a", changed: 2, sha256: [1]))
    }
}
