import Linux
import Synchronization
import TestKit
import Testing

/// Numbers that tasks add, in their order.
private final class Order: Sendable {
    private let all = Mutex<[Int]>([])

    func add(_ number: Int) { all.withLock { $0.append(number) } }
    var numbers: [Int] { all.withLock { $0 } }
}

@Suite("Signals, slots and queues of tasks")
struct TaskTests {
    @Test("an event wakes each task that waits for it, and is counted before")
    func broadcast() async throws {
        let (broadcast, signals) = (AsyncBroadcast(), [AsyncSignal(), AsyncSignal()])
        for signal in signals { broadcast.add(signal) }
        let waits = signals.map { signal in
            Task {
                await signal.wait(); return broadcast.eventCount
            }
        }
        try await eventually("both wait") { signals.allSatisfy(\.isWaiting) }
        broadcast.signal()
        for wait in waits { #expect(await wait.value == 1) }
        broadcast.remove(signals[0])
        let wait = Task { await signals[1].wait() }
        broadcast.end()
        await wait.value
        #expect(broadcast.isOver)
        await signals[0].wait(atMost: .milliseconds(10))
    }

    @Test("a free slot goes to the task that waits, in order, and to others only then")
    func slots() async throws {
        let released = Order()
        let slots = AsyncSemaphore(slots: 2) { released.add(1) }
        #expect(!slots.tryAcquire(leaving: 2))
        #expect(slots.tryAcquire(leaving: 1))
        #expect(!slots.tryAcquire(leaving: 1))
        #expect(slots.tryAcquire(leaving: 0))
        let order = Order()
        func wait(_ number: Int) -> Task<Bool, Never> {
            Task {
                let isMine = await slots.acquire()
                order.add(number)
                return isMine
            }
        }
        let cancelled = wait(0)
        cancelled.cancel()
        #expect(await cancelled.value == false)
        let first = wait(1)
        slots.release()
        #expect(await first.value)
        #expect(!slots.tryAcquire(leaving: 0))
        slots.release()
        slots.release()
        #expect(slots.tryAcquire(leaving: 1))
        #expect(order.numbers == [0, 1])
        #expect(released.numbers.count == 3)
    }

    @Test("work is done once for all tasks that need it at the same time, and ends when no task waits any more")
    func singleFlight() async throws {
        let (flight, gate) = (SingleFlight(), AsyncSignal())
        let begun = Order()
        func join() -> Task<Void, any Error> {
            Task {
                try await flight.join {
                    begun.add(1)
                    await gate.wait()
                    try Task.checkCancellation()
                }
            }
        }
        let first = join()
        try await eventually("the work runs") { gate.isWaiting }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(begun.numbers.count == 1)
        let second = join()
        try await eventually("the work runs again") { gate.isWaiting }
        gate.signal()
        try await second.value
        #expect(begun.numbers.count == 2)
    }

    @Test("queued work runs one after another in its order, also after an error")
    func queue() async throws {
        struct Wrong: Error {}
        let (queue, gate) = (TaskQueue(), AsyncSignal())
        let order = Order()
        let first = Task {
            try await queue.run {
                await gate.wait()
                order.add(1)
                throw Wrong()
            }
        }
        try await eventually("the first runs") { gate.isWaiting }
        let second = Task { try await queue.run { order.add(2) } }
        gate.signal()
        await #expect(throws: Wrong.self) { try await first.value }
        try await second.value
        #expect(order.numbers == [1, 2])
    }

    @Test("a flag tells the caller that has set it")
    func flag() {
        let flag = StopFlag()
        #expect(!flag.isSet)
        #expect(flag.set())
        #expect(!flag.set())
        #expect(flag.isSet)
        flag.clear()
        #expect(!flag.isSet)
    }
}
