internal import Core
internal import Digests
internal import Linux

/// Digests blocks in order, each digest on its own thread, while the owner fills the next ones.
///
/// `@unchecked Sendable`, proof: a part digester's state is touched only by the one thread of its `worker` until
/// `drain()` has returned, and only by the owner after that. A block belongs to the owner from `next()` to
/// `process(_:count:)`. Then it is only read, by the threads and by the owner, until each thread has counted it in
/// `digested`, which `next()` waits for.
final class DigestThreads: @unchecked Sendable {
    struct Block {
        let bytes: UnsafeMutableRawBufferPointer
    }

    private enum Digester {
        case whole(Hasher)
        case parts(PartDigester)

        func update(_ bytes: UnsafeRawBufferPointer) {
            switch self {
            case .whole(let hasher): hasher.update(bytes)
            case .parts(let digester): digester.update(bytes)
            }
        }
    }

    private struct DigestThread {
        let digester: Digester
        let worker = Workers<@Sendable () -> Void>("digest", most: 1) { $0() }
    }

    private let whole = Hasher(.sha256)
    private let parts: [PartDigester]
    private let threads: [DigestThread]
    /// For each worker, the number of blocks that it does not need any more.
    private let digested: ConditionLock<[Int]>
    private let blocks: [Block]
    private var submitted = 0

    init(blocks: Int, blockSize: Int, _ requestedDigests: [PartDigests.RequestedDigest]) {
        parts = Set(requestedDigests).map { PartDigester($0) }
        threads = [DigestThread(digester: .whole(whole))] + parts.map { DigestThread(digester: .parts($0)) }
        digested = ConditionLock([Int](repeating: 0, count: threads.count))
        self.blocks = (0..<blocks).map { _ in Block(bytes: .allocate(byteCount: blockSize, alignment: 4096)) }
    }

    deinit {
        for thread in threads { thread.worker.close() }
        for block in blocks { block.bytes.deallocate() }
    }

    /// A block that no thread reads any more.
    func next() -> Block {
        digested.wait { counts in counts.allSatisfy { submitted - $0 < blocks.count } ? () : nil }
        return blocks[submitted % blocks.count]
    }

    func process(_ block: Block, count: Int) {
        let index = submitted % blocks.count
        submitted += 1
        for (number, thread) in threads.enumerated() {
            let digest: @Sendable () -> Void = { [self] in
                threads[number].digester.update(UnsafeRawBufferPointer(rebasing: blocks[index].bytes[..<count]))
                digested.change { $0[number] += 1 }
            }
            // A small file: another thread would cost more than it saves.
            if blocks.count == 1 { digest() } else { thread.worker.add(digest) }
        }
    }

    /// Waits until every block that was passed on is digested.
    func drain() { digested.wait { counts in counts.allSatisfy { $0 == submitted } ? () : nil } }

    func finish() -> (sha256: [UInt8], parts: PartDigests) {
        var all = PartDigests()
        for digester in parts { all.set(digester.requested, digester.finish()) }
        return (whole.finish(), all)
    }
}
