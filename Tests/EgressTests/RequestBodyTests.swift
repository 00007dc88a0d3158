import TestKit
import TestTraits
import Testing

@testable import Egress

@Suite("The end of a request's body", .ownThreads, .timeLimit(.minutes(Fuzz.minutes)))
struct RequestBodyTests {
    private func taken(_ body: RequestBody, _ text: String) -> Int? {
        var body = body
        return body.take(Array(text.utf8)[...])
    }

    @Test("a body with a length ends after it, and a tunnel never")
    func lengths() {
        #expect(taken(.length(0), "abc") == 0)
        #expect(taken(.length(2), "abc") == 2)
        #expect(taken(.length(9), "abc") == 3)
        #expect(taken(.unlimited, "abc") == 3)
    }

    @Test(
        "a chunked body ends after its last line, extensions and trailers included",
        arguments: [
            "0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "00A;x=\"y\"\r\n0123456789\r\n0\r\nX: 1\r\nY: 2\r\n\r\n",
            "5;\r\nhello\r\n0;a\r\n\r\n",
        ])
    func chunked(_ text: String) { #expect(taken(.chunked, text + "GET / HTTP/1.1") == text.utf8.count) }

    @Test(
        "a chunked body that two programs may read differently is broken",
        arguments: [
            "\r\n", "x\r\n", "-1\r\n", "0x5\r\nhello\r\n", "5\nhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5 \r\nhello\r\n", "FFFFFFFFFFFFFFFF\r\n", "0\r\nX: 1\n\r\n", "5\rhello\r\n", "0\r\n\rX",
        ])
    func broken(_ text: String) { #expect(taken(.chunked, text) == nil) }

    @Test("a chunked body, damaged and cut anywhere, never traps, and ends at the same byte however it is cut")
    func cut() throws {
        let mutator = Mutator(
            ["5\r\nhello\r\n0\r\n\r\nrest", "A;x=1\r\n0123456789\r\n0\r\nX: 1\r\n\r\nrest"].map { Array($0.utf8) },
            words: ["\r\n", "0", "FFFF", ";", "\r", "\n"])
        try Fuzz("egress-body", rounds: 20_000).each(mutator) { round in
            var whole = RequestBody.chunked
            let taken = whole.take(round.input[...])
            var (pieces, sum, start) = (RequestBody.chunked, Int?.some(0), 0)
            while start < round.input.count, let before = sum {
                let end = min(round.input.count, start + Int.random(in: 1...4, using: &round.dice))
                sum = pieces.take(round.input[start..<end]).map { $0 + before }
                start = end
            }
            try round.expect(sum == taken, "\(String(describing: sum)) differs from \(String(describing: taken))")
            try round.expect(whole == pieces || taken == nil, "the states differ")
        }
    }
}
