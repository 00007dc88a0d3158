import Core
import Testing
import Transport

@testable import Destinations

@Suite("Values of HTTP headers")
struct WordsTests {
    @Test(
        "numbers are digits only",
        arguments: [
            ("0", 0), ("7", 7), ("9223372036854775807", Int64.max), ("9223372036854775808", nil), ("+1", nil),
            ("-1", nil),
            ("1 2", nil), ("", nil), ("1.0", nil), ("00000000000000000001", nil), ("٣", nil),
        ] as [(String, Int64?)])
    func numbers(_ text: String, _ value: Int64?) { #expect(plainInteger(text) == value) }

    @Test(
        "dates follow RFC 9110",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.000Z"),
            ("Thu, 29 Feb 2024 23:59:60 GMT", "2024-03-01T00:00:00.000Z"),
            ("Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00.000Z"),
            ("Sat, 31 Dec 2399 00:00:00 GMT", "2399-12-31T00:00:00.000Z"),
        ])
    func dates(_ text: String, _ time: String) { #expect(httpDate(text)?.description == time) }

    @Test(
        "other date formats are not guessed",
        arguments: [
            "1994-11-06T08:49:37", "Sunday, 06-Nov-94 08:49:37 GMT", "", "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 31 Feb 2027 08:49:37 GMT",
        ])
    func noDates(_ text: String) { #expect(httpDate(text) == nil) }

    @Test(
        "waits are between a second and an hour, and dates are compared with the server's own clock",
        arguments: [
            ("5", nil, 5), ("0", nil, 1), ("86400", nil, 3600), ("soon", nil, nil), ("-5", nil, nil),
            ("Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 60),
            ("Sun, 06 Nov 1994 08:48:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", 1),
            ("Thu, 01 Jan 1970 00:00:30 GMT", nil, 20),
        ] as [(String, String?, Int64?)])
    func waits(_ text: String, _ date: String?, _ seconds: Int64?) {
        var headers = Headers([("retry-after", text)])
        if let date { headers.append("Date", date) }
        #expect(retryAfter(headers, now: WallTime(milliseconds: 10_000)) == seconds.map { .seconds($0) })
    }

    @Test("base64 follows RFC 4648", arguments: [0, 1, 2, 3, 4, 5, 100, 255, 256])
    func base64s(_ count: Int) {
        let content = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
        let text = base64(content)
        #expect(decodeBase64(text) == content)
        #expect(bytes(base64: text) == content)
    }

    @Test("invalid base64 is absent", arguments: ["a", "ab", "abc", "a===", "ab=c", "====", "ab c", "ab-_"])
    func noBase64(_ text: String) { #expect(bytes(base64: text) == nil) }
}
