import Core
import Linux
import TestKit
import TestTraits
import Testing

/// A text between marks of code that has the form of a name in Swift: `Type`, `Type.member`, `function(label:)`.
private struct CodeName {
    let text: String
    let parts: [String]

    init?(_ code: some StringProtocol) {
        let name = code.hasSuffix(")") ? String(code.prefix { $0 != "(" }) : String(code)
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        let areNames = parts.allSatisfy { part in
            part.first?.isLetter == true && part.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        }
        if !areNames { return nil }
        text = name
        self.parts = parts.map(String.init)
    }

    var isType: Bool { parts.count == 1 && parts[0].first?.isUppercase == true }
}

/// The names of the product and of its tests.
private struct KnownNames: Sendable {
    let product: Declarations
    let tests: Declarations
    /// Modules, and the folders in them.
    private var folders: Set<String> = []
    private var tables: Set<String> = []

    static let all = Result { try KnownNames() }

    private init() throws {
        product = try Declarations.product.get()
        tests = try Declarations(below: ["Tests"])
        for file in product.imports.keys { folders.formUnion(file.parent.components.dropFirst().map(\.display)) }
        for top: FilePath in ["Sources", "Tests"] {
            folders.formUnion(try Files.names(in: Repository.root.appending(top)).map(\.display))
        }
        for source in try Source.all(in: "Sources/Store") { tables.formUnion(source.words(behind: "CREATE TABLE ")) }
    }

    func contains(_ name: CodeName) -> Bool {
        let parts = name.parts
        if parts.count == 1 {
            if folders.contains(name.text) { return true }
            if !name.isType { return isWord(name.text) }
            return product.types[name.text] != nil || tests.types[name.text] != nil || isSuite(name.text)
        }
        // A key of the configuration, a column, a field.
        if parts[0].first?.isLowercase == true {
            return product.literals.contains(name.text) || parts.allSatisfy(isWord)
        }
        if Self.isMember(parts, of: product) || isInModule(parts) { return true }
        return tests.types[parts[0]] != nil && product.types[parts[0]] == nil && Self.isMember(parts, of: tests)
    }

    /// Whether it is declared in one of these files.
    func declares(_ name: CodeName, in isMeant: (FilePath) -> Bool) -> Bool {
        [product, tests].contains { known in
            let (parts, last) = (name.parts, name.parts[name.parts.count - 1])
            let isInModule = parts.count == 2 && folders.contains(parts[0]) && last.first?.isUppercase == true
            let files =
                if name.isType || isInModule {
                    known.types[last]
                } else if parts.count == 1 {
                    known.names[last]
                } else {
                    known.members[.init(type: parts[parts.count - 2], name: last)]
                }
            return files?.contains(where: isMeant) == true
        }
    }

    /// Whether it is the end of suites' names, one of each module: `FuzzTests`.
    private func isSuite(_ name: String) -> Bool {
        name.hasSuffix("Tests") && tests.types.keys.contains { $0.hasSuffix(name) }
    }

    /// Words in small letters are also threads, tables, keys and states.
    private func isWord(_ word: String) -> Bool {
        if product.names[word] != nil { return true }
        return word.allSatisfy { !$0.isUppercase } && (product.literals.contains(word) || tables.contains(word))
    }

    private static func isMember(_ parts: [String], of known: Declarations) -> Bool {
        known.members[.init(type: parts[0], name: parts[1])] != nil
            && parts.dropFirst(2).allSatisfy { known.names[$0] != nil }
    }

    /// Whether it begins with its module: `Core.Admission`.
    private func isInModule(_ parts: [String]) -> Bool {
        let isType = parts[1].first?.isUppercase == true
        let files = isType ? product.types[parts[1]] : product.globals[parts[1]]
        let module = FilePath("Sources").appending(FilePath(parts[0]))
        guard files?.contains(where: { $0.relative(to: module) != nil }) == true else { return false }
        return parts.count == 2 || Self.isMember(Array(parts.dropFirst()), of: product)
    }
}

@Suite("Names in docs/architecture", .ownThreads)
struct ArchitectureNamesTests {
    private static let folder: FilePath = "docs/architecture"

    /// Names between marks of code that no file of ours declares, and whose they are.
    private static let foreign: [String: String] = [
        "ESTALE": "the kernel",
        "ID.part": "the name of a file in the staging folder",
        "Mutex": "Swift's library",
        "POLLPRI": "the kernel",
        "Task.sleep": "Swift's library",
        "argv": "the C standard",
        "await": "Swift",
        "package": "Swift",
    ]

    private static func pages() throws -> [(name: String, page: Page)] {
        try Files.names(in: Repository.root.appending(folder)).sorted().map {
            ($0.display, try Page(folder.appending($0)))
        }
    }

    /// Whether a file is what one of these links leads to, or lies below that.
    private static func isTarget(_ file: FilePath, of links: [(title: Substring, target: Substring)]) -> Bool {
        links.contains { link in
            let target = Page.path(of: link.target, in: folder)
            return file == target || file.relative(to: target) != nil
        }
    }

    @Test("each name between marks of code, and in the diagrams, exists")
    func names() throws {
        let known = try KnownNames.all.get()
        var (count, met): (Int, Set<String>) = (0, [])
        for (name, page) in try Self.pages() {
            let spans = Page.code(page.prose.joined(separator: "\n")[...])
            let diagrams = page.diagrams.filter { $0.first?.hasPrefix("stateDiagram") == false }
            let found = spans.compactMap { CodeName($0) } + diagrams.flatMap { $0.dropFirst() }.flatMap(Self.names)
            count += found.count
            let unknown = Set(found.filter { !known.contains($0) }.map(\.text))
            met.formUnion(unknown)
            #expect(unknown.subtracting(Self.foreign.keys).sorted() == [], "\(name)")
        }
        #expect(count > 1_000)
        // An entry that no page needs would allow a wrong name later.
        #expect(met.isSuperset(of: Self.foreign.keys))
    }

    @Test("each function and type in the columns 'after' of the walks exists")
    func walks() throws {
        let known = try KnownNames.all.get()
        let page = try Page("docs/decisions/0027-walks.md")
        // The side "before" names the code of an earlier commit.
        var names = page.rows(underEach: "|#|before|after|").flatMap { Page.code($0[2]) }.flatMap(Self.names(inHop:))
        #expect(names.count > 500)
        for paragraph in page.text.split(separator: "\n\n", omittingEmptySubsequences: true) {
            let isAfter = ["Before and after (", "Only after (", "Types beyond walk 1, after:"].contains {
                paragraph.hasPrefix($0)
            }
            guard isAfter, let types = paragraph.split(separator: ":").last else { continue }
            names += types.split { $0.isWhitespace }.map(String.init)
        }
        #expect(names.count > 700)
        // The members of extensions of arrays are not read.
        let unknown = names.filter { !$0.hasPrefix("[") }.filter { name in
            CodeName(name).map { !known.contains($0) } ?? true
        }
        #expect(unknown == [])
    }

    /// The names in `Caller.function → Type.function, function{Type.function}`.
    private static func names(inHop hop: String) -> [String] {
        hop.split { "→⇒↩{}".contains($0) }.flatMap { side in
            let parts = side.split { $0 == "," || $0 == " " }
            let type = parts.first.flatMap { $0.split(separator: ".").dropLast().last } ?? parts.first ?? ""
            return parts.enumerated().map { $0 == 0 ? String($1) : "\(type).\($1)" }
        }
    }

    @Test(
        "each type that the pages of dependencies and of performance name exists",
        arguments: ["dependencies", "performance"])
    func otherPages(_ name: String) throws {
        let known = try KnownNames.all.get()
        let page = try Page(FilePath("docs/\(name).md"))
        let names = Page.code(page.prose.joined(separator: "\n")[...]).compactMap { CodeName($0) }.filter {
            $0.parts[0].first?.isUppercase == true
        }
        #expect(names.count > 3)
        #expect(names.filter { !known.contains($0) && Self.librariesOnPages[$0.text] == nil }.map(\.text) == [])
    }

    /// Names of other projects on those pages.
    private static let librariesOnPages: [String: String] = [
        "Dispatch": "Swift's library", "Foundation": "Swift's library", "FoundationEssentials": "Swift's library",
        "Glibc": "Swift's library", "PyVimeo": "Vimeo's client", "Synchronization": "Swift's library",
    ]

    /// The words in a line of a diagram that can only be names: `camelCase`, `CamelCase`, `value.member`.
    private static func names(in line: Substring) -> [CodeName] {
        line.split { !($0.isLetter || $0.isNumber || $0 == "." || $0 == "-" || $0 == "_") }.compactMap { word in
            let word = word.drop { $0 == "." || $0 == "-" }.prefix { $0 != "-" }
            let text = word.hasSuffix(".") ? word.dropLast() : word
            let hasHump = zip(text, text.dropFirst()).contains { $0.isLowercase && $1.isUppercase }
            return hasHump || text.contains(".") ? CodeName(text) : nil
        }
    }

    @Test("each call in a sequence diagram names functions")
    func calls() throws {
        let functions = try KnownNames.all.get().product.functions
        var count = 0
        for (name, page) in try Self.pages() {
            for line in page.diagrams.filter({ $0.first == "sequenceDiagram" }).joined() {
                let parts = line.split(separator: ":", maxSplits: 1)
                // An answer (`-->>`) is no call.
                guard parts.count == 2, parts[0].contains("->>"), !parts[0].contains("-->>") else { continue }
                let label = parts[1].drop { $0 == " " }
                let isExplained = label.contains(": ")
                let head = label.prefix { $0 != ":" && $0 != "(" }
                let words = head.split(separator: ",").map { $0.drop { $0 == " " } }
                // A sentence is no list of names, and neither is a method of HTTP.
                guard isExplained || label.count == head.count || label.dropFirst(head.count).first == "(",
                    words.allSatisfy({ !$0.contains(" ") && $0.first?.isLowercase == true })
                else { continue }
                count += words.count
                #expect(words.map(String.init).filter { !functions.contains($0) } == [], "\(name): \(label)")
            }
        }
        #expect(count > 10)
    }

    @Test("each hop links the files that declare its functions")
    func hops() throws {
        let known = try KnownNames.all.get()
        let threads = Set(
            try Page(Self.folder.appending("concurrency.md")).rows(under: "| thread |").flatMap {
                Page.code($0.first ?? "")
            })
        var count = 0
        for (name, page) in try Self.pages() {
            for row in page.rows(underEach: "| hop |") {
                let links = Page.links(in: row[2])
                let names = Page.code(row[1]).compactMap { CodeName($0) }.filter { Self.foreign[$0.text] == nil }
                let missing = names.filter { name in !known.declares(name) { Self.isTarget($0, of: links) } }
                #expect(missing.map(\.text) == [], "\(name), hop\(row[0])")
                let unknown = row.dropFirst(3).flatMap { Page.code($0) }.filter { !threads.contains($0) }
                #expect(unknown == [], "\(name), hop\(row[0])")
                count += names.count
            }
        }
        #expect(count > 80)
    }

    @Test("each word of the glossary that is a name is declared in the file beside it")
    func glossary() throws {
        let known = try KnownNames.all.get()
        let rows = try Page(Self.folder.appending("glossary.md")).rows(underEach: "| word |")
        #expect(rows.count > 100)
        for row in rows {
            let links = Page.links(in: row.last ?? "")
            let names = Page.code(row[0]).compactMap { CodeName($0) }
            let missing = names.filter { name in !known.declares(name) { Self.isTarget($0, of: links) } }
            #expect(missing.map(\.text) == [])
        }
    }

    @Test("a link that has a name of the code as its title, or follows one, leads to the file that declares it")
    func titles() throws {
        let known = try KnownNames.all.get()
        var count = 0
        for (name, page) in try Self.pages() {
            let text = page.prose.joined(separator: "\n")
            var pairs = Page.links(in: text[...]).map { ($0.title.filter { $0 != "`" }, $0) }
            // `Type` ([File.swift](path))
            let pieces = text.split(separator: "`", omittingEmptySubsequences: false)
            for (code, after) in zip(pieces, pieces.dropFirst()).enumerated().filter({ $0.offset % 2 == 1 }).map(
                \.element)
            where after.drop(while: \.isWhitespace).hasPrefix("([") {
                if let link = Page.links(in: after).first { pairs.append((String(code), link)) }
            }
            for (title, link) in pairs where link.target.hasSuffix(".swift") {
                if title.hasSuffix(".swift") {
                    #expect(link.target.hasSuffix("/" + title), "\(name)")
                } else if let code = CodeName(title) {
                    count += 1
                    #expect(known.declares(code) { Self.isTarget($0, of: [link]) }, "\(name): \(title)")
                }
            }
        }
        #expect(count > 30)
    }
}
