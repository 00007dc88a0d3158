internal import Core
internal import Digests
internal import Glibc
internal import Linux

/// Replaces names of files, and of folders below the watched ones, by marks. A name has the same mark in one report, and
/// another one in the next: a short digest of a short name would be found by trying.
struct HiddenNames {
    /// The watched folders: whatever stands below one of them is a name.
    var roots: [String] = []
    /// Paths and names of files that are known, as they are displayed.
    private(set) var names: Set<String> = []
    private let salt = Random.bytes(16)

    /// Adds a path or name; of a relative path also its parts.
    mutating func add(_ path: String, relative: String? = nil) {
        names.insert(path)
        guard let relative else { return }
        names.insert(relative)
        for part in relative.split(separator: "/") { names.insert(String(part)) }
    }

    mutating func formUnion(_ others: HiddenNames) { names.formUnion(others.names) }

    func hide(in lines: [String]) -> [String] {
        let text = lines.joined(separator: "\n")
        // A longer name may contain a shorter one. An address has them percent-coded.
        var forms: [String: String] = [:]
        for name in names where !name.isEmpty && name != "/" {
            for form in [name, PercentCoding.encode(name.utf8, keeping: "/"), PercentCoding.encode(name.utf8)] {
                forms[form] = name
            }
        }
        let found = text.withCString { text in forms.filter { strstr(text, $0.key) != nil } }
        let sorted = found.sorted { ($0.key.utf8.count, $0.key) > ($1.key.utf8.count, $1.key) }
        return lines.map { line in
            sorted.reduce(roots.reduce(line) { hidePaths(below: $1, in: $0) }) {
                hide($1.key, as: mark($1.value), in: $0)
            }
        }
    }

    private func mark(_ name: some StringProtocol) -> String {
        let digest = hexadecimal(Hasher.digest(.sha256, of: salt + Array(name.utf8)).prefix(4))
        let last = name.split(separator: "/").last ?? ""
        let parts = last.split(separator: ".")
        guard parts.count > 1, let ending = parts.last, ending.utf8.count <= 5, ending.allSatisfy(\.isLetterOrNumber)
        else { return "name-\(digest)" }
        return "name-\(digest).\(ending)"
    }

    /// A name is not replaced inside of a longer word.
    private func hide(_ name: String, as mark: String, in line: String) -> String {
        var (out, rest) = ("", line[...])
        while let range = rest.firstRange(of: name) {
            let neighbours = [rest[..<range.lowerBound].last ?? out.last, rest[range.upperBound...].first]
            let isWord = neighbours.allSatisfy { $0.map { !$0.isLetterOrNumber } ?? true }
            out += rest[..<range.lowerBound] + (isWord ? mark[...] : rest[range])
            rest = rest[range.upperBound...]
        }
        return out + rest
    }

    /// Replaces what follows a folder's path. In a field of the log a value without quotes ends at a space; in a
    /// sentence a name may have spaces, so it ends where a reason or another field begins.
    private func hidePaths(below root: String, in line: String) -> String {
        let start = root.hasSuffix("/") ? root : root + "/"
        var (out, rest) = ("", line[...])
        while let range = rest.firstRange(of: start) {
            let before = rest[..<range.lowerBound].last
            out += rest[..<range.upperBound]
            let behind = rest[range.upperBound...]
            let end =
                switch before {
                case "=": behind.firstIndex(of: " ")
                case "\"", "`", "'": Self.firstIndex(ofUnescaped: before ?? "\"", in: behind)
                default: behind.firstRange(of: ": ")?.lowerBound
                }
            let name = behind[..<(end ?? behind.endIndex)]
            out += name.isEmpty ? "" : mark(name)
            rest = behind[name.endIndex...]
        }
        return out + rest
    }

    private static func firstIndex(ofUnescaped quote: Character, in text: Substring) -> Substring.Index? {
        var index = text.startIndex
        while index < text.endIndex {
            if text[index] == quote { return index }
            // A quote in a value is written with a backslash.
            _ = text.formIndex(&index, offsetBy: text[index] == "\\" ? 2 : 1, limitedBy: text.endIndex)
        }
        return nil
    }
}

extension Character {
    fileprivate var isLetterOrNumber: Bool { isLetter || isNumber }
}
