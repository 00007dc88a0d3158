import Core
import Testing

@Suite("JSON that a decoder may be given")
struct JSONNestingTests {
    @Test(
        "has at most 64 lists and objects in each other, wherever its texts have brackets",
        arguments: [
            String(repeating: "[", count: 64) + String(repeating: "]", count: 64),
            String(repeating: "[]", count: 1000), "\"" + String(repeating: "[", count: 1000) + "\"",
            #"{"a\"[[":["#, "", "]]]]",
        ])
    func taken(_ text: String) throws { try checkJSON(text.utf8) }

    @Test(
        "is no other",
        arguments: [
            String(repeating: "[", count: 65), String(repeating: "{\"a\":", count: 513),
            "\"\\\"\"" + String(repeating: "[", count: 513), "]]" + String(repeating: "[", count: 67),
            "{\"a\":\"\0\"}", "[\0",
        ])
    func refused(_ text: String) {
        #expect(throws: DecodingError.self) { try checkJSON(text.utf8) }
    }
}
