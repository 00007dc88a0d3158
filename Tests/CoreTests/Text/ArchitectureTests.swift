import Core
import Glibc
import Linux
import TestKit
import Testing

/// A page of the documentation, and the content of its tables.
private struct Page {
    let text: String
    let lines: [Substring]

    init(_ path: FilePath) throws {
        text = String(decoding: try Files.read(Repository.root.appending(path)), as: UTF8.self)
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// The rows of the table that begins with `head`, without their outer bars.
    func rows(under head: String) throws -> [[Substring]] {
        let table = lines.drop { !$0.hasPrefix(head) }.prefix { $0.hasPrefix("|") }
        try #require(table.count > 2, "no table begins with \(head)")
        return table.dropFirst(2).map { row in
            row.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast().map { $0 }
        }
    }

    /// The names in the first column, between marks of code.
    func names(under head: String) throws -> [String] { try rows(under: head).flatMap { Self.code($0.first ?? "") } }

    static func code(_ text: Substring) -> [String] { marked(text, by: "`") }

    /// The texts between each two of these marks.
    static func marked(_ text: Substring, by mark: Character) -> [String] {
        text.split(separator: mark, omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
            .map { String($0.element) }
    }

    /// Targets of links to files of the repository.
    var links: [Substring] {
        text.split(separator: "](", omittingEmptySubsequences: false).dropFirst().map { $0.prefix { $0 != ")" } }
            .filter { !$0.hasPrefix("http") }
    }

    /// Headings in the form in which links name them.
    var anchors: Set<String> {
        Set(
            lines.filter { $0.hasPrefix("#") }.map { heading in
                String(
                    heading.drop { $0 == "#" || $0 == " " }.lowercased().compactMap { letter in
                        if letter == " " { return "-" }
                        return letter.isLetter || letter.isNumber || letter == "-" || letter == "_" ? letter : nil
                    })
            })
    }
}

/// A Swift file, as bytes, because there are eight hundred of them.
private struct Source {
    let bytes: [UInt8]

    /// The files below a folder of the repository.
    static func all(in folder: FilePath, except: Set<FilePath> = []) throws -> [Source] {
        var found: [Source] = []
        for name in try Files.names(in: Repository.root.appending(folder)) where !except.contains(name) {
            let path = folder.appending(name)
            let status = try FileStatus(at: Repository.root.appending(path))
            if status.isDirectory {
                found += try all(in: path)
            } else if status.isRegular, name.fileExtension == "swift" {
                found.append(Source(bytes: try Files.read(Repository.root.appending(path))))
            }
        }
        return found
    }

    /// The text after each `mark`, up to the first byte that does not belong to it.
    func texts(behind mark: String, while isPart: (UInt8) -> Bool) -> [String] {
        var found: [String] = []
        (bytes + [0]).withUnsafeBufferPointer { all in
            guard let base = all.baseAddress else { return }
            var rest = UnsafeRawPointer(base).assumingMemoryBound(to: CChar.self)
            while let hit = strstr(rest, mark) {
                rest = UnsafePointer(hit) + mark.utf8.count
                let start = UnsafeRawPointer(base).distance(to: UnsafeRawPointer(rest))
                found.append(String(decoding: all[start...].prefix { $0 != 0 && isPart($0) }, as: UTF8.self))
            }
        }
        return found
    }

    func quoted(behind mark: String) -> [String] { texts(behind: mark) { $0 != UInt8(ascii: "\"") } }

    func words(behind mark: String) -> [String] {
        texts(behind: mark) { $0 == UInt8(ascii: "_") || $0 >= UInt8(ascii: "0") && $0 != UInt8(ascii: ":") }
    }
}

@Suite("Tables of docs/architecture")
struct ArchitectureTests {
    static let folder: FilePath = "docs/architecture"
    /// Modules that no daemon runs.
    private static let onlyTests: Set<FilePath> = ["TestKit", "TestTraits", "Benchmarks"]

    @Test("the table of modules matches Package.swift, with the imports of each")
    func modules() throws {
        let package = try Page("Package.swift").text
        var declared: [String: Set<String>] = [:]
        for mark in [" module(", " .executableTarget("] {
            for piece in package.split(separator: mark, omittingEmptySubsequences: false).dropFirst()
            where !piece.hasPrefix("_") {
                let name = try #require(Page.marked(piece, by: "\"").first)
                declared[name] = Set(Page.marked(piece.drop { $0 != "[" }.prefix { $0 != "]" }, by: "\""))
            }
        }
        let libraries = Source(bytes: Array(package.utf8)).quoted(behind: "library(\"")
        for name in libraries + ["CLinux"] { declared[name] = [] }
        var shown: [String: Set<String>] = [:]
        for row in try Page(Self.folder.appending("README.md")).rows(under: "| module |") {
            let imports = Set(Page.code(try #require(row.last)))
            for name in Page.code(row[0]) { shown[name] = imports }
        }
        #expect(Set(declared.keys) == Set(shown.keys))
        for (name, imports) in declared { #expect(shown[name] == imports, "\(name)") }
    }

    @Test("the table of threads has exactly the thread names of the sources")
    func threads() throws {
        let marks = [
            "startThread(\"", "OwnThread(name: \"", "onLongThread(named: \"", "threadName: \"",
            "threadName: String = \"",
        ]
        var found: Set<String> = []
        for source in try Source.all(in: "Sources", except: Self.onlyTests) {
            for mark in marks { found.formUnion(source.quoted(behind: mark)) }
            for line in source.texts(behind: "Workers<", while: { $0 != UInt8(ascii: "\n") }) {
                found.formUnion(Source(bytes: Array(line.utf8)).quoted(behind: ">(\""))
            }
        }
        let rows = try Page(Self.folder.appending("concurrency.md")).rows(under: "| thread |")
        // The text after the comma says when the thread exists.
        let shown = rows.flatMap { Page.code(($0.first ?? "").prefix { $0 != "," }) }
        #expect(found.count > 10)
        #expect(Set(shown) == found)
        #expect(shown.count == found.count)
    }

    @Test("the table of power cuts has every crash point")
    func crashPoints() throws {
        var found: Set<String> = []
        for source in try Source.all(in: "Sources", except: Self.onlyTests) {
            found.formUnion(source.quoted(behind: "CrashPoint.reached(\""))
        }
        let page = try Page(Self.folder.appending("crash-safety.md"))
        let shown = Set(try page.names(under: "| the power goes … |") + ["committed"])
        #expect(found.count > 30)
        #expect(found.subtracting(shown).sorted() == [])
        #expect(page.text.contains("`committed`"))
    }

    @Test("each suite that proves a promise exists")
    func proofs() throws {
        let page = try Page(Self.folder.appending("crash-safety.md"))
        let tests = Set(try Source.all(in: "Tests").flatMap { $0.words(behind: "struct ") })
        let suites = Set(try page.rows(under: "| promise |").flatMap { Page.code($0.last ?? "") })
            .filter { $0.hasSuffix("Tests") && !$0.contains("/") }
        #expect(suites.count > 20)
        // One of each module that reads.
        #expect(suites.filter { suite in !tests.contains { $0.hasSuffix(suite) } }.sorted() == [])
    }

    @Test("the table of the database has every table of the schema")
    func tables() throws {
        var found: Set<String> = []
        for source in try Source.all(in: "Sources/Store") { found.formUnion(source.words(behind: "CREATE TABLE ")) }
        #expect(Set(try Page(Self.folder.appending("storage.md")).names(under: "| table |")) == found)
    }

    @Test("the table of holds has every kind")
    func holds() throws {
        let shown = try Page(Self.folder.appending("flow-policy.md")).names(under: "| `Hold.Kind` |")
        #expect(Set(shown) == Set(Hold.Kind.allCases.map(\.rawValue)))
    }

    @Test("the tables of states have those of assets and sources")
    func states() throws {
        let page = try Page(Self.folder.appending("lifecycle.md"))
        #expect(try page.names(under: "| `AssetState` |") == AssetState.allCases.map(\.rawValue))
        #expect(try page.names(under: "| `SourceState` |") == SourceState.allCases.map(\.rawValue))
    }

    @Test("every link leads to something", arguments: [folder, "docs/decisions"])
    func links(_ folder: FilePath) throws {
        for name in try Files.names(in: Repository.root.appending(folder)) {
            let page = try Page(folder.appending(name))
            for link in page.links {
                let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                var target = folder.appending(name)
                if let file = parts.first, !file.isEmpty {
                    target = folder
                    for step in file.split(separator: "/") {
                        target = step == ".." ? target.parent : target.appending(FilePath(String(step)))
                    }
                }
                let status = try FileStatus.ifPresent(at: Repository.root.appending(target))
                #expect(status != nil, "\(name.display): \(link)")
                guard status != nil, parts.count > 1 else { continue }
                #expect(try Page(target).anchors.contains(String(parts[1])), "\(name.display): \(link)")
            }
        }
    }

    @Test("the first page takes a quarter of an hour to read")
    func length() throws {
        let words = try Page(Self.folder.appending("README.md")).text.split(whereSeparator: \.isWhitespace)
        #expect(words.count <= 1_800)
    }
}
