import Core
import Linux
import Synchronization
import TestKit
import TestTraits
import Testing

@testable import Shell

/// Names of every kind, in every place where a report has them.
@Suite("Hidden names", .ownThreads)
struct HiddenNamesTests {
    private static let root = "/srv/drop"
    private static let pieces = [
        "holiday film", "Ünïcode é", "映像の名前", "quo\"ted", "it's one", "dots.in.it", "100%", "50%20off", "tab\\x09stop",
        "bytes\\xff\\xfe", "comma, semi; colon", "two  blanks", "(1)", "#tagged", "plus+plus", "🎥 reel", "rel=one",
        "back`tick", "IMG_0001", "x", "Anna Miller",
    ]
    /// Words of the report, and names that are too short to be told from others.
    private static let ordinary = ["a", "check", "tus", "log", "1", "02", "2026-11-30", "status.check"]

    /// A file below the watched folder.
    private struct File {
        var folders: [String]
        var name: String
        var relative: String { (folders + [name]).joined(separator: "/") }
        var path: String { root + "/" + relative }
    }

    private static func name(_ dice: inout Dice) -> String {
        let count = Int.random(in: 1...3, using: &dice)
        let parts = (0..<count).map { _ in pieces.randomElement(using: &dice) ?? "" }
        let separator = [" ", "-", "_", "."].randomElement(using: &dice) ?? ""
        return parts.joined(separator: separator) + "-k"
            + hexadecimal(withUnsafeBytes(of: dice.next()) { Array($0.prefix(3)) })
    }

    private static func file(_ dice: inout Dice) -> File {
        let ending = [".mp4", ".MOV", "", ".tar.gz", ".J P"].randomElement(using: &dice) ?? ""
        let folders = (0..<Int.random(in: 0...2, using: &dice)).map { _ in name(&dice) }
        return File(folders: folders, name: name(&dice) + ending)
    }

    private static func hidden(_ files: [File]) -> HiddenNames {
        var names = HiddenNames()
        names.roots = [root]
        for file in files {
            names.add(file.path)
            names.add(file.name, relative: file.relative)
        }
        return names
    }

    /// Whether a text has a name, in whatever code.
    private static func has(_ name: String, in text: String) -> Bool {
        let (all, part) = (DecodedText(text).bytes, DecodedText(name).bytes)
        return all.firstRange(of: part) != nil
    }

    private static func coded(_ text: String, keeping: String = "") -> String {
        PercentCoding.encode(FilePath(display: text)?.bytes ?? [], keeping: keeping)
    }

    /// A line of the log, as the daemon writes it.
    private static func logged(_ fields: Log.Fields) -> String {
        let written = Mutex("")
        let log = Log(format: .plain) { bytes in written.withLock { $0 += String(decoding: bytes, as: UTF8.self) } }
        log.info("uploaded", fields)
        return written.withLock { $0.split(separator: "\n").first.map(String.init) ?? "" }
    }

    @Test("a known name is hidden wherever it stands, has one mark, and the rest of the line stays")
    func everywhere() throws {
        for seed in 1...150 as ClosedRange<UInt64> {
            var dice = Dice(seed: seed)
            let files = (0..<5).map { _ in Self.file(&dice) }
            let names = Self.hidden(files)
            let file = files[0]
            let mark = try #require(names.hide(in: ["«\(file.name)»"]).first).trimmingFirst("«").trimmingLast("»")
            #expect(mark.hasPrefix("name-"), "seed \(seed): \(mark)")
            let (path, relative, name) = (file.path, file.relative, file.name)
            let place = "\(Self.root)/\(mark)"
            let cases: [(line: String, expected: String)] = [
                ("\(path) to nas  waiting", "\(place) to nas  waiting"),
                ("  open \(path): Permission denied (errno 13)", "  open \(place): Permission denied (errno 13)"),
                ("\(path)  12 MB, growing", "\(place)  12 MB, growing"),
                ("file          \(path)", "file          \(place)"),
                ("  \(relative)  12 MB", "  \(mark)  12 MB"),
                ("no room for \(name) today", "no room for \(mark) today"),
                ("`\(name)`, \"\(relative)\" and “\(name)”", "`\(mark)`, \"\(mark)\" and “\(mark)”"),
                (
                    "PUT http://host.example/files/\(Self.coded(relative, keeping: "/")): 403",
                    "PUT http://host.example/files/\(mark): 403"
                ),
                (
                    "http://host.example/bucket/?key=\(Self.coded(relative))&n=1",
                    "http://host.example/bucket/?key=\(mark)&n=1"
                ),
                (
                    "http://host.example/o/prefix%2F\(Self.coded(relative).lowercasedEscapes)",
                    "http://host.example/o/prefix%2F\(mark)"
                ),
                ("Location: /up/\(Self.coded(Self.coded(name)))", "Location: /up/\(mark)"),
                (
                    "{\"text\":\(jsonString("lost \(path): gone")),\"n\":1}",
                    "{\"text\":\"lost \(place): gone\",\"n\":1}"
                ),
                ("{\"name\":\(jsonString(name))}", "{\"name\":\"\(mark)\"}"),
                ("/other/place/\(name).xmp is its companion", "/other/place/\(mark).xmp is its companion"),
                (".\(name).sluice-01JD3K8QWE-1.part is left", ".\(mark).sluice-01JD3K8QWE-1.part is left"),
            ]
            let lines = names.hide(in: cases.map(\.line))
            for (line, one) in zip(lines, cases) {
                #expect(line == one.expected, "seed \(seed), from: \(one.line)")
                for hidden in files where Self.has(hidden.name, in: line) {
                    Issue.record("seed \(seed): \(hidden.name) in \(line)")
                }
            }
            let logged = names.hide(in: [Self.logged(["path": path, "reason": "lost \(name)", "destination": "nas"])])[
                0]
            #expect(!Self.has(name, in: logged) && logged.hasSuffix(" destination=nas"), "seed \(seed): \(logged)")
            #expect(logged.components(mark) == 2, "seed \(seed): \(logged)")
        }
    }

    @Test("a name that is part of another one leaves nothing of either")
    func parts() {
        var names = HiddenNames()
        names.roots = [Self.root]
        for name in ["film.mp4", "holiday film.mp4", "my holiday film.mp4", "film.mp4.old.mp4", "b a x", "a xyz.mp4"] {
            names.add("\(Self.root)/\(name)")
        }
        for line in [
            "lost my holiday film.mp4 today", "lost film.mp4.old.mp4 today", "lost b a xyz.mp4 today",
            "lost \(Self.root)/my holiday film.mp4 today",
        ] {
            let text = names.hide(in: [line])[0]
            for part in ["film", "holiday", "my", "xyz", "old"] { #expect(!text.contains(part), "\(text)") }
            #expect(text.hasPrefix("lost ") && text.hasSuffix(" today"), "\(text)")
        }
    }

    @Test("a word of the report is a name only in a path, in quotes or as a field; everywhere else it stays")
    func ordinaryWords() {
        let names = Self.hidden(
            Self.ordinary.map { File(folders: [], name: $0) } + [File(folders: ["check"], name: "tus")])
        let stay = [
            "2026-11-30T08:00:00.000Z info check done", "ok       destination  nas  a check of tus, 1 of 02 files",
            "log: 1 line, HTTP/1.1 200", "to        nas  tus  up, 1 running", "destination=tus count=1 check=a",
        ]
        #expect(names.hide(in: stay) == stay)
        for name in Self.ordinary {
            for line in [
                "open \(Self.root)/NAME: denied", "http://host/files/NAME", "lost `NAME`", "{\"name\":\"NAME\"}",
                "uploaded name=NAME n=5", "path=\(Self.root)/NAME n=5",
            ] {
                let text = names.hide(in: [line.replacing("NAME", with: name)])[0]
                #expect(!text.mark.isEmpty && text == line.replacing("NAME", with: text.mark), "\(line): \(text)")
            }
        }
    }

    @Test(
        "an unknown name below a watched folder is hidden to its end, and what follows stays where the end is certain")
    func unknown() {
        let names = Self.hidden([File(folders: ["Anna"], name: "known.mp4")])
        for name in Self.pieces + ["Anna/other film.mp4", "Anna Miller/a.mp4", "known.mp4 b.mp4"] {
            let path = "\(Self.root)/\(name)"
            for (line, end) in [
                (Self.logged(["path": path, "destination": "nas"]), " destination=nas"),
                ("{\"path\":\(jsonString(path)),\"n\":1}", ",\"n\":1}"),
                ("\(path) to nas  waiting", " to nas  waiting"),
                ("open \(path): Permission denied", ": Permission denied"),
                ("file://\(Self.coded(path, keeping: "/")) failed", " failed"),
            ] {
                // In a sentence a column or a semicolon ends a name.
                let isCut = name.contains("; ") || name.contains("  ")
                let text = names.hide(in: [line])[0]
                #expect(text.hasSuffix(end), "\(line): \(text)")
                if !isCut || !line.contains("open ") && !line.hasPrefix("/") {
                    #expect(!Self.has(name, in: text) && text.components("name-") == 1, "\(line): \(text)")
                }
            }
        }
    }

    @Test("a file of which only the log tells is hidden in sentences too")
    func discovered() {
        var document = ReportDocument(title: "Sluice report", at: WallTime(milliseconds: 1_795_000_000_000))
        let lines = [
            Self.logged(["path": "\(Self.root)/Anna Miller/late film.mp4", "destination": "nas"]),
            Self.logged(["path": "/home/anna/by hand.mp4"]), Self.logged(["path": "/var/lib/sluice/staging"]),
        ]
        document.sections = [
            ReportDocument.Section(title: "Ways", lines: ["lost late film.mp4, by hand.mp4 and Anna Miller here"]),
            ReportDocument.Section(title: "Log", lines: lines),
        ]
        var names = HiddenNames()
        names.roots = [Self.root]
        names.keep(["/var/lib/sluice/staging"])
        document.hide(names)
        let text = document.markdown
        for part in ["late", "film", "by hand", "Anna", "/home"] { #expect(!text.contains(part), "\(text)") }
        #expect(text.contains(" here") && text.contains("path=/var/lib/sluice/staging"))
    }

    @Test("a stem alone is hidden as the value of any field, and in other scripts wherever it is a word")
    func stems() {
        let foreign = ["москва", "ünïcödé", "北京大学校园", "北京", "한국어동물원", "عربية"]
        for stem in foreign + ["meadow", "GX010042", "holiday film"] {
            let names = Self.hidden([File(folders: [], name: "\(stem).mp4")])
            let text = names.hide(in: ["context  n=\(stem).mp4, t=\(stem), u=\(stem)"])[0]
            let mark = text.mark.trimmingLast(".mp4")
            #expect(!mark.isEmpty && text == "context  n=\(mark).mp4, t=\(mark), u=\(mark)", "\(stem): \(text)")
            if foreign.contains(stem) {
                #expect(names.hide(in: ["lost \(stem) today"]) == ["lost \(mark) today"], "\(stem)")
            }
        }
        let stay = ["lost a meadow today, t=meadows", "destination=nas verb=check"]
        let names = Self.hidden(["meadow.mp4", "check.mp4"].map { File(folders: [], name: $0) })
        #expect(names.hide(in: stay) == stay)
    }

    @Test("a name, its path and its relative path are hidden in base 64, also in that of addresses and without padding")
    func coded() {
        for ending in ["mp4", "mpeg", "mp"] {
            let file = File(folders: ["Annabel"], name: "ab?de>Quail.\(ending)")
            let names = Self.hidden([file])
            let mark = names.hide(in: [file.name])[0]
            for text in [file.name, file.relative, file.path] {
                let plain = base64(Array(text.utf8))
                let ofAddress = plain.replacing("+", with: "-").replacing("/", with: "_")
                for form in [plain, ofAddress] {
                    for written in [form, form.replacing("=", with: ""), form.replacing("=", with: "%3D")] {
                        let line = names.hide(in: ["Upload-Metadata: filename \(written),filetype dmlkZW8="])[0]
                        #expect(line == "Upload-Metadata: filename \(mark),filetype dmlkZW8=", "\(text): \(written)")
                    }
                }
            }
        }
    }

    @Test("bytes that are not UTF-8 may be repeated as U+FFFD")
    func replaced() {
        let names = Self.hidden([
            File(folders: [], name: "bad\\xff\\xfePlatypus.mp4"), File(folders: [], name: "cut\\xe2\\x82 Okapi.mp4"),
        ])
        for name in [
            "bad\u{FFFD}\u{FFFD}Platypus.mp4", "cut\u{FFFD} Okapi.mp4", "cut\u{FFFD}\u{FFFD} Okapi.mp4",
            "cut\u{FFFD}+Okapi.mp4",
        ] {
            for line in ["lost NAME today", "lost \(Self.root)/NAME: gone", "lost NAME.xmp today"] {
                let text = names.hide(in: [line.replacing("NAME", with: name)])[0]
                #expect(!text.mark.isEmpty && text == line.replacing("NAME", with: text.mark), "\(name): \(text)")
            }
        }
    }

    @Test("what is before and after a line feed in a name is hidden alone, where it is long")
    func lineFeed() {
        let names = Self.hidden([File(folders: [], name: "Walrus song\\x0aNarwhal line.mp4")])
        for part in ["Walrus song", "Narwhal line.mp4", "Narwhal line"] {
            let text = names.hide(in: ["lost \(part) today"])[0]
            #expect(!text.mark.isEmpty && text == "lost \(text.mark) today", "\(part): \(text)")
        }
        let short = Self.hidden([File(folders: [], name: "a line\\x0aof.mp4")])
        #expect(short.hide(in: ["lost a line of it"]) == ["lost a line of it"])
    }

    @Test("files of one name have marks of their own, which begin alike")
    func twins() {
        let names = Self.hidden([File(folders: ["one"], name: "clip.mp4"), File(folders: ["two"], name: "clip.mp4")])
        let lines = names.hide(in: [
            "\(Self.root)/one/clip.mp4", "\(Self.root)/two/clip.mp4", "two/clip.mp4", "lost clip.mp4",
        ])
        #expect(lines[0] != lines[1] && lines[1] == "\(Self.root)/\(lines[2])")
        let mark = lines[3].dropFirst("lost ".count).dropLast(".mp4".count)
        #expect(lines[0] == "\(Self.root)/\(mark)-1.mp4" && lines[2] == "\(mark)-2.mp4")
    }

    @Test("addresses and paths of the configuration stay")
    func configuration() {
        var names = Self.hidden([
            File(folders: ["files"], name: "drop"), File(folders: ["garden"], name: "srv"),
            File(folders: [], name: "state folder"),
        ])
        names.keep(["url: \"https://host/files/garden/\"", "path: /srv/drop", "state: /srv/garden/state"])
        let stay = [
            "PUT https://host/files/garden/ failed", "cannot open /srv/garden/state: denied",
            "drop  /srv/drop  12 GB free",
        ]
        #expect(names.hide(in: stay) == stay)
        let text = names.hide(in: ["https://host/files/garden/state%20folder"])[0]
        #expect(text.hasPrefix("https://host/files/garden/name-"))
    }
}

extension String {
    /// How often a text is in it.
    fileprivate func components(_ text: String) -> Int {
        var (count, rest) = (0, self[...])
        while let range = rest.firstRange(of: text) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }

    fileprivate func trimmingFirst(_ text: String) -> String { hasPrefix(text) ? String(dropFirst(text.count)) : self }
    fileprivate func trimmingLast(_ text: String) -> String { hasSuffix(text) ? String(dropLast(text.count)) : self }

    /// `%C3` as `%c3`.
    fileprivate var lowercasedEscapes: String {
        replacing(/%[0-9A-F]{2}/) { String($0.output).lowercased() }
    }

    /// The first mark in it.
    fileprivate var mark: String {
        firstMatch(of: /name-[0-9a-f]{8}(-[0-9]+)?(\.[a-z0-9]+)?/).map { String($0.output.0) } ?? ""
    }
}
