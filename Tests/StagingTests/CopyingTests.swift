import Core
import Digests
import Glibc
import Linux
import TestKit
import TestTraits
import Testing

@testable import Staging

/// Holes, shared blocks, the page cache and stops: properties of a copy besides its bytes.
@Suite("Copying", .ownThreads)
struct CopyingTests {
    let folder = TemporaryFolder()
    let area: StagingArea

    init() throws {
        area = StagingArea(folder: folder.path.appending("staging"), method: .copy)
        try area.prepare()
    }

    static func wanted(_ path: FilePath) throws -> CopyRequest {
        let status = try FileStatus(at: path)
        let identity = FileIdentity(
            folder: "f", relative: path.name, size: status.size, modified: status.modified, inode: status.inode,
            born: nil,
            fileSystem: nil)
        return CopyRequest(SourceFile(path), identity, changed: status.changed)
    }

    /// A file of `size` with `pieces` in it, each from its offset; the rest are holes.
    private func sparse(_ name: FilePath, size: Int64, _ pieces: [(at: Int64, bytes: Int)]) throws -> FilePath {
        let path = folder.path.appending(name)
        let file = try Descriptor.open(path, for: .creating)
        try file.setSize(size, named: path)
        for (number, piece) in pieces.enumerated() {
            let content = noise(piece.bytes, seed: UInt64(number + 1))
            #expect(content.withUnsafeBytes { file.write($0, at: piece.at, named: path).error } == nil)
        }
        return path
    }

    private func allocated(_ path: FilePath) throws -> Int64 {
        try Descriptor.open(path, for: .reading).allocated(named: path)
    }

    @Test(
        "holes stay holes, and their zeros count for the digest",
        arguments: [
            [(0, 4096)], [(12 << 20, 5000)], [(5000, 3), (9 << 20, 1 << 20), (20 << 20 - 700, 700)], [],
        ] as [[(at: Int64, bytes: Int)]])
    func holes(_ pieces: [(at: Int64, bytes: Int)]) throws {
        let source = try sparse("source", size: 20 << 20, pieces)
        let copy = try area.copy(Self.wanted(source), as: "1")
        try area.publish([copy])
        let content = try Files.read(source, limit: 1 << 30)
        #expect(content.count == 20 << 20)
        #expect(try Files.read(area.path("1"), limit: 1 << 30) == content)
        #expect(copy.sha256 == Hasher.digest(.sha256, of: content))
        // A piece may take one more block at each end.
        let most = try allocated(source) + Int64(pieces.count) * 8192 + 65_536
        #expect(try allocated(area.path("1")) <= most)
    }

    @Test(
        "digests of parts are computed during the copy, and in place",
        arguments: Tier.sample([0, 1, 5 << 20, 5 << 20 + 1, 11 << 20 + 77], 3))
    func parts(_ size: Int) throws {
        let source = try folder.write("source", noise(size))
        let requestedDigests = [
            PartDigests.RequestedDigest(partSize: 5 << 20, kind: .sha256), .init(partSize: 5 << 20, kind: .md5),
            .init(partSize: 3_000_001, kind: .crc64nvme), .init(partSize: .max, kind: .md5),
        ]
        var expected = PartDigests()
        for requested in requestedDigests {
            let digester = PartDigester(requested)
            noise(size).withUnsafeBytes { digester.update($0) }
            expected.set(requested, digester.finish())
        }
        let wanted = try Self.wanted(source)
        #expect(try area.copy(wanted, as: "1", requestedDigests: requestedDigests + requestedDigests).parts == expected)
        #expect(try area.digestInPlace(wanted, requestedDigests: requestedDigests).parts == expected)
        #expect(try area.copy(wanted, as: "2").parts.isEmpty)
    }

    /// Where the data of such a file is, and how much it takes. A whole copy of it cannot take less than a second: its
    /// digest alone is that of 5 GiB.
    @Test("the data of a file of more than 4 GiB is found beyond 4 GiB")
    func positions() throws {
        let size: Int64 = 5 << 30 + 12_345
        let pieces: [(at: Int64, bytes: Int)] = [(0, 100), (4 << 30 - 50, 100), (size - 10, 10)]
        let path = try sparse("source", size: size, pieces)
        let source = try Descriptor.open(path, for: .reading)
        var (found, offset): ([Range<Int64>], Int64) = ([], 0)
        while offset < size, let data = try source.data(from: offset, named: path) {
            found.append(data)
            offset = data.upperBound
        }
        for piece in pieces {
            #expect(found.contains { $0.contains(piece.at) && $0.contains(piece.at + Int64(piece.bytes) - 1) })
        }
        #expect(found.reduce(0) { $0 + Int64($1.count) } < 1 << 20)
        #expect(area.need(of: SourceFile(path), size: size) < 1 << 20)
        for piece in pieces {
            var bytes = [UInt8](repeating: 0, count: piece.bytes)
            let count = try bytes.withUnsafeMutableBytes { try source.read(into: $0, at: piece.at, named: path) }
            #expect(count == piece.bytes && bytes.contains { $0 != 0 })
        }
    }

    @Test("a file of more than 4 GiB is copied completely", arguments: Tier.onlyInFull([5 << 30 + 12_345]))
    func large(_ size: Int64) throws {
        let source = try sparse("source", size: size, [(0, 100), (4 << 30 - 50, 100), (size - 10, 10)])
        let copy = try area.copy(Self.wanted(source), as: "1")
        try area.publish([copy])
        #expect(try area.size(of: "1") == size)
        #expect(try contentDigest(of: area.path("1")) == copy.sha256)
        #expect(try contentDigest(of: source) == copy.sha256)
        #expect(try allocated(area.path("1")) < 1 << 20)
    }

    @Test("space is requested for the blocks that a sparse file really uses")
    func need() throws {
        let source = try sparse("source", size: 1 << 30, [(0, 1 << 20)])
        #expect(area.need(of: SourceFile(source), size: 1 << 30) < 2 << 20)
        #expect(area.need(of: SourceFile(folder.path.appending("nothing")), size: 77) == 77)
    }

    @Test(
        "a sparse source fits where its size would not, and one that does not fit is refused before the copy",
        .enabled(if: SmallDisk.isPossible, "small file systems need root: sudo make test"))
    func fits() throws {
        let disk = try SmallDisk(size: 8 << 20)
        let area = StagingArea(folder: disk.path)
        let source = try sparse("source", size: 1 << 30, [(512 << 20, 1 << 20)])
        try area.publish([try area.copy(Self.wanted(source), as: "1")])
        let full = try sparse("full", size: 20 << 20, [(0, 20 << 20)])
        var blocks = 0
        let error = #expect(throws: StagingError.self) {
            _ = try area.copy(Self.wanted(full), as: "2", pace: CopyProgress(progress: { _ in blocks += 1 }))
        }
        guard case .full? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(blocks == 0)
        #expect(try Files.names(in: disk.path) == ["1"])
    }

    /// On a memory file system, files are only in the page cache.
    private static var isOnDisk: Bool { (try? Space(at: TemporaryFolder().path).isMemory) == false }

    @Test(
        "neither the source nor the copy stays in the page cache",
        .enabled(if: isOnDisk, "TMPDIR is a memory file system: set it to a folder on a disk"))
    func pageCache() async throws {
        let source = try folder.write("source", noise(24 << 20))
        try Descriptor.open(source, for: .reading).sync(named: source)
        let copy = try area.copy(Self.wanted(source), as: "1")
        try area.publish([copy])
        for path in [source, area.path("1")] {
            let child = try Child(
                "/usr/bin/fincore", ["--bytes", "--noheadings", "--output", "RES", path.display],
                output: folder.path.appending(FilePath("out-\(path.name)")),
                errors: folder.path.appending("errors"))
            #expect(try await child.end(within: .seconds(20)) == .status(0))
            let resident = Int64(try child.standardOutput().filter(\.isNumber))
            // Read-ahead may have loaded a little of it again.
            #expect(try #require(resident) <= 1 << 20, "\(path)")
        }
    }

    @Test(
        "progress reaches the whole size, and a stop between two blocks ends the copy",
        arguments: [false, true])
    func stop(inPlace: Bool) throws {
        let source = try folder.write("source", noise(12 << 20))
        func run(_ pace: CopyProgress) throws {
            if inPlace {
                _ = try area.digestInPlace(Self.wanted(source), pace: pace)
            } else {
                _ = try area.copy(Self.wanted(source), as: "1", pace: pace)
            }
        }
        var seen: [Int64] = []
        try run(CopyProgress(progress: { seen.append($0) }))
        #expect(seen == seen.sorted() && seen.last == 12 << 20 && seen.count >= 12)
        seen = []
        let error = #expect(throws: StagingError.self) {
            try run(CopyProgress(progress: { seen.append($0) }, isStopped: { seen.count == 3 }))
        }
        guard case .stopped? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(seen.count == 3)
    }

    // MARK: Shared blocks

    @Test("if blocks cannot be shared, `reflink` gives the reason and `auto` copies")
    func unshared() throws {
        let disk = try SmallDisk.ifPossible(size: 32 << 20)
        let source = try folder.write("source", noise(2 << 20))
        // To another file system if one can be mounted; otherwise this one must not share blocks.
        let place = disk?.path ?? folder.path.appending("staging")
        let refusal = try Files.refusesSharing(from: OpenFolder(following: folder.path), into: place)
        guard let refusal else { return }
        #expect(refusal.refusesSharing)
        let area = StagingArea(folder: place)
        let error = #expect(throws: StagingError.self) {
            _ = try area.copy(Self.wanted(source), as: "1", by: .reflink)
        }
        guard case .cannotShare(source, let reason)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason.refusesSharing)
        #expect(try Files.names(in: place).isEmpty)
        try area.publish([try area.copy(Self.wanted(source), as: "1", by: .auto)])
        #expect(try contentDigest(of: area.path("1")) == contentDigest(of: source))
    }

    @Test(
        "if blocks can be shared, a copy uses no new blocks, is read for its digest, and is independent",
        .enabled("\(LoopDisk.need)") { await LoopDisk.isPossible.value }, arguments: [CloneDisk.Kind.xfs, .btrfs])
    func shared(_ kind: CloneDisk.Kind) async throws {
        let disk = try await CloneDisk(kind)
        let area = StagingArea(folder: disk.path.appending("staging"), method: .reflink)
        try area.prepare()
        #expect(try Files.refusesSharing(from: OpenFolder(following: disk.path), into: area.folder) == nil)
        let source = disk.path.appending("source")
        let content = noise(32 << 20)
        try Files.replace(source, with: content)
        #expect(area.need(of: SourceFile(source), size: 32 << 20) == 0)
        let before = try area.free()
        let copy = try area.copy(Self.wanted(source), as: "1")
        try area.publish([copy])
        #expect(try before - area.free() < 8 << 20)
        #expect(copy.sha256 == Hasher.digest(.sha256, of: content))
        // Later writes of the camera do not reach it.
        let writer = try Descriptor.open(source, for: .updating)
        try writer.write(noise(5000, seed: 9), named: source)
        try writer.sync(named: source)
        #expect(try contentDigest(of: area.path("1")) == copy.sha256)
        // From elsewhere blocks cannot be shared, which is an error.
        let elsewhere = try folder.write("elsewhere", noise(100))
        let error = #expect(throws: StagingError.self) { _ = try area.copy(Self.wanted(elsewhere), as: "2") }
        guard case .cannotShare(_, let reason)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason.crossesFileSystems)
        // A stop also ends the reading of the copy.
        let stopped = #expect(throws: StagingError.self) {
            _ = try area.copy(Self.wanted(source), as: "3", pace: CopyProgress(isStopped: { true }))
        }
        guard case .stopped? = stopped else {
            Issue.record("\(String(describing: stopped))")
            return
        }
        #expect(Set(try Files.names(in: area.folder)) == ["1"])
    }
}

extension SmallDisk {
    static func ifPossible(size: Int) throws -> SmallDisk? { isPossible ? try SmallDisk(size: size) : nil }
}
