import Linux
import Synchronization
import TestKit
import Testing

@testable import Daemon

@Suite("One thumbnail at a time")
struct ThumbnailQueueTests {
    private struct Seen {
        var running = 0, most = 0, done: [Int] = []
    }

    @Test("work runs one after another, and one that is too many is refused at once")
    func limits() async throws {
        let queue = ThumbnailQueue(most: 3)
        let seen = Mutex(Seen())
        let (gate, open) = AsyncStream<Void>.makeStream()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<3 {
                group.addTask {
                    try await queue.run {
                        seen.withLock {
                            $0.running += 1
                            $0.most = max($0.most, $0.running)
                        }
                        for await _ in gate { break }
                        seen.withLock {
                            $0.running -= 1
                            $0.done.append(number)
                        }
                    }
                }
            }
            try await eventually("a fourth one is refused") {
                do {
                    try await queue.run {}
                    return false
                } catch is ThumbnailQueue.FullError { return true }
            }
            for _ in 0..<3 { open.yield() }
            try await group.waitForAll()
        }
        #expect(seen.withLock { $0.most == 1 && Set($0.done) == [0, 1, 2] })
        // All places are free again, also after an error.
        struct Fault: Error {}
        for _ in 0..<5 { await #expect(throws: Fault.self) { try await queue.run { throw Fault() } } }
        #expect(try await queue.run { 7 } == 7)
    }

    @Test("a task that is cancelled while it waits leaves the queue, and its work does not run")
    func cancelled() async throws {
        let queue = ThumbnailQueue(most: 2)
        let (gate, open) = AsyncStream<Void>.makeStream()
        let isRunning = StopFlag()
        let first = Task {
            try await queue.run {
                isRunning.set()
                for await _ in gate { break }
            }
        }
        try await eventually("the first runs") { isRunning.isSet }
        let second = Task { try await queue.run { Issue.record("it ran") } }
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        open.yield()
        try await first.value
        #expect(try await queue.run { true })
    }
}
