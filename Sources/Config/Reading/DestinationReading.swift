internal import Core

/// Reads `destinations`: the common keys, and those that each type declares for itself.
extension SettingsReading {
    struct ReadDestination {
        var settings: DestinationSettings
        /// The place of its folder, for a destination that has one; otherwise its own place.
        var place: ConfigLocation
    }

    func destinations(_ files: [MappingReader]) -> [ReadDestination] {
        var taken: [String: ConfigLocation] = [:]
        var all: [ReadDestination] = []
        for file in files {
            guard let node = file.node("destinations") else { continue }
            for entry in findings.entries(of: node, path: "destinations") {
                let key = "destinations.\(entry.key)"
                let name = Node(key: entry.key, at: entry.place)
                guard findings.read(name, path: key, as: .name) != nil else { continue }
                if let earlier = taken.updateValue(entry.place, forKey: entry.key) {
                    findings.error(
                        "the destination \(quoted(entry.key)) is already defined at \(findings.name(of: earlier))",
                        at: entry.place, key: key)
                }
                if let destination = destination(entry, key: key) { all.append(destination) }
            }
        }
        return all
    }

    private func destination(_ entry: Node.Entry, key: String) -> ReadDestination? {
        guard let type = type(of: entry, key: key) else { return nil }
        let section = Section(
            path: Section.destination.path, keys: Section.destination.keys + type.keys.map(\.name),
            futureKeys: Section.destination.futureKeys)
        let fields = MappingReader(entry.value, section, path: key, start: entry.place, findings: findings)
        var places = DestinationSettings.Places()
        let values = values(of: type.keys, in: fields, &places)
        warnOfPlainText(values, entry, key)
        // An unreadable value was reported already. Problems in combination with it are found when it is corrected.
        let told = findings.errors.map(\.key)
        for objection in type.objections(values) {
            let name = printable("\(key).\(objection.key)")
            if told.contains(where: { $0 == name || $0.hasPrefix(name + "[") })
                || objection.missing.contains(where: { isWritten($0[...], in: entry.value) })
            {
                continue
            }
            let place = place(of: objection.key[...], in: entry.value) ?? entry.place
            findings.report(objection, at: place, of: key)
        }
        var overrides = PolicyOverrides()
        PolicyOverrides.destinationKeys.read(fields, into: &overrides, self)
        if !type.sendsRequests { PolicyOverrides.refuseRequestKeys(fields, type.name) }
        return ReadDestination(
            settings: DestinationSettings(
                name: entry.key, type: type.name, values: values,
                policy: overrides, place: findings.name(of: entry.place), places: places),
            place: fields.node("path")?.start ?? entry.place)
    }

    /// The place of the value of a key whose name has dots; the place of its section, if the key is not set.
    private func place(of key: Substring, in node: Node) -> ConfigLocation? {
        guard case .mapping(let entries) = node.content else { return node.start }
        for entry in entries {
            if key == entry.key { return entry.value.start }
            if key.hasPrefix(entry.key + "[") { return entry.value.place(ofItem: key.dropFirst(entry.key.count)) }
            if key.hasPrefix(entry.key + ".") {
                return place(of: key.dropFirst(entry.key.count + 1), in: entry.value) ?? entry.place
            }
        }
        return nil
    }

    /// Whether a key whose name has dots is set, including one whose value could not be read.
    private func isWritten(_ key: Substring, in node: Node) -> Bool {
        node.entries.contains { entry in
            key == entry.key
                || key.hasPrefix(entry.key + ".") && isWritten(key.dropFirst(entry.key.count + 1), in: entry.value)
        }
    }

    private func type(of entry: Node.Entry, key: String) -> DestinationSchema? {
        guard case .mapping(let entries) = entry.value.content else {
            findings.error(
                "takes a mapping, like `{type: \(types.first?.name ?? "tus"), …}`, not \(entry.value.kindName)",
                at: entry.value.start, key: key)
            return nil
        }
        let known = types.map(\.name)
        guard let node = entries.first(where: { $0.key == "type" })?.value else {
            findings.error("`type` is missing; there are: \(known.joined(separator: ", "))", at: entry.place, key: key)
            return nil
        }
        guard let name = findings.read(node, path: "\(key).type", as: .text("a type of destination")) else {
            return nil
        }
        guard let type = types.first(where: { $0.name == name }) else {
            findings.error(
                "no type of destination is called \(quoted(name))"
                    + suggestion(for: name, among: known),
                at: node.start, key: "\(key).type")
            return nil
        }
        return type
    }

    /// By full names.
    private func values(
        of settings: [SettingKey], in fields: MappingReader, _ places: inout DestinationSettings.Places
    ) -> [String: SettingValue] {
        var values: [String: SettingValue] = [:]
        for setting in settings {
            if setting.isRequired { fields.require(setting.name, inSentence(setting.summary)) }
            if case .section(let keys) = setting.kind {
                guard let node = fields.node(setting.name) else { continue }
                if setting.mayBeNone, case .scalar(SettingKey.none, _) = node.content {
                    values[setting.name] = .text(SettingKey.none)
                    places.byKey[setting.name] = findings.name(of: node.start)
                    continue
                }
                if case .mapping(let entries) = node.content, entries.isEmpty {
                    fields.error(
                        "sets nothing; take it out, or set one of \(keys.map(\.name).joined(separator: ", "))",
                        setting.name)
                }
                let section = Section(path: "\(fields.section.path).\(setting.name)", keys: keys.map(\.name))
                var within = DestinationSettings.Places()
                for (name, value) in self.values(of: keys, in: fields.fields(setting.name, section), &within) {
                    values["\(setting.name).\(name)"] = value
                    places.byKey["\(setting.name).\(name)"] = within.byKey[name]
                }
            } else if let value = value(of: setting, in: fields) {
                values[setting.name] = value
                places.byKey[setting.name] = fields.node(setting.name).map { findings.name(of: $0.start) }
            }
        }
        return values
    }

    private func value(of setting: SettingKey, in fields: MappingReader) -> SettingValue? {
        let key = setting.name
        guard let node = fields.node(key) else { return nil }
        switch setting.kind {
        case .text: return fields.read(key, as: .text).map { .text($0.value) }
        case .url: return fields.read(key, as: .url).map { .text($0.value) }
        case .origins:
            let origins = fields.list(key, as: .origin)
            for origin in origins ?? [] where isPlain(origin.value) {
                findings.warning(
                    "the connection is not encrypted; use https if the server can", at: origin.node.start,
                    key: origin.key)
            }
            return origins.map { .texts($0.map(\.value)) }
        // An unreadable secret still counts as set: its problem was reported, and it must not be reported as missing
        // too.
        case .secret: return .secret(secrets.secret(node, key: fields.path(of: key)) ?? .literal(""))
        case .flag: return fields.read(key, as: .flag).map { .flag($0.value) }
        case .size: return fields.read(key, as: .bytes).map { .bytes($0.value) }
        case .duration:
            return fields.read(key, as: .duration(.seconds(1) ... .seconds(30 * 86_400))).map { .duration($0.value) }
        case .choice(let words): return fields.read(key, as: .word(of: words)).map { .text($0.value) }
        case .whole(let range): return fields.read(key, as: .whole(range)).map { .whole($0.value) }
        case .path: return fields.read(key, as: .path).map { .path($0.value) }
        case .template: return fields.read(key, as: .template()).map { .template($0.value) }
        case .templateOfJSON: return fields.read(key, as: .template()).map { .template($0.value.inJSON) }
        case .texts: return fields.list(key, as: .text).map { .texts($0.map(\.value)) }
        case .wholes(let range): return fields.list(key, as: .whole(range)).map { .wholes($0.map(\.value)) }
        case .choices(let words): return fields.choices(key, among: words)
        case .section: return nil
        case .map, .headers, .labels, .fields:
            var (names, mayBeObject) = (Reader.fieldName, false)
            if case .headers = setting.kind { names = .headerName }
            if case .fields = setting.kind { mayBeObject = true }
            return .map(
                map(node, fields.path(of: key), names: names) { node, path, name in
                    secrets.value(node, key: path, name: name, mayBeEmpty: true, mayBeObject: mayBeObject)
                })
        case .secrets:
            return .secrets(
                map(node, fields.path(of: key), names: .name) { node, path, _ in
                    secrets.secret(node, key: path) ?? .literal("")
                })
        }
    }

    private func map(
        _ node: Node, _ path: String, names: Reader<String>, _ read: (Node, String, String) -> SecretSource?
    ) -> [String: SecretSource] {
        var map: [String: SecretSource] = [:]
        for entry in findings.entries(of: node, path: path) {
            let path = findings.path(of: entry, in: path)
            guard findings.read(Node(key: entry.key, at: entry.place), path: path, as: names) != nil else { continue }
            map[entry.key] = read(entry.value, path, entry.key)
        }
        return map
    }

    /// A secret that is sent over `http` can be read in transit. Secrets of a section are sent to its own `url`.
    private func warnOfPlainText(_ values: [String: SettingValue], _ entry: Node.Entry, _ key: String) {
        for (name, value) in values.sorted(by: { $0.key < $1.key }) where name == "url" || name.hasSuffix(".url") {
            guard case .text(let url) = value, isPlain(url) else { continue }
            let hasSecret = values.contains { other, value in
                guard other.hasPrefix(name.dropLast(3)) else { return false }
                return switch value {
                case .secret, .secrets: true
                case .map(let map):
                    map.values.flatMap(\.leaves).contains { if case .literal = $0 { false } else { true } }
                default: false
                }
            }
            if hasSecret {
                findings.warning(
                    "the secret goes over the network unencrypted; use https if the server can",
                    at: place(of: name[...], in: entry.value) ?? entry.place, key: "\(key).\(name)")
            }
        }
    }
}

/// Whether requests to an address can be read in transit to another machine.
private func isPlain(_ url: String) -> Bool {
    guard url.lowercased().hasPrefix("http://") else { return false }
    let host = url.dropFirst(7).prefix { !"/?".contains($0) }
    // The last two are valid only on their own link.
    return !["localhost", "127.", "[::1]", "169.254.", "[fd00:ec2:"].contains { host.hasPrefix($0) }
}

/// A summary as the end of a sentence: without the capital of its first word, and without a full stop.
private func inSentence(_ summary: String) -> String {
    let text = summary.hasSuffix(".") ? String(summary.dropLast()) : summary
    guard let second = text.dropFirst().first, !second.isUppercase else { return text }
    return text.prefix(1).lowercased() + text.dropFirst()
}
