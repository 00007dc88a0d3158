internal import Core

/// Finds the secrets in a file and covers them, before any message can show the line that they stand in.
struct Covering {
    private let kinds: [String: [String: Bool]]
    private let anyKind: [String: Bool]

    init(types: [DestinationType]) {
        var kinds: [String: [String: Bool]] = [:]
        var anyKind: [String: Bool] = [:]
        for type in types {
            for key in type.keys {
                let isSecret =
                    switch key.kind {
                    case .secret, .map: true;
                    default: false
                    }
                kinds[type.name, default: [:]][key.name] = isSecret
                anyKind[key.name] = (anyKind[key.name] ?? false) || isSecret
            }
        }
        for key in Section.destination.keys { anyKind[key] = false }
        self.kinds = kinds
        self.anyKind = anyKind
    }

    /// Words after whose `:` a secret may stand, for a file that did not parse.
    var words: [String] {
        anyKind.filter(\.value).map(\.key).sorted() + [
            "literal", "command", "token", "password", "secret", "authorization",
        ]
    }

    func cover(_ root: Node, in source: inout SourceText) {
        coverEverywhere(root, in: &source)
        for entry in root.entries where entry.key == "destinations" {
            for destination in entry.value.entries { cover(destination: destination.value, in: &source) }
        }
    }

    /// What may be a secret wherever it stands: a `literal`, an address with a password, the arguments of a command.
    private func coverEverywhere(_ node: Node, in source: inout SourceText) {
        switch node.content {
        case .scalar(let text, _):
            if text.contains("://") && text.contains("@") { source.cover(from: node.start, to: node.end) }
        case .list(let items): for item in items { coverEverywhere(item, in: &source) }
        case .mapping(let entries):
            for entry in entries {
                if entry.key == "literal" {
                    source.cover(from: entry.value.start, to: entry.value.end)
                } else if entry.key == "command", case .list(let words) = entry.value.content {
                    // A password may be among what the program is told.
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
        // With an unknown type or key nobody can say what is a secret, so everything might be.
        let known = type.flatMap { kinds[$0] } ?? anyKind
        for entry in destination.entries
        where !Section.destination.keys.contains(entry.key) && known[entry.key] ?? true {
            coverValues(of: entry.value, in: &source)
        }
    }

    private func coverValues(of node: Node, in source: inout SourceText) {
        switch node.content {
        case .scalar: source.cover(from: node.start, to: node.end)
        case .list(let items): for item in items { coverValues(of: item, in: &source) }
        case .mapping(let entries):
            for entry in entries where !["file", "env", "credential"].contains(entry.key) {
                coverValues(of: entry.value, in: &source)
            }
        }
    }
}

extension Node {
    /// The entries of a mapping; none of anything else.
    var entries: [Entry] { if case .mapping(let entries) = content { entries } else { [] } }
}
