internal import Core

/// A program and its arguments as they may be shown: without what may be a password.
struct ShownCommand {
    private(set) var words: [String] = []
    /// What is not shown, each piece alone, and of `user:password` also the password. A program may print one of them
    /// without the rest of its arguments.
    private(set) var secrets: [String] = []
    /// How many shells read the text before the program gets it: each takes quotes and backslashes off.
    private var shells = 0

    /// Options of curl, wget and their like, without the dashes before them.
    private static let userOptions: Set<Substring> = ["u", "user", "U", "proxy-user"]
    private static let headerOptions: Set<Substring> = ["H", "header"]
    private static let passwordOptions: Set<Substring> = ["pass", "passphrase"]
    /// Programs whose option `-u` is no `user:password`: an argument with a colon is a path or a number.
    private static let otherPrograms: Set<Substring> = [
        "cp", "date", "diff", "docker", "mv", "podman", "rsync", "runuser", "setpriv", "sort", "sudo",
    ]
    private static let mask = "***"
    /// Further lines within lines are taken as words.
    private static let mostShells = 8

    init(_ words: [String]) {
        self.words = shown(words)
        // One that was found may also be where nothing tells that it is one.
        let known = secrets.filter { $0.utf8.count >= KnownSecrets.minLength }.sorted { $0.utf8.count > $1.utf8.count }
        self.words = self.words.map { word in known.reduce(word) { $0.replacing($1, with: Self.mask) } }
    }

    private mutating func shown(_ words: [String]) -> [String] {
        // Before the program a shell takes variables.
        let program = words.first { !$0.isEmpty && !$0.contains("=") }.map { $0.split(separator: "/").last ?? "" } ?? ""
        var option: Substring?
        var shown: [String] = []
        for word in words {
            let bare = word.drop { $0 == "-" }
            // Only joined: after a blank follows the name of a database.
            if word.hasPrefix("-p"), word.count > 2, ["mysql", "mariadb"].contains(where: program.hasPrefix) {
                remember(word.dropFirst(2))
                shown.append("-p" + Self.mask)
                continue
            }
            if bare.startIndex != word.startIndex {
                shown.append(word[..<bare.startIndex] + self.shown(option: bare, of: program))
                // Of joined letters the last one may have an argument.
                let isJoined = program == "curl" && bare.count > 1 && !word.hasPrefix("--")
                option = isJoined ? bare.suffix(1) : bare
                continue
            }
            if let option, hides(bare, after: option, of: program) {
                shown.append(Self.mask)
            } else {
                shown.append(masked(self.shown(word: word)))
            }
            option = nil
        }
        return shown
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

    /// Whether the argument of an option may be a password: by the option's name, or `user:password`, or a header. Then
    /// it is one of the secrets.
    private mutating func hides(_ value: Substring, after option: Substring, of program: Substring) -> Bool {
        if Self.headerOptions.contains(option) && value.contains(":") {
            remember(header: value)
            return true
        }
        let isUser = Self.userOptions.contains(option) && !Self.otherPrograms.contains(program)
        if isUser && value.contains(":") || Self.passwordOptions.contains(option) || isSecretName(String(option))
            || program == "sshpass" && option == "p"
        {
            remember(value)
            return true
        }
        // `DOMAIN\user%password` of Samba's programs.
        if isUser, program.hasPrefix("smb"), let mark = value.firstIndex(of: "%") {
            remember(value[mark...].dropFirst())
            return true
        }
        return false
    }

    /// `user=me:secret`, and `ume:secret` for `u`.
    private mutating func shown(option text: Substring, of program: Substring) -> String {
        if let mark = text.firstIndex(of: "="),
            hides(text[text.index(after: mark)...], after: text[..<mark], of: program)
        {
            return text[...mark] + Self.mask
        }
        let letter = text.prefix(1)
        if !text.contains("="), text.count > 1, hides(text.dropFirst(), after: letter, of: program) {
            return letter + Self.mask
        }
        return masked(shown(word: String(text)))
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
        let piece = unquoted(piece)
        if piece == Self.mask { return }
        secrets.append(piece)
        if let colon = piece.firstIndex(of: ":") { secrets.append(String(piece[colon...].dropFirst())) }
    }

    /// `Authorization: Basic abc`. Of other headers, as `Accept: text/plain`, the value alone is a word of any message.
    private mutating func remember(header: Substring) {
        let header = unquoted(header)
        secrets.append(header)
        guard let colon = header.firstIndex(of: ":"), isSecretName(String(header[..<colon])) else { return }
        let value = String(header[colon...].dropFirst().drop { $0 == " " })
        secrets += SecretParts.of(value, isCookie: KnownSecrets.isCookie(header: String(header[..<colon])))
    }

    /// As the program gets it.
    private func unquoted(_ text: Substring) -> String {
        String(shells > 0 ? text.filter { $0 != "'" && $0 != "\"" && $0 != "\\" }[...] : text)
    }
}
