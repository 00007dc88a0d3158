internal import Core

/// Converts settings back into the form of the file, key by key.
struct EffectivePieces {
    typealias Fields = [(key: String, piece: EffectivePiece)]

    let hides: Bool
    /// The keys of each type of destination.
    var keys: [String: [SettingKey]] = [:]
    private static let hidden = "hidden"

    func root(_ settings: Settings) -> EffectivePiece {
        let folders = settings.writtenFolders.map { ($0.watch.name, section(.folder, FolderSettings.keys, $0)) }
        let destinations = settings.destinations.map { ($0.name, destination($0)) }
        let hooks = settings.hooks.map { ($0.name, section(.hook, Hook.keys, $0)) }
        var fields: Fields = [
            ("version", .value(.number(1))), ("state", .value(settings.state.inFile)),
            ("staging", section(.staging, StagingSettings.keys, settings.staging)),
            ("folders", folders.isEmpty ? .value(.list([])) : .items(folders)),
            ("destinations", destinations.isEmpty ? .value(.mapping([])) : .mapping(destinations)),
            ("policy", section(.policy, PolicySettings.keys, settings.policy)),
            ("control", section(.control, ControlSettings.keys, settings.control)),
        ]
        if settings.metrics.isWritten {
            fields.append(("metrics", section(.metrics, MetricsSettings.keys, settings.metrics)))
        }
        fields.append(("retention", section(.retention, ListRetention.keys, settings.lists)))
        if !hooks.isEmpty { fields.append(("hooks", .items(hooks))) }
        return .mapping(fields, known: Section.root.keys)
    }

    private func section<Owner>(_ section: Section, _ keys: [Key<Owner>], _ owner: Owner) -> EffectivePiece {
        .mapping(keys.pieces(of: owner, self), known: section.keys)
    }

    func tokens(_ tokens: [ControlToken]) -> EffectivePiece {
        .items(tokens.map { ($0.name, section(.controlToken, ControlToken.keys, $0)) })
    }

    func tlsFiles(_ files: RemoteControlSettings.TLSFiles) -> EffectivePiece {
        section(.controlTLS, RemoteControlSettings.TLSFiles.keys, files)
    }

    func mapping<Value>(_ map: [String: Value], _ piece: (Value) -> EffectivePiece) -> EffectivePiece {
        if map.isEmpty { return .value(.mapping([])) }
        return .mapping(map.sorted { $0.key < $1.key }.map { ($0.key, piece($0.value)) })
    }

    func templates(_ map: [String: Template]) -> EffectivePiece {
        if map.isEmpty { return .value(.mapping([])) }
        return .mapping(map.sorted { $0.key < $1.key }.map { ($0.key, template($0.value, as: $0.key)) })
    }

    /// - Parameter name: The name of a field with this value.
    private func template(_ template: Template, as name: String = "") -> EffectivePiece {
        // Placeholders are no secrets.
        let isLiteral = template.pieces.allSatisfy { if case .text = $0 { true } else { false } }
        let safe = isSecretName(name) && isLiteral ? Self.hidden : redacted(template.source)
        guard hides, safe != template.source else { return .value(template.inFile) }
        return .value(.text(safe), note: "a secret in it is not shown")
    }

    private func destination(_ destination: DestinationSettings) -> EffectivePiece {
        let own = keys[destination.type] ?? []
        return .mapping(
            [("type", .value(.plain(destination.type)))] + fields(own, destination.values)
                + PolicyOverrides.destinationKeys.pieces(of: destination.policy, self),
            known: Section.destination.keys + own.map(\.name))
    }

    /// - Parameter prefix: The names of the sections around the keys, each with a dot: values have full names.
    private func fields(_ keys: [SettingKey], _ values: [String: SettingValue], _ prefix: String = "") -> Fields {
        keys.sorted { $0.name < $1.name }.compactMap { key in
            if let value = values[prefix + key.name] { return (key.name, self.value(value)) }
            guard case .section(let inner) = key.kind else { return nil }
            let within = fields(inner, values, "\(prefix)\(key.name).")
            return within.isEmpty ? nil : (key.name, .mapping(within, known: inner.map(\.name)))
        }
    }

    private func value(_ value: SettingValue) -> EffectivePiece {
        switch value {
        case .text(let text): shown(text)
        case .secret(let source): secret(source)
        case .flag(let flag): .value(flag.inFile)
        case .bytes(let bytes): .value(bytes.inFile)
        case .duration(let duration): .value(duration.inFile)
        case .whole(let number): .value(number.inFile)
        case .path(let path): .value(path.inFile)
        case .template(let template): self.template(template)
        case .texts(let texts): .value(texts.inFile)
        case .wholes(let numbers): .value(numbers.inFile)
        case .map(let map): headers(map)
        case .secrets(let map): mapping(map) { secret($0) }
        }
    }

    func headers(_ map: [String: SecretSource]) -> EffectivePiece {
        mapping(map) { source in
            if case .json(let object) = source { return .mapping([("json", headers(object))]) }
            guard case .literal(let text) = source, hides else { return secret(source) }
            // A single placeholder hides nothing.
            if text.hasPrefix("{"), text.hasSuffix("}"), text.filter({ "{}".contains($0) }).count == 2 {
                return .value(.text(text))
            }
            // A secret header cannot be distinguished from another one.
            return .value(.text(Self.hidden), note: "its value is not shown")
        }
    }

    func secret(_ source: SecretSource) -> EffectivePiece {
        switch source {
        case .file(let path): form(.file, path.inFile)
        case .environment(let name): form(.env, .text(name))
        case .credential(let name): form(.credential, .text(name))
        case .command(let words, let servers):
            command(words, servers)
        case .literal(let text):
            hides
                ? form(.literal, .text(Self.hidden), note: "the secret itself is not shown")
                : form(.literal, .text(text))
        case .json(let object): .mapping([("json", headers(object))])
        }
    }

    private func command(_ words: [String], _ servers: ProgramServers?) -> EffectivePiece {
        var fields = [WrittenValue.Field(key: SecretForm.command.rawValue, value: shown(words).inFile)]
        if let servers {
            fields.append(.init(key: "network", value: .plain(HookNetwork.policy.rawValue)))
            fields.append(.init(key: "ports", value: servers.ports.inFile))
            if !servers.hosts.isEmpty { fields.append(.init(key: "hosts", value: servers.hosts.inFile)) }
        }
        return .value(.mapping(fields), note: note(onHiding: words))
    }

    private func form(_ form: SecretForm, _ value: WrittenValue, note: String? = nil) -> EffectivePiece {
        .value(.mapping([.init(key: form.rawValue, value: value)]), note: note)
    }

    /// A text written by a person, which may contain a password.
    private func shown(_ text: String) -> EffectivePiece {
        let safe = hides ? redacted(text) : text
        return .value(.text(safe), note: safe == text ? nil : "a secret in it is not shown")
    }

    func command(_ words: [String]) -> EffectivePiece {
        .value(shown(words).inFile, note: note(onHiding: words))
    }

    private func note(onHiding words: [String]) -> String? {
        shown(words) == words ? nil : "a secret in it is not shown"
    }

    /// A program and its arguments, without what may be a password.
    func shown(_ words: [String]) -> [String] { hides ? ShownCommand(words).words : words }

    /// A person who knows the path can often do all that the hook can.
    func address(_ url: String) -> EffectivePiece {
        let shown = WebHook(url: url).shown
        if !hides || url == shown || url == shown + "/" { return .value(.text(url)) }
        return .value(.text(shown + "/" + Self.hidden), note: "its path is not shown")
    }
}
