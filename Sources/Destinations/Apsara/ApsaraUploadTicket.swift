internal import Core
internal import Transport

/// A file's media asset, and the address for its bytes.
struct ApsaraMedium: Hashable, Sendable {
    var sort: ApsaraMediaKind
    /// The id at VOD; `nil` if the user's own service does not report it.
    var id: String?
    /// Scheme and host of the storage, without the bucket.
    var endpoint: String
    var bucket: String
    var key: FilePath
    /// VOD's region, to which later calls about the medium go.
    var region: String?
    /// The address where a person finds a picture, without the signature.
    var imageURL: String?
}

/// The right to send the bytes of one medium.
struct ApsaraGrant: Hashable, Sendable {
    var key: S3Key
    /// When the right ends, by the service's clock; `nil` where the answer did not say.
    var end: WallTime?
}

/// A medium with the right to upload it, as VOD or the person's own service gives them.
struct ApsaraUploadTicket: Hashable, Sendable {
    var medium: ApsaraMedium
    var grant: ApsaraGrant

    init(medium: ApsaraMedium, grant: ApsaraGrant) {
        self.medium = medium
        self.grant = grant
    }

    /// The reason why an answer gives no medium: a phrase that follows the name of the service. It contains no secret.
    struct UnusableTicketError: Error, Hashable { let words: String }

    /// Reads `UploadAddress` and `UploadAuth`: coded in Base64, as VOD gives them, or decoded, as an object or its
    /// text. Names may begin with a small letter, as services write them that build their answers from objects.
    ///
    /// - Parameter medium: For a renewal, the medium as known before: an answer may leave the id out.
    init(_ json: JSONValue, as sort: ApsaraMediaKind, before medium: ApsaraMedium? = nil) throws(UnusableTicketError) {
        let json = Self.withNamesOfService(json)
        let address = Self.withNamesOfService(try Self.blob("UploadAddress", of: json))
        let auth = Self.withNamesOfService(try Self.blob("UploadAuth", of: json))
        guard let endpoint = address["Endpoint"]?.string, let bucket = address["Bucket"]?.string,
            let name = address["FileName"]?.string
        else { throw UnusableTicketError(words: "an `UploadAddress` without `Endpoint`, `Bucket` or `FileName`") }
        let whole = endpoint.contains("://") ? endpoint : "https://\(endpoint)"
        let web = WebAddress(whole)
        let brackets = whole.filter { $0 == "[" || $0 == "]" }
        guard whole.hasPrefix("https://") || whole.hasPrefix("http://"), web.site != nil, !web.hasUser,
            brackets.isEmpty || brackets == "[]",
            web.path.isEmpty || web.path == "/", web.query == nil,
            web.authority?.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"?#%\\".utf8.contains($0) }) == true
        else { throw UnusableTicketError(words: "an `UploadAddress` whose `Endpoint` is not a host") }
        guard (3...63).contains(bucket.utf8.count), bucket.utf8.allSatisfy({ S3ValueChecks.isOfHosts($0) }) else {
            throw UnusableTicketError(words: "an `UploadAddress` whose `Bucket` is not a bucket name")
        }
        // The name is used unchanged: another name would be another file.
        guard (1...1023).contains(name.utf8.count), !name.hasPrefix("/"), !name.hasPrefix("\\"),
            name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
            !name.split(separator: "/", omittingEmptySubsequences: false).contains(where: { $0 == "." || $0 == ".." })
        else { throw UnusableTicketError(words: "an `UploadAddress` whose `FileName` is not an object key") }
        guard let id = auth["AccessKeyId"]?.string, let secret = auth["AccessKeySecret"]?.string, !id.isEmpty,
            !secret.isEmpty
        else { throw UnusableTicketError(words: "an `UploadAuth` without `AccessKeyId` or `AccessKeySecret`") }
        let token = auth["SecurityToken"]?.string.flatMap { $0.isEmpty ? nil : $0 }
        guard (id + (token ?? "")).utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw UnusableTicketError(words: "an `UploadAuth` with a key that is not allowed in a header")
        }
        // `Expiration` is a duration in seconds, although some clients read it otherwise. A right without an end counts
        // as long as the longest.
        let end = auth["ExpireUTCTime"]?.string
        if let end, WallTime(rfc3339: end) == nil {
            throw UnusableTicketError(words: "an `ExpireUTCTime` that is not a time")
        }
        grant = ApsaraGrant(
            key: S3Key(id: id, secret: secret, token: token), end: end.flatMap { WallTime(rfc3339: $0) })
        let written = ["VideoId", "ImageId", "MediaId"].lazy.compactMap { json[$0] }.first
        let given = written?.text
        if let written, !(written.text.map(Self.isID) ?? false) {
            throw UnusableTicketError(words: "an invalid media id")
        }
        if let given, let before = medium?.id, given != before {
            throw UnusableTicketError(words: "another medium than the one that it was asked about")
        }
        let region = auth["Region"]?.string.flatMap { word in
            !word.isEmpty && word.utf8.count <= 64 && word.utf8.allSatisfy({ S3ValueChecks.isOfHosts($0) }) ? word : nil
        }
        self.medium = ApsaraMedium(
            sort: sort, id: given ?? medium?.id, endpoint: whole.hasSuffix("/") ? String(whole.dropLast()) : whole,
            bucket: bucket, key: FilePath(name), region: region ?? medium?.region,
            // The rest of the address may be a right to view the picture.
            imageURL: json["ImageURL"]?.string.flatMap { url in
                let plain = String(url.prefix { $0 != "?" && $0 != "#" })
                let isAddress =
                    (plain.hasPrefix("http://") || plain.hasPrefix("https://")) && !WebAddress(plain).hasUser
                    && plain.utf8.allSatisfy { (0x21...0x7E).contains($0) }
                return isAddress ? plain : nil
            } ?? medium?.imageURL)
    }

    /// The same object with VOD's spelling of its names. A name that is there in VOD's spelling goes before others.
    static func withNamesOfService(_ json: JSONValue) -> JSONValue {
        guard case .object(let fields) = json else { return json }
        var named: [String: JSONValue] = [:]
        for (name, value) in fields {
            let first = name.prefix(1).uppercased() + name.dropFirst()
            let spelled =
                ["ImageUrl": "ImageURL", "ExpireUtcTime": "ExpireUTCTime", "Filename": "FileName"][first] ?? first
            if named[spelled] == nil || spelled == name { named[spelled] = value }
        }
        return .object(named)
    }

    private static func isID(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { $0.isLetterOrDigit(or: "-_") }
    }

    private static func blob(_ name: String, of json: JSONValue) throws(UnusableTicketError) -> JSONValue {
        switch json[name] {
        case .object(let fields): return .object(fields)
        case .text(let text):
            let isCoded = text.first != "{"
            // A service may have removed the padding, or used the alphabet for addresses.
            let plain = text.replacing("-", with: "+").replacing("_", with: "/").filter {
                $0 != "=" && !$0.isWhitespace
            }
            let padded = plain + String(repeating: "=", count: (4 - plain.utf8.count % 4) % 4)
            let read = isCoded ? bytes(base64: padded) : Array(text.utf8)
            if let read, case .object(let fields)? = JSONValue.read(read) { return .object(fields) }
            throw UnusableTicketError(words: "an `\(name)` that is neither a JSON object nor one in Base64")
        default: throw UnusableTicketError(words: "no `\(name)`")
        }
    }
}

// The part of a ticket that the checkpoint keeps. The right is valid for one object and for an hour at most. With it an
// upload whose answer was lost can be looked for, without asking the service for a new right. The service would take
// that request as one to overwrite the existing object.
extension ApsaraUploadTicket {
    /// - Parameter until: The end of the right by the clock of this machine.
    func note(in checkpoint: inout ApsaraCheckpoint, until: WallTime) {
        medium.note(in: &checkpoint)
        checkpoint.grantID = grant.key.id
        checkpoint.grantSecret = grant.key.secret
        checkpoint.grantToken = grant.key.token
        checkpoint.grantEnd = grant.end.map(\.milliseconds)
        checkpoint.grantUntil = until.milliseconds
    }
}

extension ApsaraMedium {
    /// Reads the ticket from the checkpoint.
    init?(_ checkpoint: ApsaraCheckpoint) {
        guard let sort = checkpoint.kind,
            let endpoint = checkpoint.endpoint, let bucket = checkpoint.bucket,
            let key = checkpoint.key
        else { return nil }
        self.init(
            sort: sort, id: checkpoint.media, endpoint: endpoint, bucket: bucket, key: key,
            region: checkpoint.region, imageURL: checkpoint.imageURL)
    }

    func note(in checkpoint: inout ApsaraCheckpoint) {
        checkpoint.kind = sort
        checkpoint.media = id
        checkpoint.endpoint = endpoint
        checkpoint.bucket = bucket
        checkpoint.key = key
        checkpoint.region = region
        checkpoint.imageURL = imageURL
    }

    /// Whether both are the same object at the storage.
    func isAt(_ other: ApsaraMedium) -> Bool { bucket == other.bucket && key == other.key }
}

extension ApsaraGrant {
    /// Reads the right from the checkpoint, with the time left by the clock of this machine; `nil` when no time is
    /// left, or more than any right has.
    static func read(_ checkpoint: ApsaraCheckpoint, now: WallTime) -> (grant: ApsaraGrant, left: Duration)? {
        guard let id = checkpoint.grantID, let secret = checkpoint.grantSecret,
            let until = checkpoint.grantUntil
        else { return nil }
        let left = Duration.milliseconds(until - now.milliseconds)
        guard left > .zero, left <= ApsaraKeys.longestLife else { return nil }
        let grant = ApsaraGrant(
            key: S3Key(id: id, secret: secret, token: checkpoint.grantToken),
            end: checkpoint.grantEnd.map { WallTime(milliseconds: $0) })
        return (grant, left)
    }
}
