import FoundationEssentials
import Testing

@testable import Store

@Suite("Texts by name")
struct TextMapTests {
    @Test(
        "what is written is JSON, and is read back as it was",
        arguments: [
            [:], ["a": ""], ["camera": "front-door", "day": "2026-11-20"], ["Tür": "Ü\u{1F3A5}"],
            ["a\"b": "c\\d", "lines": "1\n2\t3\u{0}\u{1F}", "slash": "a/b"], ["}": "{", ",": ":", "\\": "\\\""],
        ] as [[String: String]])
    func roundTrip(map: [String: String]) throws {
        let text = TextMap.text(map)
        #expect(TextMap.map(text) == map)
        #expect(try JSONDecoder().decode([String: String].self, from: Data(text.utf8)) == map)
    }

    @Test("equal maps are equal texts")
    func sorted() {
        #expect(TextMap.text(["b": "2", "a": "1"]) == #"{"a":"1","b":"2"}"#)
    }

    @Test("JSON of another hand is read as well, and what is none is not")
    func others() {
        #expect(TextMap.map(#"{ "a" : "b" }"#) == ["a": "b"])
        #expect(TextMap.map(#"{"a":"\u0062\/"}"#) == ["a": "b/"])
        for text in ["", "{", #"{"a"}"#, #"{"a":1}"#, #"{"a":"b""#, #"{"a":"b",}x"#, "[]"] {
            #expect(TextMap.map(text) == nil, "\(text)")
        }
    }

    @Test("what no program would write ends nothing", arguments: [64, 65, 512, 513, 514])
    func nested(depth: Int) {
        #expect(TextMap.map(String(repeating: "[", count: depth)) == nil)
    }
}
