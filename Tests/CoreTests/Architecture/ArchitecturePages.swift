import Core
import Glibc
import Linux
import TestKit
import Testing

/// A page of the documentation, and the content of its tables.
struct Page {
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
        return Self.rows(of: table)
    }

    /// The rows of all tables that begin with `head`.
    func rows(underEach head: String) -> [[Substring]] {
        var (found, rest) = ([[Substring]](), lines[...])
        while let start = rest.firstIndex(where: { $0.hasPrefix(head) }) {
            let table = rest[start...].prefix { $0.hasPrefix("|") }
            found += Self.rows(of: table)
            rest = rest[table.endIndex...]
        }
        return found
    }

    private static func rows(of table: ArraySlice<Substring>) -> [[Substring]] {
        table.dropFirst(2).map { row in
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

    /// The lines outside of blocks of code.
    var prose: [Substring] {
        var isInBlock = false
        return lines.filter { line in
            if line.hasPrefix("```") { isInBlock.toggle() }
            return !isInBlock && !line.hasPrefix("```")
        }
    }

    /// The lines of each diagram.
    var diagrams: [[Substring]] {
        var (found, rest) = ([[Substring]](), lines[...])
        while let start = rest.firstIndex(of: "```mermaid") {
            let diagram = rest[start...].dropFirst().prefix { $0 != "```" }
            found.append(Array(diagram))
            rest = rest[diagram.endIndex...]
        }
        return found
    }

    /// Targets of links to files of the repository.
    var links: [Substring] { Self.links(in: text[...]).map(\.target) }

    /// Links to files of the repository.
    static func links(in text: Substring) -> [(title: Substring, target: Substring)] {
        let pieces = text.split(separator: "](", omittingEmptySubsequences: false)
        return zip(pieces, pieces.dropFirst()).compactMap { before, after in
            let target = after.prefix { $0 != ")" }
            if target.hasPrefix("http") { return nil }
            return (
                before.suffix(from: before.lastIndex(of: "[").map(before.index(after:)) ?? before.startIndex), target
            )
        }
    }

    /// The path in the repository that a link of a page in `folder` names.
    static func path(of link: Substring, in folder: FilePath) -> FilePath {
        link.prefix { $0 != "#" }.split(separator: "/").reduce(folder) { path, step in
            step == ".." ? path.parent : path.appending(FilePath(String(step)))
        }
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
struct Source {
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
