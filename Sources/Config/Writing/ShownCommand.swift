internal import Core

/// A program and its arguments as they may be shown: without what may be a password.
struct ShownCommand {
    private(set) var words: [String] = []
    /// What is not shown, each piece alone, and of `user:password` also the password. A program may print one of them
    /// without the rest of its arguments.
    private(set) var secrets: [String] = []
    private var found: Set<String> = []
    /// How many shells read the text before the program gets it: each takes quotes and backslashes off.
    private var shells = 0

    private static let mask = "***"
    /// Further lines within lines are taken as words.
    private static let mostShells = 8
    /// Each of these is looked for in all words.
    private static let mostRepeated = 64

    init(_ words: [String]) {
        self.words = shown(words)
        // One that was found may also be where nothing tells that it is one.
        let known = secrets.prefix(Self.mostRepeated).filter { $0.utf8.count >= KnownSecrets.minLength }
            .sorted { $0.utf8.count > $1.utf8.count }
        self.words = self.words.map { word in known.reduce(word) { $0.replacing($1, with: Self.mask) } }
    }

    private mutating func shown(_ words: [String]) -> [String] {
        var options = PasswordOptions()
        var option: Substring?
        return words.map { word in
            let body = shells > 0 ? ShellLine.withoutQuotesAround(word) : word[...]
            defer { options.pass(body) }
            let bare = body.drop { $0 == "-" }
            guard bare.startIndex == body.startIndex else {
                let isLong = body.hasPrefix("--")
                option = options.option(of: bare, isLong: isLong)
                guard let (start, secret) = options.joined(bare, isLong: isLong) else {
                    return masked(shown(word: word))
                }
                remember(secret, of: bare[start...])
                return word[..<start] + Self.mask + word[body.endIndex...]
            }
            defer { option = nil }
            if let option, let secret = options.secret(in: body, of: option) {
                remember(secret, of: body)
                return Self.mask
            }
            // With `-c` it is a line for a shell, which may begin with a variable.
            if let value = secretVariable(word), shells > 0 || option?.hasSuffix("c") != true {
                remember(value)
                return word[..<value.startIndex] + Self.mask
            }
            return masked(shown(word: word))
        }
    }

    /// The value of `PGPASSWORD=word`, if that is no command whose output is the value, and no other variable.
    private func secretVariable(_ word: String) -> Substring? {
        guard let mark = word.firstIndex(of: "=") else { return nil }
        let (name, value) = (word[..<mark], word[mark...].dropFirst())
        let isName = name.utf8.allSatisfy { $0.isLetterOrDigit(or: "_") }
        let isCommand =
            !value.hasPrefix("'")
            && (value.contains("$(") || value.contains("`") || value.drop { $0 == "\"" }.hasPrefix("$"))
        return isName && !isCommand && !value.isEmpty && Self.isSecret(variable: String(name)) ? value : nil
    }

    private static func isSecret(variable name: String) -> Bool {
        let lower = name.lowercased()
        return isSecretName(name) || ["auth", "key"].contains(lower) || ["pass", "pw"].contains(where: lower.hasSuffix)
    }

    /// A word with blanks may be a line for a shell: `-c "..."`. Within such a line it is in quotes: `x="$(...)"`.
    private mutating func shown(word: String) -> String {
        guard shells < Self.mostShells, word.contains(where: \.isWhitespace) else { return word }
        if shells == 0 { return shown(line: word) }
        return ShellLine.parts(of: word).map { part in
            part.quote == nil ? part.text : part.text(with: shown(line: part.line))
        }.joined()
    }

    /// A line for a shell: of each command in it the same.
    private mutating func shown(line: String) -> String {
        shells += 1
        defer { shells -= 1 }
        var text = ""
        for command in ShellLine(line).commands {
            text += zip(shown(command.words), command.separators).map { $0 + $1 }.joined()
        }
        return text
    }

    /// The text without what looks like a secret wherever it is.
    private mutating func masked(_ text: String) -> String {
        let shown = Self.withoutParameters(redacted(text))
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
            // The value of another variable is not here.
            let isVariable = shells > 0 && rest.hasPrefix("$")
            if number > 0, !isVariable { remember(rest[..<place]) }
            rest = rest[place...].dropFirst(part.count)
        }
        return shown
    }

    /// `pass=word` among others, as in `user=me,pass=word` and `user=me&pass=word`. In a text of another program these
    /// names mean too much.
    private static func withoutParameters(_ text: String) -> String {
        let marks: Set<Character> = ["&", ",", ";", ":", "?", " ", "'", "\""]
        return text.split(omittingEmptySubsequences: false, whereSeparator: marks.contains).reduce(into: "") {
            out, part in
            let value = ["pass=", "pw="].first { part.hasPrefix($0) }.map { part.dropFirst($0.count) } ?? ""
            out += value.isEmpty || value.hasPrefix("$") ? part : part[..<value.startIndex] + mask
            if part.endIndex < text.endIndex { out.append(text[part.endIndex]) }
        }
    }

    private mutating func remember(_ secret: PasswordOptions.Secret, of value: Substring) {
        switch secret {
        case .whole: remember(value)
        case .header: remember(header: value)
        case .after(let mark): remember((value.firstIndex(of: mark).map { value[$0...] } ?? "").dropFirst())
        }
    }

    private mutating func remember(_ piece: Substring) {
        let piece = unquoted(piece)
        if piece == Self.mask { return }
        add(piece)
        if let colon = piece.firstIndex(of: ":") { add(String(piece[colon...].dropFirst())) }
    }

    private mutating func add(_ secret: String) {
        if found.insert(secret).inserted { secrets.append(secret) }
    }

    /// `Authorization: Basic abc`. Of other headers, as `Accept: text/plain`, the value alone is a word of any message.
    private mutating func remember(header: Substring) {
        let header = unquoted(header)
        guard let colon = header.firstIndex(of: ":"), isSecretName(String(header[..<colon])) else {
            add(header)
            return
        }
        let value = String(header[colon...].dropFirst().drop { $0 == " " })
        for part in SecretParts.of(value, isCookie: KnownSecrets.isCookie(header: String(header[..<colon]))) {
            add(part)
        }
    }

    /// As the program gets it.
    private func unquoted(_ text: Substring) -> String {
        String(shells > 0 ? text.filter { $0 != "'" && $0 != "\"" && $0 != "\\" }[...] : text)
    }
}
