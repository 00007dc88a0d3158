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

    /// Values of parameters in addresses and paths, and users in addresses: `config` does not print them either.
    private func sensitiveRanges(_ line: Int) -> [Range<Int>] {
        let scalars = lines[line - 1]
        // Word by word: `token: {file: …}` is a key, and not a header with a secret.
        return scalars.indices.split(whereSeparator: { scalars[$0] == " " || scalars[$0] == "\t" }).compactMap { word in
            let written = scalars[word.startIndex..<word.endIndex]
            let safe = Array(redacted(Self.text(written)).unicodeScalars)
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

    /// Where a secret may begin in a line of a file that did not parse: after a key that takes one, or at the start
    /// when such a key is above and less indented.
    private func secretStart(_ line: Int) -> Int? {
        guard !secretWords.isEmpty else { return nil }
        if let start = behindSecretWord(line) { return start }
        var indentation = indentation(of: line)
        for above in (max(1, line - 50)..<line).reversed() where self.indentation(of: above) < indentation {
            if behindSecretWord(above) != nil { return 0 }
            indentation = self.indentation(of: above)
        }
        return nil
    }

    private func behindSecretWord(_ line: Int) -> Int? {
        let scalars = lines[line - 1]
        guard scalars.count < 10_000 else { return 0 }  // not written by a person; show none of it
        let lower = scalars.map { ("A"..."Z").contains($0) ? $0.value | 0x20 : $0.value }
        return secretWords.compactMap { word in
            guard let at = lower.firstIndex(of: word.lowercased().unicodeScalars.map(\.value)) else { return nil }
            return lower[at...].firstIndex(of: 0x3A).map { $0 + 1 }
        }.min()
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
