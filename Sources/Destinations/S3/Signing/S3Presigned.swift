internal import Core
internal import Transport

// The questions to an external signer and its answers: docs/destinations/s3.md describes them for authors of signers.

/// One request, as it is described to the signer.
struct S3SigningRequest: Sendable {
    enum Operation: String, Sendable {
        case head, put, create, part, parts, complete, abort, uploads, list
    }

    var operation: Operation
    var request: S3Request
    /// Size of its body in bytes.
    var size: Int64

    init(_ request: S3Request) {
        self.request = request
        size = request.body.count ?? 0
        let names = Set(request.query.map(\.name))
        operation =
            switch request.method {
            case "HEAD": .head
            case "PUT": names.contains("uploadId") ? .part : .put
            case "POST": names.contains("uploads") ? .create : .complete
            case "DELETE": .abort
            default: names.contains("uploadId") ? .parts : names.contains("uploads") ? .uploads : .list
            }
    }

    /// The same request for another part of the same upload.
    init(_ request: S3Request, part: PartPlan.Part) {
        self.init(request)
        self.request.query = request.query.map { $0.name == "partNumber" ? ($0.name, "\(part.index + 1)") : $0 }
        size = part.length
    }

    /// Headers that a signature has to cover. When parts are requested ahead, the digest of bytes that are not read yet
    /// is unknown; no service requires `Content-MD5` to be signed (Amazon S3 API reference, "Authenticating requests:
    /// using query parameters": `host` and `x-amz-*`).
    var headers: [(name: String, value: String)] {
        request.headers.filter { $0.name.lowercased() != "content-md5" }
    }

    /// Identifies a part among all others; `nil` for a request that cannot be signed ahead.
    var mark: String? {
        guard operation == .part, headers.isEmpty, let key = request.key else { return nil }
        return (request.query.map(\.value) + [key.display]).joined(separator: "\n")
    }

    var json: JSONValue {
        var fields: [String: JSONValue] = [
            "operation": .text(operation.rawValue), "method": .text(request.method), "size": .whole(size),
            "query": .object(Dictionary(request.query.map { ($0.name, .text($0.value)) }) { $1 }),
            "headers": .object(Dictionary(headers.map { ($0.name, .text($0.value)) }) { $1 }),
        ]
        if let key = request.key { fields["key"] = .text(key.text ?? key.display) }
        return .object(fields)
    }
}

/// An address that the signer signed.
struct S3SignedAddress: Sendable {
    var url: String
    var headers: [(String, String)]
    /// How long it is valid; `nil` where the signer does not say.
    var life: Duration?

    /// The reason why an answer cannot be used.
    enum Problem: Error {
        /// The signed request differs from the requested one. The text follows the signer's place.
        case wrong(String)
        /// The signer refuses; contains its message.
        case refused(String, isFinal: Bool)
    }

    /// Headers that would break the framing, or send the request elsewhere.
    private static let reserved: Set<String> = [
        "host", "content-length", "transfer-encoding", "connection", "expect", "authorization",
    ]

    init(_ json: JSONValue, for wanted: S3SigningRequest, at hosts: S3SignedHosts, now: WallTime) throws(Problem) {
        if let words = json["error"]?.text { throw .refused(words, isFinal: json["final"]?.flag == true) }
        guard let url = json["url"]?.string else { throw .wrong("gives no address for `\(wanted.operation.rawValue)`") }
        let address = WebAddress(url)
        // The host must have only one reading, so it contains no `%`, `\` or `@`.
        guard url.utf8.count <= 16 << 10, url.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            address.authority?.utf8.allSatisfy({ $0.isLetterOrDigit(or: ".-_:[]") }) == true,
            address.scheme == "https" || address.scheme == "http"
        else { throw .wrong("gives something other than an http or https address") }
        if let problem = hosts.objection(to: address) { throw .wrong(problem) }
        // A mistake of the signer would reach the wrong object, or another part.
        guard let path = PercentCoding.text(decoding: address.path),
            let query = PercentCoding.query(decoding: address.query ?? "")
        else { throw .wrong("gives an address that is badly coded") }
        let key = wanted.request.key.map { "/\($0.text ?? $0.display)" } ?? ""
        let concernsKey = hosts.starts(at: address).contains { path == $0 + key || key.isEmpty && path == $0 + "/" }
        guard concernsKey else {
            throw .wrong(
                "gives the address of another object than `\((wanted.request.key ?? "").display)` in \(hosts.bucket)")
        }
        // Readers differ in which of two equal names counts.
        guard query.count == (address.query ?? "").split(separator: "&").count else {
            throw .wrong("gives an address with a parameter twice")
        }
        let allowed = Set(wanted.request.query.map(\.name) + ["AWSAccessKeyId", "Signature", "Expires", "x-id"])
        if let more = query.keys.first(where: { !allowed.contains($0) && !$0.lowercased().hasPrefix("x-amz-") }) {
            throw .wrong("gives an address with `\(redacted(FilePath(more).display))`, which was not requested")
        }
        for (name, value) in wanted.request.query where (query[name] ?? "") != value || query[name] == nil {
            throw .wrong("gives an address without `\(name)`, or with another one")
        }
        self.url = url
        headers = []
        if case .object(let fields)? = json["headers"] {
            for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
                guard let value = value.text, !Self.reserved.contains(name.lowercased()) else {
                    throw .wrong("gives the header `\(FilePath(name).display)`, which cannot be set")
                }
                headers.append((name, value))
            }
        }
        switch json["expires"] {
        case .whole(let seconds):
            guard seconds > 0 else { throw .wrong("says that its address has ended already (`expires` of \(seconds))") }
            life = .seconds(min(seconds, 7 * 86_400))
        case .number(let seconds):
            guard seconds > 0 else { throw .wrong("says that its address has ended already (`expires` of \(seconds))") }
            life = .seconds(min(seconds, 7 * 86_400))
        case .text(let text):
            guard let end = WallTime(rfc3339: text) else {
                throw .wrong("says `expires` neither as a time of RFC 3339 nor in seconds")
            }
            life = .milliseconds(max(0, end.milliseconds - now.milliseconds))
        case nil: life = nil
        default: throw .wrong("says `expires` neither as a time of RFC 3339 nor in seconds")
        }
    }

    /// The headers to send: the signer's replace ours.
    func headers(over own: [(name: String, value: String)]) -> [(String, String)] {
        let names = Set(headers.map { $0.0.lowercased() })
        return own.filter { !names.contains($0.name.lowercased()) }.map { ($0.name, $0.value) } + headers
    }
}

/// The hosts to which signed addresses may lead.
struct S3SignedHosts: Sendable {
    /// The service's own endpoint, with `{region}` filled in.
    let endpoint: WebAddress
    /// `host`, or `host:port`.
    let others: [String]
    let bucket: String

    /// Returns the possible prefixes of the key in the path of an address there: the bucket, or nothing where the host
    /// names the bucket. Any other host below one of these is another bucket's.
    func starts(at address: WebAddress) -> [String] {
        let places = others.map { WebAddress("https://\($0)").normalHost }
        let all = [endpoint.normalHost] + places
        let name = bucket.lowercased()
        let host = address.normalHost
        if all.contains(where: { host == "\(name).\($0)" }) { return [""] }
        guard all.contains(host) else { return [] }
        // When a person names a host, or a host that belongs to one bucket, the person is responsible for which bucket
        // that is.
        let isOwn = places.contains(host) || host.hasPrefix("\(name).")
        return ["/\(bucket)"] + (isOwn ? [""] : [])
    }

    /// - Returns: The problem, as a text that follows the signer's place.
    func objection(to address: WebAddress) -> String? {
        let shown = FilePath(address.authority ?? "").display
        // Bytes of a file that were to be encrypted in transit are never sent unencrypted.
        if address.scheme == "http", endpoint.scheme == "https" {
            return "gives an http address at \(shown), and the endpoint is https"
        }
        let own = [endpoint.authority ?? ""]
        for place in own + others {
            let allowed = WebAddress("\(address.scheme ?? "https")://\(place)")
            let (host, home) = (address.normalHost, allowed.normalHost)
            let isThere = host == home || host.hasSuffix(".\(home)")
            if isThere, let port = Self.port(address), port == Self.port(allowed) { return nil }
        }
        return "gives an address at \(shown), which is neither at \(own[0]) nor among `presign.hosts`"
    }

    /// `nil` for a text that is no number.
    private static func port(_ address: WebAddress) -> UInt16? {
        guard let written = address.port else { return address.scheme == "https" ? 443 : 80 }
        return UInt16(written).flatMap { "\($0)" == written ? $0 : nil }
    }
}
