internal import Core

/// Differences in names between bucket services that otherwise work alike.
struct BucketProtocolNames: Sendable {
    /// Prefix of the service's own headers.
    let prefix: String
    /// A request with this header makes no object where there is one.
    let unlessThere: (name: String, value: String)
    /// XML namespace of the documents that are sent.
    let namespace: String?
    /// Maximum length of a key in bytes of UTF-8.
    let longestKey: Int
    /// Bytes with which no key may begin.
    let noFirst: [UInt8]
    /// A checksum that the service gives with every object, regardless of its writer.
    let checksum: S3Preset.Checksum?
    let signing: Signing

    /// How requests are signed.
    enum Signing: String, Sendable, CaseIterable {
        /// Signature Version 4 of Amazon S3.
        case s3
        /// Signature V4 and V1 of Alibaba Cloud OSS.
        case v4, v1
    }

    /// The header with the digest of the content from which an object was made.
    var digestHeader: String { "\(prefix)meta-sluice-sha256" }

    static let s3 = BucketProtocolNames(
        prefix: "x-amz-", unlessThere: ("If-None-Match", "*"), namespace: "http://s3.amazonaws.com/doc/2006-03-01/",
        longestKey: 1024, noFirst: [], checksum: nil, signing: .s3)

    /// Alibaba Cloud OSS API reference: "PutObject", "CompleteMultipartUpload", "Object naming conventions".
    static let oss = BucketProtocolNames(
        prefix: "x-oss-", unlessThere: ("x-oss-forbid-overwrite", "true"), namespace: nil, longestKey: 1023,
        noFirst: Array("/\\".utf8),
        checksum: .crc64, signing: .v4)
}
