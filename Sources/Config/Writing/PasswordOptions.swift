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

    private struct Program {
        /// Options whose argument is a password, without the dashes before them.
        var passwords: Set<Substring> = []
        /// Whether `-pWORD` has one: after a blank follows something else.
        var joinsPassword = false
        /// What is between the name and the password in the argument of `-u`; `nil`: it has no password there.
        var divider: Character? = ":"
        var isClient = false
        /// Whether no other program follows: further words that are names of programs are none.
        var isLast = true
    }

    /// By name, or how the names begin (`*`).
    private static let programs: [(names: [Substring], program: Program)] = [
        (["curl", "wget"], Program(isClient: true)),
        (["http", "https", "xh"], Program(passwords: ["a"], isClient: true)),
        // `-u` is something else, and an argument with a colon is a path.
        (
            [
                "cp", "date", "diff", "git", "journalctl", "mv", "rclone", "rsync", "scp", "sftp", "socat", "sort",
                "ssh",
            ], Program(divider: nil, isLast: false)
        ),
        (["mysql*", "mariadb*", "7z*"], Program(joinsPassword: true)),
        (["sshpass"], Program(passwords: ["p"], isLast: false)),
        (["smb*", "rpcclient", "net"], Program(divider: "%")),
        (["lftp"], Program(divider: ",")),
        (["mosquitto*", "ipmitool", "zip", "unzip"], Program(passwords: ["P"])),
        (["redis-cli"], Program(passwords: ["a"])),
        (["ldap*"], Program(passwords: ["w"])),
        (["snmp*"], Program(passwords: ["A", "X", "c"])),
        // Of `docker login`.
        (["login"], Program(passwords: ["p"], isLast: false)),
    ]

    /// Options with `user:password`.
    private static let userOptions: Set<Substring> = ["u", "user", "U", "proxy-user"]
    private static let headerOptions: Set<Substring> = ["H", "header"]
    private static let passwordOptions: Set<Substring> = ["bearer", "oauth2-bearer", "pass", "passphrase", "pw"]
    /// Options of curl that take no argument may stand before one that does, with one dash for all.
    private static let flagsOfCurl: Set<Character> = Set("0123456#BGIJLNOORSafgijklnpqsvZ")

    private var program: Program?

    /// Takes the next word of the command into account: before a program may be others, which start it (`sudo`, `env`,
    /// `timeout 20`, `docker run`).
    mutating func pass(_ word: Substring) {
        if program?.isLast == true { return }
        let name = (word.split(separator: "/").last ?? "").prefix { $0 != ":" }
        func isOne(_ known: Substring) -> Bool {
            known.last == "*" ? name.hasPrefix(known.dropLast()) : name == known
        }
        if let known = Self.programs.first(where: { $0.names.contains(where: isOne) }) { program = known.program }
    }

    /// - Parameter option: Without the dashes before it.
    /// - Returns: `nil` where its argument is no password.
    func secret(in value: Substring, of option: Substring) -> Secret? {
        if Self.headerOptions.contains(option), let colon = value.firstIndex(of: ":") {
            // An address, as of `docker -H`.
            return value[colon...].hasPrefix("://") ? nil : .header
        }
        let program = program ?? Program()
        // The number of a pass, as of ffmpeg.
        if option == "pass", value.count == 1 { return nil }
        if Self.passwordOptions.contains(option) || program.passwords.contains(option) || Self.isSecret(option: option)
        {
            return .whole
        }
        // OpenSSL's programs, `-passin pass:word`.
        if value.hasPrefix("pass:"), !value.contains(where: \.isWhitespace) { return .after(":") }
        if program.isClient, ["E", "cert"].contains(option), value.contains(":") { return .after(":") }
        if program.isClient, option == "b", value.contains("=") { return .whole }
        guard Self.userOptions.contains(option), let divider = program.divider, value.contains(divider) else {
            return nil
        }
        if divider != ":" { return .after(divider) }
        return program.isClient || !isOther(value) ? .whole : nil
    }

    /// Whether a value with a colon is rather a user and a group, or a path.
    private func isOther(_ value: Substring) -> Bool {
        let halves = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let isNumbers = value.allSatisfy { $0.isASCII && ($0.isNumber || $0 == ":") }
        return isNumbers || halves[0] == halves[1] || halves[1].hasPrefix("/")
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
        if program?.joinsPassword == true, word.hasPrefix("p"), word.count > 1 {
            return (word.index(after: word.startIndex), .whole)
        }
        let letters = program?.isClient == true ? word.drop { Self.flagsOfCurl.contains($0) } : word
        let value = letters.dropFirst()
        guard !value.isEmpty, let secret = secret(in: value, of: letters.prefix(1)) else { return nil }
        return (value.startIndex, secret)
    }

    /// The option whose argument is the next word.
    func option(of word: Substring, isLong: Bool) -> Substring {
        // Of joined letters the last one may have an argument.
        program?.isClient == true && !isLong ? word.suffix(1) : word
    }

    private static func isSecret(option: Substring) -> Bool {
        // `--no-password` and `--ask-password` have none.
        isSecretName(String(option)) && !["no-", "ask-", "prompt-"].contains(where: option.hasPrefix)
    }
}
