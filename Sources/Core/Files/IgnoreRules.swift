/// The rules of a `.sluiceignore`: names in its directory and below that are ignored.
///
/// A subset of gitignore(5): one pattern on each line; `#` begins a comment; `!` reverses an earlier line; a slash at
/// the end means directories only; a slash before that ties the pattern to this directory, otherwise it is matched
/// against the name at any depth. The last matching line counts, and a deeper file overrides one above it. Files in an
/// ignored directory cannot be included again.
package struct IgnoreRules: Hashable, Sendable {
    package static let fileName: FilePath = ".sluiceignore"
    /// A larger file is not read.
    package static let maxFileSize = 64 << 10

    private struct Line: Hashable, Sendable {
        let glob: Glob
        let isNegated: Bool
        let isForFolders: Bool
    }

    private let lines: [Line]

    /// - Parameter content: Bytes, since names may be invalid text.
    package init(_ content: [UInt8]) {
        lines = content.split(separator: UInt8(ascii: "\n")).compactMap { Self.line(Array($0)) }
    }

    package var isEmpty: Bool { lines.isEmpty }

    private static func line(_ text: [UInt8]) -> Line? {
        var text = text[...]
        if text.last == UInt8(ascii: "\r") { text.removeLast() }
        while text.last == UInt8(ascii: " ") || text.last == UInt8(ascii: "\t") {
            // An intended space has a backslash before it.
            if text.dropLast().last == UInt8(ascii: "\\") { break }
            text.removeLast()
        }
        guard let first = text.first, first != UInt8(ascii: "#") else { return nil }
        let isTakenBack = first == UInt8(ascii: "!")
        if isTakenBack { text.removeFirst() }
        let isForFolders = text.last == slash
        if isForFolders { text.removeLast() }
        let isAnchored = text.contains(slash)
        if text.first == slash { text.removeFirst() }
        guard !text.isEmpty else { return nil }
        // All patterns are matched against a path; a pattern that is not anchored may have any directories before it.
        return Line(
            glob: Glob(bytes: (isAnchored ? [] : Array("**/".utf8)) + text), isNegated: isTakenBack,
            isForFolders: isForFolders)
    }

    /// - Parameter path: The path below the directory of this file.
    /// - Returns: Whether it is ignored; `nil` where no line matches.
    package func verdict(on path: UnsafeBufferPointer<UInt8>, isFolder: Bool) -> Bool? {
        for line in lines.reversed() where isFolder || !line.isForFolders {
            if line.glob.matches(path) { return !line.isNegated }
        }
        return nil
    }

    private static let slash = UInt8(ascii: "/")
}
