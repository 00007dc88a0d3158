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
    var signing = BucketWire.Signing.s3
    /// The bandwidth limit of the policy is sent to the service.
    var tellsLimit = false
    /// The object's key was assigned by the service that gave the right to it.
    var assignedObject: S3AssignedObject?
    /// Headers for each object: storage class, encryption, ACL, tags.
    var objectHeaders: [(name: String, value: String)] = []
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
    static let kind = DestinationKind(
        type: DestinationType(
            name: "s3", summary: "a bucket at Amazon S3, or at a service or server that speaks its protocol",
            keys: [
                SettingKey("bucket", .text, required: true, "The bucket. It must exist, and is never created."),
                SettingKey(
                    "preset", .choice(S3Preset.all.map(\.name)),
                    "The service; `other` by default, `aws` without `endpoint`."),
                SettingKey("endpoint", .url, "The service's address, without the bucket; the preset's by default."),
                SettingKey("region", .text, "The region that requests are signed for; the preset's, or `us-east-1`."),
                SettingKey(
                    "addressing", .choice(["path", "virtual"]),
                    "Where the bucket is named: in the path, or as a part of the host; the preset's by default."),
            ] + S3Access.keys + [
                SettingKey(
                    "part_size", .size, "Bytes of a part, 16 MiB by default; more if a file would have too many parts."),
                SettingKey("single_up_to", .size, "Files up to this size are sent in one request; 16 MiB by default."),
                SettingKey("parallel", .whole(1...16), "Parts of one file that are sent at once; 4 by default."),
                SettingKey(
                    "checksum", .choice(S3Preset.Checksum.allCases.filter { $0 != .crc64 }.map(\.rawValue)),
                    "The checksum that is sent for comparison: of the whole object (`crc64nvme`, `crc32c`), of each part (`sha256`, `md5`), or `none`; the preset's by default."
                ),
                SettingKey(
                    "etag", .choice([S3Preset.Tags.md5.rawValue, S3Preset.Tags.opaque.rawValue]),
                    "What the service's ETags of 32 digits are: the `md5` of the bytes, or `opaque`; the preset's by default, detected for `other`."
                ),
                SettingKey(
                    "taken", .choice(NameConflictRule.allCases.map(\.rawValue)),
                    "What to do if the key holds another file: add a number (`suffix`, default), `replace` it, or `fail`."
                ),
                SettingKey("storage_class", .text, "`STANDARD_IA`, `GLACIER_IR` … as the service names them."),
                SettingKey("acl", .text, "A canned ACL, like `bucket-owner-full-control`."),
                SettingKey("encryption", .choice(["AES256", "aws:kms", "aws:kms:dsse"]), "Encryption at the service."),
                SettingKey("kms_key", .text, "The key for `aws:kms`; the account's own by default."),
                SettingKey("tags", .labels, "Tags of each object."),
                SettingKey("ca_file", .path, "Certificates to trust instead of the system's (PEM)."),
                SettingKey("stall_timeout", .duration, "How long the server may accept no byte; 60 s by default."),
                SettingKey(
                    "reply_timeout", .duration, "How long it may take to answer after the last byte; 10 min by default."
                ),
            ], presets: S3Preset.all.map { ($0.name, $0.summary) }, objections: { objections($0) })
    ) { values, tools in try S3(values, tools) }

    static func settings(_ values: [String: SettingValue]) -> S3Settings? {
        func text(_ key: String) -> String? { if case .text(let text)? = values[key] { text } else { nil } }
        guard let bucket = text("bucket") else { return nil }
        let endpoint = text("endpoint")
        guard let preset = S3Preset.named(text("preset") ?? (endpoint == nil ? "aws" : "other")) else { return nil }
        guard let region = text("region") ?? preset.region ?? (endpoint == nil ? nil : "us-east-1") else { return nil }
        guard let address = endpoint ?? preset.host(in: region).map({ "https://\($0)" }) else { return nil }
        var settings = S3Settings(
            preset: preset, bucket: bucket, region: region,
            endpoint: address.hasSuffix("/") ? String(address.dropLast()) : address,
            isVirtual: text("addressing").map { $0 == "virtual" }
                ?? (preset.isVirtual && endpoint == nil && isHostName(bucket)), checksum: preset.checksum,
            tags: preset.tags)
        if let word = text("checksum"), let kind = S3Preset.Checksum(rawValue: word) { settings.checksum = kind }
        if let word = text("etag"), let tags = S3Preset.Tags(rawValue: word) { settings.tags = tags }
        settings.apply(values)
        for (key, header) in [
            ("storage_class", "x-amz-storage-class"), ("acl", "x-amz-acl"),
            ("encryption", "x-amz-server-side-encryption"), ("kms_key", "x-amz-server-side-encryption-aws-kms-key-id"),
        ] {
            if let value = text(key) { settings.objectHeaders.append((header, value)) }
        }
        if let tags = S3Settings.tagging(values) { settings.objectHeaders.append(("x-amz-tagging", tags)) }
        return settings
    }

    /// Whether it can be a part of a host name under a certificate for `*.host`.
    private static func isHostName(_ bucket: String) -> Bool {
        bucket.utf8.allSatisfy { S3ValueChecks.isOfHosts($0) }
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        func text(_ key: String) -> String? { if case .text(let text)? = values[key] { text } else { nil } }
        if let bucket = text("bucket") {
            let isName =
                (3...255).contains(bucket.utf8.count)
                && bucket.utf8.allSatisfy { $0.isLetterOrDigit(or: "-._") } && bucket.first != "."
                && !bucket.contains("..")
            if !isName { object("bucket", "takes 3 to 255 letters, digits, dots and hyphens, not `\(bucket)`") }
            if text("addressing") == "virtual", !isHostName(bucket) {
                object("addressing", "is `virtual`, and `\(bucket)` cannot be a part of a host's name; use `path`")
            }
        }
        let endpoint = text("endpoint")
        all += S3ValueChecks.objections(values)
        let preset = S3Preset.named(text("preset") ?? (endpoint == nil ? "aws" : "other"))
        if let preset, endpoint == nil {
            if preset.host == nil {
                object("preset", "is `\(preset.name)`, whose address only you know: set `endpoint`")
            }
            if preset.region == nil, text("region") == nil { object("preset", "is `\(preset.name)`: set `region`") }
        }
        if let endpoint, let path = Optional(WebAddress(endpoint).path), !path.isEmpty, path != "/" {
            object("endpoint", "ends with its host: the bucket is named in `bucket`, and folders in names")
        }
        all += S3Access.objections(values)
        if values["kms_key"] != nil, text("encryption")?.hasPrefix("aws:kms") != true {
            object("kms_key", "has no effect without `encryption: aws:kms`")
        }
        return all + S3Settings.objections(values, preset)
    }
}

// Settings with the same keys for every service.
extension S3Settings {
    mutating func apply(_ values: [String: SettingValue]) {
        if case .text(let word)? = values["taken"], let rule = NameConflictRule(rawValue: word) { taken = rule }
        if case .bytes(let size)? = values["part_size"] { partSize = size }
        if case .bytes(let size)? = values["single_up_to"] { singleUpTo = size }
        if case .whole(let count)? = values["parallel"] { parallel = count }
        if case .flag(let isWanted)? = values["traffic_limit"] { tellsLimit = isWanted }
        limits = RequestLimits(values)
    }

    /// The tags in the form of the header.
    static func tagging(_ values: [String: SettingValue]) -> String? {
        guard case .map(let tags)? = values["tags"] else { return nil }
        return tags.sorted { $0.key < $1.key }.compactMap { name, source -> String? in
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
            guard case .bytes(let size)? = values[key] else { continue }
            if size > 5 << 30 { object(key, "is at most 5 GiB, for every service") }
            if key == "part_size", size < smallest {
                let least = smallest < 1 << 20 ? "\(smallest >> 10) KiB" : "\(smallest >> 20) MiB"
                object(key, "is at least \(least) for `\(name ?? preset?.name ?? "other")`")
            }
        }
        if case .map(let tags)? = values["tags"] {
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
