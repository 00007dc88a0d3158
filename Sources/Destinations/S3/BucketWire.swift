internal import Core

/// What services of buckets say in other words where they mean the same.
struct BucketWire: Sendable {
    /// In front of the headers that are the service's own.
    let prefix: String
    /// With this a request makes no object where there is one.
    let unlessThere: (name: String, value: String)
    /// Of the documents that it is sent.
    let namespace: String?
    /// Bytes of UTF-8 in a key.
    let longestKey: Int
    /// No key begins with one of these.
    let noFirst: [UInt8]
    /// Of each object, whoever made it, its answers have this checksum.
    let checksum: S3Preset.Checksum?
    let signing: Signing

    /// How requests are signed.
    enum Signing: String, Sendable, CaseIterable {
        /// Signature Version 4 of Amazon S3.
        case s3
        /// Signature V4 and V1 of Alibaba Cloud OSS.
        case v4, v1
    }

    /// Holds the digest of the content that an object was made of.
    var digestHeader: String { "\(prefix)meta-sluice-sha256" }

    static let s3 = BucketWire(
        prefix: "x-amz-", unlessThere: ("If-None-Match", "*"), namespace: "http://s3.amazonaws.com/doc/2006-03-01/",
        longestKey: 1024, noFirst: [], checksum: nil, signing: .s3)

    /// Alibaba Cloud OSS API reference: "PutObject", "CompleteMultipartUpload", "Object naming conventions".
    static let oss = BucketWire(
        prefix: "x-oss-", unlessThere: ("x-oss-forbid-overwrite", "true"), namespace: nil, longestKey: 1023,
        noFirst: Array("/\\".utf8),
        checksum: .crc64, signing: .v4)
}
