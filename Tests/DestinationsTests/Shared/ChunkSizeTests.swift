import Core
import Testing
import Transport

@testable import Destinations

@Suite("ChunkSize")
struct ChunkSizeTests {
    @Test("a refused size is halved, down to 256 KiB")
    func halves() {
        let chunks = ChunkSize(64 << 20)
        #expect(chunks.refused(4 << 20))
        #expect(chunks.cap == 2 << 20)
        #expect(chunks.refused(300 << 10))
        #expect(chunks.cap == 256 << 10)
        #expect(!chunks.refused(256 << 10))
    }

    @Test(
        "the size is reduced if no bytes are kept, and raised after eight clean requests to sizes that have not failed")
    func steps() {
        let chunks = ChunkSize(.max)
        chunks.recordNothingKept(64 << 20)
        #expect(chunks.cap == 16 << 20)
        for _ in 0..<7 { chunks.accepted(16 << 20) }
        #expect(chunks.cap == 16 << 20)
        chunks.accepted(16 << 20)
        #expect(chunks.cap == 32 << 20)
        chunks.accepted(5)
        #expect(chunks.cap == 32 << 20)
        for cap: Int64 in [16 << 20, 4 << 20, 1 << 20, 256 << 10, 64 << 10, 64 << 10] {
            chunks.recordNothingKept(chunks.cap)
            #expect(chunks.cap == cap)
        }
    }

    @Test(
        "a size at which no bytes were kept is not tried again for a long time, longer after each failure"
    )
    func keptNothing() {
        let chunks = ChunkSize(32 << 20)
        chunks.recordNothingKept(32 << 20)
        for requiredRun in [64, 128, 256, 512, 1024, 2048, 4096, 4096] {
            #expect(chunks.learned == RequestSize(most: 16 << 20, failed: 32 << 20, requiredRun: requiredRun))
            for _ in 1..<requiredRun { chunks.accepted(16 << 20) }
            #expect(chunks.cap == 16 << 20)
            chunks.accepted(16 << 20)
            #expect(chunks.cap == 32 << 20 && chunks.learned == nil)
            chunks.recordNothingKept(32 << 20)
        }
    }

    @Test("an interruption of a file shorter than the size makes requests shorter than that file")
    func shortFile() {
        let chunks = ChunkSize(64 << 20)
        chunks.recordNothingKept(30 << 20)
        #expect(chunks.learned == RequestSize(most: 16 << 20, failed: 30 << 20, requiredRun: 64))
        chunks.recordNothingKept(10 << 20)
        #expect(chunks.learned == RequestSize(most: 4 << 20, failed: 10 << 20, requiredRun: 64))
    }

    /// The size after cut requests that the remote kept nothing of, each as (sent, whole).
    private func cap(after cuts: [(Int64, Int64)]) -> Int64 {
        let chunks = ChunkSize(64 << 20)
        var checkpoint = OffsetCheckpoint(Checkpoint())
        for (sent, whole) in cuts {
            ChunkSize.noteCut(from: 0, to: sent, of: whole, &checkpoint)
            chunks.learn(from: 0, &checkpoint)
        }
        return chunks.cap
    }

    @Test("small cuts make requests smaller if several are about the same size, and other ones do not")
    func smallCuts() {
        #expect(cap(after: [(600_000, 900_000), (700_000, 900_000)]) == 64 << 20)
        #expect(cap(after: [(600_000, 900_000), (700_000, 900_000), (500_000, 900_000)]) == 256 << 10)
        #expect(cap(after: [(100_000, 900_000), (700_000, 900_000), (200_000, 900_000)]) == 64 << 20)
        #expect(cap(after: Array(repeating: (60_000, 60_000), count: 9)) == 64 << 20)
        #expect(cap(after: Array(repeating: (80_000, 100_000), count: 3)) == 64 << 10)
        #expect(cap(after: [(2 << 20, 8 << 20), (2 << 20, 8 << 20)]) == 4 << 20)
    }

    @Test("the size learned by an earlier run is used, within the present settings")
    func recalls() {
        let chunks = ChunkSize(8 << 20)
        #expect(chunks.learned == nil)
        chunks.recall(RequestSize(most: 16 << 20, failed: 32 << 20, requiredRun: 128))
        #expect(chunks.learned == RequestSize(most: 8 << 20, failed: 32 << 20, requiredRun: 128))
        chunks.recall(RequestSize(most: 1 << 20, failed: 2 << 20, requiredRun: 64))
        for _ in 0..<63 { chunks.accepted(1 << 20) }
        #expect(chunks.cap == 1 << 20)
        // A value that no run can have learned changes nothing.
        for odd in [RequestSize(most: 0, failed: 5, requiredRun: 1), RequestSize(most: 5, failed: -1, requiredRun: -9)]
        {
            chunks.recall(odd)
            #expect(chunks.cap == 1 << 20)
        }
        chunks.recall(RequestSize(most: 1, failed: 1, requiredRun: .max))
        #expect(chunks.learned == RequestSize(most: ChunkSize.minSize, failed: 1, requiredRun: 4096))
    }

    @Test("a refused size is not tried again for a long time, and never above the setting")
    func remembers() {
        let chunks = ChunkSize(4 << 20)
        #expect(chunks.refused(2 << 20))
        for _ in 0..<63 { chunks.accepted(1 << 20) }
        #expect(chunks.cap == 1 << 20)
        chunks.accepted(1 << 20)
        #expect(chunks.cap == 2 << 20)
        for _ in 0..<100 { chunks.accepted(chunks.cap) }
        #expect(chunks.cap == 4 << 20)
    }
}
