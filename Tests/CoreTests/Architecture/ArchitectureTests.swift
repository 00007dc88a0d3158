import Core
import Linux
import TestKit
import Testing

@Suite("Tables of docs/architecture")
struct ArchitectureTests {
    static let folder: FilePath = "docs/architecture"
    /// Modules that no daemon runs.
    private static let onlyTests: Set<FilePath> = ["TestKit", "TestTraits", "Benchmarks", "Manual"]

    /// The table of modules, with the imports of each.
    private static func moduleTable() throws -> [String: Set<String>] {
        var shown: [String: Set<String>] = [:]
        for row in try Page(folder.appending("README.md")).rows(under: "| module |") {
            let imports = Set(Page.code(try #require(row.last)))
            for name in Page.code(row[0]) { shown[name] = imports }
        }
        return shown
    }

    @Test("the table of modules matches Package.swift and the code, with the imports of each")
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
        let shown = try Self.moduleTable()
        #expect(Set(declared.keys) == Set(shown.keys))
        var imported: [String: Set<String>] = [:]
        for (file, modules) in try Declarations.product.get().imports {
            imported[file.components[1].display, default: []].formUnion(modules)
        }
        for (name, imports) in declared {
            #expect(shown[name] == imports, "\(name)")
            #expect(imported[name, default: []].intersection(declared.keys) == imports, "\(name)")
        }
        // They decide or connect, and leave system calls to `Linux`.
        for name in ["Core", "API", "Daemon"] { #expect(imported[name]?.contains("Glibc") == false, "\(name)") }
    }

    @Test("each arrow of the diagram of modules is an import in the table")
    func moduleDiagram() throws {
        let shown = try Self.moduleTable()
        let diagrams = try Page(Self.folder.appending("README.md")).diagrams
        let arrows = try #require(diagrams.first { $0.first == "flowchart TD" }).dropFirst()
        #expect(arrows.count > 10)
        for arrow in arrows {
            let words = arrow.split(separator: " ")
            let name = String(try #require(words.first))
            #expect(words.dropFirst().first == "-->", "\(arrow)")
            let imports = Set(words.dropFirst(2).filter { $0 != "&" }.map(String.init))
            #expect(shown[name]?.isSuperset(of: imports) == true, "\(arrow)")
        }
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
                let target = link.hasPrefix("#") ? folder.appending(name) : Page.path(of: link, in: folder)
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
