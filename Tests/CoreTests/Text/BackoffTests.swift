import Core
import Linux
import TestKit
import Testing

@Suite("Backoff")
struct BackoffTests {
    @Test(
        "the wait doubles up to its ceiling, and jitter removes at most half",
        arguments: zip([1, 2, 3, 4, 9, 10, 1_000], [5, 10, 20, 40, 1_280, 1_800, 1_800]))
    func waits(after failures: Int, seconds: Int) {
        #expect(Backoff().wait(afterFailures: failures, jitter: 1) == .seconds(seconds))
        #expect(Backoff().wait(afterFailures: failures, jitter: 0) == .seconds(seconds) / 2)
    }
}
