internal import Core

/// A place in one of the files. Line and column count from 1, in Unicode scalars as in libyaml.
struct ConfigLocation: Hashable, Comparable, Sendable {
    /// The file's index.
    var file: Int
    var line: Int
    var column: Int

    static func < (a: ConfigLocation, b: ConfigLocation) -> Bool {
        (a.file, a.line, a.column) < (b.file, b.line, b.column)
    }
}

/// The text of one file. Messages show lines from it.
///
/// Secrets are covered before anything is shown: error messages end up in logs and in tickets.
struct SourceText: Sendable {
    let file: FilePath
    private let lines: [[Unicode.Scalar]]
    private var covered: [Int: [Range<Int>]] = [:]
    /// Keys after whose `:` nothing is shown. Used for a file that did not parse, where the places of secrets are
    /// unknown.
    var secretWords: [String] = []

    init(file: FilePath, text: String) {
        self.file = file
        var lines: [[Unicode.Scalar]] = [[]]
        var last: Unicode.Scalar = " "
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n" where last == "\r": break
            // The line breaks of YAML 1.1, section 5.4; libyaml counts all of them.
            case "\n", "\r", "\u{85}", "\u{2028}", "\u{2029}": lines.append([])
            default: lines[lines.count - 1].append(scalar)
            }
            last = scalar
        }
        self.lines = lines
    }

    /// The place itself, or the end of the text for a place after it: libyaml reports a missing end on a line of its
    /// own.
    func inside(line: Int, column: Int) -> (line: Int, column: Int) {
        guard line <= lines.count else { return (lines.count, lines[lines.count - 1].count + 1) }
        return (line, min(column, lines[line - 1].count + 1))
    }

    /// Whether exactly `text` is at a place, on one line.
    func has(_ text: String, atLine line: Int, column: Int) -> Bool {
        guard lines.indices.contains(line - 1) else { return false }
        return lines[line - 1].dropFirst(column - 1).starts(with: text.unicodeScalars)
    }

    /// The character at a place; `nil` after the end of the line.
    func scalar(atLine line: Int, column: Int) -> Unicode.Scalar? {
        guard lines.indices.contains(line - 1) else { return nil }
        return lines[line - 1].dropFirst(column - 1).first
    }

    /// Replaces the text from `start` up to `end` by stars.
    mutating func cover(from start: ConfigLocation, to end: ConfigLocation) {
        guard start < end else { return }
        for line in start.line...end.line {
            let from = line == start.line ? start.column - 1 : 0
            let to = line == end.line ? end.column - 1 : Int.max
            if from < to { covered[line, default: []].append(from..<to) }
        }
    }

    /// Whether a place is covered.
    func covers(line: Int, column: Int) -> Bool { (covered[line] ?? []).contains { $0.contains(column - 1) } }

    /// The line of a place with a caret under it: two lines of text. `nil` when there is no such line.
    ///
    /// A tab is shown as `→`, so that it takes one column everywhere and is visible; a line that is too long is cut on
    /// both sides of the place.
    func excerpt(line: Int, column: Int) -> String? {
        guard lines.indices.contains(line - 1) else { return nil }
        let count = lines[line - 1].count
        let caret = min(max(column - 1, 0), count)
        let first = count > Self.longest ? min(max(0, caret - Self.longest * 2 / 3), count - Self.longest) : 0
        let end = min(count, first + Self.longest)
        var text = first > 0 ? "…" : ""
        var offset = first > 0 ? 1 : 0
        for (index, scalar) in shown(line, first..<end).enumerated() {
            let cell = Self.cell(of: scalar)
            text += cell.text
            if first + index < caret { offset += cell.columns }
        }
        if end < count { text += "…" }
        let number = String(line)
        let gutter = String(repeating: " ", count: max(0, 5 - number.count)) + number
        let blank = String(repeating: " ", count: gutter.count)
        return "\(gutter) | \(text)\n\(blank) | \(String(repeating: " ", count: offset))^"
    }

    /// Maximum number of shown characters of a line.
    private static let longest = 100

    /// A part of a line, with stars for secrets.
    private func shown(_ line: Int, _ part: Range<Int>) -> [Unicode.Scalar] {
        var scalars = Array(lines[line - 1][part])
        func cover(_ range: Range<Int>) {
            for index in range.clamped(to: part) where scalars[index - part.lowerBound] != " " {
                scalars[index - part.lowerBound] = "*"
            }
        }
        for range in covered[line] ?? [] { cover(range) }
        if let start = secretStart(line) { cover(start..<lines[line - 1].count) }
        for range in sensitiveRanges(line) { cover(range) }
        return scalars
    }

    /// Values of parameters in addresses and paths, users in addresses, and fragments: `config` does not print them
    /// either.
    private func sensitiveRanges(_ line: Int) -> [Range<Int>] {
        let scalars = lines[line - 1]
        // Word by word: `token: {file: …}` is a key, and not a header with a secret.
        return scalars.indices.split(whereSeparator: { scalars[$0] == " " || scalars[$0] == "\t" }).compactMap { word in
            let written = scalars[word.startIndex..<word.endIndex]
            let safe = Array(withoutAddressSecrets(Self.text(written)).unicodeScalars)
            if safe.elementsEqual(written) { return nil }
            let start = zip(written, safe).prefix { $0 == $1 }.count
            let end = zip(written.reversed(), safe.reversed()).prefix { $0 == $1 }.count
            // If a character of the secret is itself a star, it is covered with the stars.
            return written.startIndex + start..<max(written.startIndex + start, written.endIndex - end)
        }
    }

    private static func text(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars)
        return String(text)
    }

    /// Whether a text is at a place unchanged, with or without quotes.
    func shows(_ text: String, at place: ConfigLocation) -> Bool {
        has(text, atLine: place.line, column: place.column) || has(text, atLine: place.line, column: place.column + 1)
    }

    /// Where a secret may begin in a line of a file that did not parse: at the start when a key that takes one is above
    /// and less indented, or has an open bracket; otherwise after such a key in the line.
    private func secretStart(_ line: Int) -> Int? {
        guard !secretWords.isEmpty else { return nil }
        // The lines above come first: a secret may itself contain such a word.
        if isBelowSecretWord(line) || isInsideSecretBrackets(line) { return 0 }
        return behindSecretWord(line)
    }

    private func isBelowSecretWord(_ line: Int) -> Bool {
        var indentation = indentation(of: line)
        for above in Self.linesAbove(line).reversed() where self.indentation(of: above) < indentation {
            if behindSecretWord(above) != nil { return true }
            indentation = self.indentation(of: above)
        }
        return false
    }

    /// Whether a bracket behind such a key is still open where a line begins: indentation means nothing inside it.
    private func isInsideSecretBrackets(_ line: Int) -> Bool {
        var depth = 0
        for above in Self.linesAbove(line) {
            guard let start = depth > 0 ? 0 : behindSecretWord(above) else { continue }
            for scalar in lines[above - 1][start...] {
                if scalar == "{" || scalar == "[" { depth += 1 }
                if scalar == "}" || scalar == "]" { depth = max(0, depth - 1) }
            }
        }
        return depth > 0
    }

    /// The lines that are searched for keys above one of them.
    private static func linesAbove(_ line: Int) -> Range<Int> { max(1, line - 50)..<line }

    private func behindSecretWord(_ line: Int) -> Int? {
        let scalars = lines[line - 1]
        guard scalars.count < 10_000 else { return 0 }  // not written by a person; show none of it
        let lower = scalars.map { ("A"..."Z").contains($0) ? $0.value | 0x20 : $0.value }
        return secretWords.compactMap { word -> Int? in
            let word = word.lowercased().unicodeScalars.map(\.value)
            return lower.firstIndex(of: word).map { Self.endOfKey(in: scalars, from: $0 + word.count) }
        }.min()
    }

    /// Where the value of a key begins: behind its colon, or right behind a word whose colon is missing.
    ///
    /// - Parameter start: A place in the key, or behind its colon.
    private static func endOfKey(in line: [Unicode.Scalar], from start: Int) -> Int {
        if line[start - 1] == ":" { return start }
        let end = line[start...].firstIndex { !$0.properties.isAlphabetic && $0 != "_" && $0 != "-" } ?? line.count
        var colon = end
        if colon < line.count, line[colon] == "\"" || line[colon] == "'" { colon += 1 }
        while colon < line.count, line[colon] == " " { colon += 1 }
        return colon < line.count && line[colon] == ":" ? colon + 1 : end
    }

    /// Blank lines count as deeply indented, so that they separate nothing; so does a tab, whose depth is unknown.
    private func indentation(of line: Int) -> Int {
        guard let first = lines[line - 1].firstIndex(where: { $0 != " " }), lines[line - 1][first] != "\t" else {
            return Int.max
        }
        return first
    }

    /// The text that a terminal shows for a character, and its number of columns.
    private static func cell(of scalar: Unicode.Scalar) -> (text: String, columns: Int) {
        if scalar == "\t" { return ("→", 1) }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse, .surrogate:
            return ("·", 1)
        case .nonspacingMark, .enclosingMark: return (String(scalar), 0)
        default: return (String(scalar), isWide(scalar.value) ? 2 : 1)
        }
    }

    /// The blocks of wide characters of Unicode's East Asian Width (UAX #11), whole blocks at a time.
    private static func isWide(_ value: UInt32) -> Bool {
        switch value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF,
            0x1F900...0x1F9FF, 0x20000...0x3FFFD:
            true
        default: false
        }
    }
}

extension Array where Element: Equatable {
    /// The first place of `needle`.
    fileprivate func firstIndex(of needle: [Element]) -> Int? {
        guard !needle.isEmpty, needle.count <= count else { return nil }
        return (0...(count - needle.count)).first { self[$0..<($0 + needle.count)].elementsEqual(needle) }
    }
}

/// ``redacted(_:)``, and also without a user and a password before a host that has no scheme (`user:password@host`), and
/// without fragments of addresses, which no server gets.
func withoutAddressSecrets(_ text: String) -> String {
    var text = redacted(text)
    if !text.contains("://"), let at = text.utf8.lastIndex(of: UInt8(ascii: "@")) {
        let before = text[..<at]
        let start = before.utf8.lastIndex { "\"'{},[ ".utf8.contains($0) }.map { text.utf8.index(after: $0) }
        let user = (start ?? text.startIndex)..<at
        if text[user].utf8.contains(UInt8(ascii: ":")) { text.replaceSubrange(user, with: "***") }
    }
    if let address = text.firstRange(of: "://"), let mark = text[address.upperBound...].firstIndex(of: "#") {
        let end = text[mark...].firstIndex { "\"'},] ".contains($0) } ?? text.endIndex
        text.replaceSubrange(text.index(after: mark)..<end, with: "***")
    }
    return text
}
