internal import Config
internal import Core
internal import Destinations

extension Verb {
    static let config: Verb = Verb(
        "config", "print the effective configuration, and where each setting comes from", operands: "[schema]",
        takes: .words(["schema"]), count: 0...1,
        details: [
            "Prints every setting with its value, then the file and line that set it, or `default`. The output is "
                + "itself a configuration, with the same meaning. For a secret it shows where the secret is kept. "
                + "Secrets in the configuration itself, and the values of headers, are replaced by `hidden`. It "
                + "needs no daemon: it reads the file as it is now, which a daemon may not have reloaded yet.",
            "Exits with status 78 when the configuration has a mistake, or when it contains a secret and other users "
                + "can read it. The files that it names are not examined; `sluice check` does that.",
            "`sluice config schema` prints a JSON Schema of the configuration instead: its keys with their forms, "
                + "defaults and meanings. Editors complete and check a file by it that begins with the line `# "
                + "yaml-language-server: $schema=FILE`. It reads no configuration.",
        ],
        options: [.json, .config],
        examples: [
            ("sluice config", "Prints every setting."),
            ("sluice config | grep -v '# default'", "Prints only settings that the configuration sets."),
            ("sluice config --json", "For a script: `files`, and `settings` with `key`, `value` and `from`."),
            ("sluice config schema > sluice.schema.json", "Writes the JSON Schema, for an editor."),
        ]
    ) { call in
        if let word = call.arguments.operands.first?.lossyText {
            guard word == "schema" else {
                throw Arguments.usage("takes the word `schema` or nothing, not `\(printable(word))`", .config)
            }
            let schema = SettingsSchema(types: DestinationTable.builtIn.map(\.type))
            try call.printJSON(ConfigView.Value(schema.document))
            return .ok
        }
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
