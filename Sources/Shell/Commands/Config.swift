internal import Config
internal import Core

extension Verb {
    static let config: Verb = Verb(
        "config", "print the effective configuration, and where each setting is from",
        details: [
            "Every setting with its value, and behind it the file and line that say so, or `default`. What is printed is a "
                + "configuration again, of the same meaning. Of secrets it shows where they are kept; one that stands in the "
                + "configuration itself, and the values of headers, are replaced by `hidden`. No daemon is needed: it reads the "
                + "file as it is now, which a daemon may not have reloaded yet.",
            "Status 78 when the configuration has a mistake; also when a secret stands in it and others can read it. What it "
                + "names is not looked at, which `sluice check` does.",
        ],
        options: [.json, .config],
        examples: [
            ("sluice config", "All of it."), ("sluice config | grep -v '# default'", "Without the defaults."),
            ("sluice config --json", "For a script: `key`, `value`, `from`."),
        ]
    ) { call in
        let file = ConfigurationFile(call.arguments, call.console)
        let loaded = try await file.load(disk: .onlyItself)
        let effective = EffectiveConfiguration(loaded)
        if call.json {
            try call.printJSON(ConfigView(files: loaded.files.map(\.display), effective))
        } else {
            try call.console.raw(effective.yaml)
        }
        return .ok
    }
}

private struct ConfigView: Encodable {
    struct Setting: Encodable {
        let key: String
        let value: Value
        let from: String?
    }

    let files: [String]
    let settings: [Setting]

    init(files: [String], _ effective: EffectiveConfiguration) {
        self.files = files
        settings = effective.rows.compactMap { row in
            row.value.map { Setting(key: row.path, value: Value($0), from: row.from) }
        }
    }

    /// The form for JSON: amounts and times stay the words of the file.
    struct Value: Encodable {
        let value: WrittenValue

        init(_ value: WrittenValue) { self.value = value }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch value {
            case .text(let text), .plain(let text): try container.encode(text)
            case .number(let number): try container.encode(number)
            case .flag(let flag): try container.encode(flag)
            case .list(let items): try container.encode(items.map { Value($0) })
            case .mapping(let fields):
                try container.encode(Dictionary(fields.map { ($0.key, Value($0.value)) }) { first, _ in first })
            }
        }
    }
}
