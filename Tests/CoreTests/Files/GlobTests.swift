import Core
import Testing

@Suite("Glob")
struct GlobTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let pattern: String
        let yes: [String]
        let no: [String]
        var testDescription: String { pattern }

        init(_ pattern: String, yes: [String], no: [String]) {
            self.pattern = pattern
            self.yes = yes
            self.no = no
        }
    }

    static let rows = [
        Row("*.mp4", yes: ["a.mp4", "CLIP.MP4", ".mp4", "a.b.Mp4"], no: ["a.mp", "mp4", "a.mp4x", ""]),
        Row("*", yes: ["", "a", "a b"], no: []),
        Row("a*b*c", yes: ["abc", "aXbYbc", "abbcc"], no: ["ab", "acb", "xabc"]),
        Row("?", yes: ["a", "ä", "€", "🎥", "\u{1}"], no: ["", "ab", "/"]),
        Row("?*?*?", yes: ["abc", "a🎥é"], no: ["é🎥", "🎥"]),
        Row("[!a]b", yes: ["éb", "🎥b"], no: ["ab", "éab"]),
        Row("[é-ü]", yes: ["é", "ö"], no: ["e", "ÿ", "É"]),
        Row("[a-c]x", yes: ["ax", "CX"], no: ["dx", "x"]),
        Row("[!a-c]x", yes: ["dx"], no: ["ax", "Bx", "/x"]),
        Row("[]x]", yes: ["]", "x"], no: ["a"]),
        Row("[a", yes: ["[a"], no: ["a"]),
        Row("\\*", yes: ["*"], no: ["a"]),
        Row("day/*.mp4", yes: ["day/a.mp4"], no: ["a.mp4", "day/x/a.mp4", "x/day/a.mp4"]),
        Row("**/*.mp4", yes: ["a.mp4", "x/a.mp4", "x/y/a.mp4"], no: ["x/a.mov"]),
        Row("raw/**", yes: ["raw/a", "raw/x/y"], no: ["raw", "rawx/a"]),
        Row("a/**/z", yes: ["a/z", "a/b/z", "a/b/c/z"], no: ["az", "a/bz", "b/a/z"]),
        Row("**/a*/**", yes: ["a/x", "q/ab/x/y"], no: ["b/x", "xa/y"]),
        Row("-*", yes: ["-rf"], no: ["rf"]),
    ]

    @Test("a glob matches the names that its syntax means, and no others", arguments: rows)
    func matches(_ row: Row) {
        let glob = Glob(row.pattern)
        for name in row.yes { #expect(glob.matches(FilePath(name)), "\(name)") }
        for name in row.no { #expect(!glob.matches(FilePath(name)), "\(name)") }
    }

    @Test("an invalid byte matches as one character")
    func bytes() {
        #expect(Glob("a?b").matches(FilePath(bytes: [0x61, 0xFF, 0x62])))
        #expect(Glob("*.mp4").matches(FilePath(bytes: [0xC3, 0x0A] + Array(".mp4".utf8))))
    }

    @Test("a glob with a slash matches paths")
    func paths() {
        #expect(Glob("a/b").matchesPath)
        #expect(!Glob("a*").matchesPath)
    }

    @Test("many stars against a long name end soon")
    func stars() {
        let name = FilePath(String(repeating: "a", count: 255))
        #expect(!Glob(String(repeating: "*a", count: 60) + "b").matches(name))
    }
}
