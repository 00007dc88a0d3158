import Core
import Testing

@Suite("FilePath")
struct FilePathTests {
    @Test(
        "any bytes are displayed as one printable line",
        arguments: [
            (FilePath("a b.mp4"), "a b.mp4"), ("ä.mp4", "ä.mp4"), ("a\nb", "a\\x0ab"), ("a\\b", "a\\x5cb"),
            (FilePath(bytes: [0x61, 0xFF, 0x62]), "a\\xffb"), (FilePath(bytes: [0xE2, 0x82]), "\\xe2\\x82"),
            ("a\u{202E}b", "a\\xe2\\x80\\xaeb"),
        ])
    func display(_ path: FilePath, _ shown: String) { #expect(path.display == shown) }

    @Test(
        ". and .. are removed without disk access",
        arguments: [("/a/./b//c/../d/", "/a/b/d"), ("/../a", "/a"), ("../a", "../a"), ("/", "/"), ("a/..", "")])
    func normalised(_ path: String, _ expected: String) { #expect(FilePath(path).normalised == FilePath(expected)) }

    @Test("a path is below a folder only after a slash")
    func relative() {
        #expect(FilePath("/a/cam1/x").relative(to: "/a/cam1") == "x")
        #expect(FilePath("/a/cam10/x").relative(to: "/a/cam1") == nil)
        #expect(FilePath("/a").relative(to: "/") == "a")
    }

    @Test(
        "a name is split into stem and extension",
        arguments: [("/x/a.tar.gz", "a.tar", "gz"), (".profile", ".profile", nil), ("a.", "a", ""), ("a", "a", nil)])
    func stems(_ path: String, _ stem: String, _ ending: String?) {
        #expect(FilePath(path).stem == FilePath(stem))
        #expect(FilePath(path).fileExtension == ending.map { FilePath($0) })
    }

    @Test("a displayed path parses back to its bytes")
    func shown() {
        let odd = FilePath(bytes: Array("a\\b\n".utf8) + [0xFF] + Array("\u{202E}ä.mp4".utf8))
        #expect(FilePath(display: odd.display) == odd)
        for text in ["a\\", "a\\x", "a\\xg0", "a\\n"] { #expect(FilePath(display: text) == nil) }
    }
}
