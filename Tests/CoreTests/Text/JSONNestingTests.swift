import Core
import Testing

@Suite("JSON accepted by the decoder")
struct JSONNestingTests {
    @Test(
        "at most 64 nested lists and objects are accepted, wherever strings contain brackets",
        arguments: [
            String(repeating: "[", count: 64) + String(repeating: "]", count: 64),
            String(repeating: "[]", count: 1000), "\"" + String(repeating: "[", count: 1000) + "\"",
            #"{"a\"[[":["#, "", "]]]]",
        ])
    func taken(_ text: String) throws { try checkJSON(text.utf8) }

    @Test(
        "other nesting is refused",
        arguments: [
            String(repeating: "[", count: 65), String(repeating: "{\"a\":", count: 513),
            "\"\\\"\"" + String(repeating: "[", count: 513), "]]" + String(repeating: "[", count: 67),
            "{\"a\":\"\0\"}", "[\0",
        ])
    func refused(_ text: String) {
        #expect(throws: DecodingError.self) { try checkJSON(text.utf8) }
    }
}
