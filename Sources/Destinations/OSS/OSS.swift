internal import Core
internal import Credentials
internal import Transport

/// A bucket of Alibaba Cloud OSS: like ``S3``, with OSS's names and signatures.
enum OSS {
    /// The kind of the service's addresses.
    enum AddressKind: String, CaseIterable {
        case `public`, `internal`, accelerate

        func host(in region: String) -> String {
            switch self {
            case .public: "oss-\(region).aliyuncs.com"
            case .internal: "oss-\(region)-internal.aliyuncs.com"
            case .accelerate: "oss-accelerate.aliyuncs.com"
            }
        }
    }

    private enum Addressing: String, CaseIterable { case virtual, path, domain }

    /// Alibaba Cloud OSS, "Limits", "Multipart upload": parts of 100 KB to 5 GB, at most 10,000.
    private static let preset = S3Preset(
        name: "oss", summary: "Alibaba Cloud OSS", wire: .oss, region: nil, isVirtual: true, checksum: .crc64,
        conditions: .all, smallestPart: 100 << 10, tags: .md5, comparesDigests: true)

    static let kind = DestinationKind(
        type: DestinationType(
            name: "oss", summary: "a bucket at Alibaba Cloud OSS",
            keys: [
                SettingKey("bucket", .text, required: true, "The bucket. It must exist, and is never created."),
                SettingKey("region", .text, "The region, like `cn-shanghai`; by default that in `endpoint`."),
                SettingKey(
                    "endpoint", .url, "The service's address, without the bucket; that of the region by default."),
                SettingKey(
                    "endpoint_kind", .choice(AddressKind.allCases.map(\.rawValue)),
                    "Which address of the region: `public` by default, `internal` from machines inside, or `accelerate`."
                ),
                SettingKey(
                    "addressing", .choice(Addressing.allCases.map(\.rawValue)),
                    "Where the bucket is named: in the host (`virtual`, default), in the `path`, or nowhere, if `endpoint` is the bucket's own `domain`."
                ),
                SettingKey(
                    "signature", .choice([BucketWire.Signing.v4.rawValue, BucketWire.Signing.v1.rawValue]),
                    "How requests are signed: `v4` by default, `v1` if the region is not known."),
            ] + S3Access.keysOfAlibaba + [
                SettingKey(
                    "part_size", .size, "Bytes of a part, 16 MiB by default; more if a file would have too many parts."),
                SettingKey("single_up_to", .size, "Files up to this size are sent in one request; 16 MiB by default."),
                SettingKey("parallel", .whole(1...16), "Parts of one file that are sent at once; 4 by default."),
                SettingKey(
                    "traffic_limit", .flag,
                    "Whether the service gets the rate limit of the policy, and enforces it too; `false` by default."),
                SettingKey(
                    "taken", .choice(NameConflictRule.allCases.map(\.rawValue)),
                    "What to do if the key holds another file: add a number (`suffix`, default), `replace` it, or `fail`."
                ),
                SettingKey("storage_class", .text, "`Standard`, `IA`, `Archive` … as the service names them."),
                SettingKey(
                    "acl", .choice(["default", "private", "public-read", "public-read-write"]),
                    "Who may read each object; as for the bucket by default."),
                SettingKey("encryption", .choice(["AES256", "KMS", "SM4"]), "Encryption at the service."),
                SettingKey("kms_key", .text, "The key for `KMS`; the account's own by default."),
                SettingKey("tags", .labels, "Tags of each object."),
                SettingKey("ca_file", .path, "Certificates to trust instead of the system's (PEM)."),
                SettingKey("stall_timeout", .duration, "How long the server may accept no byte; 60 s by default."),
                SettingKey(
                    "reply_timeout", .duration, "How long it may take to answer after the last byte; 10 min by default."
                ),
            ], objections: { objections($0) })
    ) { values, tools in
        if let objection = objections(values).first {
            throw UnusableSetting(key: objection.key, problem: objection.problem)
        }
        guard let settings = settings(values) else { throw UnusableSetting(key: "bucket", problem: "is missing") }
        guard let access = S3Access.of(values) else { throw UnusableSetting(key: "access_key", problem: "is missing") }
        var caFile: FilePath?
        if case .path(let path)? = values["ca_file"] { caFile = path }
        return S3(settings, access, caFile: caFile, tools)
    }

    /// The header that makes the service limit one connection, in bits a second (OSS API reference, "Single-connection
    /// bandwidth throttling"). The value stays within the limits of the service.
    ///
    /// - Parameter rate: Bytes a second.
    static func trafficLimit(_ rate: Int64?) -> (name: String, value: String)? {
        guard let rate, rate > 0 else { return nil }
        let bits = min(rate, 838_860_800 / 8) * 8
        return ("x-oss-traffic-limit", "\(max(bits, 819_200))")
    }

    // MARK: Settings

    /// Settings without a bucket yet.
    static var unplaced: S3Settings {
        S3Settings(
            preset: preset, bucket: "", region: "", endpoint: "", isVirtual: true, checksum: preset.checksum,
            tags: preset.tags)
    }

    static func settings(_ values: [String: SettingValue]) -> S3Settings? {
        func text(_ key: String) -> String? { if case .text(let text)? = values[key] { text } else { nil } }
        guard let bucket = text("bucket"), let address = address(values) else { return nil }
        let addressing = text("addressing").flatMap { Addressing(rawValue: $0) } ?? .virtual
        let region = region(values)
        var settings = S3Settings(
            preset: preset, bucket: bucket, region: region ?? "",
            endpoint: address.hasSuffix("/") ? String(address.dropLast()) : address, isVirtual: addressing != .path,
            checksum: preset.checksum, tags: preset.tags)
        settings.hasOwnHost = addressing == .domain
        settings.signing = text("signature").flatMap { .init(rawValue: $0) } ?? (region == nil ? .v1 : .v4)
        settings.apply(values)
        for (key, header) in [
            ("storage_class", "x-oss-storage-class"), ("acl", "x-oss-object-acl"),
            ("encryption", "x-oss-server-side-encryption"), ("kms_key", "x-oss-server-side-encryption-key-id"),
        ] {
            if let value = text(key) { settings.objectHeaders.append((header, value)) }
        }
        if let tags = S3Settings.tagging(values) { settings.objectHeaders.append(("x-oss-tagging", tags)) }
        return settings
    }

    private static func address(_ values: [String: SettingValue]) -> String? {
        if case .text(let endpoint)? = values["endpoint"] { return endpoint }
        guard let region = region(values) else { return nil }
        return "https://\(addressKind(values).host(in: region))"
    }

    private static func addressKind(_ values: [String: SettingValue]) -> AddressKind {
        if case .text(let word)? = values["endpoint_kind"] { AddressKind(rawValue: word) ?? .public } else { .public }
    }

    /// The region as configured, or from the address: `oss-cn-shanghai.aliyuncs.com`,
    /// `oss-cn-shanghai-internal.aliyuncs.com`.
    static func region(_ values: [String: SettingValue]) -> String? {
        if case .text(let region)? = values["region"] { return region }
        guard case .text(let endpoint)? = values["endpoint"] else { return nil }
        return region(ofHost: WebAddress(endpoint).host)
    }

    static func region(ofHost host: String) -> String? {
        let domain = ".aliyuncs.com"
        guard host.hasPrefix("oss-"), host.hasSuffix(domain) else { return nil }
        let name = host.dropFirst(4).dropLast(domain.count)
        let region = name.hasSuffix("-internal") ? name.dropLast("-internal".count) : name
        return region.isEmpty || region.hasPrefix("accelerate") || region.contains(".") ? nil : String(region)
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        func text(_ key: String) -> String? { if case .text(let text)? = values[key] { text } else { nil } }
        if let bucket = text("bucket") {
            let isName =
                (3...63).contains(bucket.utf8.count) && bucket.utf8.allSatisfy { S3ValueChecks.isOfHosts($0) }
                && bucket.first != "-" && bucket.last != "-"
            if !isName {
                object(
                    "bucket", "takes 3 to 63 small letters, digits and hyphens, no hyphen at its ends, not `\(bucket)`")
            }
        }
        if let region = text("region"), region.isEmpty || !region.utf8.allSatisfy({ S3ValueChecks.isOfHosts($0) }) {
            object("region", "takes small letters, digits and hyphens, like `cn-shanghai`, not `\(region)`")
        } else if let region = text("region"), region.hasPrefix("oss-") {
            object("region", "is the plain name, without `oss-` before it: `\(region.dropFirst(4))`")
        }
        let endpoint = text("endpoint")
        if endpoint == nil, text("region") == nil {
            all.append(
                SettingObjection(
                    key: "bucket", problem: "needs `region` or `endpoint` beside it", missing: ["region", "endpoint"]))
        }
        if let endpoint {
            let address = WebAddress(endpoint)
            if !address.path.isEmpty, address.path != "/" {
                object("endpoint", "ends with its host: the bucket is named in `bucket`, and folders in names")
            }
            if values["endpoint_kind"] != nil { object("endpoint_kind", "has no effect with `endpoint`") }
            let isNumber = IPAddress(address.host.filter { $0 != "[" && $0 != "]" }) != nil
            if isNumber, (text("addressing") ?? "virtual") == "virtual" {
                object(
                    "endpoint",
                    "has the address \(address.host), before which no bucket can be named: set `addressing: path`"
                )
            }
        } else if text("addressing") == "domain" {
            object("addressing", "is `domain`, and that domain is to be set as `endpoint`")
        }
        if text("signature") == "v4", region(values) == nil {
            object("signature", "is `v4`, which needs `region`: `endpoint` does not tell it")
        }
        all += S3ValueChecks.marked(values) + S3Access.objections(values, further: ["sts"])
        if values["kms_key"] != nil, text("encryption") != "KMS" {
            object("kms_key", "has no effect without `encryption: KMS`")
        }
        return all + S3Settings.objections(values, preset)
    }
}
