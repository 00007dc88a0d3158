internal import Core
internal import Credentials
internal import Transport

/// By what right a bucket is used, as a person set it.
enum S3Access: Sendable {
    /// The key, in words or in a document.
    case kept(S3Keys.Source)
    /// What the machine or container is given by the service that it runs at.
    case metadata(S3Metadata.Settings)
    /// Somebody else has the key, and signs.
    case signer(S3Presigner.Signer, hosts: [String])
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
        SettingKey(
            "presign",
            .section([
                SettingKey("url", .url, "The service that is asked for signed addresses."),
                SettingKey("token", .secret, "Sent to it as `Authorization: Bearer …`."),
                SettingKey("headers", .headers, "More headers for it."),
                SettingKey("ca_file", .path, "Certificates to trust for it instead of the system's (PEM)."),
                SettingKey("command", .texts, "In place of a service, a program and its arguments."),
                SettingKey("hosts", .texts, "Where signed addresses may lead, beside the endpoint."),
            ]), "In place of a key: who has it, and signs each request."),
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
        if let signer = S3Presigner.signer(values) {
            var hosts: [String] = []
            if case .texts(let texts)? = values["presign.hosts"] { hosts = texts }
            return .signer(signer, hosts: hosts)
        }
        if let document = secret("credentials") {
            return .kept(.document(document, profile: text("profile") ?? "default"))
        }
        guard let id = secret("access_key"), let key = secret("secret_key") else { return nil }
        return .kept(.words(id: id, secret: key, token: secret("session_token")))
    }

    /// - Parameter further: The sections that a type has for rights beside a kept key.
    static func objections(
        _ values: [String: SettingValue], further: [String] = ["instance_metadata", "presign"]
    ) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        let hasWords = ["access_key", "secret_key", "session_token"].contains { values[$0] != nil }
        let hasDocument = values["credentials"] != nil
        let hasMetadata = values.keys.contains { $0.hasPrefix("instance_metadata.") }
        let hasSigner = values.keys.contains { $0.hasPrefix("presign.") }
        if hasDocument, hasWords {
            object("credentials", "stands in place of `access_key`, `secret_key` and `session_token`")
        }
        if hasMetadata, hasWords || hasDocument {
            object("instance_metadata", "stands in place of a key; take one of them out")
        }
        if hasSigner, hasWords || hasDocument || hasMetadata {
            object("presign", "stands in place of a key, which is somebody else's; take one of them out")
        }
        if !hasMetadata, !hasSigner, !hasDocument {
            let lacking = ["access_key", "secret_key"].filter { values[$0] == nil }
            if let there = ["access_key", "secret_key", "session_token"].first(where: { values[$0] != nil }) {
                let names = lacking.map { "`\($0)`" }.joined(separator: " and ")
                if !lacking.isEmpty { object(there, "needs \(names) beside it") }
            } else {
                all.append(
                    SettingObjection(
                        key: "bucket",
                        problem:
                            "needs a key: set `access_key` and `secret_key`, or "
                            + (further.isEmpty
                                ? "`credentials`"
                                : "`credentials`, " + further.map { "`\($0)`" }.joined(separator: " or ")),
                        missing: further))
            }
        }
        if case .text(let profile)? = values["profile"], !hasDocument {
            object("profile", "is `\(profile)`, and has no effect without `credentials`")
        }
        return all + S3Metadata.objections(values) + S3Presigner.objections(values)
    }

    /// The keys of the configuration that it stands at.
    var shown: String {
        switch self {
        case .kept(.words(_, _, nil)): "`access_key` and `secret_key`"
        case .kept(.words): "`access_key`, `secret_key` and `session_token`"
        case .kept(.document): "`credentials`"
        case .metadata: "`instance_metadata`"
        case .signer: "`presign`"
        }
    }

    /// Where requests for signatures go; `nil` where nobody is asked over a network.
    var signerAddress: WebAddress? {
        if case .signer(.service(let url, _, _), _) = self { WebAddress(url) } else { nil }
    }

    func signer(_ settings: S3Settings, _ asking: Asking, _ tools: DestinationTools) -> any S3Signing {
        let clocks = tools.clocks
        let keys: any S3KeySource
        switch self {
        case .kept(let source): keys = S3Keys(source, reader: tools.secrets, now: { clocks.wall() })
        case .metadata(let settings): keys = S3Metadata(settings, asking: asking, reader: tools.secrets)
        case .signer(let signer, let hosts):
            return S3Presigner(signer, hosts: hosts, asking: asking, settings: settings, reader: tools.secrets)
        }
        return S3KeySigner(keys, asking: asking, settings: settings)
    }
}
