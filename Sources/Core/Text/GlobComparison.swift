/// Comparisons of patterns, without any file. Where letter case counts, patterns of files are compared ``folded(_:)``.
package enum GlobComparison {
    /// Whether `wide` matches every name that `narrow` matches. May miss such a pair of unusual patterns.
    package static func covers(_ wide: String, _ narrow: String) -> Bool {
        if wide == narrow || wide == "*" || wide == "**" { return true }
        // With `*` alone the narrow pattern can be matched as if it were a name: its own stars match only stars. A
        // pattern without a slash applies to the name alone.
        guard !wide.contains(where: { "[?\\/".contains($0) }) else { return false }
        let name = narrow.split(separator: "/").last.map { String($0) } ?? narrow
        return Glob(wide).matches(FilePath(name))
    }

    /// Whether a pattern matches every name of an interface that another one matches; `nil` matches all. Ignores case.
    package static func coversInterfaces(_ wide: String, _ narrow: String?) -> Bool {
        if !wide.isEmpty, wide.allSatisfy({ $0 == "*" }) { return true }
        guard let narrow = narrow?.loweredInASCII else { return false }
        let wide = wide.loweredInASCII
        if wide == narrow { return true }
        if !narrow.contains(where: { "*?[\\".contains($0) }) { return Glob(wide).matches(FilePath(narrow)) }
        // A set contains letters that a name need not have.
        guard !narrow.contains(where: { "[\\".contains($0) }) else { return false }
        return covers(wide, narrow)
    }

    /// Patterns of files with all ASCII letters in lower case: ``Glob`` does not distinguish them.
    package static func folded(_ patterns: [String]) -> [String] { patterns.map(\.loweredInASCII) }

    /// The patterns that together match the names of a pattern with a set like `eth[01]` or `wwan[0-3]`, one for each
    /// letter of its first set; `nil` where it has no set, or one that is more than a few plain letters or digits.
    package static func alternatives(of glob: String) -> [String]? {
        guard !glob.contains("\\"), let start = glob.firstIndex(of: "["),
            let end = glob[start...].firstIndex(of: "]")
        else { return nil }
        var letters: [Character] = []
        var rest = glob[glob.index(after: start)..<end]
        func isPlain(_ letter: Character) -> Bool { letter.isASCII && (letter.isLetter || letter.isNumber) }
        while let first = rest.popFirst() {
            guard isPlain(first), let low = first.asciiValue else { return nil }
            if rest.first == "-" {
                rest.removeFirst()
                guard let last = rest.popFirst(), isPlain(last), let high = last.asciiValue, low <= high,
                    high - low < 26
                else { return nil }
                let all = (low...high).map { Character(UnicodeScalar($0)) }
                guard all.allSatisfy(isPlain) else { return nil }
                letters += all
            } else {
                letters.append(first)
            }
        }
        if letters.isEmpty || letters.count > 36 { return nil }
        return letters.map { glob[..<start] + String($0) + glob[glob.index(after: end)...] }
    }

    /// Whether both patterns may match the same name; a set like `[0-9]` is treated as any letter. If only one is a
    /// pattern for paths, its last part is compared.
    package static func mayOverlap(_ a: String, _ b: String) -> Bool {
        let arePaths = a.contains("/") && b.contains("/")
        func pieces(_ glob: String) -> [Character?] {
            var letters = Array(arePaths ? glob : String(glob.split(separator: "/").last ?? ""))[...]
            var pieces: [Character?] = []
            while let letter = letters.popFirst() {
                switch letter {
                case "*": if pieces.last != .some("*") || pieces.isEmpty { pieces.append("*") }
                case "?": pieces.append(nil)
                case "[":
                    // A `]` right after the `[` represents itself.
                    let end = letters.dropFirst().firstIndex(of: "]") ?? letters.endIndex
                    letters = letters[min(end + 1, letters.endIndex)...]
                    pieces.append(nil)
                case "\\": pieces.append(letters.popFirst().flatMap { $0 == "*" ? nil : $0 })
                default: pieces.append(letter)
                }
            }
            return pieces
        }
        let (left, right) = (pieces(a), pieces(b))
        // Whether the rest of both, from here on, may match the same text.
        var next = [Bool](repeating: false, count: right.count + 1)
        for i in stride(from: left.count, through: 0, by: -1) {
            var row = next
            for j in stride(from: right.count, through: 0, by: -1) {
                if i == left.count, j == right.count {
                    row[j] = true
                } else if i < left.count, left[i] == "*" {
                    row[j] = next[j] || j < right.count && row[j + 1]
                } else if j < right.count, right[j] == "*" {
                    row[j] = row[j + 1] || i < left.count && next[j]
                } else if i < left.count, j < right.count {
                    row[j] = (left[i] == nil || right[j] == nil || left[i] == right[j]) && next[j + 1]
                } else {
                    row[j] = false
                }
            }
            next = row
        }
        return next[0]
    }

    /// Whether no name can match a pattern of both lists. Compares only fixed endings without a star.
    package static func areDisjoint(_ a: [String], _ b: [String]) -> Bool {
        guard !a.isEmpty, !b.isEmpty else { return false }
        return a.allSatisfy { left in b.allSatisfy { right in areDisjoint(ending(of: left), ending(of: right)) } }
    }

    private static func areDisjoint(_ a: Substring, _ b: Substring) -> Bool { !a.hasSuffix(b) && !b.hasSuffix(a) }

    private static func ending(of glob: String) -> Substring {
        guard let last = glob.lastIndex(where: { "*?]\\".contains($0) }) else { return glob[...] }
        return glob[glob.index(after: last)...]
    }

    /// Whether an `exclude` matches everything below a folder.
    package static func matches(_ glob: String, everythingBelow folder: FilePath) -> Bool {
        guard let text = folder.text else { return false }
        return [text, text + "/", text + "/*", text + "/**", text + "/**/*"].contains(glob) || glob == "*"
    }
}
