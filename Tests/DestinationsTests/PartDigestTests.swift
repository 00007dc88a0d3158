import Core
import Digests
import Linux
import TestKit
import Testing

@testable import Destinations

/// Digests of what is sent: of a block for the server, and of all of them for the staged copy.
@Suite("digests of parts")
struct PartDigestTests {
    private let temporary = TemporaryFolder()

    /// Changes a file where it lies, as a disk does: nothing tells it but its bytes.
    private static func rot(_ path: FilePath, at offset: Int, _ time: Int64? = nil) throws {
        let look = try FileLook(at: path)
        let file = try Descriptor.open(path, for: .updating)
        var bytes = try Files.read(path, limit: 1 << 30)
        bytes[offset] ^= 1
        try bytes.withUnsafeBytes { try file.write($0, named: path) }
        try file.setModified(time ?? look.modified, named: path)
    }

    @Test("a block that is sent again is not read again, unless the file is another one by then")
    func blocks() throws {
        let known = BlockDigests()
        let content = noise(3000, seed: 1)
        let path = try temporary.write("staged", content)
        func crc(_ bytes: some Sequence<UInt8>) -> String { FormServer.crc(Array(bytes)) }
        let first = try known.digests([.crc32], of: path, 0..<1000)
        #expect(
            first == [
                .crc32: crc(content[..<1000]), .crc32Upper: crc(content[..<1000]).uppercased(),
                .crc32Decimal: "\(UInt32(crc(content[..<1000]), radix: 16) ?? 0)",
            ])
        // What stands there now would have another digest: so it was not read.
        try Self.rot(path, at: 5)
        #expect(try known.digests([.crc32], of: path, 0..<1000) == first)
        // Another block, or another digest of it, is read.
        #expect(try known.digests([.crc32], of: path, 1000..<2000)[.crc32] == crc(content[1000..<2000]))
        var rotten = content
        rotten[5] ^= 1
        let more = try known.digests([.crc32, .md5], of: path, 0..<1000)
        #expect(more[.crc32] == crc(rotten[..<1000]))
        #expect(more[.md5] == hexadecimal(Hasher.digest(.md5, of: Array(rotten[..<1000]))) && more[.sha1] == nil)
        // Whoever writes to it changes its time.
        try Self.rot(path, at: 6, 1_800_000_000_000_000_000)
        rotten[6] ^= 1
        #expect(try known.digests([.crc32], of: path, 0..<1000)[.crc32] == crc(rotten[..<1000]))
    }

    @Test("parts that leave in order give the digest of the whole, and any others give none")
    func along() async throws {
        let content = noise(10_000_001, seed: 2)
        let path = try temporary.write("staged", content)
        let plan = try #require(PartPlan(size: Int64(content.count), partSize: 3_000_000))
        let along = DigestAlong(path)
        for index in 0..<plan.count {
            #expect(along.digest(of: plan.size) == nil)
            if along.follows(plan[index]) { await along.run() }
        }
        #expect(along.digest(of: plan.size) == Hasher.digest(.sha256, of: content))
        #expect(along.digest(of: plan.size - 1) == nil)
        // One again changes nothing, and a gap never closes by itself.
        #expect(!along.follows(plan[1]))
        let gap = DigestAlong(path)
        #expect(!gap.follows(plan[1]) && gap.follows(plan[0]))
        await gap.run()
        #expect(!gap.follows(plan[3]) && gap.digest(of: plan.size) == nil)
        let short = DigestAlong(path)
        let longer = try #require(PartPlan(size: 20_000_000, partSize: 20_000_000))
        #expect(short.follows(longer[0]))
        await short.run()
        #expect(short.digest(of: 20_000_000) == nil, "the file is shorter")
    }

    @Test(
        "a copy that rots before its block leaves is found before the last one does", arguments: [1, 4], [1500, 3500])
    func rotten(_ parallel: Int, _ place: Int) async throws {
        let scene = try FormScene("dropzone", ["parallel_blocks": .whole(parallel)])
        let parcel = try Parcel(4 * Int(FormScene.block))
        try Self.rot(parcel.order.file.path, at: place)
        let error = try await parcel.failure(to: scene)
        #expect(error.remedy == .restage && error.failure.code == "staged_changed", "\(error)")
        #expect(!scene.server.requests.contains("block 4"))
        try await scene.close()
    }

    @Test("a copy that rotted between two attempts is found by the second one, whatever the first has sent")
    func rottenBetween() async throws {
        let scene = try FormScene("dropzone")
        let parcel = try Parcel(4 * Int(FormScene.block))
        let logbook = Logbook()
        try await parcel.sendStopped(to: scene, logbook, accepting: 2 * Int(FormScene.block))
        try Self.rot(parcel.order.file.path, at: 500)
        #expect(try await parcel.failure(to: scene, logbook).remedy == .restage)
        #expect(!scene.server.requests.contains("block 4"))
        try await scene.close()
    }
}
