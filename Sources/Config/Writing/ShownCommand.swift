internal import Core

/// A program and its arguments as they may be shown: without what may be a password.
struct ShownCommand {
    private(set) var words: [String] = []
    /// What is not shown, each piece alone, and of `user:password` also the password. A program may print one of them
    /// without the rest of its arguments.
    private(set) var secrets: [String] = []

    /// Options of curl, wget and their like, without the dashes before them.
    private static let userOptions: Set<Substring> = ["u", "user", "U", "proxy-user"]
    private static let headerOptions: Set<Substring> = ["H", "header"]
    private static let passwordOptions: Set<Substring> = ["pass", "passphrase"]
    private static let mask = "***"

    init(_ words: [String]) { self.words = shown(words, areWhole: true) }

    /// - Parameter areWhole: Whether a word may be a line for a shell, with options of its own.
    private mutating func shown(_ words: [String], areWhole: Bool) -> [String] {
        var option: Substring?
        var shown: [String] = []
        for word in words {
            let bare = word.drop { $0 == "-" }
            if bare.startIndex != word.startIndex {
                shown.append(word[..<bare.startIndex] + self.shown(option: bare))
                option = bare
                continue
            }
            if let option, hides(bare, after: option) {
                shown.append(Self.mask)
            } else if areWhole, word.contains(where: \.isWhitespace) {
                shown.append(masked(self.shown(Self.words(ofLine: word), areWhole: false).joined(separator: " ")))
            } else {
                shown.append(masked(word))
            }
            option = nil
        }
        return shown
    }

    /// Whether the argument of an option may be a password: by the option's name, or `user:password`, or a header. Then
    /// it is one of the secrets.
    private mutating func hides(_ value: Substring, after option: Substring) -> Bool {
        let isHeader = Self.headerOptions.contains(option)
        if isHeader && value.contains(":") {
            remember(header: value)
        } else if Self.userOptions.contains(option) && value.contains(":") || Self.passwordOptions.contains(option)
            || isSecretName(String(option))
        {
            remember(value)
        } else {
            return false
        }
        return true
    }

    /// `user=me:secret`, and `ume:secret` for `u`.
    private mutating func shown(option text: Substring) -> String {
        if let mark = text.firstIndex(of: "="), hides(text[text.index(after: mark)...], after: text[..<mark]) {
            return text[...mark] + Self.mask
        }
        let letter = text.prefix(1)
        if !text.contains("="), hides(text.dropFirst(), after: letter) { return letter + Self.mask }
        return masked(String(text))
    }

    /// The text without what looks like a secret wherever it is.
    private mutating func masked(_ text: String) -> String {
        let shown = redacted(text)
        if shown == text { return text }
        // What was replaced is between the parts that stayed.
        var rest = text[...]
        let parts = shown.split(separator: Self.mask, omittingEmptySubsequences: false)
        for (number, part) in parts.enumerated() {
            let place =
                number == parts.count - 1
                ? rest.index(rest.endIndex, offsetBy: -part.count, limitedBy: rest.startIndex)
                : rest.firstRange(of: part)?.lowerBound
            guard let place else { break }
            if number > 0 { remember(rest[..<place]) }
            rest = rest[place...].dropFirst(part.count)
        }
        return shown
    }

    private mutating func remember(_ piece: Substring) {
        let piece = Self.withoutQuotes(piece)
        if piece == Self.mask { return }
        secrets.append(piece)
        if let colon = piece.firstIndex(of: ":") { secrets.append(String(piece[colon...].dropFirst())) }
    }

    /// `Authorization: Basic abc`. Of other headers, as `Accept: text/plain`, the value alone is a word of any message.
    private mutating func remember(header: Substring) {
        let header = Self.withoutQuotes(header)
        secrets.append(header)
        guard let colon = header.firstIndex(of: ":"), isSecretName(String(header[..<colon])) else { return }
        let value = String(header[colon...].dropFirst().drop { $0 == " " })
        secrets += SecretParts.of(value, isCookie: KnownSecrets.isCookie(header: String(header[..<colon])))
    }

    private static func withoutQuotes(_ text: Substring) -> String { text.filter { $0 != "'" && $0 != "\"" } }

    /// The words of a line for a shell, with their quotes; between quotes a word has blanks.
    private static func words(ofLine line: String) -> [String] {
        var words: [String] = []
        var quote: Character?
        for part in line.split(separator: " ", omittingEmptySubsequences: false) {
            if quote == nil { words.append(String(part)) } else { words[words.count - 1] += " \(part)" }
            for letter in part where letter == "'" || letter == "\"" {
                if quote == nil { quote = letter } else if quote == letter { quote = nil }
            }
        }
        return words
    }
}
