/// A text with placeholders, like `/srv/done/{year}/{month}/{name}` or `{recorded:%Y-%m-%d}`.
///
/// `{{` and `}}` stand for the braces themselves.
package struct Template: Hashable, Sendable {
    package enum Piece: Hashable, Sendable {
        case text(String)
        case placeholder(String, format: String?)
    }

    /// The names that a template may use. Times are local, of the source's mtime; `recorded` is when recording began.
    package static let placeholders: [String] = [
        "folder", "relative", "name", "stem", "ext", "dir", "id", "size", "sha256",
        "year", "month", "day", "hour", "minute", "second", "modified", "recorded", "duration", "width", "height",
        "camera",
    ]

    package let source: String
    package let pieces: [Piece]
    /// The result is JSON, and values are escaped so that they stay within its texts.
    package private(set) var isJSON = false

    /// The same template for JSON.
    package var inJSON: Template {
        var template = self
        template.isJSON = true
        return template
    }

    /// The error of a template that could not be parsed: the problem, and its place.
    package struct SyntaxError: Error, Hashable, Sendable {
        /// In characters from the start, from 0.
        package let offset: Int
        package let problem: String

        package init(offset: Int, problem: String) {
            self.offset = offset
            self.problem = problem
        }
    }

    package init(_ source: String) throws(SyntaxError) {
        self.source = source
        var pieces: [Piece] = []
        var text = ""
        let letters = Array(source)
        var index = 0
        while index < letters.count {
            let letter = letters[index]
            let isDoubled = index + 1 < letters.count && letters[index + 1] == letter
            if (letter == "{" || letter == "}") && isDoubled {
                text.append(letter)
                index += 2
            } else if letter == "}" {
                throw SyntaxError(offset: index, problem: "a `}` without its `{`; write `}}` for the brace itself")
            } else if letter == "{" {
                guard let end = letters[index...].firstIndex(of: "}") else {
                    throw SyntaxError(offset: index, problem: "a `{` without its `}`; write `{{` for the brace itself")
                }
                let inner = String(letters[(index + 1)..<end])
                let parts = inner.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                let name = String(parts.first ?? "")
                guard Self.placeholders.contains(name) else {
                    throw SyntaxError(
                        offset: index,
                        problem: "no placeholder is called `{\(name)}`"
                            + (closest(to: name, among: Self.placeholders).map { "; did you mean `{\($0)}`?" }
                                ?? "; there are: " + Self.placeholders.joined(separator: ", ")))
                }
                if parts.count == 2, name != "modified", name != "recorded" {
                    throw SyntaxError(offset: index, problem: "only `{modified:…}` and `{recorded:…}` take a format")
                }
                if parts.count == 2 { try Self.checkFormat(String(parts[1]), offset: index + name.count + 2) }
                if !text.isEmpty { pieces.append(.text(text)) }
                text = ""
                pieces.append(.placeholder(name, format: parts.count == 2 ? String(parts[1]) : nil))
                index = end + 1
            } else {
                text.append(letter)
                index += 1
            }
        }
        if !text.isEmpty { pieces.append(.text(text)) }
        self.pieces = pieces
    }

    /// Letters that may follow a `%` in the format of a time, with the meaning of strftime(3).
    package static let formatLetters = "YymdHMSFT%"

    private static func checkFormat(_ format: String, offset: Int) throws(SyntaxError) {
        let all = formatLetters.map { "%\($0)" }.joined(separator: " ")
        guard !format.isEmpty else {
            throw SyntaxError(offset: offset, problem: "a format with nothing in it; there are: \(all)")
        }
        var letters = Array(format).makeIterator()
        var at = offset
        while let letter = letters.next() {
            if letter == "%" {
                let next = letters.next()
                guard let next, formatLetters.contains(next) else {
                    throw SyntaxError(
                        offset: at,
                        problem: "no part of a time is called `%\(next.map { String($0) } ?? "")`; there are: \(all)")
                }
                at += 1
            }
            at += 1
        }
    }

    /// The text before the first placeholder: the part of the target that is known before any file comes.
    package var literalPrefix: String {
        guard case .text(let text)? = pieces.first else { return "" }
        return text
    }

    /// The directories before the first placeholder: the part of a target that the configuration fixes. `/` where there
    /// is none.
    package var fixedFolder: FilePath {
        let text = FilePath(literalPrefix)
        let folder = (constant != nil || text.bytes.last != UInt8(ascii: "/") ? text.parent : text).normalised
        return folder.isEmpty ? "/" : folder
    }

    /// The result for every file; `nil` where it depends on the file.
    package var constant: String? {
        var text = ""
        for piece in pieces {
            guard case .text(let part) = piece else { return nil }
            text += part
        }
        return text
    }

    /// Whether it has this placeholder.
    package func uses(_ placeholder: String) -> Bool {
        pieces.contains {
            if case .placeholder(placeholder, _) = $0 { true } else { false }
        }
    }

    /// Fills in the values. Values are bytes, since file names are bytes.
    ///
    /// - Parameter value: Returns the bytes for a placeholder and its format.
    package func filled(_ value: (_ name: String, _ format: String?) -> [UInt8]) -> [UInt8] {
        pieces.flatMap { piece -> [UInt8] in
            switch piece {
            case .text(let text): Array(text.utf8)
            case .placeholder(let name, let format):
                isJSON ? escapedInJSON(value(name, format)) : value(name, format)
            }
        }
    }
}

/// The number of typing mistakes between two words: a letter more, less or replaced, or two letters swapped.
package func editDistance(from a: String, to b: String) -> Int {
    let (a, b) = (Array(a), Array(b))
    // Optimal string alignment: two swapped letters are one mistake.
    var before: [Int] = []
    var last = Array(0...b.count)
    for (i, x) in a.enumerated() {
        var row = [i + 1]
        for (j, y) in b.enumerated() {
            var least = min(last[j] + (x == y ? 0 : 1), row[j] + 1, last[j + 1] + 1)
            if i > 0, j > 0, x == b[j - 1], y == a[i - 1] { least = min(least, before[j - 1] + 1) }
            row.append(least)
        }
        (before, last) = (last, row)
    }
    return last[b.count]
}

/// The word of `known` that is nearest to `written`, if it is near enough to be a typing mistake.
package func closest(to written: String, among known: [String]) -> String? {
    guard written.count <= 64 else { return nil }
    let near = known.map { (word: $0, far: editDistance(from: written.lowercased(), to: $0.lowercased())) }
    guard let best = near.min(by: { $0.far < $1.far }), best.far <= max(1, min(3, best.word.count / 3)) else {
        return nil
    }
    return best.word
}
