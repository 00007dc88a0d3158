import Core
import Linux
import Staging
import TestKit
import Testing

@testable import Daemon

@Suite("ProgressTotals")
struct ProgressTotalsTests {
    @Test("totals only grow while there is work, and start again on an idle daemon")
    func totals() {
        let batch = ProgressTotals()
        func files(_ ongoing: Int, _ completed: Int) -> [Int] {
            let figures = batch.figures(
                ongoing: ongoing, ongoingBytes: Int64(ongoing * 10), completed: completed,
                completedBytes: Int64(completed * 10))
            return [figures.filesDone, figures.filesTotal, Int(figures.bytesTotal)]
        }
        #expect(files(0, 5) == [0, 0, 0])
        #expect(files(3, 5) == [0, 3, 30])
        #expect(files(2, 6) == [1, 3, 30])
        #expect(files(4, 6) == [1, 5, 50])
        #expect(files(0, 10) == [0, 0, 0])
        #expect(files(1, 10) == [0, 1, 10])
    }
}
