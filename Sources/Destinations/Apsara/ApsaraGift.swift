internal import Core
internal import Transport

/// One file's media asset, and where its bytes go.
struct ApsaraMedium: Hashable, Sendable {
    var sort: ApsaraSort
    /// `nil` where the person's own service does not tell it.
    var id: String?
    /// The storage, without the bucket: scheme and host.
    var endpoint: String
    var bucket: String
    var key: FilePath
    /// Of VOD, where later calls about it go.
    var region: String?
    /// Where a person finds a picture, without what an address is signed with.
    var imageURL: String?
}

/// The right to send the bytes of one medium.
struct ApsaraGrant: Hashable, Sendable {
    var key: S3Key
    /// By the service's clock; `nil` where it was not said.
    var end: WallTime?
}

/// A medium with the right to it, as VOD or somebody of the person's gives them.
struct ApsaraGift: Hashable, Sendable {
    var medium: ApsaraMedium
    var grant: ApsaraGrant

    init(medium: ApsaraMedium, grant: ApsaraGrant) {
        self.medium = medium
        self.grant = grant
    }

    /// Why an answer gives nothing, in words that follow whose it is. No secret is in them.
    struct Unusable: Error, Hashable { let words: String }

    /// Reads `UploadAddress` and `UploadAuth`: coded in Base64, as VOD gives them, or decoded, as an object or its text.
    ///
    /// - Parameter medium: Of a renewal, what was told before: an answer may leave the id out.
    init(_ json: JSONValue, as sort: ApsaraSort, before medium: ApsaraMedium? = nil) throws(Unusable) {
        let address = try Self.blob("UploadAddress", of: json)
        let auth = try Self.blob("UploadAuth", of: json)
        guard let endpoint = address["Endpoint"]?.string, let bucket = address["Bucket"]?.string,
            let name = address["FileName"]?.string
        else { throw Unusable(words: "an `UploadAddress` without `Endpoint`, `Bucket` or `FileName`") }
        let whole = endpoint.contains("://") ? endpoint : "https://\(endpoint)"
        let web = WebAddress(whole)
        let brackets = whole.filter { $0 == "[" || $0 == "]" }
        guard whole.hasPrefix("https://") || whole.hasPrefix("http://"), web.site != nil, !web.hasUser,
            brackets.isEmpty || brackets == "[]",
            web.path.isEmpty || web.path == "/", web.query == nil,
            web.authority?.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"?#%\\".utf8.contains($0) }) == true
        else { throw Unusable(words: "an `UploadAddress` whose `Endpoint` is no host") }
        guard (3...63).contains(bucket.utf8.count), bucket.utf8.allSatisfy({ S3Words.isOfHosts($0) }) else {
            throw Unusable(words: "an `UploadAddress` whose `Bucket` is no name of one")
        }
        // Used as it is: another one is another file.
        guard (1...1023).contains(name.utf8.count), !name.hasPrefix("/"), !name.hasPrefix("\\"),
            name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
            !name.split(separator: "/", omittingEmptySubsequences: false).contains(where: { $0 == "." || $0 == ".." })
        else { throw Unusable(words: "an `UploadAddress` whose `FileName` is no key of an object") }
        guard let id = auth["AccessKeyId"]?.string, let secret = auth["AccessKeySecret"]?.string, !id.isEmpty,
            !secret.isEmpty
        else { throw Unusable(words: "an `UploadAuth` without `AccessKeyId` or `AccessKeySecret`") }
        let token = auth["SecurityToken"]?.string.flatMap { $0.isEmpty ? nil : $0 }
        guard (id + (token ?? "")).utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Unusable(words: "an `UploadAuth` with a key that no header can carry")
        }
        // `Expiration` is a length of time in seconds, whatever some clients make of it; what has no end said counts as long as all do.
        let end = auth["ExpireUTCTime"]?.string
        if let end, WallTime(rfc3339: end) == nil { throw Unusable(words: "an `ExpireUTCTime` that is no time") }
        grant = ApsaraGrant(
            key: S3Key(id: id, secret: secret, token: token), end: end.flatMap { WallTime(rfc3339: $0) })
        let written = ["VideoId", "ImageId", "MediaId"].lazy.compactMap { json[$0] }.first
        let given = written?.text
        if let written, !(written.text.map(Self.isID) ?? false) { throw Unusable(words: "a media id that is none") }
        if let given, let before = medium?.id, given != before {
            throw Unusable(words: "another medium than the one that it was asked about")
        }
        let region = auth["Region"]?.string.flatMap { word in
            !word.isEmpty && word.utf8.count <= 64 && word.utf8.allSatisfy({ S3Words.isOfHosts($0) }) ? word : nil
        }
        self.medium = ApsaraMedium(
            sort: sort, id: given ?? medium?.id, endpoint: whole.hasSuffix("/") ? String(whole.dropLast()) : whole,
            bucket: bucket, key: FilePath(name), region: region ?? medium?.region,
            // The rest of it may be a right to see it.
            imageURL: json["ImageURL"]?.string.flatMap { url in
                let plain = String(url.prefix { $0 != "?" && $0 != "#" })
                let isAddress =
                    (plain.hasPrefix("http://") || plain.hasPrefix("https://")) && !WebAddress(plain).hasUser
                    && plain.utf8.allSatisfy { (0x21...0x7E).contains($0) }
                return isAddress ? plain : nil
            } ?? medium?.imageURL)
    }

    private static func isID(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { $0.isLetterOrDigit(or: "-_") }
    }

    private static func blob(_ name: String, of json: JSONValue) throws(Unusable) -> JSONValue {
        switch json[name] {
        case .object(let fields): return .object(fields)
        case .text(let text):
            let isCoded = text.first != "{"
            // Somebody may have taken its padding off, or made it fit for an address.
            let plain = text.replacing("-", with: "+").replacing("_", with: "/").filter {
                $0 != "=" && !$0.isWhitespace
            }
            let padded = plain + String(repeating: "=", count: (4 - plain.utf8.count % 4) % 4)
            let read = isCoded ? bytes(base64: padded) : Array(text.utf8)
            if let read, case .object(let fields)? = JSONValue.read(read) { return .object(fields) }
            throw Unusable(words: "an `\(name)` that is neither a JSON object nor one in Base64")
        default: throw Unusable(words: "no `\(name)`")
        }
    }
}

// What of it is written down. The right is good for one object and for an hour at most: with it an upload whose answer was lost can be
// looked for, without the service being asked for a new one, which it takes for the wish to write over what is there.
extension ApsaraGift {
    static let fields = [
        "sort", "media", "media_endpoint", "bucket", "key", "media_region", "image_url", "grant_id", "grant_secret",
        "grant_token", "grant_end", "grant_until",
    ]

    /// - Parameter until: By the clock of this machine.
    func note(in checkpoint: inout Checkpoint, until: WallTime) {
        medium.note(in: &checkpoint)
        checkpoint["grant_id"] = grant.key.id
        checkpoint["grant_secret"] = grant.key.secret
        checkpoint["grant_token"] = grant.key.token
        checkpoint["grant_end"] = grant.end.map { "\($0.milliseconds)" }
        checkpoint["grant_until"] = "\(until.milliseconds)"
    }
}

extension ApsaraMedium {
    /// As it was written down.
    init?(_ checkpoint: Checkpoint) {
        guard let sort = checkpoint["sort"].flatMap({ ApsaraSort(rawValue: $0) }),
            let endpoint = checkpoint["media_endpoint"], let bucket = checkpoint["bucket"],
            let key = checkpoint["key"].flatMap({ FilePath(display: $0) })
        else { return nil }
        self.init(
            sort: sort, id: checkpoint["media"], endpoint: endpoint, bucket: bucket, key: key,
            region: checkpoint["media_region"], imageURL: checkpoint["image_url"])
    }

    func note(in checkpoint: inout Checkpoint) {
        checkpoint["sort"] = sort.rawValue
        checkpoint["media"] = id
        checkpoint["media_endpoint"] = endpoint
        checkpoint["bucket"] = bucket
        checkpoint["key"] = key.display
        checkpoint["media_region"] = region
        checkpoint["image_url"] = imageURL
    }

    /// The same object at the storage.
    func isAt(_ other: ApsaraMedium) -> Bool { bucket == other.bucket && key == other.key }
}

extension ApsaraGrant {
    /// As it was written down, with the time that is left of it by the clock of this machine; `nil` when that is none, or more than any has.
    static func read(_ checkpoint: Checkpoint, now: WallTime) -> (grant: ApsaraGrant, left: Duration)? {
        guard let id = checkpoint["grant_id"], let secret = checkpoint["grant_secret"],
            let until = checkpoint["grant_until"].flatMap({ Int64($0) })
        else { return nil }
        let left = Duration.milliseconds(until - now.milliseconds)
        guard left > .zero, left <= ApsaraKeys.longestLife else { return nil }
        let grant = ApsaraGrant(
            key: S3Key(id: id, secret: secret, token: checkpoint["grant_token"]),
            end: checkpoint["grant_end"].flatMap { Int64($0) }.map { WallTime(milliseconds: $0) })
        return (grant, left)
    }
}
