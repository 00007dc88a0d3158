import Core
import Testing

@Suite("Limits of wasted bytes")
struct WasteRuleTests {
    @Test(
        "two whole sendings of a file are too much, of a large one more than its size; the cost of requests is not",
        arguments: [
            (size: 0, sent: 1000, is: false), (1000, 10_000, false), (1000, 64_000, true), (300_000, 599_999, false),
            (300_000, 600_000, true), (4_000_000, 4_000_000, false), (4_000_000, 4_000_001, true),
        ])
    func much(_ row: (size: Int64, sent: Int64, is: Bool)) {
        #expect(Waste(today: row.sent).exceedsLimit(forSize: row.size) == row.is)
        #expect(
            Waste(today: row.sent / 2, unsettled: row.sent - row.sent / 2).exceedsLimit(forSize: row.size) == row.is)
        #expect(!Waste(total: row.sent).exceedsLimit(forSize: row.size))
    }
}
