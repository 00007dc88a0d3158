internal import Core
internal import Digests

/// The parts of a request to S3 that a signature covers.
struct S3Message: Sendable {
    var method: String
    /// With the port where it is not the scheme's default, as in the `Host` header.
    var host: String
    /// As in the request line: from the slash, percent-coded once.
    var path: String
    /// Not coded. A name without a value has an empty one.
    var query: [(name: String, value: String)] = []
    /// All headers are signed: a header that a proxy may change does not belong here.
    var headers: [(name: String, value: String)] = []
    /// Hexadecimal SHA-256 of the body, or `UNSIGNED-PAYLOAD`.
    var payload: String
    /// The bucket of the path, for signatures that do not cover the path alone.
    var bucket = ""
    var key: FilePath?

    static let unsignedPayload = "UNSIGNED-PAYLOAD"
    static let emptyPayload = hexadecimal(Hasher.digest(.sha256, of: []))

    /// The query as it is sent and signed: sorted by coded names, then values; always with `=`.
    var codedQuery: String {
        query.map { (PercentCoding.encode($0.name.utf8), PercentCoding.encode($0.value.utf8)) }.sorted { $0 < $1 }
            .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    }
}

/// A key of S3, with the token of a temporary one.
struct S3Key: Hashable, Sendable {
    var id: String
    var secret: String
    var token: String?
}

/// Signature Version 4 for S3 (Amazon S3 API reference, "Authenticating requests: using the Authorization header").
/// Amazon's other services differ: here the path is coded once and never normalised, and the payload's digest is a
/// header.
struct S3Signature: Sendable {
    var key: S3Key
    var region: String

    private static let algorithm = "AWS4-HMAC-SHA256"

    /// - Parameter now: The server's time; fifteen minutes of difference are allowed.
    /// - Returns: The headers of the message and those that signing adds, without `Host`.
    func headers(of message: S3Message, at now: WallTime) -> [(String, String)] {
        let stamp = Self.stamp(now)
        let scope = "\(stamp.prefix(8))/\(region)/s3/aws4_request"
        var headers = message.headers
        headers.append(("x-amz-content-sha256", message.payload))
        headers.append(("x-amz-date", stamp))
        if let token = key.token { headers.append(("x-amz-security-token", token)) }
        let (request, names) = Self.canonical(message, headers)
        let words = [Self.algorithm, stamp, scope, hexadecimal(Hasher.digest(.sha256, of: Array(request.utf8)))]
        let signature = hexadecimal(mac(signingKey(String(stamp.prefix(8))), words.joined(separator: "\n")))
        headers.append(
            (
                "Authorization",
                "\(Self.algorithm) Credential=\(key.id)/\(scope), SignedHeaders=\(names), Signature=\(signature)"
            ))
        return headers
    }

    /// The canonical request, and the names of the headers in it.
    static func canonical(
        _ message: S3Message, _ headers: [(String, String)]
    ) -> (text: String, names: String) {
        var lines = headers.map { ($0.0.lowercased(), collapsed($0.1)) }
        lines.append(("host", message.host))
        lines.sort { $0 < $1 }
        let names = lines.map(\.0).joined(separator: ";")
        let parts =
            [message.method, message.path, message.codedQuery] + lines.map { "\($0.0):\($0.1)" }
            + ["", names, message.payload]
        return (parts.joined(separator: "\n"), names)
    }

    /// The key for one day and region.
    func signingKey(_ day: String) -> [UInt8] {
        [day, region, "s3", "aws4_request"].reduce(Array("AWS4\(key.secret)".utf8), mac)
    }

    private func mac(_ key: [UInt8], _ text: String) -> [UInt8] {
        Hasher.authentication(.sha256, of: Array(text.utf8), key: key)
    }

    /// `20240713T083005Z`.
    static func stamp(_ time: WallTime) -> String {
        String(decoding: time.description.utf8.prefix(19).filter { $0 != 0x2D && $0 != 0x3A }, as: UTF8.self) + "Z"
    }

    /// Without blanks at its ends, and with runs of blanks reduced to one.
    private static func collapsed(_ value: String) -> String {
        value.utf8.split(separator: UInt8(ascii: " ")).map { String(decoding: $0, as: UTF8.self) }
            .joined(separator: " ")
    }
}

extension S3Message {
    /// A key in the form for a path: everything but unreserved characters and slashes is coded, also `+ ( ) ! ' *`.
    static func path(of key: FilePath) -> String { PercentCoding.encode(key.bytes, keeping: "/") }
}
