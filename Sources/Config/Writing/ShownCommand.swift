internal import Core

/// A program and its arguments as they may be shown: without what may be a password.
struct ShownCommand {
    let words: [String]

    /// Options of curl, wget and their like, without the dashes before them.
    private static let userOptions: Set<Substring> = ["u", "user", "U", "proxy-user", "H", "header"]
    private static let passwordOptions: Set<Substring> = ["pass", "passphrase"]

    init(_ words: [String]) { self.words = Self.shown(words, areWhole: true) }

    /// - Parameter areWhole: Whether a word may be a line for a shell, with options of its own.
    private static func shown(_ words: [String], areWhole: Bool) -> [String] {
        var option: Substring?
        return words.map { word in
            let bare = word.drop { $0 == "-" }
            let isOption = bare.startIndex != word.startIndex
            defer { option = isOption ? bare : nil }
            if isOption { return word[..<bare.startIndex] + shown(option: bare) }
            if let option, hides(bare, after: option) { return "***" }
            if areWhole, word.contains(where: \.isWhitespace) {
                return redacted(shown(Self.words(ofLine: word), areWhole: false).joined(separator: " "))
            }
            return redacted(word)
        }
    }

    /// Whether the argument of an option may be a password: by the option's name, or `user:password`, or a header.
    private static func hides(_ value: Substring, after option: Substring) -> Bool {
        userOptions.contains(option) && value.contains(":") || passwordOptions.contains(option)
            || isSecretName(String(option))
    }

    /// `user=me:secret`, and `ume:secret` for `u`.
    private static func shown(option text: Substring) -> String {
        if let mark = text.firstIndex(of: "="), hides(text[text.index(after: mark)...], after: text[..<mark]) {
            return text[...mark] + "***"
        }
        let letter = text.prefix(1)
        if userOptions.contains(letter), text.contains(":"), !text.contains("=") { return letter + "***" }
        return redacted(String(text))
    }

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
