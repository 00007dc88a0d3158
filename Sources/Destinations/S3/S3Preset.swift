internal import Core

/// What is known of a service beside its address. Sources: the services' own documentation, and what servers were seen to do.
struct S3Preset: Sendable {
    /// How the bytes of each request are proven on the way, and the object in the end.
    enum Checksum: String, Sendable, CaseIterable {
        /// Of the whole object, put together from those of its parts.
        case crc64nvme, crc32c
        /// The same at OSS: never sent, and told by each answer (CRC-64/XZ); with `Content-MD5` of each request.
        case crc64
        /// Of each part; that of the object is made of theirs.
        case sha256
        /// `Content-MD5` of each request alone.
        case md5
        case none
    }

    /// For which requests `If-None-Match: *` counts.
    enum Conditions: Sendable { case none, put, all }

    let name: String
    let summary: String
    var wire = BucketWire.s3
    /// The host, with `{region}` in it; `nil` where only the person knows it.
    var host: String?
    /// Where it has one of its own; `nil` when the person has to name it.
    var region: String? = "us-east-1"
    var isVirtual = false
    var checksum = Checksum.md5
    var conditions = Conditions.none
    /// Bytes.
    var smallestPart: Int64 = 5 << 20
    var mostParts: Int64 = 10_000
    /// What an ETag of 32 digits is.
    enum Tags: String, Sendable, CaseIterable {
        /// The MD5 of what the service got.
        case md5
        /// Something that says nothing of the bytes.
        case opaque
        /// Nobody has said. The first that is the MD5 of what was sent settles it for all of its kind; one that is another before that
        /// is either of these, or damage, and a person has to say which.
        case unknown
    }

    var tags = Tags.md5
    /// The ETag of an object of parts is the MD5 of their MD5s, and their number.
    var joinsTags = false
    /// Refuses bytes that are not those of the digests that come with them.
    var comparesDigests = false

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
            name: "scaleway", summary: "Scaleway", host: "s3.{region}.scw.cloud", region: nil, mostParts: 1000),
        S3Preset(name: "storj", summary: "Storj's gateway", smallestPart: 64 << 20, tags: .opaque),
        S3Preset(name: "other", summary: "any other service that speaks S3", tags: .unknown),
    ]

    /// The host for a region. What Amazon has in China lies below a domain of its own.
    func host(in region: String) -> String? {
        name == "aws" && region.hasPrefix("cn-") ? host.map { $0 + ".cn" } : host
    }

    static func named(_ name: String) -> S3Preset? { all.first { $0.name == name } }
}
