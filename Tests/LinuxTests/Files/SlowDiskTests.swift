import Core
import Glibc
import Linux
import Synchronization
import TestKit
import Testing

@Suite("SlowDisk", .timeLimit(.minutes(Patience.minutes(1))))
struct SlowDiskTests {
    /// A kernel call that returns when the test lets it.
    private final class Gate: Sendable {
        private let ends: (read: CInt, write: CInt)
        private let reached = Atomic<Int>(0)

        init() {
            var pair: [CInt] = [0, 0]
            pipe(&pair)
            ends = (pair[0], pair[1])
        }
        deinit {
            close(ends.read)
            close(ends.write)
        }

        var waiting: Int { reached.load(ordering: .acquiring) }
        func wait() {
            reached.wrappingAdd(1, ordering: .releasing)
            var byte: UInt8 = 0
            _ = read(ends.read, &byte, 1)
        }
        func open() {
            var byte: UInt8 = 1
            _ = write(ends.write, &byte, 1)
        }
    }

    @Test("the result or error of the work is returned")
    func returns() async throws {
        let disk = SlowDisk(timeout: .seconds(60))
        #expect(try await disk.run { _ in 7 } == 7)
        await #expect(throws: SystemError(call: "x", subject: "y", code: EIO)) {
            try await disk.run { _ in throw SystemError(call: "x", subject: "y", code: EIO) }
        }
    }

    @Test("hanging work is abandoned, more is refused meanwhile, and accepted when it returns")
    func hangs() async throws {
        let disk = SlowDisk(timeout: .milliseconds(20))
        let gate = Gate()
        let hasBegun = ConditionLock(false)
        // On a busy machine the time may end before the work has begun, and then no work hangs.
        repeat {
            await #expect(throws: SlowDisk.TimeoutError.self) {
                try await disk.run { _ in
                    hasBegun.change { $0 = true }
                    gate.wait()
                }
            }
        } while !hasBegun.withLock { $0 }
        await #expect(throws: SlowDisk.TimeoutError.self) { try await disk.run { _ in 1 } }
        gate.open()
        try await eventually("the disk accepts work again") { (try? await disk.run { _ in 1 }) == 1 }
    }

    @Test("work with progress is not abandoned, however long it takes")
    func goesOn() async throws {
        // Longer than a busy machine keeps a thread waiting for the processor.
        let disk = SlowDisk(timeout: .seconds(1))
        let beats = try await disk.run { pulse in
            for _ in 0..<250 {
                try pulse.reportProgress()
                usleep(5000)
            }
            return 250
        }
        #expect(beats == 250)
    }

    @Test("cancelled work ends between two calls, and a hanging call is not awaited")
    func cancelled() async throws {
        let disk = SlowDisk(timeout: .seconds(60))
        let gate = Gate()
        let hanging = Task { try await disk.run { _ in gate.wait() } }
        let busy = Task { try await disk.run { pulse in while true { try pulse.reportProgress() } } }
        try await eventually("the work hangs") { gate.waiting == 1 }
        for task in [hanging, busy] {
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(try await disk.run { _ in 1 } == 1, "the disk accepts other work")
        gate.open()
    }
}

private final class Counter: Sendable {
    private let count = Mutex(0)
    var value: Int { count.withLock { $0 } }
    @discardableResult
    func add() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
    func raise(to value: Int) { count.withLock { $0 = max($0, value) } }
}
