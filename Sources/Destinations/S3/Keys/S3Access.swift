internal import Core
internal import Credentials
internal import Transport

/// How a bucket is accessed, as a person configured it.
enum S3Access: Sendable {
    /// The key, in settings or in a document.
    case kept(S3Keys.Source)
    /// The key that the cloud service gives to the machine or container.
    case metadata(InstanceMetadataKeys.Settings)
    /// An external signer has the key.
    case signer(CredentialHelper.Source, hosts: [String])
    /// The person's own service hands out temporary keys.
    case served(CredentialHelper.Source)
}

/// A person's settings for the access to a bucket.
struct S3AccessSettings: DeclaredSettings {
    var id: SecretSource?
    var secret: SecretSource?
    var token: SecretSource?
    var document: SecretSource?
    var profile = "default"
    /// `nil`: no machine or container is asked.
    var metadataKind: InstanceMetadataKeys.Kind?
    var metadata = InstanceMetadataKeys.Settings(kind: .instance)
    var signer = CredentialHelper.Settings()
    /// Hosts that signed addresses may name.
    var signedHosts: [String] = []
    var keyService = CredentialHelper.Settings()

    static let defaults = S3AccessSettings()

    static let keys = DestinationKey<S3AccessSettings>.table {
        for key in storedKeys(
            credentials:
                "Instead of these three: a shared credentials file, or JSON as a `credential_process` prints it.")
        { key }
        DestinationKey(
            "instance_metadata", metadataKeys,
            "Instead of a key: the credentials that the machine or the container gets.")
        DestinationKey(
            S3Presigner.section,
            CredentialHelper.Settings.keys.map { $0.of(\.signer) } + [
                DestinationKey(
                    "hosts", \.signedHosts, "Hosts that signed addresses may name, in addition to the endpoint.")
            ], "Instead of a key: a service that has it and signs each request.")
    }

    /// The keys for a key of Alibaba Cloud.
    static let keysOfAlibaba = DestinationKey<S3AccessSettings>.table {
        for key in storedKeys(
            credentials:
                "Instead of these three: JSON with `AccessKeyId`, `AccessKeySecret`, `SecurityToken` and `Expiration`, or a credentials file."
        ) { key }
        DestinationKey(
            "sts", CredentialHelper.Settings.keys.map { $0.of(\.keyService) },
            "Instead of a key: a service of yours that hands out temporary keys of the security token service.")
    }

    private static func storedKeys(credentials summary: String) -> [DestinationKey<Self>] {
        DestinationKey.table {
            DestinationKey("access_key", \.id, "The key's id.")
            DestinationKey("secret_key", \.secret, "The key itself.")
            DestinationKey("session_token", \.token, "The token of a temporary key.")
            DestinationKey("credentials", \.document, summary)
            DestinationKey("profile", \.profile, "Which section of a credentials file; `{default}` by default.")
        }
    }

    private static let metadataKeys = DestinationKey<S3AccessSettings>.table {
        DestinationKey(
            "kind", \.metadataKind, required: true,
            "The source of the key: the `instance` (IMDSv2), or the `container` service.")
        DestinationKey("url", \.metadata.url, as: .url, "The address of that source; the kind's own by default.")
        DestinationKey("role", \.metadata.role, "The role of the instance; the one that it has by default.")
        DestinationKey(
            "token", \.metadata.token,
            "The token for the container service; the one in the environment by default.")
    }
}

extension S3Access {
    /// `nil` where no access is configured.
    init?(_ settings: S3AccessSettings) {
        if let kind = settings.metadataKind {
            var metadata = settings.metadata
            metadata.kind = kind
            self = .metadata(metadata)
        } else if let signer = settings.signer.source {
            self = .signer(signer, hosts: settings.signedHosts)
        } else if let service = settings.keyService.source {
            self = .served(service)
        } else if let document = settings.document {
            self = .kept(.document(document, profile: settings.profile))
        } else if let id = settings.id, let secret = settings.secret {
            self = .kept(.words(id: id, secret: secret, token: settings.token))
        } else {
            return nil
        }
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
        let sections = further.filter { CredentialHelper.isSet(values, in: $0) }
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
        return all + InstanceMetadataKeys.objections(values) + S3Presigner.objections(values)
            + CredentialHelper.objections(values, in: "sts", lacking: "names no service for keys")
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
                InstanceMetadataKeys(metadata, client: client, reader: tools.secrets), client: client,
                settings: settings)
        case .served(let source):
            S3KeySigner(
                STSKeys.make(source, client, tools, reply: settings.limits.reply), client: client, settings: settings)
        }
    }

    /// The source of a key of Alibaba Cloud; `nil` if there is none.
    ///
    /// - Parameter reply: `reply_timeout` of the destination, where it is set.
    func keys(_ client: AuthorizedClient, _ tools: DestinationTools, reply: Duration?) -> (any S3KeySource)? {
        switch self {
        case .kept(let source): Self.keys(source, tools)
        case .served(let source): STSKeys.make(source, client, tools, reply: reply)
        case .metadata, .signer: nil
        }
    }

    private static func keys(_ source: S3Keys.Source, _ tools: DestinationTools) -> S3Keys {
        let clocks = tools.clocks
        return S3Keys(source, reader: tools.secrets, now: { clocks.wall() })
    }
}
