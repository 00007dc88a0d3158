internal import Core

/// Finds the secrets in a file and covers them, before any message can show their lines.
struct SecretMasker {
    /// By full names of keys.
    private let kinds: [String: [String: Bool]]
    private let anyKind: [String: Bool]

    init(types: [DestinationSchema]) {
        var kinds: [String: [String: Bool]] = [:]
        var anyKind: [String: Bool] = [:]
        for type in types {
            for key in type.keys.flatMap(\.flat) {
                kinds[type.name, default: [:]][key.name] = key.isSecret
                anyKind[key.name] = (anyKind[key.name] ?? false) || key.isSecret
            }
        }
        for key in Section.destination.keys { anyKind[key] = false }
        self.kinds = kinds
        self.anyKind = anyKind
    }

    /// Keys after whose `:` a secret may follow, for a file that did not parse.
    var words: [String] {
        Set(anyKind.filter(\.value).map { String($0.key.split(separator: ".").last ?? "") }).sorted()
            + SecretForm.allCases.filter { !$0.isReference }.map(\.rawValue) + [
                "token", "password", "secret", "authorization",
            ]
    }

    func cover(_ root: Node, in source: inout SourceText) {
        coverEverywhere(root, in: &source)
        for entry in root.entries where entry.key == "destinations" {
            for destination in entry.value.entries { cover(destination: destination.value, in: &source) }
        }
    }

    /// Covers values that may be secrets under any key: a `literal`, an address with a password or with a secret
    /// parameter, the arguments of a command.
    private func coverEverywhere(_ node: Node, in source: inout SourceText) {
        switch node.content {
        case .scalar(let text, _):
            // A parameter that appears unchanged in the line is covered when the line is shown, and the rest of the
            // line stays visible.
            let isCoded = redacted(text) != text && !source.shows(text, at: node.start)
            if isCoded || text.contains("://") && text.contains("@") { source.cover(from: node.start, to: node.end) }
        case .list(let items): for item in items { coverEverywhere(item, in: &source) }
        case .mapping(let entries):
            for entry in entries {
                let form = SecretForm(rawValue: entry.key)
                if form == .literal {
                    source.cover(from: entry.value.start, to: entry.value.end)
                } else if form == .command, case .list(let words) = entry.value.content {
                    // A password may be among the program's arguments.
                    for word in words.dropFirst() { coverValues(of: word, in: &source) }
                } else {
                    coverEverywhere(entry.value, in: &source)
                }
            }
        }
    }

    private func cover(destination: Node, in source: inout SourceText) {
        var type: String?
        for entry in destination.entries where entry.key == "type" {
            if case .scalar(let text, _) = entry.value.content { type = text }
        }
        // With an unknown type or key any value may be a secret.
        let known = type.flatMap { kinds[$0] } ?? anyKind
        for entry in destination.entries where !Section.destination.keys.contains(entry.key) {
            cover(entry, as: entry.key, known, in: &source)
        }
    }

    /// - Parameters:
    ///   - name: The full name of the key.
    ///   - known: Whether a value with such a name may contain a secret.
    private func cover(_ entry: Node.Entry, as name: String, _ known: [String: Bool], in source: inout SourceText) {
        if let isSecret = known[name] {
            if isSecret { coverValues(of: entry.value, in: &source) }
        } else if case .mapping(let entries) = entry.value.content,
            known.keys.contains(where: { $0.hasPrefix(name + ".") })
        {
            for inner in entries { cover(inner, as: "\(name).\(inner.key)", known, in: &source) }
        } else {
            coverValues(of: entry.value, in: &source)
        }
    }

    private func coverValues(of node: Node, in source: inout SourceText) {
        switch node.content {
        case .scalar: source.cover(from: node.start, to: node.end)
        case .list(let items): for item in items { coverValues(of: item, in: &source) }
        case .mapping(let entries):
            for entry in entries where SecretForm(rawValue: entry.key)?.isReference != true {
                coverValues(of: entry.value, in: &source)
            }
        }
    }
}

extension SettingKey {
    /// Whether its value may contain a secret.
    fileprivate var isSecret: Bool {
        switch kind {
        case .secret, .map, .headers, .fields, .secrets: true
        default: false
        }
    }
}

extension Node {
    /// The entries of a mapping; empty for any other node.
    var entries: [Entry] { if case .mapping(let entries) = content { entries } else { [] } }
}
