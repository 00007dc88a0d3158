internal import Core
internal import Digests
internal import Linux

/// Signatures of calls to Alibaba Cloud services (RPC style): the older one in the query (signature version 1.0, HMAC-SHA1), and the newer
/// in a header (ACS3-HMAC-SHA256). Alibaba Cloud developer reference, "RPC signature method", "V3 request body and signature method".
struct ApsaraSignature: Sendable {
    enum Version: String, Sendable, CaseIterable { case acs3, rpc }

    static let service = "2017-03-21"

    var key: S3Key
    var version: Version
    var action: String
    /// Parameters of the call itself.
    var parameters: [(name: String, value: String)]
    /// The host, with its port where that is not the default of the scheme.
    var host: String
    /// Unique for each request.
    var nonce = hexadecimal(Random.bytes(16))

    /// A request as it is sent: the coded query, and the headers that signing adds.
    struct Signed: Sendable {
        var query: String
        var headers: [(name: String, value: String)] = []
    }

    /// - Parameter now: The service's time; fifteen minutes of difference are allowed.
    func signed(_ method: String, at now: WallTime) -> Signed {
        switch version {
        case .rpc: inQuery(method, now)
        case .acs3: inHeader(method, now)
        }
    }

    // MARK: In the query

    private func inQuery(_ method: String, _ now: WallTime) -> Signed {
        var all = parameters
        all += [
            ("Action", action), ("Version", Self.service), ("Format", "JSON"), ("AccessKeyId", key.id),
            ("SignatureMethod", "HMAC-SHA1"), ("SignatureVersion", "1.0"), ("SignatureNonce", nonce),
            ("Timestamp", Self.time(now)),
        ]
        if let token = key.token { all.append(("SecurityToken", token)) }
        let query = Self.query(all)
        let signature = Hasher.authentication(
            .sha1, of: Array(Self.text(method, all).utf8), key: Array("\(key.secret)&".utf8))
        return Signed(query: "\(query)&Signature=\(PercentCoding.encode(base64(signature).utf8))")
    }

    /// The text that the older version signs: values are coded twice.
    static func text(_ method: String, _ all: [(name: String, value: String)]) -> String {
        [method, "%2F", PercentCoding.encode(query(all).utf8)].joined(separator: "&")
    }

    /// The query, sorted by bytes.
    private static func query(_ all: [(name: String, value: String)]) -> String {
        all.sorted { Array($0.name.utf8).lexicographicallyPrecedes(Array($1.name.utf8)) }
            .map { "\(PercentCoding.encode($0.name.utf8))=\(PercentCoding.encode($0.value.utf8))" }
            .joined(separator: "&")
    }

    // MARK: In a header

    private static let algorithm = "ACS3-HMAC-SHA256"

    private func inHeader(_ method: String, _ now: WallTime) -> Signed {
        let payload = hexadecimal(Hasher.digest(.sha256, of: []))
        var headers: [(name: String, value: String)] = [
            ("x-acs-action", action), ("x-acs-version", Self.service), ("x-acs-date", Self.time(now)),
            ("x-acs-signature-nonce", nonce), ("x-acs-content-sha256", payload),
        ]
        if let token = key.token { headers.append(("x-acs-security-token", token)) }
        let query = Self.query(parameters)
        let (request, names) = Self.canonical(method, query, headers + [("host", host)], payload)
        let digest = hexadecimal(Hasher.digest(.sha256, of: Array(request.utf8)))
        let signature = hexadecimal(
            Hasher.authentication(.sha256, of: Array("\(Self.algorithm)\n\(digest)".utf8), key: Array(key.secret.utf8)))
        headers.append(
            ("Authorization", "\(Self.algorithm) Credential=\(key.id),SignedHeaders=\(names),Signature=\(signature)"))
        return Signed(query: query, headers: headers)
    }

    static func canonical(
        _ method: String, _ query: String, _ headers: [(name: String, value: String)], _ payload: String
    ) -> (request: String, names: String) {
        let sorted = headers.sorted { $0.name < $1.name }
        let names = sorted.map(\.name).joined(separator: ";")
        let lines =
            [method, "/", query] + sorted.map { "\($0.name):\($0.value)" }
            // The list of headers ends with a line of its own.
            + ["", names, payload]
        return (lines.joined(separator: "\n"), names)
    }

    /// `2024-07-13T08:30:05Z`.
    static func time(_ now: WallTime) -> String {
        "\(now.description.prefix(19))Z"
    }
}
