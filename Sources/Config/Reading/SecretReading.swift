internal import Core

/// The forms of a secret in the file: each is a key, and exactly one is set.
enum SecretForm: String, CaseIterable {
    case file, env, credential, command, literal

    /// Whether its value only says where the secret is.
    var isReference: Bool { self == .file || self == .env || self == .credential }
}

/// Reads where secrets are stored. The secrets themselves are not read, except `literal`.
struct SecretReading {
    let findings: ProblemCollector
    let disk: Disk
    let environment: @Sendable (String) -> String?

    private static let forms =
        "`{file: /etc/sluice/token}`, `{env: NAME}`, `{credential: NAME}` or `{command: [PROGRAM, ARGUMENT]}`"

    func secret(_ node: Node, key: String) -> SecretSource? {
        guard case .mapping = node.content else {
            findings.error(
                "takes a secret as \(Self.forms); a secret in this file itself must be written as `{literal: …}`",
                at: node.start, key: key)
            return nil
        }
        let fields = MappingReader(node, .secret, path: key, start: node.start, findings: findings)
        let set = SecretForm.allCases.filter { fields.has($0.rawValue) }
        guard set.count == 1 else {
            // An unknown key was reported already.
            if set.count > 1 || node.weight == 1 {
                findings.error("takes exactly one of \(Self.forms)", at: node.start, key: key)
            }
            return nil
        }
        if set[0] != .command {
            for key in ["network", "ports", "hosts"] where fields.has(key) { fields.error("is for a `command`", key) }
        }
        let key = set[0].rawValue
        return switch set[0] {
        case .file: file(fields, key)
        case .env: variable(fields, key)
        case .credential: credential(fields, key)
        case .command: command(fields, key)
        case .literal: literal(fields, key)
        }
    }

    /// The values of a map are texts, or secrets in their own form.
    ///
    /// - Parameter mayBeEmpty: `""` is allowed too, as for a form's field.
    func value(_ node: Node, key: String, name: String, mayBeEmpty: Bool = false, mayBeObject: Bool = false)
        -> SecretSource?
    {
        if case .mapping(let entries) = node.content {
            if mayBeObject, entries.count == 1, let only = entries.first, only.key == "json" {
                return object(only.value, key: "\(key).json")
            }
            return secret(node, key: key)
        }
        if mayBeEmpty, case .scalar("", isPlain: false) = node.content { return .literal("") }
        guard let text = findings.read(node, path: key, as: .text("a text, or a secret as \(Self.forms)")) else {
            return nil
        }
        let word = name.lowercased()
        // A name of a placeholder contains no secret itself.
        if !text.contains("{"), ["auth", "token", "cookie", "secret", "password"].contains(where: word.contains) {
            findings.warning("looks like a secret; keep it out of this file: \(Self.forms)", at: node.start, key: key)
        }
        return .literal(text)
    }

    private func object(_ node: Node, key: String) -> SecretSource? {
        if case .mapping(let entries) = node.content, entries.isEmpty {
            findings.error(
                "is empty; name its fields, like `{name: \"{name}\"}`", at: node.start, key: key)
            return nil
        }
        var object: [String: SecretSource] = [:]
        for entry in findings.entries(of: node, path: key) {
            let path = findings.path(of: entry, in: key)
            guard findings.read(Node(key: entry.key, at: entry.place), path: path, as: .fieldName) != nil else {
                continue
            }
            object[entry.key] = value(entry.value, key: path, name: entry.key, mayBeEmpty: true, mayBeObject: true)
        }
        return .json(object)
    }

    private func file(_ fields: MappingReader, _ key: String) -> SecretSource? {
        guard let path = fields.read(key, as: .path) else { return nil }
        if let trouble = disk.troubleReading(path.value) {
            fields.error(trouble, key)
            return nil
        }
        if let mode = disk.openMode(path.value, to: .others) {
            fields.warning(
                "every user of this machine can read `\(path.value.display)` (mode \(mode)); chmod it to 0600 or 0640",
                key)
        }
        return .file(path.value)
    }

    private func variable(_ fields: MappingReader, _ key: String) -> SecretSource? {
        guard let name = fields.read(key, as: .text("the name of an environment variable")) else { return nil }
        guard !name.value.contains("="), !name.value.hasPrefix("$") else {
            fields.error("takes the bare name of an environment variable, without `$` and `=`", key)
            return nil
        }
        if disk.checks == .checked, (environment(name.value) ?? "").isEmpty {
            fields.warning("the environment variable `\(name.value)` is not set here; the daemon will need it", key)
        }
        return .environment(name.value)
    }

    private func credential(_ fields: MappingReader, _ key: String) -> SecretSource? {
        guard let name = fields.read(key, as: .name) else { return nil }
        guard disk.checks == .checked else { return .credential(name.value) }
        guard let folder = environment("CREDENTIALS_DIRECTORY"), folder.hasPrefix("/") else {
            fields.warning(
                "cannot be checked here, because `$CREDENTIALS_DIRECTORY` is not set; the daemon's unit needs "
                    + "`LoadCredential=\(name.value):…`", key)
            return .credential(name.value)
        }
        if let trouble = disk.troubleReading(FilePath(folder).appending(FilePath(name.value))) {
            fields.error(trouble + "; the unit needs `LoadCredential=\(name.value):…`", key)
            return nil
        }
        return .credential(name.value)
    }

    private func command(_ fields: MappingReader, _ key: String) -> SecretSource? {
        guard let words = fields.list(key, as: .text), let program = words.first else {
            if case .list = fields.node(key)?.content {
                fields.error("takes a program and its arguments, like `[/usr/bin/pass, show, nas]`", key)
            }
            return nil
        }
        guard program.value.hasPrefix("/") else {
            fields.error("takes the program by its absolute path; no shell looks for it", key, at: program.place)
            return nil
        }
        if let trouble = disk.troubleRunning(FilePath(program.value)) {
            fields.error(trouble, key, at: program.place)
            return nil
        }
        let servers = ProgramServers(reading: fields)
        if servers != nil, !fields.path(of: key).hasPrefix("destinations.") {
            fields.error("is for secrets of destinations, whose rules then apply to the command", "network")
        }
        return .command(words.map(\.value), servers: servers)
    }

    private func literal(_ fields: MappingReader, _ key: String) -> SecretSource? {
        guard case .scalar(let text, _)? = fields.node(key)?.content, !text.isEmpty else {
            fields.error("takes the secret itself, as one text", key)
            return nil
        }
        let file = findings.sources[fields.start.file].file
        if let mode = disk.openMode(ofConfiguration: file) {
            fields.error(
                "a secret is in a file that others can read (mode \(mode)); keep it elsewhere: \(Self.forms), "
                    + "or chmod 0600 `\(file.display)`", key)
            return nil
        }
        fields.warning("a secret is in the configuration; keep it elsewhere: \(Self.forms)", key)
        return .literal(text)
    }
}
