internal import Core
internal import Credentials
internal import Transport

/// How a bucket is accessed, as a person configured it.
enum S3Access: Sendable {
    /// The key, in settings or in a document.
    case kept(S3Keys.Source)
    /// The key that the cloud service gives to the machine or container.
    case metadata(S3Metadata.Settings)
    /// An external signer has the key.
    case signer(OwnService.Source, hosts: [String])
    /// The person's own service hands out temporary keys.
    case served(OwnService.Source)
}

extension S3Access {
    /// The configuration keys for a key of Alibaba Cloud.
    static let keysOfAlibaba = [
        SettingKey("access_key", .secret, "The key's id."),
        SettingKey("secret_key", .secret, "The key itself."),
        SettingKey("session_token", .secret, "The token of a temporary key."),
        SettingKey(
            "credentials", .secret,
            "Instead of these three: JSON with `AccessKeyId`, `AccessKeySecret`, `SecurityToken` and `Expiration`, or a credentials file."
        ),
        SettingKey("profile", .text, "Which section of a credentials file; `default` by default."),
        SettingKey(
            "sts", .section(OwnService.keys),
            "Instead of a key: a service of yours that hands out temporary keys of the security token service."),
    ]

    static let keys = [
        SettingKey("access_key", .secret, "The key's id."),
        SettingKey("secret_key", .secret, "The key itself."),
        SettingKey("session_token", .secret, "The token of a temporary key."),
        SettingKey(
            "credentials", .secret,
            "Instead of these three: a shared credentials file, or JSON as a `credential_process` prints it."),
        SettingKey("profile", .text, "Which section of a credentials file; `default` by default."),
        SettingKey(
            "instance_metadata",
            .section([
                SettingKey(
                    "kind", .choice(S3Metadata.Kind.allCases.map(\.rawValue)), required: true,
                    "The source of the key: the `instance` (IMDSv2), or the `container` service."),
                SettingKey("url", .url, "The address of that source; the kind's own by default."),
                SettingKey("role", .text, "The role of the instance; the one that it has by default."),
                SettingKey(
                    "token", .secret, "The token for the container service; the one in the environment by default."),
            ]), "Instead of a key: the credentials that the machine or the container gets."),
        SettingKey(
            "presign",
            .section(
                OwnService.keys + [
                    SettingKey("hosts", .texts, "Hosts that signed addresses may name, in addition to the endpoint.")
                ]), "Instead of a key: a service that has it and signs each request."),
    ]

    /// - Returns: `nil` where no access is configured.
    static func of(_ values: [String: SettingValue]) -> S3Access? {
        if let kind: S3Metadata.Kind = values.word("instance_metadata.kind") {
            return .metadata(
                S3Metadata.Settings(
                    kind: kind, url: values.text("instance_metadata.url"), role: values.text("instance_metadata.role"),
                    token: values.secret("instance_metadata.token")))
        }
        if let signer = OwnService.way(values, in: S3Presigner.section) {
            return .signer(signer, hosts: values.texts("presign.hosts") ?? [])
        }
        if let service = OwnService.way(values, in: "sts") { return .served(service) }
        if let document = values.secret("credentials") {
            return .kept(.document(document, profile: values.text("profile") ?? "default"))
        }
        guard let id = values.secret("access_key"), let key = values.secret("secret_key") else { return nil }
        return .kept(.words(id: id, secret: key, token: values.secret("session_token")))
    }

    /// - Parameters:
    ///   - further: The sections of a type for access in addition to a stored key.
    ///   - place: The configuration key at which a missing access is reported.
    static func objections(
        _ values: [String: SettingValue], further: [String] = ["instance_metadata", "presign"],
        at place: String = "bucket"
    ) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        let hasWords = ["access_key", "secret_key", "session_token"].contains { values.has($0) }
        let hasDocument = values.has("credentials")
        let sections = further.filter { OwnService.isSet(values, in: $0) }
        if hasDocument, hasWords {
            object("credentials", "replaces `access_key`, `secret_key` and `session_token`")
        }
        for (number, section) in sections.enumerated() where hasWords || hasDocument || number > 0 {
            let whose = ["presign", "authorisation"].contains(section) ? ", which another service holds" : ""
            object(section, "replaces a key\(whose); take one of them out")
        }
        if sections.isEmpty, !hasDocument {
            let lacking = ["access_key", "secret_key"].filter { !values.has($0) }
            if let there = ["access_key", "secret_key", "session_token"].first(where: { values.has($0) }) {
                let names = lacking.map { "`\($0)`" }.joined(separator: " and ")
                if !lacking.isEmpty { object(there, "needs \(names) beside it") }
            } else {
                all.append(
                    SettingObjection(
                        key: place,
                        problem:
                            "needs a key: set `access_key` and `secret_key`, or "
                            + (further.isEmpty
                                ? "`credentials`"
                                : "`credentials`, " + further.map { "`\($0)`" }.joined(separator: " or ")),
                        missing: further))
            }
        }
        if let profile = values.text("profile"), !hasDocument {
            object("profile", "is `\(profile)`, and has no effect without `credentials`")
        }
        return all + S3Metadata.objections(values) + S3Presigner.objections(values)
            + OwnService.objections(values, in: "sts", lacking: "names no service for keys")
    }

    /// The configuration keys in which it is set.
    var shown: String {
        switch self {
        case .kept(.words(_, _, nil)): "`access_key` and `secret_key`"
        case .kept(.words): "`access_key`, `secret_key` and `session_token`"
        case .kept(.document): "`credentials`"
        case .metadata: "`instance_metadata`"
        case .signer: "`presign`"
        case .served: "`sts`"
        }
    }

    /// The address for signing requests; `nil` where no network service signs.
    var signerAddress: WebAddress? {
        if case .signer(.service(let url, _, _), _) = self { WebAddress(url) } else { nil }
    }

    func signer(_ settings: S3Settings, _ client: AuthorizedClient, _ tools: DestinationTools) -> any S3Signing {
        switch self {
        case .signer(let signer, let hosts):
            S3Presigner(signer, hosts: hosts, client: client, settings: settings, reader: tools.secrets)
        case .kept(let source): S3KeySigner(Self.keys(source, tools), client: client, settings: settings)
        case .metadata(let metadata):
            S3KeySigner(
                S3Metadata(metadata, client: client, reader: tools.secrets), client: client, settings: settings)
        case .served(let way):
            S3KeySigner(
                STSKeys.make(way, client, tools, reply: settings.limits.reply), client: client, settings: settings)
        }
    }

    /// The source of a key of Alibaba Cloud; `nil` if there is none.
    ///
    /// - Parameter reply: `reply_timeout` of the destination, where it is set.
    func keys(_ client: AuthorizedClient, _ tools: DestinationTools, reply: Duration?) -> (any S3KeySource)? {
        switch self {
        case .kept(let source): Self.keys(source, tools)
        case .served(let way): STSKeys.make(way, client, tools, reply: reply)
        case .metadata, .signer: nil
        }
    }

    private static func keys(_ source: S3Keys.Source, _ tools: DestinationTools) -> S3Keys {
        let clocks = tools.clocks
        return S3Keys(source, reader: tools.secrets, now: { clocks.wall() })
    }
}
