import Core
import Glibc
import Linux
import TestKit
import Testing

@Suite("LocalTime")
struct LocalTimeTests {
    @Test("local time is that of the C library", arguments: [Int64(0), -1, 1_795_161_600_999, 4_102_444_800_000])
    func agrees(_ milliseconds: Int64) {
        var seconds = time_t((Double(milliseconds) / 1000).rounded(.down))
        var parts = tm()
        localtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, "%Y-%m-%d %H:%M:%S", &parts)
        let local = LocalTime(WallTime(milliseconds: milliseconds))
        let expected = String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        #expect("\(local.date) \(local.clock)" == expected)
    }
}
