import Core
import TestKit
import Testing

@Suite("Manifests")
struct ManifestTests {
    private static let md5 = "d41d8cd98f00b204e9800998ecf8427e"
    private static let sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    private func read(_ text: String, at path: FilePath = "a/list.md5") throws(Manifest.Problem) -> [String] {
        try Manifest(Array(text.utf8), of: path, in: "/srv/in").files.sorted().map(\.display)
    }

    @Test(
        "a line has a path, alone or with a digest, as the programs of coreutils write it",
        arguments: [
            "clip 1.mp4", "./clip 1.mp4", "../a/clip 1.mp4", "/srv/in/a/clip 1.mp4", "\(md5)  clip 1.mp4",
            "\(md5) *clip 1.mp4", "\(sha256.uppercased())  ./clip 1.mp4", "SHA256 (clip 1.mp4) = \(sha256)",
            "BLAKE2b-256 (clip 1.mp4) = \(sha256)", "SHA512/256 (clip 1.mp4) = \(sha256)",
            "d41d8cd9  clip 1.mp4", "\(md5)d41d8cd98f00b204  clip 1.mp4",
        ])
    func lines(_ line: String) throws {
        #expect(try read(line) == ["a/clip 1.mp4"])
        #expect(
            try read("\u{FEFF}# made by a camera\r\n\r\n \(line)\r\n".replacing(" \(line)", with: line)) == [
                "a/clip 1.mp4"
            ])
    }

    @Test("a backslash before a digest says that the path is escaped, and only there")
    func escapes() throws {
        #expect(try Manifest(Array("\\\(Self.md5)  a\\nb\\\\c".utf8), of: "x", in: "/r").files == ["a\nb\\c"])
        #expect(try Manifest(Array("\\MD5 (a\\rb) = \(Self.md5)".utf8), of: "x", in: "/r").files == ["a\rb"])
        #expect(try Manifest(Array("\(Self.md5)  a\\nb".utf8), of: "x", in: "/r").files == ["a\\nb"])
    }

    @Test("what only resembles a digest is part of the path")
    func plain() throws {
        #expect(try read("d41d8cd  clip.mp4") == ["a/d41d8cd  clip.mp4"])
        #expect(try read("d41d8cd9 clip.mp4") == ["a/d41d8cd9 clip.mp4"])
        #expect(try read("\(Self.md5)-clip.mp4") == ["a/\(Self.md5)-clip.mp4"])
        #expect(try read("MD5 (clip.mp4)") == ["a/MD5 (clip.mp4)"])
        #expect(try read("x\n\n#y\nx") == ["a/x"])
    }

    @Test("bytes that are no text are kept in a path")
    func bytes() throws {
        let manifest = try Manifest([0xFF, 0xFE, UInt8(ascii: "\n")], of: "list", in: "/r")
        #expect(manifest.files == [FilePath(bytes: [0xFF, 0xFE])])
    }

    @Test("a manifest does not list itself, and may list nothing")
    func itself() throws {
        #expect(try read("list.md5\n./list.md5\nx") == ["a/x"])
        #expect(try read("").isEmpty)
        #expect(try read("# nothing\n").isEmpty)
    }

    @Test(
        "a line that cannot be meant is reported with its number",
        arguments: [
            ("x\n../../y", "line 2 lists `../../y`, which is outside the folder"),
            ("/etc/passwd", "line 1 lists `/etc/passwd`, which is outside the folder"),
            ("/srv/in/../x", "line 1 lists `/srv/in/../x`, which is outside the folder"),
            ("x\n\ny/", "line 3 lists the directory `y/`: list the files in it"),
            ("..", "line 1 lists the folder itself: list the files in it"),
            ("x\u{0}y", "line 1 has a NUL byte: a manifest is a text file"),
            ("\(md5)  ", "line 1 has a digest and no path"),
            (String(repeating: "n", count: 256), "line 1 lists a name of more than 255 bytes"),
        ])
    func problems(_ text: String, _ problem: String) {
        #expect(throws: Manifest.Problem.self) { try read(text) }
        do { _ = try read(text) } catch { #expect("\(error)" == problem) }
    }

    @Test("a manifest of more than 10,000 files is refused")
    func size() throws {
        let lines = (0..<10_000).map { "\($0)" }
        #expect(try read(lines.joined(separator: "\n")).count == 10_000)
        #expect(throws: Manifest.Problem.self) { try read((lines + ["more"]).joined(separator: "\n")) }
    }

    @Test("any bytes are a manifest or a problem, and every path is below the folder")
    func anything() {
        var dice = Dice(seed: 29)
        let alphabet = Array("ab/. \\\n\r\0#()=*0123456789abcdef".utf8)
        for _ in 0..<3_000 {
            let bytes = (0..<Int.random(in: 0..<200, using: &dice)).map { _ in alphabet.randomElement(using: &dice) ?? 0
            }
            guard let manifest = try? Manifest(bytes, of: "a/b", in: "/srv/in") else { continue }
            for path in manifest.files {
                #expect(!path.isEmpty && !path.isAbsolute && !path.components.contains("..") && path != "a/b")
            }
        }
    }
}

@Suite("Rules of groups")
struct GroupRuleTests {
    private func key(_ rule: GroupRule, _ path: FilePath) -> String? {
        let status = FileStatus(device: 1, inode: 1, size: 1, modified: 1, changed: 1, born: nil, mode: 0o100644)
        let file = SettledFile(
            folder: "cam", root: "/srv", relative: path, status: status,
            identity: FileIdentity(
                folder: "cam", relative: path, size: 1, modified: 1, inode: 1, born: nil, fileSystem: nil),
            settledBy: .lease)
        return rule.key(of: file) { _ in false }?.name.display
    }

    @Test("a directory at the top is a group with all that is below; a file at the top is in none")
    func directory() {
        let rule = GroupRule(by: .directory)
        #expect(key(rule, "card/DCIM/100/a.mp4") == "card")
        #expect(key(rule, "card/a.mp4") == "card")
        #expect(key(rule, "a.mp4") == nil)
    }

    @Test("a manifest is a group of its own; the other files of a directory wait together")
    func manifest() {
        let rule = GroupRule(by: .manifest, manifests: ["*.md5"])
        #expect(key(rule, "x/list.md5") == "x/list.md5")
        #expect(key(rule, "x/a.mp4") == "x")
        #expect(key(rule, "a.mp4") == "")
        #expect(rule.include(with: ["*.mp4"]) == ["*.mp4", "*.md5"])
        #expect(rule.isAuxiliary("list.md5") && !rule.isAuxiliary("clip.xml"))
    }

    @Test("names share a stem with their sidecars, and with no other")
    func stems() {
        for (one, other) in [("clip.mp4", "clip.srt"), ("clip.mp4", "clip.mp4.json"), ("clip", "clip.xml")] {
            #expect(FilePath(one).sharesStem(with: FilePath(other)) && FilePath(other).sharesStem(with: FilePath(one)))
            #expect(FilePath(one).beforeDots == FilePath(other).beforeDots)
        }
        #expect(!FilePath("clip.mp4").sharesStem(with: "clip2.mp4"))
        #expect(FilePath(".clip.mp4").beforeDots == ".clip")
    }
}
