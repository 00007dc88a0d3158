import Core
import Linux
import TestKit
import Testing

@Suite("WallTime")
struct WallTimeTests {
    @Test(
        "time is written as RFC 3339 in UTC",
        arguments: [
            (Int64(0), "1970-01-01T00:00:00.000Z"), (1_763_625_600_000, "2025-11-20T08:00:00.000Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ])
    func text(_ milliseconds: Int64, _ text: String) {
        #expect(WallTime(milliseconds: milliseconds).description == text)
    }
}
