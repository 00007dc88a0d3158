import Core
import Synchronization
import TestKit
import Testing

@testable import Linux

@Suite("Threads for blocking work")
struct WorkersTests {
    @Test("each job runs once, in order with one thread")
    func order() {
        let seen = ConditionLock([Int]())
        let workers = Workers<Int>("one", most: 1) { number in seen.change { $0.append(number) } }
        for number in 0..<10_000 { workers.add(number) }
        #expect(seen.wait { $0.count == 10_000 ? $0 : nil } == Array(0..<10_000))
        workers.close()
    }

    @Test("each waiting job gets its own thread, up to the limit", arguments: [1, 4])
    func bound(most: Int) {
        let running = ConditionLock((now: 0, most: 0, done: 0))
        let gate = ConditionLock(false)
        let workers = Workers<Int>("some", most: most) { _ in
            running.changeForAll {
                $0.now += 1
                $0.most = max($0.most, $0.now)
            }
            gate.wait { $0 ? () : nil }
            running.changeForAll {
                $0.now -= 1
                $0.done += 1
            }
        }
        for number in 0..<10 { workers.add(number) }
        running.wait { $0.now == most ? () : nil }
        gate.changeForAll { $0 = true }
        #expect(running.wait { $0.done == 10 ? $0.most : nil } == most)
        workers.close()
    }

    @Test("threads start again after idle ones have left")
    func lingering() {
        let done = ConditionLock(0)
        let workers = Workers<Int>("linger", most: 2, linger: .milliseconds(1)) { _ in done.change { $0 += 1 } }
        for round in 1...50 {
            workers.add(round)
            done.wait { $0 == round ? () : nil }
        }
        #expect(done.withLock { $0 } == 50)
    }

    @Test("finished jobs are released, and the pool after close")
    func release() async throws {
        final class Held: Sendable {}
        weak var held: Held?
        do {
            let strong = Held()
            held = strong
            let done = ConditionLock(false)
            let workers = Workers<@Sendable () -> Void>("held", most: 1) { $0() }
            workers.add { [strong] in
                _ = strong
                done.change { $0 = true }
            }
            done.wait { $0 ? () : nil }
            workers.close()
        }
        try await eventually("the job has been released") { held == nil ? () : nil }
    }

    @Test("without new threads from the kernel, jobs still run once, in order, one at a time")
    func noThread() {
        let seen = ConditionLock((running: 0, most: 0, order: [Int]()))
        let gate = ConditionLock(false)
        let workers = Workers<Int>(
            "none", most: 1, linger: nil,
            startThread: { name, _ throws(SystemError) in
                throw SystemError(call: "pthread_create", subject: name, code: 11)
            }
        ) { number in
            seen.changeForAll {
                $0.running += 1
                $0.most = max($0.most, $0.running)
                $0.order.append(number)
            }
            // The first piece lasts until another thread has added the second.
            if number == 1 { gate.wait { $0 ? () : nil } }
            seen.changeForAll { $0.running -= 1 }
        }
        let first = Workers<Int>("caller", most: 1) { _ in workers.add(1) }
        first.add(0)
        seen.wait { $0.order == [1] ? () : nil }
        workers.add(2)
        #expect(seen.withLock { $0.order } == [1], "the second waits for the first")
        gate.changeForAll { $0 = true }
        seen.wait { $0.order == [1, 2] && $0.running == 0 ? () : nil }
        #expect(seen.withLock { $0.most } == 1)
        first.close()
        #expect(throws: SystemError.self) { try workers.begin() }
        // Done by this thread, or by the first caller, which may be about to leave.
        workers.add(3)
        seen.wait { $0.order == [1, 2, 3] && $0.running == 0 ? () : nil }
    }

    @Test("a queue returns its items in order, however it grows and shrinks")
    func line() {
        var dice = Dice(seed: 7)
        var line = FIFO<Int>(), reference: [Int] = []
        for number in 0..<20_000 {
            if Bool.random(using: &dice) || number % 5000 < 400 {
                line.append(number)
                reference.append(number)
            } else {
                #expect(line.popFirst() == (reference.isEmpty ? nil : reference.removeFirst()))
            }
            #expect(line.count == reference.count)
        }
    }
}
