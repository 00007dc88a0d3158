/// What a kind of destination lets a person set: its row in the table of kinds, and the keys it understands.
///
/// Declared by the destination's own folder and read by `Config`, so that a new kind needs no line there.
package struct DestinationType: Sendable {
    /// The word after `type:`.
    package let name: String
    /// One line for `sluice check --help` and the manual.
    package let summary: String
    package let keys: [SettingKey]
    /// Values of `preset`, with what each is for.
    package let presets: [(name: String, summary: String)]
    /// What is wrong with values that are each of the right kind, by whole names of keys.
    package let objections: @Sendable ([String: SettingValue]) -> [SettingObjection]
    /// What `check` warns of where a folder deletes or moves its sources when a destination with these values says that it has
    /// them: whole sentences without a full stop, each with its remedy.
    package let releaseDoubts: @Sendable ([String: SettingValue]) -> [String]

    package init(
        name: String, summary: String, keys: [SettingKey], presets: [(name: String, summary: String)] = [],
        releaseDoubts: @escaping @Sendable ([String: SettingValue]) -> [String] = { _ in [] },
        objections: @escaping @Sendable ([String: SettingValue]) -> [SettingObjection] = { _ in [] }
    ) {
        self.name = name
        self.summary = summary
        self.keys = keys
        self.presets = presets
        self.releaseDoubts = releaseDoubts
        self.objections = objections
    }
}

/// A mistake that only the kind of destination can see.
package struct SettingObjection: Hashable, Sendable {
    /// The whole name of the key, or of a name in its map: `send.fields.crc`.
    package let key: String
    /// What comes behind the key's name in a sentence: what is wrong, and what to do.
    package let problem: String
    /// It is that these are missing: not said where one of them is written, and what is wrong with that is told already.
    package let missing: [String]

    package init(key: String, problem: String, missing: [String] = []) {
        self.key = key
        self.problem = problem
        self.missing = missing
    }
}

/// One key of a destination.
package struct SettingKey: Sendable {
    package enum Kind: Sendable {
        case text
        /// `http` or `https` with a host; no user or password.
        case url
        /// A list of `https://host` or `https://host:8443`: nothing behind the host and port.
        case origins
        case secret
        case flag
        /// Bytes with a unit.
        case size
        case duration
        case choice([String])
        case whole(ClosedRange<Int>)
        /// Names to text or secrets.
        case map
        /// The same for names of headers.
        case headers
        /// The same for fields of a form, of which one may be a JSON object: `{json: {name: "{name}"}}`.
        case fields
        /// The same for what is no secret, whatever its name: everybody may see it.
        case labels
        /// Names to secrets, of which none is a bare text.
        case secrets
        /// An absolute path.
        case path
        /// Filled for each file when it is taken in, and kept with the upload's metadata under the key's name.
        case template
        /// The same of JSON, whose texts the values stand in.
        case templateOfJSON
        case texts
        /// Keys of its own. Their values stand under names with a dot, as in `video.name`.
        case section([SettingKey])
    }

    package let name: String
    package let kind: Kind
    package let isRequired: Bool
    /// Of a section: `none` may stand in its place, as a text, for whoever wants none.
    package let mayBeNone: Bool
    package let summary: String

    package static let none = "none"

    package init(
        _ name: String, _ kind: Kind, required: Bool = false, mayBeNone: Bool = false, _ summary: String
    ) {
        self.name = name
        self.kind = kind
        self.isRequired = required
        self.mayBeNone = mayBeNone
        self.summary = summary
    }

    /// Itself, or those of its section, each under its whole name.
    package var flat: [SettingKey] {
        guard case .section(let keys) = kind else { return [self] }
        return keys.flatMap(\.flat).map {
            SettingKey("\(name).\($0.name)", $0.kind, required: $0.isRequired, $0.summary)
        }
    }
}

/// A value that a person set, already of the kind that the key asked for.
package enum SettingValue: Hashable, Sendable {
    case text(String)
    case secret(SecretSource)
    case flag(Bool)
    case bytes(Int64)
    case duration(Duration)
    case whole(Int)
    case map([String: SecretSource])
    case secrets([String: SecretSource])
    case path(FilePath)
    case template(Template)
    case texts([String])
}

/// Where a secret is kept. The secret itself is read by `Credentials` when it is needed and never stands in settings.
package enum SecretSource: Hashable, Sendable {
    case file(FilePath)
    case environment(String)
    /// A systemd credential: a file in `$CREDENTIALS_DIRECTORY`.
    case credential(String)
    case command([String])
    /// Written in the configuration itself.
    case literal(String)
    /// A JSON object of texts, secrets and objects, as the value of a form's field.
    indirect case json([String: SecretSource])

    /// Itself, or all that stand in its object.
    package var leaves: [SecretSource] {
        guard case .json(let object) = self else { return [self] }
        return object.sorted { $0.key < $1.key }.flatMap(\.value.leaves)
    }
}
