internal import Core
internal import Credentials
internal import Transport

/// A person's settings for a bucket, with defaults filled in.
struct S3Settings: Sendable {
    var preset: S3Preset
    var bucket: String
    var region: String
    /// Scheme and host, without the bucket; may contain `{region}`.
    var endpoint: String
    /// The host names the bucket.
    var isVirtual: Bool
    /// The endpoint's host is the bucket's own.
    var hasOwnHost = false
    var checksum: S3Preset.Checksum
    var tags: S3Preset.Tags
    var taken = NameConflictRule.suffix
    var partSize: Int64 = 16 << 20
    var parallel = 4
    /// Files up to this size are sent in one request.
    var singleUpTo: Int64 = 16 << 20
    var limits = RequestLimits()
    var signing = BucketProtocolNames.Signing.s3
    /// The bandwidth limit of the policy is sent to the service.
    var tellsLimit = false
    /// The object's key was assigned by the service that gave the right to it.
    var assignedObject: S3AssignedObject?
    /// Headers for each object: storage class, encryption, ACL, tags.
    var objectHeaders: [(name: String, value: String)] = []
    var access = S3AccessSettings()
}

extension HTTPUse {
    /// A bucket, whose requests are signed.
    static let ofBucket = HTTPUse(
        reserved: ["x-amz-*", "x-oss-*", "x-acs-*", "date", "content-type", "content-md5", "range", "authorization"],
        addresses: ["endpoint"]
    ) { $0.has("presign.url") || $0.has("presign.command") ? "presign" : "access_key" }
}

extension S3Settings {
    /// The origins of the bucket: its own host, and that of the service.
    var origins: Set<String> {
        let service = WebAddress(endpoint.replacing("{region}", with: region))
        var own = service
        if isVirtual, !hasOwnHost { own.authority = "\(bucket).\(service.authority ?? "")" }
        return [service.origin, own.origin]
    }
}

/// One object for which a right was given: its key is neither chosen nor changed.
struct S3AssignedObject: Sendable {
    var key: FilePath
    /// The names of fields of the checkpoint that stay when the upload starts again.
    var lasting: [String]
    /// Headers that are sent with the end of an upload in parts.
    var ending: [(name: String, value: String)] = []
    /// Queries the service that gave the grant whether it has the whole file; `nil` if that cannot be determined. The
    /// right itself may not allow looking.
    var isWhole: @Sendable () async throws -> Bool?
}

extension S3 {
    static let kind = DestinationDefinition(
        type: DestinationSchema(
            name: "s3", summary: "a bucket at Amazon S3, or at a service or server that speaks its protocol",
            keys: keys.map(\.setting), presets: S3Preset.all.map { ($0.name, $0.summary) },
            objections: { objections($0) }),
        http: .ofBucket
    ) { values, tools in try S3(values, tools) }

    static let keys = DestinationKey<S3Settings>.table {
        DestinationKey("bucket", \.bucket, required: true, "The bucket. It must exist, and is never created.")
        DestinationKey(
            "preset", .choice(S3Preset.all.map(\.name)),
            "The service; `other` by default, `aws` without `endpoint`.")
        DestinationKey("endpoint", .url, "The service's address, without the bucket; the preset's by default.")
        DestinationKey("region", .text, "The region that requests are signed for; the preset's, or `us-east-1`.")
        DestinationKey(
            "addressing", .choice(["path", "virtual"]),
            "Where the bucket is named: in the path, or as a part of the host; the preset's by default."
        ) { $1.isVirtual = $0 == .text("virtual") }
        for key in S3AccessSettings.keys { key.of(\.access) }
        for key in S3Settings.sizes { key }
        DestinationKey(
            "checksum", \.checksum, among: S3Preset.Checksum.allCases.filter { $0 != .crc64 },
            "The checksum that is sent for comparison: of the whole object (`crc64nvme`, `crc32c`), of each part (`sha256`, `md5`), or `none`; the preset's by default."
        )
        DestinationKey(
            "etag", \.tags, among: [.md5, .opaque],
            "What the service's ETags of 32 digits are: the `md5` of the bytes, or `opaque`; the preset's by default, detected for `other`."
        )
        S3Settings.taken
        DestinationKey.header(
            "x-amz-storage-class", "storage_class", .text,
            "`STANDARD_IA`, `GLACIER_IR` … as the service names them.")
        DestinationKey.header("x-amz-acl", "acl", .text, "A canned ACL, like `bucket-owner-full-control`.")
        DestinationKey.header(
            "x-amz-server-side-encryption", "encryption", .choice(["AES256", "aws:kms", "aws:kms:dsse"]),
            "Encryption at the service.")
        DestinationKey.header(
            "x-amz-server-side-encryption-aws-kms-key-id", "kms_key", .text,
            "The key for `aws:kms`; the account's own by default.")
        DestinationKey.tags("x-amz-tagging")
        for key in RequestLimits.keys { key.of(\.limits) }
    }

    static func settings(_ values: [String: SettingValue]) -> S3Settings? {
        let endpoint = values.text("endpoint")
        guard let bucket = values.text("bucket"), let preset = preset(values),
            let region = values.text("region") ?? preset.region ?? (endpoint == nil ? nil : "us-east-1"),
            let address = endpoint ?? preset.host(in: region).map({ "https://\($0)" })
        else { return nil }
        var settings = S3Settings(of: preset)
        settings.region = region
        settings.endpoint = withoutSlash(address)
        settings.isVirtual = preset.isVirtual && endpoint == nil && isHostName(bucket)
        keys.apply(values, to: &settings)
        return settings
    }

    private static func preset(_ values: [String: SettingValue]) -> S3Preset? {
        S3Preset.named(values.text("preset") ?? (values.has("endpoint") ? S3Preset.other.name : "aws"))
    }

    /// Whether it can be a part of a host name under a certificate for `*.host`.
    private static func isHostName(_ bucket: String) -> Bool {
        bucket.utf8.allSatisfy { S3ValueChecks.isOfHosts($0) }
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        if let bucket = values.text("bucket") {
            let isName =
                (3...255).contains(bucket.utf8.count)
                && bucket.utf8.allSatisfy { $0.isLetterOrDigit(or: "-._") } && bucket.first != "."
                && !bucket.contains("..")
            if !isName { object("bucket", "takes 3 to 255 letters, digits, dots and hyphens, not `\(bucket)`") }
            if values.text("addressing") == "virtual", !isHostName(bucket) {
                object("addressing", "is `virtual`, and `\(bucket)` cannot be a part of a host's name; use `path`")
            }
        }
        let endpoint = values.text("endpoint")
        all += S3ValueChecks.objections(values)
        let preset = preset(values)
        if let preset, endpoint == nil {
            if preset.host == nil {
                object("preset", "is `\(preset.name)`, whose address only you know: set `endpoint`")
            }
            if preset.region == nil, values.text("region") == nil {
                object("preset", "is `\(preset.name)`: set `region`")
            }
        }
        if let endpoint, let path = Optional(WebAddress(endpoint).path), !path.isEmpty, path != "/" {
            object("endpoint", "ends with its host: the bucket is named in `bucket`, and folders in names")
        }
        all += S3Access.objections(values)
        if values.has("kms_key"), values.text("encryption")?.hasPrefix("aws:kms") != true {
            object("kms_key", "has no effect without `encryption: aws:kms`")
        }
        return all + S3Settings.objections(values, preset)
    }
}

// Keys that are the same for every service.
extension S3Settings: DeclaredSettings {
    static let defaults = S3Settings(of: .other)

    /// Settings without a bucket yet.
    init(of preset: S3Preset) {
        self.init(
            preset: preset, bucket: "", region: "", endpoint: "", isVirtual: preset.isVirtual,
            checksum: preset.checksum, tags: preset.tags)
    }

    static let sizes = DestinationKey<S3Settings>.table {
        DestinationKey(
            "part_size", \.partSize, "Bytes of a part, {default} by default; more if a file would have too many parts.")
        DestinationKey(
            "single_up_to", \.singleUpTo, "Files up to this size are sent in one request; {default} by default.")
        DestinationKey(
            "parallel", \.parallel, as: .whole(1...16),
            "Parts of one file that are sent at once; {default} by default.")
    }
    static let taken = DestinationKey<Self>(
        "taken", \.taken,
        "What to do if the key holds another file: add a number (`suffix`, default), `replace` it, or `fail`.")
    static let trafficLimit = DestinationKey<Self>(
        "traffic_limit", \.tellsLimit,
        "Whether the service gets the rate limit of the policy, and enforces it too; `{default}` by default.")

    /// The tags in the form of the header.
    fileprivate static func tagging(_ tags: [String: SecretSource]) -> String {
        tags.sorted { $0.key < $1.key }.compactMap { name, source -> String? in
            guard case .literal(let value) = source else { return nil }
            return "\(PercentCoding.encode(name.utf8))=\(PercentCoding.encode(value.utf8))"
        }.joined(separator: "&")
    }

    /// - Parameter name: The service's name in messages; the preset's by default.
    static func objections(
        _ values: [String: SettingValue], _ preset: S3Preset?, of name: String? = nil
    ) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        let smallest = preset?.smallestPart ?? 5 << 20
        for key in ["part_size", "single_up_to"] {
            guard let size = values.bytes(key) else { continue }
            if size > 5 << 30 { object(key, "is at most 5 GiB, for every service") }
            if key == "part_size", size < smallest {
                let name = name ?? preset?.name ?? S3Preset.other.name
                object(key, "is at least \(shownSize(smallest)) for `\(name)`")
            }
        }
        if let tags = values.map("tags") {
            if tags.count > 10 { object("tags", "are at most 10") }
            for (name, source) in tags.sorted(by: { $0.key < $1.key }) {
                guard case .literal(let text) = source else {
                    object("tags.\(name)", "is plain text: every reader of the object sees it")
                    continue
                }
                if (name + text).contains(where: { $0 == "{" || $0 == "}" }) {
                    object(
                        "tags.\(name)",
                        "has braces, and tags are the same for each object; use placeholders in `metadata` of the folder, "
                            + "which goes with each object")
                }
            }
        }
        return all
    }
}

extension DestinationKey<S3Settings> {
    /// A key whose value is a header of each object.
    static func header(_ header: String, _ name: String, _ kind: SettingKey.Kind, _ summary: String) -> Self {
        Self(name, kind, summary) { value, settings in
            if let text = String.of(value) { settings.objectHeaders.append((header, text)) }
        }
    }

    /// - Parameter header: The header with all tags.
    static func tags(_ header: String) -> Self {
        Self("tags", .labels, "Tags of each object.") { value, settings in
            guard let tags = [String: SecretSource].of(value) else { return }
            settings.objectHeaders.append((header, S3Settings.tagging(tags)))
        }
    }
}
