import Core
import Linux
import Staging
import TestKit
import Testing

@testable import Daemon

@Suite("AsyncSignal")
struct AsyncSignalTests {
    @Test("a signal before the wait is kept, and several count as one")
    func kept() async {
        let signal = AsyncSignal()
        for _ in 0..<3 { signal.signal() }
        await signal.wait()
        // Nothing is left: only the limit ends this one.
        let clock = ContinuousClock()
        let start = clock.now
        await signal.wait(atMost: .milliseconds(20))
        #expect(clock.now - start >= .milliseconds(20))
    }

    @Test("a signal from another task ends the wait, and so does cancellation")
    func rung() async {
        let signal = AsyncSignal()
        let waiting = Task { await signal.wait() }
        signal.signal()
        await waiting.value
        let cancelled = Task { await signal.wait() }
        cancelled.cancel()
        await cancelled.value
    }

    @Test("no signal is lost in a thousand waits")
    func stress() async {
        let (signal, back) = (AsyncSignal(), AsyncSignal())
        let echo = Task {
            for _ in 0..<1_000 {
                await signal.wait()
                back.signal()
            }
        }
        for _ in 0..<1_000 {
            signal.signal()
            await back.wait()
        }
        await echo.value
    }
}
