/// The settings of a kind of destination: its row in the table of kinds, and its keys.
///
/// Declared in the destination's own folder and read by `Config`, so that a new kind needs no line in `Config`.
package struct DestinationSchema: Sendable {
    /// The word after `type:`.
    package let name: String
    /// One line for `sluice check --help` and the manual.
    package let summary: String
    package let keys: [SettingKey]
    /// Values of `preset`, with the purpose of each.
    package let presets: [(name: String, summary: String)]
    /// The service refuses other files, or makes nothing of them.
    package let takesOnlyVideos: Bool
    /// Whether bytes go there by requests over the network, and not by the file system.
    package let sendsRequests: Bool
    /// Finds problems with values that each have the right kind, by full names of keys.
    package let objections: @Sendable ([String: SettingValue]) -> [SettingObjection]
    /// Warnings of `check` where a folder deletes or moves its sources once a destination with these values confirms
    /// them: whole sentences without a full stop, each with its remedy.
    package let releaseDoubts: @Sendable ([String: SettingValue]) -> [String]

    package init(
        name: String, summary: String, keys: [SettingKey], presets: [(name: String, summary: String)] = [],
        takesOnlyVideos: Bool = false, sendsRequests: Bool = true,
        releaseDoubts: @escaping @Sendable ([String: SettingValue]) -> [String] = { _ in [] },
        objections: @escaping @Sendable ([String: SettingValue]) -> [SettingObjection] = { _ in [] }
    ) {
        self.name = name
        self.summary = summary
        self.keys = keys
        self.presets = presets
        self.takesOnlyVideos = takesOnlyVideos
        self.sendsRequests = sendsRequests
        self.releaseDoubts = releaseDoubts
        self.objections = objections
    }

    /// The same with one more key, whose values have their own objections.
    package func adding(
        _ key: SettingKey, objections more: @escaping @Sendable ([String: SettingValue]) -> [SettingObjection]
    ) -> DestinationSchema {
        DestinationSchema(
            name: name, summary: summary, keys: keys + [key], presets: presets, takesOnlyVideos: takesOnlyVideos,
            sendsRequests: sendsRequests, releaseDoubts: releaseDoubts
        ) { [objections] in objections($0) + more($0) }
    }
}

/// A mistake that only the kind of destination can see.
package struct SettingObjection: Hashable, Sendable {
    /// The full name of the key, or of a name in its map: `send.fields.crc`.
    package let key: String
    /// The text after the key's name in a sentence: the problem, and what to do.
    package let problem: String
    /// Keys whose absence is the problem. It is not reported where one of them is written, since that key's own problem
    /// is reported already.
    package let missing: [String]
    /// The configuration can be used nevertheless.
    package let isWarning: Bool

    package init(key: String, problem: String, missing: [String] = [], isWarning: Bool = false) {
        self.key = key
        self.problem = problem
        self.missing = missing
        self.isWarning = isWarning
    }
}

/// One key of a destination.
package struct SettingKey: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case text
        /// `http` or `https` with a host; no user or password.
        case url
        /// A list of `https://host` or `https://host:8443`, with nothing after the host and port.
        case origins
        case secret
        case flag
        /// An amount of bytes with a unit.
        case size
        case duration
        case choice([String])
        case whole(ClosedRange<Int>)
        /// A map of names to text or secrets.
        case map
        /// A map with names of headers.
        case headers
        /// A map with fields of a form, where a value may be a JSON object: `{json: {name: "{name}"}}`.
        case fields
        /// A map whose values are never secret, regardless of their names: they may be shown.
        case labels
        /// A map of names to secrets, none of them a bare text.
        case secrets
        /// An absolute path.
        case path
        /// A template that is filled for each file when it is recorded, and kept with the upload's metadata under the
        /// key's name.
        case template
        /// A template of JSON, with values inside its texts.
        case templateOfJSON
        case texts
        /// A list of whole numbers in this range.
        case wholes(ClosedRange<Int>)
        /// A list of these words, or the word `auto`.
        case choices([String])
        /// A section with keys of its own. Their values have names with a dot, as in `video.name`.
        case section([SettingKey])
    }

    package let name: String
    package let kind: Kind
    package let isRequired: Bool
    /// For a section: the text `none` may replace it.
    package let mayBeNone: Bool
    package let summary: String

    package static let none = "none"
    /// In place of a list of choices.
    package static let auto = "auto"

    package init(
        _ name: String, _ kind: Kind, required: Bool = false, mayBeNone: Bool = false, _ summary: String
    ) {
        self.name = name
        self.kind = kind
        self.isRequired = required
        self.mayBeNone = mayBeNone
        self.summary = summary
    }

    /// The key itself, or those of its section, each with its full name.
    package var flat: [SettingKey] {
        guard case .section(let keys) = kind else { return [self] }
        return keys.flatMap(\.flat).map {
            SettingKey("\(name).\($0.name)", $0.kind, required: $0.isRequired, $0.summary)
        }
    }
}

/// A value that a person set, already of the kind that its key requires.
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
    case wholes([Int])
}

/// The place where a secret is stored. `Credentials` reads the secret itself when it is needed; it is never part of
/// settings.
package enum SecretSource: Hashable, Sendable {
    case file(FilePath)
    case environment(String)
    /// A systemd credential: a file in `$CREDENTIALS_DIRECTORY`.
    case credential(String)
    /// A program and its arguments. With `servers`, its connections obey policy.
    case command([String], servers: ProgramServers? = nil)
    /// Written in the configuration itself.
    case literal(String)
    /// A JSON object of texts, secrets and objects, as the value of a form's field.
    indirect case json([String: SecretSource])

    /// The source itself, or all sources in its object.
    package var leaves: [SecretSource] {
        guard case .json(let object) = self else { return [self] }
        return object.sorted { $0.key < $1.key }.flatMap(\.value.leaves)
    }
}
