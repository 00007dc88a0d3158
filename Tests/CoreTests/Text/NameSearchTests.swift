import Core
import Testing

@Suite("Search in names")
struct NameSearchTests {
    @Test(
        "upper and lower case are the same, also of letters outside ASCII",
        arguments: [
            ("door", "cam/Front DOOR.mp4"), ("DOOR", "cam/door.mp4"), ("Door.MP4", "front door.mp4"), ("", "a"),
            ("", ""),
            ("ÄRGER", "großer Ärger"), ("ärger", "ÄRGER"), ("ÉCLAIR", "éclair"), ("камера", "КАМЕРА 1"), ("ΣΑ", "σα"),
            ("m/F", "cam/front"), ("aab", "aaab"), ("録画", "録画.mp4"),
        ])
    func cases(_ text: String, _ path: String) { #expect(NameSearch(text).matches(FilePath(path))) }

    @Test(
        "other texts are not found",
        arguments: [
            ("door", "doo"), ("door", ""), ("a b", "a_b"), ("é", "e"), ("doors", "door"), ("%", "a"), ("_", "a"),
        ])
    func others(_ text: String, _ path: String) { #expect(!NameSearch(text).matches(FilePath(path))) }

    @Test("every name is found by what is displayed of it, whole and in part, in either case of its hexadecimal digits")
    func displayed() {
        for bytes: [UInt8] in [
            [0x63, 0xFF, 0x41], [0xC3], [0x61, 0x5C, 0x78, 0x66, 0x66], [0xE2, 0x80, 0xAE, 0x78], [0x1B, 0x5B],
            Array("C:\\temp\\x41".utf8), [0x80, 0x81, 0xC3, 0xA4],
        ] {
            let path = FilePath(bytes: bytes)
            #expect(NameSearch(path.display).matches(path), "\(path)")
            #expect(NameSearch(path.display.uppercased().replacing("\\X", with: "\\x")).matches(path), "\(path)")
            let inside = FilePath(bytes: Array("cam/".utf8) + bytes + Array(".mp4".utf8))
            #expect(NameSearch(path.display + ".MP4").matches(inside), "\(path)")
        }
        // A backslash that a person types is one, whatever follows.
        #expect(NameSearch("p\\x").matches(FilePath("temp\\x41")))
        #expect(NameSearch("\\X41").matches(FilePath("temp\\x41")))
        #expect(!NameSearch("\\xff").matches(FilePath("\u{FF}")))
    }

    @Test("a search agrees with one in folded texts, for any path")
    func agrees() {
        var dice = SystemRandomNumberGenerator()
        let letters = Array("aAbB/ .ä\u{C4}é")
        func text(_ most: Int) -> String {
            String(
                (0..<Int.random(in: 0...most, using: &dice)).map { _ in
                    letters[Int.random(in: 0..<letters.count, using: &dice)]
                })
        }
        for _ in 0..<3_000 {
            let (part, path) = (text(3), text(10))
            let expected = part.isEmpty || path.lowercased().contains(part.lowercased())
            #expect(NameSearch(part).matches(FilePath(path)) == expected, "\(part) in \(path)")
        }
    }
}
