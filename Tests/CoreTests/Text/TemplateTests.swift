import Core
import Linux
import TestKit
import Testing

@Suite("Template")
struct TemplateTests {
    @Test(
        "a mistake is reported with its place",
        arguments: [
            ("{nmae}", 0, "no placeholder is called `{nmae}`; did you mean `{name}`?"),
            ("a{name", 1, "a `{` without its `}`; write `{{` for the brace itself"),
            ("ab}", 2, "a `}` without its `{`; write `}}` for the brace itself"),
            ("{size:%Y}", 0, "only `{modified:…}` and `{recorded:…}` take a format"),
        ])
    func mistakes(_ text: String, _ offset: Int, _ problem: String) {
        #expect(throws: Template.SyntaxError(offset: offset, problem: problem)) { try Template(text) }
    }

    @Test("values are inserted byte for byte, and doubled braces as one")
    func filled() throws {
        let made = try Template("/{{x}}/{folder}/{recorded:%Y}").filled { name, format in
            name == "folder" ? [0xFF] : Array((format ?? "").utf8)
        }
        #expect(made == Array("/{x}/".utf8) + [0xFF] + Array("/%Y".utf8))
    }

    @Test("in JSON no value ends its string")
    func json() throws {
        let template = try Template("{{\"n\": \"{name}\"}}").inJSON
        let made = template.filled { _, _ in Array("a\",\"b\":\"\\\n".utf8) }
        #expect(String(decoding: made, as: UTF8.self) == #"{"n": "a\",\"b\":\"\\\u000a"}"#)
    }
}
