internal import Core
internal import Credentials
internal import Transport

/// By what right a bucket is used, as a person set it.
enum S3Access: Sendable {
    /// The key, in words or in a document.
    case kept(S3Keys.Source)
    /// What the machine or container is given by the service that it runs at.
    case metadata(S3Metadata.Settings)
}

extension S3Access {
    static let keys = [
        SettingKey("access_key", .secret, "The key's id."),
        SettingKey("secret_key", .secret, "The key itself."),
        SettingKey("session_token", .secret, "The token of a temporary key."),
        SettingKey(
            "credentials", .secret,
            "In place of these three: a shared credentials file, or JSON as a `credential_process` prints it."),
        SettingKey("profile", .text, "Which section of a credentials file; `default` by default."),
        SettingKey(
            "instance_metadata",
            .section([
                SettingKey(
                    "kind", .choice(S3Metadata.Kind.allCases.map(\.rawValue)), required: true,
                    "Who gives it: the `instance` (IMDSv2), or the `container` service."),
                SettingKey("url", .url, "Where it is asked; where the kind has it by default."),
                SettingKey("role", .text, "The role of the instance; the one that it has by default."),
                SettingKey("token", .secret, "What the container service wants; its environment's by default."),
            ]), "In place of a key: what the machine is given where it runs."),
    ]

    /// - Returns: `nil` where nothing gives a right.
    static func of(_ values: [String: SettingValue]) -> S3Access? {
        func text(_ key: String) -> String? { if case .text(let text)? = values[key] { text } else { nil } }
        func secret(_ key: String) -> SecretSource? {
            if case .secret(let source)? = values[key] { source } else { nil }
        }
        if let kind = text("instance_metadata.kind").flatMap({ S3Metadata.Kind(rawValue: $0) }) {
            return .metadata(
                S3Metadata.Settings(
                    kind: kind, url: text("instance_metadata.url"), role: text("instance_metadata.role"),
                    token: secret("instance_metadata.token")))
        }
        if let document = secret("credentials") {
            return .kept(.document(document, profile: text("profile") ?? "default"))
        }
        guard let id = secret("access_key"), let key = secret("secret_key") else { return nil }
        return .kept(.words(id: id, secret: key, token: secret("session_token")))
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        let hasWords = ["access_key", "secret_key", "session_token"].contains { values[$0] != nil }
        let hasDocument = values["credentials"] != nil
        let hasMetadata = values.keys.contains { $0.hasPrefix("instance_metadata.") }
        if hasDocument, hasWords {
            object("credentials", "stands in place of `access_key`, `secret_key` and `session_token`")
        }
        if hasMetadata, hasWords || hasDocument {
            object("instance_metadata", "stands in place of a key; take one of them out")
        }
        if !hasMetadata, !hasDocument, values["access_key"] == nil || values["secret_key"] == nil {
            object(
                "bucket", "needs a key: set `access_key` and `secret_key`, or `credentials`, or `instance_metadata`")
        }
        if case .text(let profile)? = values["profile"], !hasDocument {
            object("profile", "is `\(profile)`, and has no effect without `credentials`")
        }
        return all + S3Metadata.objections(values)
    }

    func signer(_ settings: S3Settings, _ asking: Asking, _ tools: DestinationTools) -> any S3Signing {
        let clocks = tools.clocks
        let keys: any S3KeySource =
            switch self {
            case .kept(let source): S3Keys(source, reader: tools.secrets, now: { clocks.wall() })
            case .metadata(let settings): S3Metadata(settings, asking: asking, reader: tools.secrets)
            }
        return S3KeySigner(keys, asking: asking, settings: settings)
    }
}
