import Linux
import Synchronization
import TestKit
import Testing

@testable import Daemon

@Suite("One thumbnail at a time")
struct ThumbnailQueueTests {
    /// How many pieces of work run at once, and how many have ended.
    private final class Count: Sendable {
        private let state = Mutex((running: 0, most: 0, done: 0))
        var most: Int { state.withLock(\.most) }
        var done: Int { state.withLock(\.done) }

        func begin() {
            state.withLock { state in
                state.running += 1
                state.most = max(state.most, state.running)
            }
        }

        func end() {
            state.withLock { state in
                state.running -= 1
                state.done += 1
            }
        }
    }

    @Test("work runs one after another, and one that is too many is refused at once")
    func limits() async throws {
        let queue = ThumbnailQueue(most: 3)
        let count = Count()
        let (gate, open) = AsyncStream<Void>.makeStream()
        let tasks = (0..<3).map { _ in
            Task {
                try await queue.run {
                    count.begin()
                    for await _ in gate { break }
                    count.end()
                }
            }
        }
        try await eventually("a fourth one is refused") {
            do {
                try await queue.run {}
                return false
            } catch is ThumbnailQueue.FullError { return true }
        }
        for _ in tasks { open.yield() }
        for task in tasks { try await task.value }
        #expect(count.most == 1 && count.done == 3)
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
