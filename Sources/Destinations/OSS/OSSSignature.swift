internal import Core
internal import Digests
internal import Transport

/// Signatures of Alibaba Cloud OSS (OSS developer guide, "Include signatures in the Authorization header": V1, V4).
struct OSSSignature: Sendable {
    var key: S3Key
    /// The plain id, like `cn-shanghai`; V1 needs none.
    var region: String
    var version: BucketProtocolNames.Signing
    /// Further headers that V4 covers, in lower case: an intermediary cannot change them.
    var covered: Set<String> = []

    private static let algorithm = "OSS4-HMAC-SHA256"

    /// - Parameter now: The server's time; fifteen minutes of difference are allowed.
    /// - Returns: The headers of the message and those that signing adds, without `Host`.
    func headers(of message: S3Message, at now: WallTime) -> [(String, String)] {
        var headers = message.headers
        if let token = key.token { headers.append(("x-oss-security-token", token)) }
        if version == .v1 {
            headers.append(("Date", httpDate(now)))
            let text = Self.firstText(message, headers)
            let signature = Hasher.authentication(.sha1, of: Array(text.utf8), key: Array(key.secret.utf8))
            headers.append(("Authorization", "OSS \(key.id):\(base64(signature))"))
            return headers
        }
        let stamp = S3Signature.stamp(now)
        let scope = "\(stamp.prefix(8))/\(region)/oss/aliyun_v4_request"
        headers.append(("x-oss-content-sha256", S3Message.unsignedPayload))
        headers.append(("x-oss-date", stamp))
        let request = canonical(message, headers)
        let words = [Self.algorithm, stamp, scope, hexadecimal(Hasher.digest(.sha256, of: Array(request.utf8)))]
        let signature = hexadecimal(mac(signingKey(String(stamp.prefix(8))), words.joined(separator: "\n")))
        // The service refuses an empty list.
        let names = covered.isEmpty ? "" : ", AdditionalHeaders=\(covered.sorted().joined(separator: ";"))"
        headers.append(
            ("Authorization", "\(Self.algorithm) Credential=\(key.id)/\(scope)\(names), Signature=\(signature)"))
        return headers
    }

    /// The key for one day and region.
    func signingKey(_ day: String) -> [UInt8] {
        [day, region, "oss", "aliyun_v4_request"].reduce(Array("aliyun_v4\(key.secret)".utf8), mac)
    }

    private func mac(_ key: [UInt8], _ text: String) -> [UInt8] {
        Hasher.authentication(.sha256, of: Array(text.utf8), key: key)
    }

    // MARK: V4

    /// V4 signs the whole query, with names without a value as they are. Of the headers it signs the service's own, the
    /// content's type and its MD5. The bucket is in the path, wherever it is in the address.
    func canonical(_ message: S3Message, _ headers: [(String, String)]) -> String {
        let query = message.query.map { (PercentCoding.encode($0.name.utf8), PercentCoding.encode($0.value.utf8)) }
            .sorted { $0 < $1 }.map { $0.1.isEmpty ? $0.0 : "\($0.0)=\($0.1)" }.joined(separator: "&")
        let signed = Self.lowered(headers).filter {
            $0.name.hasPrefix("x-oss-") || $0.name == "content-type" || $0.name == "content-md5"
                || covered.contains($0.name)
        }
        let path = "/\(message.bucket)/" + (message.key.map { S3Message.path(of: $0) } ?? "")
        let lines =
            [message.method, path, query] + signed.map { "\($0.name):\($0.value)" }
            + ["", covered.sorted().joined(separator: ";"), S3Message.unsignedPayload]
        return lines.joined(separator: "\n")
    }

    // MARK: V1

    /// The text that version 1 signs. Of the query only subresources count, and no name is coded.
    static func firstText(_ message: S3Message, _ headers: [(String, String)]) -> String {
        let lowered = lowered(headers)
        func value(_ name: String) -> String { lowered.first { $0.name == name }?.value ?? "" }
        var resource = "/\(message.bucket)/" + (message.key?.text ?? message.key?.display ?? "")
        let named = message.query.filter { subresources.contains($0.name) }.sorted { $0.name < $1.name }
            .map { $0.value.isEmpty ? $0.name : "\($0.name)=\($0.value)" }
        if !named.isEmpty { resource += "?" + named.joined(separator: "&") }
        let own = lowered.filter { $0.name.hasPrefix("x-oss-") }.map { "\($0.name):\($0.value)\n" }.joined()
        return [message.method, value("content-md5"), value("content-type"), value("date"), own + resource]
            .joined(separator: "\n")
    }

    /// The subresources that uploads use, from the list in "Include signatures in the Authorization header", V1.
    private static let subresources: Set<String> = [
        "acl", "append", "continuation-token", "objectMeta", "partNumber", "position", "tagging", "uploadId", "uploads",
    ]

    private static func lowered(_ headers: [(String, String)]) -> [(name: String, value: String)] {
        headers.map { ($0.0.lowercased(), Self.trimmed($0.1)) }.sorted { $0.name < $1.name }
    }

    private static func trimmed(_ value: String) -> String {
        var value = value[...]
        while value.first == " " { value.removeFirst() }
        while value.last == " " { value.removeLast() }
        return String(value)
    }
}
