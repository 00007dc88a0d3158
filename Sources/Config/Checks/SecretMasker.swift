internal import Core

/// Finds the secrets in a file and covers them, before any message can show their lines or repeat their texts.
struct SecretMasker {
    /// By type of destination, the kinds of its keys by full name.
    private let kinds: [String: [String: SettingKey.Kind]]
    /// The same for all types together. Where a type takes a secret under a name, every one may.
    private let anyKind: [String: SettingKey.Kind]
    /// Names of keys that take a secret, in lower case, for those that are in a wrong place.
    private let names: Set<String>

    init(types: [DestinationSchema]) {
        var kinds: [String: [String: SettingKey.Kind]] = [:]
        var anyKind: [String: SettingKey.Kind] = [:]
        var names: Set<String> = ["token", "password", "secret", "authorization"]
        for type in types {
            for key in type.keys.flatMap(\.flat) {
                kinds[type.name, default: [:]][key.name] = key.kind
                if anyKind[key.name]?.takesSecret != true { anyKind[key.name] = key.kind }
                if key.kind == .secret { names.insert(Self.lastWord(key.name)) }
            }
        }
        for key in Section.destination.keys { anyKind[key] = .text }
        self.kinds = kinds
        self.anyKind = anyKind
        self.names = names.subtracting(SecretForm.allCases.map(\.rawValue))
    }

    private static func lastWord(_ name: String) -> String { String(name.split(separator: ".").last ?? "") }

    /// Texts after whose `:` a secret may follow, for a file that did not parse.
    var words: [String] {
        Set(anyKind.filter { $0.value.takesSecret }.map { Self.lastWord($0.key) }).union(names).sorted()
            + SecretForm.allCases.filter { !$0.isReference }.map(\.rawValue) + ["auth:", "user:", "proxy:"]
    }

    func cover(_ root: Node, in source: inout SourceText) {
        coverEverywhere(root, byName: true, in: &source)
        for entry in root.entries {
            switch entry.key {
            case "destinations": cover(destinations: entry.value, in: &source)
            case "control": for item in entry.value.items { cover(item, as: .control, in: &source) }
            case "hooks": for item in entry.value.items { cover(item, as: .hook, in: &source) }
            default: break
            }
        }
    }

    /// Covers values that may be secrets under any key: a `literal`, an address with a password or with a secret
    /// parameter, the arguments of a command.
    ///
    /// - Parameter byName: Also under a key whose name is that of a secret. The keys of destinations have their kinds.
    private func coverEverywhere(_ node: Node, byName: Bool, in source: inout SourceText) {
        switch node.content {
        case .scalar(let text, _):
            // A parameter that appears unchanged in the line is covered when the line is shown, and the rest of the
            // line stays visible.
            let isCoded = withoutAddressSecrets(text) != text && !source.shows(text, at: node.start)
            if isCoded || text.contains("://") && text.contains("@") { source.cover(from: node.start, to: node.end) }
        case .list(let items): for item in items { coverEverywhere(item, byName: byName, in: &source) }
        case .mapping(let entries):
            for entry in entries {
                let form = SecretForm(rawValue: entry.key)
                if form == .literal {
                    source.cover(from: entry.value.start, to: entry.value.end)
                } else if form == .command, case .list(let words) = entry.value.content {
                    // A password may be among the program's arguments.
                    for word in words.dropFirst() { coverAll(word, in: &source) }
                } else if form == .command, let text = entry.value.scalar, text.contains(where: \.isWhitespace) {
                    // A command line, which is a mistake.
                    source.cover(from: entry.value.start, to: entry.value.end)
                } else if byName, names.contains(entry.key.lowercased()) {
                    coverSecret(entry.value, in: &source)
                } else if entry.key == "proxy", let text = entry.value.scalar,
                    text.contains(where: { "@?#".contains($0) })
                {
                    // It has only a host and a port: the rest is a mistake, and may be a password.
                    source.cover(from: entry.value.start, to: entry.value.end)
                } else {
                    coverEverywhere(entry.value, byName: byName && entry.key != "destinations", in: &source)
                }
            }
        }
    }

    // MARK: Sections

    private func cover(destinations: Node, in source: inout SourceText) {
        // A list is a mistake, and so are the keys of a destination without its name.
        if case .list(let items) = destinations.content {
            for item in items { cover(destination: item, in: &source) }
        }
        for entry in destinations.entries {
            if case .mapping = entry.value.content {
                cover(destination: entry.value, in: &source)
            } else if names.contains(entry.key.lowercased()) {
                coverAll(entry.value, in: &source)
            }
        }
    }

    private func cover(destination: Node, in source: inout SourceText) {
        let type = destination.entries.last { $0.key == "type" }?.value.scalar
        // With an unknown type or key any value may be a secret.
        let known = type.flatMap { kinds[$0] } ?? anyKind
        for entry in destination.entries where !Section.destination.keys.contains(entry.key) {
            cover(entry, as: entry.key, known, in: &source)
        }
    }

    /// - Parameters:
    ///   - name: The full name of the key.
    ///   - known: The kinds of keys by their full names.
    private func cover(
        _ entry: Node.Entry, as name: String, _ known: [String: SettingKey.Kind], in source: inout SourceText
    ) {
        if let kind = known[name] {
            cover(entry.value, of: kind, as: name, in: &source)
        } else if case .mapping(let entries) = entry.value.content,
            known.keys.contains(where: { $0.hasPrefix(name + ".") })
        {
            for inner in entries { cover(inner, as: "\(name).\(inner.key)", known, in: &source) }
        } else {
            coverUnknown(entry, in: &source)
        }
    }

    private func cover(_ value: Node, of kind: SettingKey.Kind, as name: String, in source: inout SourceText) {
        switch kind {
        case .secret: coverSecret(value, in: &source)
        case .map, .fields: coverMap(value, names: .fieldName, in: &source)
        case .headers: coverMap(value, names: .headerName, in: &source)
        case .secrets: coverMap(value, names: .name, in: &source)
        default: if Self.mayHaveSecret(value, of: kind, as: name) { coverAll(value, in: &source) }
        }
    }

    /// Whether a value beside secrets has one by mistake: `auth: bearer TOKEN`, `user: NAME:PASSWORD`.
    private static func mayHaveSecret(_ value: Node, of kind: SettingKey.Kind, as name: String) -> Bool {
        switch (name, kind) {
        case ("http.auth", .choice(let words)):
            guard let text = value.scalar else { return true }
            return !words.contains(text) && nearest(to: text, among: words) == nil
        case ("http.user", _), ("http.proxy_user", _): return value.scalar?.contains(":") ?? true
        default: return false
        }
    }

    /// `control`, or a hook.
    private func cover(_ node: Node, as section: Section, in source: inout SourceText) {
        for entry in node.entries {
            switch entry.key {
            case "token", "secret": coverSecret(entry.value, in: &source)
            case "headers": coverMap(entry.value, names: .headerName, in: &source)
            default:
                let isKnown = section.keys.contains(entry.key) || section.futureKeys.contains(entry.key)
                if !isKnown, section.elsewhere[entry.key] == nil { coverUnknown(entry, in: &source) }
            }
        }
    }

    // MARK: Values

    /// Covers the value of a key that takes a secret, and keys in it that may be parts of a secret without quotes.
    private func coverSecret(_ node: Node, in source: inout SourceText) {
        guard case .mapping(let entries) = node.content else { return coverAll(node, in: &source) }
        let known = Section.secret.keys
        for entry in entries {
            let form = SecretForm(rawValue: entry.key)
            let isKnown = known.contains(entry.key)
            if !isKnown, Self.isText(entry, source) || nearest(to: entry.key, among: known) == nil {
                source.cover(from: entry.place, to: entry.end)
            }
            // `network` and its like say where a command may connect.
            if form?.isReference == true || isKnown && form == nil { continue }
            coverAll(entry.value, in: &source)
        }
    }

    /// Covers the values of a map, and keys that are no names.
    private func coverMap(_ node: Node, names: Reader<String>, in source: inout SourceText) {
        guard case .mapping(let entries) = node.content else { return coverAll(node, in: &source) }
        for entry in entries {
            let isName = (try? names.read(entry.key)) != nil
            if !isName || Self.isText(entry, source) { source.cover(from: entry.place, to: entry.end) }
            if case .mapping(let inner) = entry.value.content, inner.count == 1, let object = inner.first,
                object.key == "json"
            {
                coverMap(object.value, names: .fieldName, in: &source)
            } else {
                coverSecret(entry.value, in: &source)
            }
        }
    }

    private func coverUnknown(_ entry: Node.Entry, in source: inout SourceText) {
        if Self.isText(entry, source) { source.cover(from: entry.place, to: entry.end) }
        coverAll(entry.value, in: &source)
    }

    private func coverAll(_ node: Node, in source: inout SourceText) {
        switch node.content {
        case .scalar: source.cover(from: node.start, to: node.end)
        case .list(let items): for item in items { coverAll(item, in: &source) }
        case .mapping(let entries):
            for entry in entries where SecretForm(rawValue: entry.key)?.isReference != true {
                coverUnknown(entry, in: &source)
            }
        }
    }

    /// Whether a key is a text at the place of one, as in `{literal:TEXT}` and `{token TEXT}`.
    private static func isText(_ entry: Node.Entry, _ source: SourceText) -> Bool {
        if entry.key.contains(where: { $0.isWhitespace || $0 == ":" }) { return true }
        guard case .scalar("", isPlain: true) = entry.value.content else { return false }
        return source.scalar(atLine: entry.end.line, column: entry.end.column) != ":"
    }
}

extension SettingKey.Kind {
    /// Whether a value may contain a secret.
    fileprivate var takesSecret: Bool {
        switch self {
        case .secret, .map, .headers, .fields, .secrets: true
        default: false
        }
    }
}

extension Node {
    /// The entries of a mapping; empty for any other node.
    var entries: [Entry] { if case .mapping(let entries) = content { entries } else { [] } }

    /// The items of a list; any other node by itself.
    fileprivate var items: [Node] { if case .list(let items) = content { items } else { [self] } }
}
