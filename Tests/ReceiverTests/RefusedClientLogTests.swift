import Core
import TestKit
import Testing

@testable import Receiver

@Suite("Log lines about refused clients")
struct RefusedClientLogTests {
    @Test("a few refused clients a minute are logged, and then the number of the others")
    func few() {
        let (log, clocks) = (RefusedClientLog(), ManualClocks())
        let lines = (0..<1000).compactMap { log.line("refused \($0)", at: clocks.monotonic()) }
        #expect(lines == (0..<RefusedClientLog.maxLines).map { "refused \($0)" })
        clocks.advance(by: .seconds(60))
        let last = log.line("refused", at: clocks.monotonic())
        #expect(last == "refused (and \(1000 - RefusedClientLog.maxLines) more before that were not logged)")
        #expect(log.line("again", at: clocks.monotonic()) == "again")
    }
}
