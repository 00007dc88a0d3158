/// What a `.sluiceignore` says: names in its directory and below that are left alone.
///
/// A subset of gitignore(5): a pattern a line; `#` begins a comment; `!` takes back what an earlier line said; a slash at
/// the end means directories only; a slash before that ties the pattern to this directory, else it is matched with the
/// name at any depth. The last line that matches counts, and a deeper file counts more than one above it. What lies in a
/// directory that is left out cannot be taken back in.
package struct IgnoreRules: Hashable, Sendable {
    package static let fileName: FilePath = ".sluiceignore"
    /// A larger file is not read.
    package static let mostBytes = 64 << 10

    private struct Line: Hashable, Sendable {
        let glob: Glob
        let isTakenBack: Bool
        let isForFolders: Bool
    }

    private let lines: [Line]

    /// - Parameter content: Bytes, for names need not be text.
    package init(_ content: [UInt8]) {
        lines = content.split(separator: UInt8(ascii: "\n")).compactMap { Self.line(Array($0)) }
    }

    package var isEmpty: Bool { lines.isEmpty }

    private static func line(_ text: [UInt8]) -> Line? {
        var text = text[...]
        if text.last == UInt8(ascii: "\r") { text.removeLast() }
        while text.last == UInt8(ascii: " ") || text.last == UInt8(ascii: "\t") {
            // A space that is meant has a backslash before it.
            if text.dropLast().last == UInt8(ascii: "\\") { break }
            text.removeLast()
        }
        guard let first = text.first, first != UInt8(ascii: "#") else { return nil }
        let isTakenBack = first == UInt8(ascii: "!")
        if isTakenBack { text.removeFirst() }
        let isForFolders = text.last == slash
        if isForFolders { text.removeLast() }
        let isTied = text.contains(slash)
        if text.first == slash { text.removeFirst() }
        guard !text.isEmpty else { return nil }
        // Everything is matched with a path; what is not tied may have any directories before it.
        return Line(
            glob: Glob(bytes: (isTied ? [] : Array("**/".utf8)) + text), isTakenBack: isTakenBack,
            isForFolders: isForFolders)
    }

    /// - Parameter path: Below the directory of this file.
    /// - Returns: Whether it is left alone; `nil` where no line speaks of it.
    package func verdict(on path: UnsafeBufferPointer<UInt8>, isFolder: Bool) -> Bool? {
        for line in lines.reversed() where isFolder || !line.isForFolders {
            if line.glob.matches(path) { return !line.isTakenBack }
        }
        return nil
    }

    private static let slash = UInt8(ascii: "/")
}
