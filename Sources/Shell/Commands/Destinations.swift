package import Core
internal import Destinations

extension Verb {
    static let destinations: Verb = Verb(
        "destinations", "list the kinds of destination, their presets and their keys", operands: "[KIND]",
        takes: .words(DestinationTable.builtIn.map(\.type.name)), count: 0...1,
        details: [
            "Without KIND, prints one line for each kind. With KIND, the word after `type:` in the configuration, "
                + "prints its presets, and its keys with their values. Policy rules such as `concurrency`, `windows` "
                + "and `quotas` are keys of each kind too."
        ],
        options: [.json],
        examples: [
            ("sluice destinations", "Lists all kinds."),
            ("sluice destinations vimeo", "Lists the presets and keys of one kind."),
        ]
    ) { call in
        let kinds = DestinationTable.builtIn.map(\.type)
        guard let word = call.arguments.operands.first?.lossyText else {
            if call.json {
                try call.printJSON(kinds.map { TypeView($0) })
            } else {
                try call.console.line(twoColumns(kinds.map { ($0.name, $0.summary) }, call.console.width))
            }
            return .ok
        }
        guard let type = kinds.first(where: { $0.name == word }) else {
            throw CommandError(
                .notFound, "no kind of destination is called `\(printable(word))`",
                remedy: "There are: \(kinds.map(\.name).joined(separator: ", ")).")
        }
        if call.json {
            try call.printJSON(TypeView(type))
            return .ok
        }
        try call.console.line("\(type.name): \(type.summary)")
        for (title, rows) in [
            ("Presets", type.presets.map { ($0.name, $0.summary) }),
            ("Keys", type.keys.flatMap(\.flat).map { ($0.name, $0.summaryText) }),
        ] where !rows.isEmpty {
            try call.console.line("")
            try call.console.line(call.console.styled("\(title):", .bold))
            try call.console.line(twoColumns(rows, call.console.width))
        }
        return .ok
    }
}

private struct TypeView: Encodable {
    struct Key: Encodable {
        let name, takes, summary: String
        let required: Bool
    }

    struct Preset: Encodable { let name, summary: String }

    let type, summary: String
    let keys: [Key]
    let presets: [Preset]

    init(_ type: DestinationSchema) {
        self.type = type.name
        summary = type.summary
        keys = type.keys.flatMap { $0.mayBeNone ? [$0] + $0.flat : $0.flat }.map {
            Key(name: $0.name, takes: $0.takes, summary: $0.summary, required: $0.isRequired)
        }
        presets = type.presets.map { Preset(name: $0.name, summary: $0.summary) }
    }
}

extension SettingKey {
    fileprivate var takes: String {
        switch kind {
        case .text: "text"
        case .url: "address"
        case .origins: "list of origins"
        case .secret: "secret"
        case .flag: "true or false"
        case .size: "amount of bytes"
        case .duration: "length of time"
        case .choice(let words): words.joined(separator: ", ")
        case .whole(let range): "\(range.lowerBound) to \(range.upperBound)"
        case .map, .headers: "names with texts or secrets"
        case .labels: "names with texts"
        case .fields: "names with texts, secrets or {json: …}"
        case .secrets: "names with secrets"
        case .path: "path"
        case .template, .templateOfJSON: "template"
        case .texts: "list of texts"
        case .wholes(let range): "list of \(range.lowerBound) to \(range.upperBound)"
        case .choices(let words): "\(SettingKey.auto), or a list of \(words.joined(separator: ", "))"
        case .section: mayBeNone ? "mapping, or none" : "mapping"
        }
    }

    /// Its summary, and the kind of its value.
    package var summaryText: String { "\(summary) (\(takes)\(isRequired ? "; required" : ""))" }
}
