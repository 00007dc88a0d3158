import FoundationEssentials
import Testing

@testable import Store

@Suite("Maps of texts")
struct TextMapTests {
    @Test(
        "maps are written as JSON and read back unchanged",
        arguments: [
            [:], ["a": ""], ["camera": "front-door", "day": "2026-11-20"], ["Tür": "Ü\u{1F3A5}"],
            ["a\"b": "c\\d", "lines": "1\n2\t3\u{0}\u{1F}", "slash": "a/b"], ["}": "{", ",": ":", "\\": "\\\""],
        ] as [[String: String]])
    func roundTrip(map: [String: String]) throws {
        let text = TextMap.text(map)
        #expect(TextMap.map(text) == map)
        #expect(try JSONDecoder().decode([String: String].self, from: Data(text.utf8)) == map)
    }

    @Test("equal maps give equal text")
    func sorted() {
        #expect(TextMap.text(["b": "2", "a": "1"]) == #"{"a":"1","b":"2"}"#)
    }

    @Test("JSON of other writers is read too, and invalid JSON is not")
    func others() {
        #expect(TextMap.map(#"{ "a" : "b" }"#) == ["a": "b"])
        #expect(TextMap.map(#"{"a":"\u0062\/"}"#) == ["a": "b/"])
        for text in ["", "{", #"{"a"}"#, #"{"a":1}"#, #"{"a":"b""#, #"{"a":"b",}x"#, "[]"] {
            #expect(TextMap.map(text) == nil, "\(text)")
        }
    }

    @Test("text that no program would write does not trap", arguments: [64, 65, 512, 513, 514])
    func nested(depth: Int) {
        #expect(TextMap.map(String(repeating: "[", count: depth)) == nil)
    }
}
