import Core
import Linux
import TestKit

/// The names that Swift files declare, with the files.
///
/// It goes by the indentation of swift-format, which `make lint` requires: a line with a declaration belongs to the type
/// that begins four columns before it. Local declarations of functions do not count.
struct Declarations: Sendable {
    /// A member of a type, whatever the type is nested in.
    struct Member: Hashable, Sendable {
        let type: String
        let name: String
    }

    /// The files that declare a type, member or global function of this name.
    private(set) var names: [String: Set<FilePath>] = [:]
    /// The files that declare a type of this name; an extension declares none.
    private(set) var types: [String: Set<FilePath>] = [:]
    private(set) var members: [Member: Set<FilePath>] = [:]
    /// Functions, variables and constants outside of types.
    private(set) var globals: [String: Set<FilePath>] = [:]
    private(set) var functions: Set<String> = []
    /// String literals of one word.
    private(set) var literals: Set<String> = []
    /// The modules that each file imports.
    private(set) var imports: [FilePath: Set<String>] = [:]

    private var scopes: [Scope] = []

    private struct Scope: Sendable {
        let indentation: Int
        let type: String
    }

    private static let typeWords: Set<Substring> = ["struct", "class", "enum", "actor", "protocol"]
    private static let memberWords: Set<Substring> = ["func", "var", "let", "typealias", "associatedtype"]
    private static let modifiers: Set<Substring> = [
        "public", "package", "internal", "private", "fileprivate", "static", "final", "mutating", "nonisolated",
        "convenience", "required", "override", "indirect", "lazy", "weak", "unowned", "consuming", "borrowing",
        "private(set)", "fileprivate(set)", "package(set)", "nonisolated(unsafe)", "unowned(unsafe)",
    ]

    /// The declarations of the modules, read once.
    static let product = Result { try Declarations(below: ["Sources"]) }

    init() {}

    /// Reads all Swift files below these folders of the repository.
    init(below folders: [FilePath]) throws {
        for folder in folders {
            for file in try Repository.swiftFiles(below: folder) {
                read(try Files.read(file), of: file.relative(to: Repository.root) ?? file)
            }
        }
    }

    mutating func read(_ bytes: [UInt8], of file: FilePath) {
        scopes = []
        imports[file] = []
        var isInText = false
        for bytes in bytes.split(separator: UInt8(ascii: "\n")) {
            let indentation = bytes.prefix { $0 == UInt8(ascii: " ") }.count
            let content = bytes.dropFirst(indentation)
            if content.starts(with: [0x2f, 0x2f]) { continue }
            let line = String(decoding: content, as: UTF8.self)
            // A literal of several lines begins at the end of a line, and its end stands first in one.
            let isMarkLast = line.hasSuffix("\"\"\"")
            if isInText {
                isInText = !line.hasPrefix("\"\"\"") || isMarkLast && line.utf8.count > 3
                continue
            }
            isInText = isMarkLast
            if content.contains(UInt8(ascii: "\"")) { readLiterals(line) }
            if content.first == UInt8(ascii: "}") {
                scopes.removeAll { $0.indentation >= indentation }
            } else {
                read(line[...], indentation, file)
            }
        }
    }

    private mutating func readLiterals(_ line: String) {
        for (index, piece) in line.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
        where index % 2 == 1 && piece.utf8.allSatisfy({ $0 > 0x20 }) {
            literals.insert(String(piece))
        }
    }

    private mutating func read(_ line: Substring, _ indentation: Int, _ file: FilePath) {
        var rest = line
        while true {
            let word = rest.prefix { $0 != " " }
            let next = rest.dropFirst(word.count).drop { $0 == " " }
            if word.hasPrefix("init(") || word.hasPrefix("init?(") || word.hasPrefix("init<") {
                declare("init", indentation, file)
                return
            }
            if next.isEmpty { return }
            switch word {
            case "import":
                imports[file, default: []].insert(Self.name(in: next))
                return
            case "case": return readCases(next, indentation, file)
            case "class" where next.hasPrefix("func ") || next.hasPrefix("var "): break
            case _ where word == "extension" || Self.typeWords.contains(word):
                return readType(next, isExtension: word == "extension", indentation, file)
            case _ where Self.memberWords.contains(word):
                let name = Self.name(in: next)
                guard declare(name, indentation, file) else { return }
                if word == "func" { functions.insert(name) }
                if word == "typealias" || word == "associatedtype" { types[name, default: []].insert(file) }
                return
            case _ where Self.modifiers.contains(word) || word.hasPrefix("@"): break
            default: return
            }
            rest = next
        }
    }

    private mutating func readType(_ text: Substring, isExtension: Bool, _ indentation: Int, _ file: FilePath) {
        let path = text.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }.split(separator: ".")
        guard let type = path.last.map(String.init), indentation == 0 || owner(at: indentation) != nil else { return }
        if !isExtension {
            types[type, default: []].insert(file)
            declare(type, indentation, file)
        }
        scopes.removeAll { $0.indentation >= indentation }
        scopes.append(Scope(indentation: indentation, type: type))
        // A type on one line.
        guard let begin = text.firstIndex(of: "{"), let end = text.lastIndex(of: "}"), begin < end else { return }
        read(text[text.index(after: begin)..<end].drop { $0 == " " }, indentation + 4, file)
        scopes.removeLast()
    }

    private mutating func readCases(_ text: Substring, _ indentation: Int, _ file: FilePath) {
        guard owner(at: indentation) != nil else { return }
        var depth = 0
        let pieces = text.split { letter in
            if letter == "(" || letter == "[" { depth += 1 }
            if letter == ")" || letter == "]" { depth -= 1 }
            return letter == "," && depth == 0
        }
        for piece in pieces { declare(Self.name(in: piece.drop { $0 == " " }), indentation, file) }
    }

    /// - Returns: `false` for a declaration within a function.
    @discardableResult
    private mutating func declare(_ name: String, _ indentation: Int, _ file: FilePath) -> Bool {
        if name.isEmpty { return false }
        if let type = owner(at: indentation) {
            members[Member(type: type, name: name), default: []].insert(file)
        } else if indentation == 0 {
            globals[name, default: []].insert(file)
        } else {
            return false
        }
        names[name, default: []].insert(file)
        return true
    }

    /// The type that a declaration with this indentation is a member of.
    private func owner(at indentation: Int) -> String? {
        scopes.last.flatMap { $0.indentation + 4 == indentation ? $0.type : nil }
    }

    private static func name(in text: Substring) -> String {
        String(text.drop { $0 == "`" }.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
    }
}
