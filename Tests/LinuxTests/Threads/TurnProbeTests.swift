import Linux
import Synchronization
import TestKit
import Testing

@Suite("TurnProbe")
struct TurnProbeTests {
    @Test("only a turn that begins after the question answers it")
    func later() async throws {
        let probe = TurnProbe()
        let isAsked = Atomic(false)
        let isAnswered = Atomic(false)
        probe.beginTurn()
        let question = Task {
            await probe.confirm { isAsked.store(true, ordering: .releasing) }
            isAnswered.store(true, ordering: .releasing)
        }
        try await eventually("the loop is woken") { isAsked.load(ordering: .acquiring) }
        let isEarly = isAnswered.load(ordering: .acquiring)
        #expect(!isEarly)
        probe.beginTurn()
        await question.value
    }

    @Test("a question that was given up does not answer the next one")
    func givenUp() async throws {
        let probe = TurnProbe()
        let asked = Mutex(0)
        let wake: @Sendable () -> Void = { asked.withLock { $0 += 1 } }
        let first = Task { await probe.confirm(waking: wake) }
        try await eventually("the first is asked") { asked.withLock { $0 } == 1 }
        first.cancel()
        await first.value
        probe.beginTurn()
        let isAnswered = Atomic(false)
        let second = Task {
            await probe.confirm(waking: wake)
            isAnswered.store(true, ordering: .releasing)
        }
        try await eventually("the second is asked") { asked.withLock { $0 } == 2 }
        for _ in 0..<20 { await Task.yield() }
        let isEarly = isAnswered.load(ordering: .acquiring)
        #expect(!isEarly)
        probe.beginTurn()
        await second.value
    }
}
