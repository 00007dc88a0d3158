internal import Core

/// Facts about a service in addition to its address. Sources: the services' own documentation, and observed behaviour
/// of servers.
struct S3Preset: Sendable {
    /// The checksum that proves the bytes of each request in transit, and the object in the end.
    enum Checksum: String, Sendable, CaseIterable {
        /// A checksum of the whole object, combined from those of its parts.
        case crc64nvme, crc32c
        /// OSS's checksum (CRC-64/XZ). It is never sent, and each answer contains it; each request has `Content-MD5` in
        /// addition.
        case crc64
        /// A checksum of each part; that of the object is computed from those.
        case sha256
        /// Only `Content-MD5` with each request.
        case md5
        case none
    }

    /// The requests for which `If-None-Match: *` is effective.
    enum Conditions: Sendable { case none, put, all }

    let name: String
    let summary: String
    var wire = BucketProtocolNames.s3
    /// The host, with `{region}` in it; `nil` where only the person knows it.
    var host: String?
    /// The default region; `nil` when the person has to name it.
    var region: String? = "us-east-1"
    var isVirtual = false
    var checksum = Checksum.md5
    var conditions = Conditions.none
    /// In bytes.
    var smallestPart: Int64 = 5 << 20
    var maxParts: Int64 = 10_000
    /// The meaning of an ETag with 32 digits.
    enum Tags: String, Sendable, CaseIterable {
        /// The MD5 of the bytes that the service received.
        case md5
        /// A value without relation to the bytes.
        case opaque
        /// Unknown. The first tag that is the MD5 of the sent bytes settles it for all tags of its kind. Another tag
        /// before that is either opaque or shows damage, and a person has to say which.
        case unknown
    }

    var tags = Tags.md5
    /// The ETag of a multipart object is the MD5 of the parts' MD5s, followed by the number of parts.
    var joinsTags = false
    /// The service refuses bytes that do not match the digests sent with them.
    var comparesDigests = false

    static let other = S3Preset(name: "other", summary: "any other service that speaks S3", tags: .unknown)

    static let all = [
        S3Preset(
            name: "aws", summary: "Amazon S3", host: "s3.{region}.amazonaws.com", region: nil, isVirtual: true,
            checksum: .crc64nvme, conditions: .all, joinsTags: true, comparesDigests: true),
        S3Preset(
            name: "r2", summary: "Cloudflare R2; `endpoint: https://ACCOUNT.r2.cloudflarestorage.com`", region: "auto",
            conditions: .all, tags: .opaque, comparesDigests: true),
        S3Preset(
            name: "b2", summary: "Backblaze B2", host: "s3.{region}.backblazeb2.com", region: nil,
            comparesDigests: true),
        S3Preset(
            name: "wasabi", summary: "Wasabi", host: "s3.{region}.wasabisys.com", region: nil,
            joinsTags: true, comparesDigests: true),
        S3Preset(name: "minio", summary: "MinIO", conditions: .all, joinsTags: true, comparesDigests: true),
        S3Preset(
            name: "ceph", summary: "Ceph's object gateway", conditions: .put, joinsTags: true, comparesDigests: true),
        S3Preset(name: "garage", summary: "Garage", region: "garage"),
        S3Preset(
            name: "scaleway", summary: "Scaleway", host: "s3.{region}.scw.cloud", region: nil, maxParts: 1000),
        S3Preset(name: "storj", summary: "Storj's gateway", smallestPart: 64 << 20, tags: .opaque),
        other,
    ]

    /// The host for a region. Amazon's regions in China are below a domain of their own.
    func host(in region: String) -> String? {
        name == "aws" && region.hasPrefix("cn-") ? host.map { $0 + ".cn" } : host
    }

    static func named(_ name: String) -> S3Preset? { all.first { $0.name == name } }
}
