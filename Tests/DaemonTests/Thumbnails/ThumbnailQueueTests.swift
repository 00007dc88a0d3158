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

    /// How often it was asked whether a client has left.
    private final class Questions: Sendable {
        private let counts = Mutex<[Int: Int]>([:])
        func note(_ client: Int) { counts.withLock { $0[client, default: 0] += 1 } }
        func count(of client: Int) -> Int { counts.withLock { $0[client] ?? 0 } }
    }

    @Test("work runs one after another, and one that is too many is refused at once")
    func limits() async throws {
        let queue = ThumbnailQueue(most: 3)
        let count = Count()
        let (gate, open) = AsyncStream<Void>.makeStream()
        let (isRunning, questions) = (StopFlag(), Questions())
        let tasks = (0..<3).map { number in
            Task {
                try await queue.run(unless: {
                    questions.note(number)
                    return false
                }) {
                    isRunning.set()
                    count.begin()
                    for await _ in gate { break }
                    count.end()
                }
            }
        }
        // The first question comes before a task takes a place, the next ones while it waits.
        try await eventually("one runs, and two wait") {
            isRunning.isSet && (0..<3).allSatisfy { questions.count(of: $0) >= 2 }
        }
        await #expect(throws: ThumbnailQueue.FullError.self) { try await queue.run {} }
        for _ in tasks { open.yield() }
        for task in tasks { try await task.value }
        #expect(count.most == 1 && count.done == 3)
        // All places are free again, also after an error.
        struct Fault: Error {}
        for _ in 0..<5 { await #expect(throws: Fault.self) { try await queue.run { throw Fault() } } }
        #expect(try await queue.run { 7 } == 7)
    }

    @Test("a client that leaves while it waits gives its place to another at once, and its work does not run")
    func left() async throws {
        let queue = ThumbnailQueue(most: 2)
        let (gate, open) = AsyncStream<Void>.makeStream()
        let (isRunning, hasLeft) = (StopFlag(), StopFlag())
        let first = Task {
            try await queue.run {
                isRunning.set()
                for await _ in gate { break }
            }
        }
        try await eventually("the first runs") { isRunning.isSet }
        let questions = Questions()
        let second = Task {
            try await queue.run(unless: {
                questions.note(0)
                return hasLeft.isSet
            }) { Issue.record("it ran") }
        }
        // The first question comes before it takes a place.
        try await eventually("the second waits") { questions.count(of: 0) >= 2 }
        hasLeft.set()
        // The first one still runs.
        await #expect(throws: ThumbnailQueue.LeftError.self) { try await second.value }
        let third = Task { try await queue.run { 3 } }
        open.yield()
        try await first.value
        #expect(try await third.value == 3)
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
