/// A list of files that belong together: one path on each line, alone or after a digest, as `sha256sum` and its
/// relatives write them (coreutils manual, section "md5sum invocation"; with `--tag`, `SHA256 (path) = digest`).
///
/// A path is relative to the manifest's directory. Empty lines and lines that begin with `#` are left out. The digests
/// are not compared.
package struct Manifest: Hashable, Sendable {
    /// Why a manifest cannot be used.
    package struct Problem: Error, Hashable, CustomStringConvertible {
        /// Counted from 1; `nil` for one of the whole file.
        package var line: Int?
        package var text: String
        package var description: String { line.map { "line \($0) \(text)" } ?? text }

        package init(line: Int? = nil, text: String) { (self.line, self.text) = (line, text) }
    }

    /// The most bytes of a manifest.
    package static let longest = 4 << 20
    /// The most files of a manifest: all of them are kept in memory until the last has settled.
    package static let mostFiles = 10_000

    /// The listed files, as paths below the folder; each with the first line that lists it. The manifest itself is not
    /// among them.
    package let lines: [FilePath: Int]

    /// - Parameters:
    ///   - bytes: The content of the file.
    ///   - manifest: Its path below the folder.
    ///   - root: The folder's path.
    package init(_ bytes: [UInt8], of manifest: FilePath, in root: FilePath) throws(Problem) {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        var lines: [FilePath: Int] = [:]
        var number = 0
        let content = bytes.starts(with: mark) ? bytes.dropFirst(mark.count) : bytes[...]
        for line in content.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            guard let text = try Self.path(in: line, number) else { continue }
            let path = try Self.resolve(text, beside: manifest, in: root, number)
            if path != manifest, lines[path] == nil { lines[path] = number }
            if lines.count > Self.mostFiles {
                throw Problem(text: "lists more than \(Self.mostFiles) files: divide it")
            }
        }
        self.lines = lines
    }

    package var files: Set<FilePath> { Set(lines.keys) }

    // MARK: Lines

    /// The path on a line; `nil` for a line without one.
    private static func path(in line: ArraySlice<UInt8>, _ number: Int) throws(Problem) -> [UInt8]? {
        var line = line
        if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
        if line.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) { return nil }
        if line.first == UInt8(ascii: "#") { return nil }
        if line.contains(0) { throw Problem(line: number, text: "has a NUL byte: a manifest is a text file") }
        guard let path = afterDigest(line) ?? inTag(line) else { return Array(line) }
        if path.isEmpty { throw Problem(line: number, text: "has a digest and no path") }
        return path
    }

    /// What follows a digest: `DIGEST  path`, or `DIGEST *path` for one of binary data. A backslash before the digest
    /// says that the path is escaped.
    private static func afterDigest(_ line: ArraySlice<UInt8>) -> [UInt8]? {
        let isEscaped = line.first == UInt8(ascii: "\\")
        let line = isEscaped ? line.dropFirst() : line
        let digest = line.prefix(while: isHexadecimal)
        let rest = line.dropFirst(digest.count)
        guard digestLengths.contains(digest.count), rest.first == UInt8(ascii: " "),
            let second = rest.dropFirst().first, second == UInt8(ascii: " ") || second == UInt8(ascii: "*")
        else { return nil }
        let path = Array(rest.dropFirst(2))
        return isEscaped ? unescaped(path) : path
    }

    /// The path in `SHA256 (path) = DIGEST`.
    private static func inTag(_ line: ArraySlice<UInt8>) -> [UInt8]? {
        let isEscaped = line.first == UInt8(ascii: "\\")
        let line = isEscaped ? line.dropFirst() : line
        let name = line.prefix { isAlphanumeric($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "/") }
        let opening = Array(" (".utf8)
        let middle = Array(") = ".utf8)
        let digest = Array(line.reversed().prefix(while: isHexadecimal))
        let head = line.dropLast(digest.count)
        guard !name.isEmpty, digestLengths.contains(digest.count), head.suffix(middle.count).elementsEqual(middle),
            head.dropFirst(name.count).starts(with: opening),
            head.count >= name.count + opening.count + middle.count
        else { return nil }
        let path = Array(head.dropFirst(name.count + opening.count).dropLast(middle.count))
        return isEscaped ? unescaped(path) : path
    }

    /// Digits of digests of 32 to 512 bits, in whole bytes: from XXH32 to SHA-512, and BLAKE2b of any length.
    private static let digestLengths = Set(stride(from: 8, through: 128, by: 2))

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: false
        }
    }

    /// With `\\n`, `\\r` and `\\\\` replaced.
    private static func unescaped(_ path: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var bytes = path[...]
        while let byte = bytes.popFirst() {
            guard byte == UInt8(ascii: "\\"), let next = bytes.first else {
                result.append(byte)
                continue
            }
            switch next {
            case UInt8(ascii: "n"): result.append(UInt8(ascii: "\n"))
            case UInt8(ascii: "r"): result.append(UInt8(ascii: "\r"))
            case UInt8(ascii: "\\"): result.append(byte)
            default:
                result.append(byte)
                continue
            }
            bytes.removeFirst()
        }
        return result
    }

    // MARK: Paths

    /// The path below the folder.
    private static func resolve(
        _ text: [UInt8], beside manifest: FilePath, in root: FilePath, _ number: Int
    ) throws(Problem) -> FilePath {
        let written = FilePath(bytes: text)
        if text.last == UInt8(ascii: "/") {
            throw Problem(line: number, text: "lists the directory `\(written.display)`: list the files in it")
        }
        let outside = Problem(line: number, text: "lists `\(written.display)`, which is outside the folder")
        var parts: [FilePath] = []
        if written.isAbsolute {
            guard let below = written.normalised.relative(to: root.normalised) else { throw outside }
            parts = below.components
        } else {
            parts = manifest.parent.components
            for part in written.components where part != "." {
                if part != ".." {
                    parts.append(part)
                } else if parts.popLast() == nil {
                    throw outside
                }
            }
        }
        if parts.isEmpty { throw Problem(line: number, text: "lists the folder itself: list the files in it") }
        // Longer ones cannot exist (NAME_MAX in limits.h), and asking for them is an error.
        if parts.contains(where: { $0.bytes.count > 255 }) {
            throw Problem(line: number, text: "lists a name of more than 255 bytes")
        }
        return parts.reduce(FilePath("")) { $0.appending($1) }
    }
}
