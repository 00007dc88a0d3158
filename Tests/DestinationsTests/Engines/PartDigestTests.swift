import Core
import Digests
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Digests of sent bytes: of a block for the server, and of all of them for the staged copy.
@Suite("Digests of parts in uploads")
struct PartDigestTests {
    private let temporary = TemporaryFolder()

    /// Changes a file in place, as a failing disk does: only its bytes show it.
    private static func rot(_ path: FilePath, at offset: Int, _ time: Int64? = nil) throws {
        let status = try FileStatus(at: path)
        let file = try Descriptor.open(path, for: .updating)
        var bytes = try Files.read(path, limit: 1 << 30)
        bytes[offset] ^= 1
        try bytes.withUnsafeBytes { try file.write($0, named: path) }
        try file.setModified(time ?? status.modified, named: path)
    }

    @Test("a repeated block is not read again, unless the file has changed")
    func blocks() throws {
        let known = BlockDigests()
        let content = noise(3000, seed: 1)
        let path = try temporary.write("staged", content)
        func crc(_ bytes: some Sequence<UInt8>) -> String { FormServer.crc(Array(bytes)) }
        let first = try known.digests([.crc32], of: .path(path), 0..<1000)
        #expect(
            first == [
                .crc32: crc(content[..<1000]), .crc32Upper: crc(content[..<1000]).uppercased(),
                .crc32Decimal: "\(UInt32(crc(content[..<1000]), radix: 16) ?? 0)",
            ])
        // The present content would have another digest, so the block was not read.
        try Self.rot(path, at: 5)
        #expect(try known.digests([.crc32], of: .path(path), 0..<1000) == first)
        // Another block, or another digest of it, is read.
        #expect(try known.digests([.crc32], of: .path(path), 1000..<2000)[.crc32] == crc(content[1000..<2000]))
        var rotten = content
        rotten[5] ^= 1
        let more = try known.digests([.crc32, .md5], of: .path(path), 0..<1000)
        #expect(more[.crc32] == crc(rotten[..<1000]))
        #expect(more[.md5] == hexadecimal(Hasher.digest(.md5, of: Array(rotten[..<1000]))) && more[.sha1] == nil)
        // A program that writes to it changes its time.
        try Self.rot(path, at: 6, 1_800_000_000_000_000_000)
        rotten[6] ^= 1
        #expect(try known.digests([.crc32], of: .path(path), 0..<1000)[.crc32] == crc(rotten[..<1000]))
    }

    @Test("arriving parts yield the digest of the whole; a repeated one does not")
    func along() async throws {
        let content = noise(10_000_001, seed: 2)
        let path = try temporary.write("staged", content)
        let plan = try #require(PartPlan(size: Int64(content.count), partSize: 3_000_000))
        let along = ArrivedPartsDigest(.path(path))
        for index in 0..<plan.count {
            #expect(along.digest(of: plan.size) == nil)
            if along.extend(to: plan[index].end) { await along.run() }
        }
        #expect(along.digest(of: plan.size) == Hasher.digest(.sha256, of: content))
        #expect(along.digest(of: plan.size - 1) == nil)
        #expect(!along.extend(to: plan[1].end), "the part has been read already")
        along.forget(from: plan.size)
        #expect(along.digest(of: plan.size) != nil)
        along.forget(from: plan[3].offset)
        #expect(along.digest(of: plan.size) == nil && !along.extend(to: plan.size + 1))
        let short = ArrivedPartsDigest(.path(path))
        let longer = try #require(PartPlan(size: 20_000_000, partSize: 20_000_000))
        #expect(short.extend(to: longer.size))
        await short.run()
        #expect(short.digest(of: 20_000_000) == nil, "the file is shorter")
    }

    @Test(
        "a copy corrupted before its block is sent is detected before the last block", arguments: [1, 4], [1500, 3500])
    func rotten(_ parallel: Int, _ place: Int) async throws {
        let scene = try FormScene("dropzone", ["parallel_blocks": .whole(parallel)])
        let staged = try StagedUpload(4 * Int(FormScene.block))
        try Self.rot(staged.order.file.path, at: place)
        let error = try await staged.failure(to: scene)
        #expect(error.remedy == .restage(.changed) && error.failure.code == .stagedChanged, "\(error)")
        #expect(!scene.server.requests.contains("block 4"))
        try await scene.close()
    }

    @Test("a copy corrupted between two attempts is detected by the second one, whatever the first has sent")
    func rottenBetween() async throws {
        let scene = try FormScene("dropzone")
        let staged = try StagedUpload(4 * Int(FormScene.block))
        let recorder = RecordingReporter()
        try await staged.sendStopped(to: scene, recorder, accepting: 2 * Int(FormScene.block))
        try Self.rot(staged.order.file.path, at: 500)
        #expect(try await staged.failure(to: scene, recorder).remedy == .restage(.changed))
        #expect(!scene.server.requests.contains("block 4"))
        // The server keeps the blocks: no request removes them there.
        let kept = PartsCheckpoint(scene.destination.lasting(of: try #require(recorder.last)))
        #expect(kept.remains == 1 && !kept.isBegun)
        try await scene.close()
    }

    @Test("a copy corrupted after the last block was sent is detected before that is repeated")
    func rottenLast() async throws {
        let scene = try FormScene("dropzone")
        let staged = try StagedUpload(4 * Int(FormScene.block))
        let recorder = RecordingReporter()
        scene.server.set { $0.lostAnswers = [4] }
        guard case .holdDestination = try await staged.failure(to: scene, recorder).remedy else {
            Issue.record("the failure was not a lost answer")
            return
        }
        try Self.rot(staged.order.file.path, at: 3500)
        #expect(try await staged.failure(to: scene, recorder).remedy == .restage(.changed))
        #expect(scene.server.requests.filter { $0 == "block 4" }.count == 1)
        try await scene.close()
    }

    private final class Count: Sendable {
        private let number = Atomic(0)
        func next() -> Int { number.add(1, ordering: .relaxed).newValue }
    }

    @Test("a copy corrupted before a repetition within an attempt is detected before the last block")
    func rottenAgain() async throws {
        let scene = try FormScene("dropzone", ["send.headers": .map(["X-Sum": .literal("{md5}")])])
        let staged = try StagedUpload(4 * Int(FormScene.block))
        let (path, server) = (staged.order.file.path, scene.server)
        let blocks = Count()
        let watched = try scene.watched { request in
            guard (request.body.count ?? 0) > 900 else { return }
            let block = blocks.next()
            if block == 1 { server.set { $0.refusals = (422, 1, nil) } }
            guard block == 2 else { return }
            // If the file cannot be written, the expectation below fails.
            try? Self.rot(path, at: 500)
        }
        let error = await #expect(throws: UploadError.self) {
            _ = try await watched.upload(staged.order, reporter: RecordingReporter())
        }
        #expect(error?.remedy == .restage(.changed), "\(String(describing: error))")
        #expect(blocks.next() == 5, "the first block is sent twice, and the last one never")
        #expect(!scene.server.requests.contains("block 4"))
        try await scene.close()
    }
}
