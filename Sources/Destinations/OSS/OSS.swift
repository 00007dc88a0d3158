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

    static let kind = DestinationDefinition(
        type: DestinationSchema(
            name: "oss", summary: "a bucket at Alibaba Cloud OSS", keys: keys.map(\.setting),
            objections: { objections($0) }),
        http: .ofBucket
    ) { values, tools in
        if let objection = objections(values).first {
            throw UnusableSettingError(key: objection.key, problem: objection.problem)
        }
        guard let settings = settings(values) else { throw UnusableSettingError(key: "bucket", problem: "is missing") }
        guard let access = S3Access(settings.access) else {
            throw UnusableSettingError(key: "access_key", problem: "is missing")
        }
        return S3(settings, access, tools)
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

    static let keys = DestinationKey<S3Settings>.table {
        DestinationKey("bucket", \.bucket, required: true, "The bucket. It must exist, and is never created.")
        DestinationKey("region", .text, "The region, like `cn-shanghai`; by default that in `endpoint`.")
        DestinationKey(
            "endpoint", .url, "The service's address, without the bucket; that of the region by default.")
        DestinationKey(
            "endpoint_kind", .choice(AddressKind.allCases.map(\.rawValue)),
            "Which address of the region: `public` by default, `internal` from machines inside, or `accelerate`.")
        DestinationKey(
            "addressing", .choice(Addressing.allCases.map(\.rawValue)),
            "Where the bucket is named: in the host (`virtual`, default), in the `path`, or nowhere, if `endpoint` is the bucket's own `domain`."
        ) { value, settings in
            settings.isVirtual = value != .text(Addressing.path.rawValue)
            settings.hasOwnHost = value == .text(Addressing.domain.rawValue)
        }
        DestinationKey(
            "signature", \.signing, among: [.v4, .v1],
            "How requests are signed: `v4` by default, `v1` if the region is not known.")
        for key in S3AccessSettings.keysOfAlibaba { key.of(\.access) }
        for key in S3Settings.sizes { key }
        S3Settings.trafficLimit
        S3Settings.taken
        DestinationKey.header(
            "x-oss-storage-class", "storage_class", .text,
            "`Standard`, `IA`, `Archive` … as the service names them.")
        DestinationKey.header(
            "x-oss-object-acl", "acl", .choice(["default", "private", "public-read", "public-read-write"]),
            "Who may read each object; as for the bucket by default.")
        DestinationKey.header(
            "x-oss-server-side-encryption", "encryption", .choice(["AES256", "KMS", "SM4"]),
            "Encryption at the service.")
        DestinationKey.header(
            "x-oss-server-side-encryption-key-id", "kms_key", .text,
            "The key for `KMS`; the account's own by default.")
        DestinationKey.tags("x-oss-tagging")
        for key in RequestLimits.keys { key.of(\.limits) }
    }

    /// Settings without a bucket yet.
    static var unplaced: S3Settings { S3Settings(of: preset) }

    static func settings(_ values: [String: SettingValue]) -> S3Settings? {
        guard values.has("bucket"), let address = address(values) else { return nil }
        let region = region(values)
        var settings = unplaced
        settings.region = region ?? ""
        settings.endpoint = withoutSlash(address)
        settings.signing = region == nil ? .v1 : .v4
        keys.apply(values, to: &settings)
        return settings
    }

    private static func address(_ values: [String: SettingValue]) -> String? {
        if let endpoint = values.text("endpoint") { return endpoint }
        guard let region = region(values) else { return nil }
        let kind: AddressKind = values.word("endpoint_kind") ?? .public
        return "https://\(kind.host(in: region))"
    }

    /// The region as configured, or from the address: `oss-cn-shanghai.aliyuncs.com`,
    /// `oss-cn-shanghai-internal.aliyuncs.com`.
    static func region(_ values: [String: SettingValue]) -> String? {
        values.text("region") ?? values.text("endpoint").flatMap { region(ofHost: WebAddress($0).host) }
    }

    static func region(ofHost host: String) -> String? {
        let domain = ".aliyuncs.com"
        let host = comparableHostName(host)
        guard host.hasPrefix("oss-"), host.hasSuffix(domain) else { return nil }
        let name = host.dropFirst(4).dropLast(domain.count)
        let region = name.hasSuffix("-internal") ? name.dropLast("-internal".count) : name
        return region.isEmpty || region.hasPrefix("accelerate") || region.contains(".") ? nil : String(region)
    }

    static func objections(_ values: [String: SettingValue]) -> [SettingObjection] {
        var all: [SettingObjection] = []
        func object(_ key: String, _ problem: String) { all.append(SettingObjection(key: key, problem: problem)) }
        if let bucket = values.text("bucket") {
            let isName =
                (3...63).contains(bucket.utf8.count) && bucket.utf8.allSatisfy { S3ValueChecks.isOfHosts($0) }
                && bucket.first != "-" && bucket.last != "-"
            if !isName {
                object(
                    "bucket", "takes 3 to 63 small letters, digits and hyphens, no hyphen at its ends, not `\(bucket)`")
            }
        }
        if let region = values.text("region"),
            region.isEmpty || !region.utf8.allSatisfy({ S3ValueChecks.isOfHosts($0) })
        {
            object("region", "takes small letters, digits and hyphens, like `cn-shanghai`, not `\(region)`")
        } else if let region = values.text("region"), region.hasPrefix("oss-") {
            object("region", "is the plain name, without `oss-` before it: `\(region.dropFirst(4))`")
        }
        let endpoint = values.text("endpoint")
        if endpoint == nil, values.text("region") == nil {
            all.append(
                SettingObjection(
                    key: "bucket", problem: "needs `region` or `endpoint` beside it", missing: ["region", "endpoint"]))
        }
        if let endpoint {
            let address = WebAddress(endpoint)
            if !address.path.isEmpty, address.path != "/" {
                object("endpoint", "ends with its host: the bucket is named in `bucket`, and folders in names")
            }
            if values.has("endpoint_kind") { object("endpoint_kind", "has no effect with `endpoint`") }
            let isNumber = IPAddress(address.host.filter { $0 != "[" && $0 != "]" }) != nil
            if isNumber, (values.text("addressing") ?? "virtual") == "virtual" {
                object(
                    "endpoint",
                    "has the address \(address.host), before which no bucket can be named: set `addressing: path`"
                )
            }
        } else if values.text("addressing") == "domain" {
            object("addressing", "is `domain`, and that domain is to be set as `endpoint`")
        }
        if values.text("signature") == "v4", region(values) == nil {
            object("signature", "is `v4`, which needs `region`: `endpoint` does not tell it")
        }
        all += S3ValueChecks.marked(values) + S3Access.objections(values, further: ["sts"])
        if values.has("kms_key"), values.text("encryption") != "KMS" {
            object("kms_key", "has no effect without `encryption: KMS`")
        }
        return all + S3Settings.objections(values, preset)
    }
}
