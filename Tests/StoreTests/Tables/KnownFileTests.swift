import Core
import Linux
import TestKit
import Testing

@testable import Store

@Suite("Known files")
struct KnownFileTests {
    /// Names that sort before, after and within each other, in the order of bytes.
    private static let names: [FilePath] = {
        var names: [FilePath] = ["a", "a/b", "a.b", "a-", "ab", "b", "\u{7f}", "z/z/z", FilePath(bytes: [0xFF, 0x80])]
        for number in 0..<300 { names.append(FilePath("day-\(number / 50)/clip-\(number)")) }
        return names
    }()

    private static func identity(_ name: FilePath, _ folder: String, _ dice: inout Dice) -> FileIdentity {
        FileIdentity(
            folder: folder, relative: name, size: .random(in: 1...3, using: &dice),
            modified: .random(in: 1...2, using: &dice), inode: [nil, 7, 8].randomElement(using: &dice) ?? nil,
            born: [nil, 5].randomElement(using: &dice) ?? nil,
            fileSystem: [nil, "uuid", "uuid2", ""].randomElement(using: &dice) ?? nil)
    }

    @Test(
        "a query about many files in any order gives the same answers as one query for each",
        arguments: [1, 2, 3] as [UInt64])
    func together(seed: UInt64) async throws {
        var dice = Dice(seed: seed)
        let scene = try await Scene()
        let folders = ["cam", "cam1", "Cam", "ca"]
        var buried: [FileIdentity] = []
        for folder in folders.dropLast() {
            for name in Self.names where Int.random(in: 0..<3, using: &dice) > 0 {
                buried.append(Self.identity(name, folder, &dice))
            }
        }
        try await scene.store.write { [buried] tx in try tx.tombstones.skip(buried) }
        for count in [1, 2, 40, 900] {
            var asked: [FileIdentity] = []
            for _ in 0..<count {
                let name = Self.names.randomElement(using: &dice) ?? "a"
                let folder = folders.randomElement(using: &dice) ?? "cam"
                // Half of them as recorded, and some of them twice.
                let same = buried.first { $0.relative == name && $0.folder == folder }
                asked.append(
                    Bool.random(using: &dice)
                        ? same ?? Self.identity(name, folder, &dice)
                        : Self.identity(name, folder, &dice))
            }
            var alone: [Bool] = []
            for identity in asked {
                let stone = try await scene.store.read { try $0.tombstones.find(identity.folder, identity.relative) }
                alone.append(stone?.identity.isSameVersion(as: identity) ?? false)
            }
            #expect(try await scene.store.areKnown(asked) == alone, "seed \(seed), query for \(count)")
        }
        #expect(try await scene.store.areKnown([]) == [])
    }

    @Test("the files of a directory are read together, and other rows are not read")
    func steps() async throws {
        let scene = try await Scene()
        let all = (0..<4_000).map { Scene.file("clip-\(10_000 + $0)").identity }
        try await scene.store.write { try $0.tombstones.skip(all) }
        func cost(_ asked: [FileIdentity]) async throws -> (searches: Int, steps: Int) {
            func spent(_ measure: Connection.Measure) async -> Int {
                await scene.store.statementCosts(measure).filter { $0.key.contains("FROM tombstone") }.values.reduce(
                    0, +)
            }
            _ = await (spent(.runs), spent(.steps))
            #expect(try await scene.store.areKnown(asked).allSatisfy { $0 })
            return await (spent(.runs), spent(.steps))
        }
        let whole = try await cost(Array(all[1_000..<3_000].shuffled()))
        #expect(whole.searches == 1)
        // One in two hundred: each is searched for, and a few rows beside it are stepped over.
        let sparse = try await cost(stride(from: 0, to: all.count, by: 200).map { all[$0] })
        #expect(sparse.searches == 20)
        #expect(sparse.steps < whole.steps / 5)
    }

    @Test("a query about known files writes nothing until their tombstones are a week old")
    func renewal() async throws {
        let scene = try await Scene()
        let files = (0..<100).map { Scene.file("f\($0)").identity }
        try await scene.store.write { try $0.tombstones.skip(files) }
        /// The number of rows written.
        func asking() async throws -> Int {
            _ = await scene.store.statementCosts(.runs)
            #expect(try await scene.store.areKnown(files).allSatisfy { $0 })
            return await scene.store.statementCosts(.runs).filter { $0.key.hasPrefix("UPDATE tombstone") }.values
                .reduce(0, +)
        }
        #expect(try await asking() == 0)
        scene.clocks.advance(by: .seconds(6 * 86_400))
        #expect(try await asking() == 0)
        scene.clocks.advance(by: .seconds(2 * 86_400))
        #expect(try await asking() == 100)
        #expect(try await asking() == 0)
    }
}
