import Core
import Linux
import TestKit
import Testing

@testable import Store

/// Databases as broken disks leave them.
@Suite("Damaged databases", .timeLimit(.minutes(Patience.minutes(5))))
struct DamageTests {
    /// A closed state folder with work in it; with its log when `keepsLog`.
    private func made(keepsLog: Bool = false) async throws -> TemporaryFolder {
        let folder = TemporaryFolder()
        let store = try await Store.open(folder.path, clocks: ManualClocks(), sorting: .newestFirst)
        for number in 0..<40 {
            let relative = FilePath("file \(number).mp4")
            let identity = FileIdentity(
                folder: "cam", relative: relative, size: 1000, modified: Int64(number), inode: UInt64(number),
                born: nil,
                fileSystem: "disk")
            let status = FileStatus(
                device: 1, inode: UInt64(number), size: 1000, modified: Int64(number), changed: Int64(number),
                born: nil,
                mode: 0o100644)
            let order = NewAsset.PlannedUpload(
                destination: "nas", name: relative, mediaType: "video/mp4", key: nil, context: [:], metadata: [:])
            _ = try await store.write {
                try $0.arrivals.record([
                    NewAsset(
                        file: SettledFile(
                            folder: "cam", root: "/drop", relative: relative, status: status, identity: identity,
                            settledBy: .quiet), action: .keep, priority: 0, orders: [order])
                ])
            }
        }
        if keepsLog {
            // The files as a kill leaves them.
            for name in ["sluice.db", "sluice.db-wal"] {
                let content = try Files.read(folder.path.appending(FilePath(name)), limit: 64 << 20)
                try folder.write(FilePath("copy-\(name)"), content)
            }
        }
        await store.close()
        if keepsLog {
            for name in ["sluice.db", "sluice.db-wal"] {
                try Files.rename(
                    folder.path.appending(FilePath("copy-\(name)")), to: folder.path.appending(FilePath(name)))
            }
        }
        return folder
    }

    private func database(_ folder: TemporaryFolder) -> FilePath { folder.path.appending("sluice.db") }

    private func refusal(_ folder: TemporaryFolder, copies: Int = 0) async throws -> UnusableStateError? {
        do {
            let store = try await Store.open(
                folder.path, clocks: ManualClocks(), sorting: .newestFirst, copies: { copies })
            await store.close()
            return nil
        } catch let error as UnusableStateError { return error }
    }

    @Test("a missing, empty or truncated database is refused and not changed")
    func lost() async throws {
        for content in [nil, [], noise(4096), Array("SQLite format 3".utf8)] as [[UInt8]?] {
            let folder = try await made()
            try Files.remove(database(folder))
            if let content { try Files.replace(database(folder), with: content) }
            for _ in 0..<2 {
                let refusal = try #require(try await refusal(folder))
                #expect(refusal.error.isCorrupt)
                #expect(refusal.remedy?.contains("sluice rebuild") == true)
            }
            #expect(try FileStatus.ifPresent(at: database(folder))?.size == content.map { Int64($0.count) })
        }
    }

    @Test("a database that lost its log with all content is refused and not changed")
    func lostLog() async throws {
        let folder = try await made(keepsLog: true)
        try Files.remove(FilePath(bytes: database(folder).bytes + Array("-wal".utf8)))
        let content = try Files.read(database(folder), limit: 64 << 20)
        #expect(try await refusal(folder)?.error.isCorrupt == true)
        #expect(try Files.read(database(folder), limit: 64 << 20) == content)
    }

    @Test("an unused state folder starts, unless the staging folder contains copies")
    func beginning() async throws {
        let folder = TemporaryFolder()
        let refusal = try #require(try await refusal(folder, copies: 3))
        #expect(refusal.error.message.contains("3 whole copies"))
        #expect(try await self.refusal(folder) == nil)
    }

    @Test("a database of another program or version, or without a table, is refused")
    func form() async throws {
        for sql in [
            "PRAGMA application_id = 77", "PRAGMA user_version = 99", "PRAGMA user_version = 0", "DROP TABLE history",
            "DROP INDEX upload_next", "DROP TRIGGER tally_in", "ALTER TABLE pause ADD COLUMN more TEXT",
        ] {
            let folder = try await made()
            let connection = try Connection(path: database(folder))
            try connection.execute(sql)
            connection.close()
            #expect(try await refusal(folder) != nil, "\(sql)")
        }
    }

    @Test("damage in the middle of the log is refused; a torn end is the result of a power cut")
    func log() async throws {
        let whole = try await made(keepsLog: true)
        let path = FilePath(bytes: database(whole).bytes + Array("-wal".utf8))
        let log = try Files.read(path, limit: 64 << 20)
        try #require(log.count > 40 * 4120)
        #expect(try WriteAheadLog.problem(of: path) == nil)
        for (at, isDamage) in [
            (40, true), (32 + 4120 * 3 + 100, true), (log.count / 2, true), (3, true), (log.count - 10, false),
        ] {
            var broken = log
            broken[at] ^= 0x55
            try Files.replace(path, with: broken)
            #expect((try WriteAheadLog.problem(of: path) != nil) == isDamage, "at \(at)")
        }
        for end in [0, 20, 32, 5000, log.count - 1, log.count - 4120] {
            try Files.replace(path, with: Array(log.prefix(end)))
            #expect(try WriteAheadLog.problem(of: path) == nil, "cut at \(end)")
        }
    }

    @Test(
        "changed bytes anywhere are detected or harmless, and never crash",
        arguments: Tier.sample([1, 2, 3, 4] as [UInt64], inFull: 2))
    func flips(_ seed: UInt64) async throws {
        var dice = Dice(seed: seed)
        let source = try await made()
        let content = try Files.read(database(source), limit: 64 << 20)
        var refused = 0
        for _ in 0..<60 {
            let folder = TemporaryFolder()
            var broken = content
            for _ in 0..<Int.random(in: 1...20, using: &dice) {
                broken[Int.random(in: 0..<broken.count, using: &dice)] = UInt8.random(in: 0...255, using: &dice)
            }
            try Files.replace(database(folder), with: broken)
            var opened: Store?
            do {
                let store = try await Store.open(folder.path, clocks: ManualClocks(), sorting: .newestFirst)
                opened = store
                _ = try await store.read { try $0.staging.waiting(limit: 100, except: []) }
                _ = try await store.rows(UploadFilter())
                _ = try await store.read { try $0.lists.tallies() }
                _ = try await store.read { try $0.releases.releasable(limit: 100) }
                _ = try await store.read { try $0.tombstones.old(limit: 100) }
                _ = try await store.read { try $0.events.list(after: 0, limit: 1000) }
                try await store.write { try $0.events.append(.loaded(ongoing: 0)) }
            } catch let error as StoreError {
                #expect(error.isCorrupt || !error.message.isEmpty)
                refused += 1
            } catch is UnusableStateError { refused += 1 }
            // Its lock would fail the next opening.
            await opened?.close()
            _ = try StateFiles.problem(in: folder.path, copies: { 0 })
        }
        #expect(refused > 0)
    }

    @Test("damage found at run time is reported to all waiting callers")
    func running() async throws {
        let folder = try await made()
        var content = try Files.read(database(folder), limit: 64 << 20)
        for at in 4096 * 3..<content.count { content[at] = 0xEE }
        try Files.replace(database(folder), with: content)
        let damage = Damage()
        let connection = try Connection(path: database(folder))
        connection.damage = damage
        #expect(throws: StoreError.self) {
            for table in ["asset", "upload", "tombstone", "event", "tally", "history"] {
                _ = try connection.all("SELECT * FROM \(table)") { $0.text(0) }
            }
        }
        #expect(await damage.first()?.isCorrupt == true)
        connection.close()
        // A cancelled wait ends.
        let waiting = Task { await Damage().first() }
        waiting.cancel()
        #expect(await waiting.value == nil)
    }

    @Test("a new database replaces the old one, which is kept with its log")
    func install() async throws {
        let folder = try await made(keepsLog: true)
        let old = try Files.read(database(folder), limit: 64 << 20)
        let store = try await Store.openNew(
            folder.path, clocks: ManualClocks(), sorting: .newestFirst, isTrial: false)
        #expect(throws: UnusableStateError.self) {
            try StateFiles.check(at: folder.path, wasUsed: true, copies: { 0 })
        }
        try await store.write { try $0.assets.reserveNumbers(upTo: 500) }
        let aside = try #require(try await store.install(moment: "20260102-030405"))
        #expect(aside.name == "sluice.db.damaged-20260102-030405")
        #expect(try Files.read(aside, limit: 64 << 20) == old)
        let names = try Set(Files.names(in: folder.path).map(\.display))
        #expect(names.contains("sluice.db.damaged-20260102-030405-wal"))
        #expect(!names.contains { $0.contains("rebuild") })
        #expect(try StateFiles.problem(in: folder.path, copies: { 0 }) == nil)
    }

    @Test("`check` is told why a start would refuse a database: of a newer program, or damaged")
    func refusal() async throws {
        #expect(try StateFiles.refusal(in: TemporaryFolder().path) == nil)
        let folder = try await made()
        #expect(try StateFiles.refusal(in: folder.path) == nil)
        let connection = try Connection(path: database(folder))
        try connection.execute("PRAGMA user_version = 9999")
        connection.close()
        let before = try Files.read(database(folder), limit: 64 << 20)
        let newer = try #require(try StateFiles.refusal(in: folder.path))
        #expect("\(newer)".contains("of version 9999") && newer.remedy == nil)
        #expect(try Files.read(database(folder), limit: 64 << 20) == before)
        try Files.replace(database(folder), with: Array(repeating: 0x41, count: 8192))
        let damaged = try #require(try StateFiles.refusal(in: folder.path))
        #expect("\(damaged)".contains("is damaged") && damaged.remedy?.contains("sluice rebuild") == true)
    }

    @Test("two databases that are replaced in one second are both kept")
    func installTwice() async throws {
        let folder = try await made()
        var kept: [String] = []
        for _ in 1...3 {
            let store = try await Store.openNew(
                folder.path, clocks: ManualClocks(), sorting: .newestFirst, isTrial: false)
            kept.append(try #require(try await store.install(moment: "20260102-030405")).name.display)
        }
        #expect(kept.map { $0.dropFirst("sluice.db.damaged-20260102-030405".count) } == ["", "-2", "-3"])
        let names = try Set(Files.names(in: folder.path).map(\.display))
        #expect(names.isSuperset(of: kept))
    }
}
