import Core
import TestKit
import Testing

/// The effect of a folder's keys and its ignore files on single files.
@Suite("Rules of a folder")
struct FolderRuleTests {
    struct Line: Sendable, CustomTestStringConvertible {
        let file: String
        let path: String
        var isFolder = false
        let says: Bool?
        var testDescription: String { "\(file.replacing("\n", with: "|")) on \(path)\(isFolder ? "/" : "")" }
    }

    static let lines = [
        Line(file: "*.tmp", path: "a.tmp", says: true), Line(file: "*.tmp", path: "x/y/A.TMP", says: true),
        Line(file: "*.tmp", path: "a.mp4", says: nil), Line(file: "# *.tmp", path: "a.tmp", says: nil),
        Line(file: "\\#a", path: "#a", says: true), Line(file: "\\!a", path: "!a", says: true),
        Line(file: "*.tmp\n!keep.tmp", path: "keep.tmp", says: false),
        Line(file: "!keep.tmp\n*.tmp", path: "keep.tmp", says: true),
        Line(file: "/a", path: "a", says: true), Line(file: "/a", path: "x/a", says: nil),
        Line(file: "x/a", path: "x/a", says: true), Line(file: "x/a", path: "y/x/a", says: nil),
        Line(file: "cache/", path: "cache", says: nil), Line(file: "cache/", path: "cache", isFolder: true, says: true),
        Line(file: "cache/", path: "x/cache", isFolder: true, says: true),
        Line(file: "/x/cache/", path: "x/cache", isFolder: true, says: true),
        Line(file: "a/**/b", path: "a/b", says: true), Line(file: "a/**/b", path: "a/x/y/b", says: true),
        Line(file: "a/**", path: "a/x/y", says: true), Line(file: "**/b", path: "x/b", says: true),
        Line(file: "a  ", path: "a", says: true), Line(file: "a\\ ", path: "a ", says: true),
        Line(file: "a\r\nb\r\n", path: "b", says: true), Line(file: "\n\n", path: "a", says: nil),
        Line(file: "/", path: "a", says: nil), Line(file: "!", path: "a", says: nil),
        Line(file: "[", path: "[", says: true),
        Line(file: "*", path: "x/y", says: true), Line(file: "?", path: "\u{E4}", says: true),
    ]

    @Test("ignore files work like gitignore", arguments: lines)
    func ignoreFile(_ line: Line) {
        let rules = IgnoreRules(Array(line.file.utf8))
        let path = FilePath(line.path)
        let verdict = path.bytes.withUnsafeBufferPointer { rules.verdict(on: $0, isFolder: line.isFolder) }
        #expect(verdict == line.says)
    }

    @Test("an ignore file may contain names that are no text")
    func ignoreBytes() {
        let rules = IgnoreRules([0xFF, 0x2A, 0x0A])
        #expect([0xFF, 0x61].withUnsafeBufferPointer { rules.verdict(on: $0, isFolder: false) } == true)
        #expect([0xFE, 0x61].withUnsafeBufferPointer { rules.verdict(on: $0, isFolder: false) } == nil)
    }

    @Test("no damaged ignore file traps")
    func damagedIgnoreFiles() {
        var dice = Dice(seed: 7)
        for _ in 0..<2_000 {
            let alphabet = Array("*?[]!/\\# \na.{}\r\t".utf8) + [0xFF, 0xC3, 0x00]
            let bytes = (0..<Int.random(in: 0..<40, using: &dice)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &dice)]
            }
            let rules = IgnoreRules(bytes)
            let name = (0..<Int.random(in: 1..<13, using: &dice)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &dice)]
            }
            name.withUnsafeBufferPointer { _ = rules.verdict(on: $0, isFolder: Bool.random(using: &dice)) }
        }
    }

    @Test("the name of a marker is derived from the file's, and back")
    func markers() throws {
        let whole = try #require(MarkerName("{name}.done"))
        #expect(whole.marker(of: "a.mp4") == "a.mp4.done")
        #expect(whole.file(of: "a.mp4.done") == "a.mp4")
        #expect(whole.file(of: ".done") == nil)
        let stem = try #require(MarkerName("ok-{stem}.xml"))
        #expect(stem.marker(of: "a.b.mp4") == "ok-a.b.xml")
        #expect(
            stem.marker(of: FilePath(bytes: [0xFF, 0x2E, 0x6D]))
                == FilePath(bytes: Array("ok-".utf8) + [0xFF] + Array(".xml".utf8)))
        #expect(stem.file(of: "ok-a.xml") == nil)
        func isMarker(_ marker: MarkerName, _ name: String) -> Bool {
            Array(name.utf8).withUnsafeBufferPointer { marker.isMarker($0) }
        }
        #expect(isMarker(stem, "ok-a.xml"))
        #expect(!isMarker(stem, "ok-.xml"))
        #expect(!isMarker(stem, "a.xml"))
        for wrong in ["", "{name}", "done", "{name}{stem}.x", "{name}{name}", "a/{name}", "{name}.{x}", "{ext}.x"] {
            #expect(MarkerName(wrong) == nil, "\(wrong)")
        }
    }

    @Test("markers are never taken, whatever include contains")
    func markersAreNoFiles() {
        let rules = NameRules(include: ["*.done", "*.mp4"], exclude: [], marker: MarkerName("{name}.done"))
        #expect(rules.matches("a.mp4"))
        #expect(!rules.matches("a.mp4.done"))
        #expect(!NameRules(include: [".*"], exclude: []).matches(".sluiceignore"))
    }

    static let day = Duration.seconds(86_400)

    @Test("sizes and ages are distinguished, and a clock jump never loses a file for good")
    func limits() {
        let clocks = ManualClocks()
        func status(_ size: Int64 = 10, age: Duration = .zero) -> FileStatus {
            FileStatus(
                device: 1, inode: 1, size: size,
                modified: (clocks.wall().milliseconds - age.inMilliseconds) * 1_000_000, changed: 0, born: nil,
                mode: 0o100644)
        }
        let sizes = FileLimits(minSize: 10, maxSize: 20)
        #expect(sizes.objection(to: status(9), now: clocks.wall()) != nil)
        #expect(sizes.objection(to: status(10), now: clocks.wall()) == nil)
        #expect(sizes.objection(to: status(20), now: clocks.wall()) == nil)
        #expect(sizes.objection(to: status(21), now: clocks.wall()) != nil)
        let ages = FileLimits(minAge: .seconds(60), maxAge: Self.day)
        let old = status(age: Self.day + .seconds(1)), new = status(), future = status(age: .zero - Self.day)
        #expect(ages.objection(to: old, now: clocks.wall()) != nil)
        #expect(ages.objection(to: future, now: clocks.wall()) == nil)
        #expect(ages.wait(for: new, unchanged: .zero, now: clocks.wall()) == .seconds(60))
        #expect(ages.wait(for: status(age: .seconds(59)), unchanged: .zero, now: clocks.wall()) == .seconds(1))
        // By the other clock the file is old enough.
        #expect(ages.wait(for: future, unchanged: .seconds(60), now: clocks.wall()) <= .zero)
        // A clock that is a day ahead leaves a new file alone; the file is taken when the clock is right again.
        clocks.step(by: Self.day + Self.day)
        #expect(ages.objection(to: new, now: clocks.wall()) != nil)
        clocks.step(by: .zero - Self.day - Self.day)
        #expect(ages.objection(to: new, now: clocks.wall()) == nil)
    }
}
