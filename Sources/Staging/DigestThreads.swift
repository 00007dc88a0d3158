internal import Core
internal import Digests
internal import Linux

/// Digests blocks in order, each digest on its own thread, while the owner fills the next ones.
///
/// `@unchecked Sendable`, proof: a lane's digester is touched only by the one thread of its `worker` until `drain()`
/// has returned, and only by the owner after that. A block belongs to the owner from `next()` to `take(_:count:)`. Then
/// it is only read, by the threads and by the owner, until each thread has counted it in `digested`, which `next()`
/// waits for.
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

    private struct Lane {
        let digester: Digester
        let worker = Workers<@Sendable () -> Void>("digest", most: 1) { $0() }
    }

    private let whole = Hasher(.sha256)
    private let parts: [PartDigester]
    private let lanes: [Lane]
    /// For each lane, the number of blocks that it does not need any more.
    private let digested: Monitor<[Int]>
    private let blocks: [Block]
    private var handed = 0

    init(blocks: Int, blockSize: Int, _ wishes: [PartDigests.Wish]) {
        parts = Set(wishes).map { PartDigester($0) }
        lanes = [Lane(digester: .whole(whole))] + parts.map { Lane(digester: .parts($0)) }
        digested = Monitor([Int](repeating: 0, count: lanes.count))
        self.blocks = (0..<blocks).map { _ in Block(bytes: .allocate(byteCount: blockSize, alignment: 4096)) }
    }

    deinit {
        for lane in lanes { lane.worker.close() }
        for block in blocks { block.bytes.deallocate() }
    }

    /// A block that no thread reads any more.
    func next() -> Block {
        digested.wait { counts in counts.allSatisfy { handed - $0 < blocks.count } ? () : nil }
        return blocks[handed % blocks.count]
    }

    func take(_ block: Block, count: Int) {
        let index = handed % blocks.count
        handed += 1
        for (number, lane) in lanes.enumerated() {
            let digest: @Sendable () -> Void = { [self] in
                lanes[number].digester.update(UnsafeRawBufferPointer(rebasing: blocks[index].bytes[..<count]))
                digested.change { $0[number] += 1 }
            }
            // A small file: another thread would cost more than it saves.
            if blocks.count == 1 { digest() } else { lane.worker.add(digest) }
        }
    }

    /// Waits until every block that was passed on is digested.
    func drain() { digested.wait { counts in counts.allSatisfy { $0 == handed } ? () : nil } }

    func finish() -> (sha256: [UInt8], parts: PartDigests) {
        var all = PartDigests()
        for digester in parts { all.set(digester.wish, digester.finish()) }
        return (whole.finish(), all)
    }
}
