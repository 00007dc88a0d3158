package import Core

/// The JSON Schema of a configuration (draft 2020-12), for editors and other tools. It follows from the declared keys.
///
/// It checks the form of each value, and which keys a mapping may and must have. It does not see values that do not fit
/// together, nor names that nothing has; ``Settings/load(_:types:disk:environment:)`` does.
package struct SettingsSchema: Sendable {
    private let types: [DestinationSchema]

    /// - Parameter types: The destination types that the program knows.
    package init(types: [DestinationSchema]) { self.types = types }

    package var document: WrittenValue {
        var definitions: [WrittenValue.Field] = []
        var top: [WrittenValue.Field] = [
            field("$schema", .text("https://json-schema.org/draft/2020-12/schema")),
            field("title", .text("Configuration of Sluice")),
        ]
        for mapping in SettingsReference.mappings {
            if mapping.path.isEmpty {
                top += fields(of: mapping)
            } else if mapping.path == Section.destination.path {
                definitions += destinations(mapping)
            } else {
                definitions.append(field(Self.name(of: mapping.path), .mapping(fields(of: mapping))))
            }
        }
        return .mapping(top + [field("$defs", .mapping(definitions))])
    }

    // MARK: Mappings

    private func fields(of mapping: SettingsReference.Mapping) -> [WrittenValue.Field] {
        var fields = object(
            mapping.keys.map { field($0.name, described(schema(of: $0.kind), $0)) },
            required: mapping.keys.filter(\.isRequired).map(\.name))
        func each(_ keys: [String]) -> WrittenValue {
            .list(keys.map { .mapping([field("required", .list([.text($0)]))]) })
        }
        if !mapping.exactlyOneOf.isEmpty { fields.append(field("oneOf", each(mapping.exactlyOneOf))) }
        if !mapping.someOf.isEmpty { fields.append(field("anyOf", each(mapping.someOf))) }
        return fields
    }

    private func object(_ properties: [WrittenValue.Field], required: [String]) -> [WrittenValue.Field] {
        var fields = [
            field("type", .text("object")), field("properties", .mapping(properties)),
            field("additionalProperties", .flag(false)),
        ]
        if !required.isEmpty { fields.append(field("required", .list(required.map { .text($0) }))) }
        return fields
    }

    private func described(_ fields: [WrittenValue.Field], _ key: SettingsReference.Key) -> WrittenValue {
        var fields = fields + [field("description", .text(key.summary))]
        if let value = key.defaultValue { fields.append(field("default", written(value, as: key.kind))) }
        return .mapping(fields)
    }

    private func written(_ value: String, as kind: ValueKind) -> WrittenValue {
        switch kind {
        case .flag: .flag(value == "true")
        case .whole: Int64(value).map { .number($0) } ?? .text(value)
        default: .text(value)
        }
    }

    /// `folders.settle` for `folders[].settle`: names without characters that a reference must escape.
    private static func name(of path: String) -> String {
        path.replacing("[]", with: "").replacing(".*", with: "")
    }

    // MARK: Values

    private func schema(of kind: ValueKind) -> [WrittenValue.Field] {
        switch kind {
        case .flag: [field("type", .text("boolean"))]
        case .whole(let range):
            [
                field("type", .text("integer")), field("minimum", .number(Int64(range.lowerBound))),
                field("maximum", .number(Int64(range.upperBound))),
            ]
        case .share: string(ValueKind.sharePattern)
        case .bytes: amount(ValueKind.bytesPattern)
        case .duration(let range):
            range.contains(.zero) ? amount(ValueKind.durationPattern) : string(ValueKind.durationPattern)
        case .durationOrNever: amount(ValueKind.durationOrNeverPattern)
        case .rate: amount(ValueKind.ratePattern)
        case .string(_, let pattern): text(kind, pattern)
        case .word(let words): [field("enum", .list(words.map { .text($0) }))]
        case .list(let item): [field("type", .text("array")), field("items", .mapping(schema(of: item)))]
        case .program:
            [
                field("type", .text("array")), field("minItems", .number(1)),
                field("prefixItems", .list([.mapping(schema(of: .path))])),
                field("items", .mapping(schema(of: .text))),
            ]
        case .oneOrList(let item): schema(of: .either([item, .list(item)]))
        case .map(let value):
            [field("type", .text("object")), field("additionalProperties", .mapping(schema(of: value)))]
        case .section(let path): [field("$ref", .text("#/$defs/" + Self.name(of: path)))]
        case .either(let kinds): [field("anyOf", .list(kinds.map { .mapping(schema(of: $0)) }))]
        }
    }

    private func string(_ pattern: String) -> [WrittenValue.Field] {
        [field("type", .text("string")), field("pattern", .text(pattern))]
    }

    /// With a bare 0, which YAML reads as a number.
    private func amount(_ pattern: String) -> [WrittenValue.Field] {
        [
            field("type", .list([.text("string"), .text("integer")])), field("pattern", .text(pattern)),
            field("minimum", .number(0)), field("maximum", .number(0)),
        ]
    }

    /// Plain digits are a text to Sluice and a number to other readers of YAML.
    private func text(_ kind: ValueKind, _ pattern: String?) -> [WrittenValue.Field] {
        let mayBeDigits = [.text, .textOrNothing, .name, .template, .ending].contains(kind)
        let type: WrittenValue = mayBeDigits ? .list([.text("string"), .text("number")]) : .text("string")
        return [field("type", type)] + (pattern.map { [field("pattern", .text($0))] } ?? [])
    }

    private func field(_ key: String, _ value: WrittenValue) -> WrittenValue.Field { .init(key: key, value: value) }
}

// MARK: Destinations

extension SettingsSchema {
    /// One definition for each type, and one that chooses among them by the word after `type`.
    private func destinations(_ mapping: SettingsReference.Mapping) -> [WrittenValue.Field] {
        let name = Self.name(of: mapping.path)
        let names = types.map { WrittenValue.text($0.name) }
        let choices = types.map { type in
            let condition: WrittenValue = .mapping([
                field(
                    "properties", .mapping([field("type", .mapping([field("const", .text(type.name))]))]))
            ])
            return WrittenValue.mapping([
                field("if", condition), field("then", .mapping([field("$ref", .text("#/$defs/\(name).\(type.name)"))])),
            ])
        }
        let any: [WrittenValue.Field] = [
            field("type", .text("object")), field("required", .list([.text("type")])),
            field("properties", .mapping([field("type", .mapping([field("enum", .list(names))]))])),
            field("allOf", .list(choices)),
        ]
        return [field(name, .mapping(any))]
            + types.map { field("\(name).\($0.name)", .mapping(fields(of: $0, and: mapping))) }
    }

    private func fields(
        of type: DestinationSchema, and common: SettingsReference.Mapping
    ) -> [WrittenValue.Field] {
        let properties = common.keys.map { key in
            key.name == "type"
                ? field(
                    "type", .mapping([field("const", .text(type.name)), field("description", .text(type.summary))]))
                : field(key.name, described(schema(of: key.kind), key))
        }
        return object(
            properties + type.keys.map(property),
            required: ["type"] + type.keys.filter(\.isRequired).map(\.name))
    }

    private func property(_ key: SettingKey) -> WrittenValue.Field {
        field(key.name, .mapping(schema(of: key) + [field("description", .text(key.summary))]))
    }

    private func schema(of key: SettingKey) -> [WrittenValue.Field] {
        switch key.kind {
        case .text: schema(of: .text)
        case .url: schema(of: .url)
        case .origins: schema(of: .list(.origin))
        case .secret: schema(of: .secret)
        case .flag: schema(of: .flag)
        case .size: schema(of: .bytes)
        case .duration: schema(of: .duration(.seconds(1) ... .seconds(30 * 86_400)))
        case .choice(let words): schema(of: .word(words))
        case .whole(let range): schema(of: .whole(range))
        case .map, .headers, .labels: schema(of: .map(.either([.textOrNothing, .secret])))
        case .fields: fieldsOfForm
        case .secrets: schema(of: .map(.secret))
        case .path: schema(of: .path)
        case .template, .templateOfJSON: schema(of: .template)
        case .texts: schema(of: .list(.text))
        case .wholes(let range): schema(of: .list(.whole(range)))
        case .choices(let words): schema(of: .either([.word([SettingKey.auto]), .list(.word(words))]))
        case .section(let keys): section(keys, mayBeNone: key.mayBeNone)
        }
    }

    private func section(_ keys: [SettingKey], mayBeNone: Bool) -> [WrittenValue.Field] {
        let fields =
            object(keys.map(property), required: keys.filter(\.isRequired).map(\.name))
            + [field("minProperties", .number(1))]
        guard mayBeNone else { return fields }
        return [
            field("anyOf", .list([.mapping([field("const", .text(SettingKey.none))]), .mapping(fields)]))
        ]
    }

    /// A value may also be an object: `{json: {name: "{name}"}}`.
    private var fieldsOfForm: [WrittenValue.Field] {
        let object = object(
            [field("json", .mapping([field("type", .text("object"))]))], required: ["json"])
        let value: WrittenValue = .mapping([
            field(
                "anyOf",
                .list([
                    .mapping(schema(of: .textOrNothing)), .mapping(schema(of: .secret)), .mapping(object),
                ]))
        ])
        return [field("type", .text("object")), field("additionalProperties", value)]
    }
}
