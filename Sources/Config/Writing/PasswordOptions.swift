internal import Core

/// Which arguments of a program may be passwords, from what is known of common programs. Of others, each argument that
/// looks like one may be.
struct PasswordOptions {
    /// The part of an argument that is secret.
    enum Secret {
        case whole
        /// As `Authorization: Basic abc`.
        case header
        /// What follows this.
        case after(Character)
    }

    private enum Kind {
        case client, copier, mysql, sshpass, samba, lftp, mosquitto
    }

    private static let clients: Set<Substring> = ["curl", "http", "https", "wget", "xh"]
    /// Programs that take no password in their arguments. `-u` is something else, and an argument with a colon a path.
    private static let copiers: Set<Substring> = [
        "cp", "date", "diff", "mv", "rclone", "rsync", "scp", "sftp", "sort", "ssh",
    ]

    /// Options with `user:password`, without the dashes before them.
    private static let userOptions: Set<Substring> = ["u", "user", "U", "proxy-user"]
    private static let headerOptions: Set<Substring> = ["H", "header"]
    private static let passwordOptions: Set<Substring> = ["pass", "passphrase"]
    /// Options of curl that take no argument may stand before one that does, with one dash for all.
    private static let flagsOfCurl: Set<Character> = Set("0123456#BGIJLNOORSafgijklnpqsvZ")

    private var kind: Kind?

    /// Takes the next word of the command into account: before a program may be others, which start it (`sudo`, `env`,
    /// `timeout 20`, `docker run`).
    mutating func pass(_ word: Substring) {
        // A client stays: a word behind it may be the name of a file.
        if kind == .client { return }
        let name = (word.split(separator: "/").last ?? "").prefix { $0 != ":" }
        if Self.clients.contains(name) {
            kind = .client
        } else if Self.copiers.contains(name) {
            kind = .copier
        } else if ["mysql", "mariadb"].contains(where: name.hasPrefix) {
            kind = .mysql
        } else if name == "sshpass" {
            kind = .sshpass
        } else if name.hasPrefix("smb") {
            kind = .samba
        } else if name == "lftp" {
            kind = .lftp
        } else if name.hasPrefix("mosquitto") {
            kind = .mosquitto
        }
    }

    /// - Parameter option: Without the dashes before it.
    /// - Returns: `nil` where its argument is no password.
    func secret(in value: Substring, of option: Substring) -> Secret? {
        if Self.headerOptions.contains(option), let colon = value.firstIndex(of: ":") {
            // An address, as of `docker -H`.
            return value[colon...].hasPrefix("://") ? nil : .header
        }
        if Self.passwordOptions.contains(option) || Self.isSecret(option: option) { return .whole }
        // OpenSSL's programs, `-passin pass:word`.
        if value.hasPrefix("pass:") { return .after(":") }
        switch kind {
        case .sshpass where option == "p", .mosquitto where option == "P": return .whole
        case .samba where Self.userOptions.contains(option) && value.contains("%"): return .after("%")
        case .lftp where Self.userOptions.contains(option) && value.contains(","): return .after(",")
        case .copier: return nil
        default: break
        }
        guard Self.userOptions.contains(option), value.contains(":") else { return nil }
        // The numbers of a user and a group.
        let isNumbers = value.allSatisfy { $0.isASCII && ($0.isNumber || $0 == ":") }
        return isNumbers && kind != .client ? nil : .whole
    }

    /// An option and its argument in one word, without the dashes: `user=me:word`, `ume:word`, `sSume:word`, `pword`.
    ///
    /// - Parameter isLong: Whether two dashes are before it.
    /// - Returns: Where the argument begins, and what of it is secret.
    func joined(_ word: Substring, isLong: Bool) -> (start: Substring.Index, secret: Secret)? {
        if let mark = word.firstIndex(of: "=") {
            let start = word.index(after: mark)
            if let secret = secret(in: word[start...], of: word[..<mark]) { return (start, secret) }
        }
        if isLong { return nil }
        // Only joined: after a blank follows the name of a database.
        if kind == .mysql, word.hasPrefix("p"), word.count > 1 { return (word.index(after: word.startIndex), .whole) }
        let letters = kind == .client ? word.drop { Self.flagsOfCurl.contains($0) } : word
        let value = letters.dropFirst()
        guard !value.isEmpty, let secret = secret(in: value, of: letters.prefix(1)) else { return nil }
        return (value.startIndex, secret)
    }

    /// The option whose argument is the next word.
    func option(of word: Substring, isLong: Bool) -> Substring {
        // Of joined letters the last one may have an argument.
        kind == .client && !isLong ? word.suffix(1) : word
    }

    private static func isSecret(option: Substring) -> Bool {
        // `--no-password` and `--ask-password` have none.
        isSecretName(String(option)) && !["no-", "ask-", "prompt-"].contains(where: option.hasPrefix)
    }
}
