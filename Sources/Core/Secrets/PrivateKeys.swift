/// Hides private keys in PEM (RFC 7468, section 10; RFC 1421 where they are encrypted), in one line or over several, also
/// where the beginning or the end of a key is cut off. What is hidden never reaches from one line into the words of
/// another: each may be of another writer.
struct PrivateKeys {
    private struct Line {
        var text: Substring
        /// The line end, as it was; empty at the end of the text.
        let end: Substring
    }

    private struct Key {
        let label: Substring
        /// Whether the mark of its end follows: then other lines may be between its own.
        let hasEnd: Bool
        /// How many words a log has before each line of it.
        let prefix: Int
        /// Whether the line before is part of it, so that a short line may be too.
        var isUnbroken = true
    }

    private struct Mark {
        let isBeginning: Bool
        let label: Substring
        let range: Range<Substring.Index>
    }

    /// A key of 16,384 bits has 200 lines.
    private static let mostLines = 400
    /// A shorter word may be one of any message. (bytes)
    private static let minLength = 16
    /// The most letters in a line of a key (RFC 7468, section 2).
    private static let lineLength = 64
    /// Header fields of an encrypted key.
    private static let headers = ["Proc-Type: ", "DEK-Info: "]

    private var lines: [Line] = []
    private var open: Key?

    static func hide(in text: String) -> String {
        guard text.contains("PRIVATE KEY"), text.contains("-----") else { return text }
        var keys = PrivateKeys(text)
        for index in keys.lines.indices { keys.hide(at: index) }
        return keys.lines.map { $0.text + $0.end }.joined()
    }

    private init(_ text: String) {
        var rest = text[...]
        while let end = rest.firstIndex(where: \.isNewline) {
            lines.append(Line(text: rest[..<end], end: rest[end...end]))
            rest = rest[rest.index(after: end)...]
        }
        lines.append(Line(text: rest, end: ""))
    }

    private mutating func hide(at index: Int) {
        if let key = open, isInside(key, index) { return }
        hideMarked(at: index)
    }

    /// Hides a line of an open key.
    ///
    /// - Returns: Whether the line has no marks to look for.
    private mutating func isInside(_ key: Key, _ index: Int) -> Bool {
        let line = lines[index].text
        let least = key.hasEnd ? Self.minLength : Self.lineLength
        if let start = Self.bodyStart(in: line, shortAfter: key.isUnbroken ? key.prefix : nil, elsewhere: least) {
            lines[index].text = line[..<start] + "***"
            open?.isUnbroken = true
            return true
        }
        open?.isUnbroken = false
        // Between the header fields and the body of a key is an empty line.
        let isEmpty = Self.words(Self.trimmed(line)) <= key.prefix
        if isEmpty || Self.headers.contains(where: { line.contains($0) }) { return true }
        if !key.hasEnd { open = nil }
        return false
    }

    /// Hides keys that begin or end in the line.
    private mutating func hideMarked(at index: Int) {
        var (out, rest) = ("", lines[index].text)
        while let mark = Self.mark(in: rest) {
            let before = rest[..<mark.range.lowerBound]
            let after = rest[mark.range.upperBound...]
            guard mark.isBeginning else {
                let isPartOfKey = open != nil && !before.hasSuffix(" ")
                out += Self.withoutBody(before, atLeast: isPartOfKey ? 1 : Self.minLength) + rest[mark.range]
                if open == nil { hideBody(before: index, prefix: Self.words(before)) }
                if open?.label == mark.label { open = nil }
                rest = after
                continue
            }
            out += rest[..<mark.range.upperBound] + "***"
            let prefix = Self.words(before)
            if let end = after.firstRange(of: "-----END \(mark.label)-----") {
                out += after[end]
                rest = after[end.upperBound...]
                continue
            }
            rest = Self.afterBody(after)
            if rest.allSatisfy({ Self.quotes.contains($0) || Self.joints.contains($0) }) {
                open = Key(label: mark.label, hasEnd: hasEnd(mark.label, after: index), prefix: prefix)
            }
        }
        lines[index].text = Substring(out + rest)
    }

    private func hasEnd(_ label: Substring, after index: Int) -> Bool {
        lines[index...].dropFirst().prefix(Self.mostLines).contains { $0.text.contains("-----END \(label)-----") }
    }

    /// Hides the lines of a key whose beginning is cut off, up from its end.
    private mutating func hideBody(before end: Int, prefix: Int) {
        let hasChecksum = end > 0 && Self.isChecksum(lines[end - 1].text)
        for index in (0..<end).reversed() {
            let line = lines[index].text
            // Of a key's lines only the last one is short, also above a checksum, and the first one where the text was
            // cut in it.
            let isLast =
                index == end - 1 && (index == 0 || hasChecksum || Self.bodyStart(in: lines[index - 1].text) != nil)
                || index == end - 2 && hasChecksum
            let isCut = index == 0 && index < end - 1 && Self.words(line) == 1
            let most = isLast ? prefix : isCut ? 0 : nil
            guard let start = Self.bodyStart(in: line, shortAfter: most) else { return }
            lines[index].text = line[..<start] + "***"
        }
    }

    /// `=` and 24 bits, below the body of a PGP key (RFC 4880, section 6.1).
    private static func isChecksum(_ line: Substring) -> Bool {
        let word = trimmed(line).split(separator: " ").last ?? ""
        return word.count == 5 && word.hasPrefix("=")
    }

    private static func words(_ text: Substring) -> Int {
        text.split { $0 == " " || $0 == "\t" || quotes.contains($0) }.count
    }

    /// Where the last word of a line begins, if that looks like a line of a key. A log has something before it.
    ///
    /// - Parameters:
    ///   - prefix: After this many words it may be short; `nil`: it may not.
    ///   - least: After other words it is at least as long as this.
    private static func bodyStart(
        in line: Substring, shortAfter prefix: Int? = nil, elsewhere least: Int = lineLength
    ) -> Substring.Index? {
        let text = withoutEndQuotes(trimmed(line))
        let start = text.lastIndex { $0 == " " || $0 == "\t" }.map { text.index(after: $0) } ?? text.startIndex
        let word = text[start...].drop { quotes.contains($0) }.utf8
        let before = words(text[..<start])
        // Nothing tells a path after other words than the key has from a line of 48 bytes, but its length.
        let least = before == prefix ? 1 : before == 0 || prefix == nil ? minLength : least
        // Padding is at the end; the checksum of a PGP key begins with `=`.
        let padding = word.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        let digits = word.dropLast(padding).drop { $0 == UInt8(ascii: "=") }
        let isBody =
            word.count >= least && word.count - digits.count <= 2 && digits.allSatisfy { $0.isLetterOrDigit(or: "+/") }
        return isBody ? start : nil
    }

    /// The text before the mark of an end without the words of the key's body. Line ends may be blanks, or escaped.
    private static func withoutBody(_ text: Substring, atLeast least: Int) -> String {
        var (kept, least) = (text, least)
        while true {
            let rest = trimmed(kept)
            let start = rest.lastIndex(of: " ").map { rest.index(after: $0) } ?? rest.startIndex
            let word = rest[start...].utf8
            guard word.count >= least, word.allSatisfy({ $0.isLetterOrDigit(or: "+/=\\") }) else { break }
            (kept, least) = (rest[..<start], minLength)
        }
        return kept.endIndex == text.endIndex ? String(text) : kept + "***"
    }

    /// The text after the mark of a beginning without the words of the key's body. Line ends may be blanks, or escaped.
    private static func afterBody(_ text: Substring) -> Substring {
        let isEncrypted = text.prefix(32).contains("Proc-Type:")
        return text.drop {
            $0.isASCII && ($0.isLetter || $0.isNumber || "+/= \t\\*".contains($0))
                || isEncrypted && "-:,".contains($0)
        }
    }

    /// Around a line in a list of a program.
    private static let quotes: Set<Character> = ["\"", "'", "`"]
    /// What follows the quote.
    private static let joints: Set<Character> = [",", "+", " "]

    private static func withoutEndQuotes(_ text: Substring) -> Substring {
        guard let last = text.last(where: { !joints.contains($0) }), quotes.contains(last) else { return text }
        let inner = text[..<(text.lastIndex { quotes.contains($0) } ?? text.endIndex)]
        return inner.hasSuffix("\\n") ? inner.dropLast(2) : inner
    }

    /// The text without blanks and escaped carriage returns at its end.
    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while true {
            if text.hasSuffix(" ") || text.hasSuffix("\t") {
                text.removeLast()
            } else if text.hasSuffix("\\x0d") || text.hasSuffix("\\x09") {
                text.removeLast(4)
            } else {
                return text
            }
        }
    }

    /// The first mark of a private key's beginning or end.
    private static func mark(in text: Substring) -> Mark? {
        var rest = text
        while let dashes = rest.firstRange(of: "-----") {
            for word in ["BEGIN ", "END "] where rest[dashes.upperBound...].hasPrefix(word) {
                let named = rest[dashes.upperBound...].dropFirst(word.count)
                guard let end = named.firstRange(of: "-----") else { return nil }
                let label = named[..<end.lowerBound]
                if label.hasSuffix("PRIVATE KEY") || label.hasSuffix("PRIVATE KEY BLOCK") {
                    return Mark(
                        isBeginning: word == "BEGIN ", label: label, range: dashes.lowerBound..<end.upperBound)
                }
            }
            rest = rest[rest.index(after: dashes.lowerBound)...]
        }
        return nil
    }
}
