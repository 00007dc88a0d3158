import Core
import Testing

@Suite("PercentCoding")
struct PercentCodingTests {
    @Test(
        "only well-formed text is decoded",
        arguments: [
            ("a%20b", "a b"), ("%C3%A4", "ä"), ("a+b", "a+b"), ("%2f", "/"), ("", ""), ("%", nil), ("%4", nil),
            ("%zz", nil), ("%00", nil), ("%ff", nil),
        ])
    func decodes(_ text: String, _ expected: String?) { #expect(PercentCoding.text(decoding: text) == expected) }

    @Test("any bytes survive encoding and decoding")
    func bytes() {
        let all = Array(UInt8.min...UInt8.max)
        #expect(PercentCoding.bytes(decoding: PercentCoding.encode(all)) == all)
        #expect(PercentCoding.encode("a/b c".utf8, keeping: "/") == "a/b%20c")
    }

    @Test("the first value of a repeated name counts")
    func query() {
        #expect(PercentCoding.query(decoding: "a=1&b=%26&a=2&c&d=x=y") == ["a": "1", "b": "&", "c": "", "d": "x=y"])
        #expect(PercentCoding.query(decoding: "a=%") == nil)
    }
}
