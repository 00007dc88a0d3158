internal import Core
internal import Credentials
internal import Transport

/// Supplies the key with which requests are signed.
protocol S3KeySource: Sendable {
    /// - Parameter context: For the requests that are needed to get it.
    /// - Returns: The key, and the number of its reading for ``refused(_:)``.
    func current(_ context: RequestContext) async throws -> (key: S3Key, reading: Int)
    /// Records that the service refused the key of this reading: the next call reads it again.
    func refused(_ reading: Int) async
    /// Looks for another key in place of one that was refused with this answer.
    ///
    /// - Returns: Whether the request is worth being sent again, with the key that ``current(_:)`` then returns.
    func renew(
        _ key: S3Key, _ reading: Int, after verdict: S3Verdict, isHead: Bool, _ context: RequestContext
    ) async -> Bool
    /// Reports that bytes of a file were in flight for this long.
    func carried(for time: Duration) async
}

extension S3KeySource {
    func renew(
        _ key: S3Key, _ reading: Int, after verdict: S3Verdict, isHead: Bool, _ context: RequestContext
    ) async -> Bool {
        // A temporary key may be given again, with a longer validity.
        if key.token != nil, verdict.concernsKey || isHead && verdict.hasNoBody {
            await refused(reading)
            return true
        }
        return verdict.concernsRights || isHead && verdict.hasNoBody ? await isReplaced(key, reading, context) : false
    }

    /// Reads a refused key once more.
    ///
    /// - Returns: Whether there is another key by now. If not, the next request reads it again.
    func isReplaced(_ key: S3Key, _ reading: Int, _ context: RequestContext) async -> Bool {
        await refused(reading)
        let now: (key: S3Key, reading: Int)
        // The next request reads it again, and reports the reason.
        do { now = try await current(context) } catch { return false }
        if now.key != key { return true }
        await refused(now.reading)
        return false
    }

    func carried(for time: Duration) async {}
}

/// A key that is stored as a secret, read again when it ends or is refused.
actor S3Keys: S3KeySource {
    enum Source: Sendable {
        case words(id: SecretSource, secret: SecretSource, token: SecretSource?)
        /// A shared credentials file, or the output of a `credential_process`.
        case document(SecretSource, profile: String)
    }

    private let source: Source
    private let provider: CredentialProvider
    private let now: @Sendable () -> WallTime
    /// A temporary key is renewed this long before its end.
    static let margin: Duration = .seconds(300)

    init(_ source: Source, reader: SecretReader, now: @escaping @Sendable () -> WallTime) {
        self.source = source
        self.now = now
        switch source {
        case .words(let id, let secret, let token):
            let token = token.map { [CredentialProvider.Header("token", $0, key: "session_token")] } ?? []
            provider = CredentialProvider(
                [.init("id", id, key: "access_key"), .init("secret", secret, key: "secret_key")] + token,
                reader: reader, areSent: false)
        case .document(let source, _):
            provider = CredentialProvider(
                [.init("document", source, key: "credentials")], reader: reader, areSent: false)
        }
    }

    /// - Throws: ``SecretError``; ``UnusableKeyError``.
    func current(_ context: RequestContext) async throws -> (key: S3Key, reading: Int) {
        let first = try await provider.current()
        let (key, end): (S3Key, WallTime?)
        do { (key, end) = try self.key(first.headers) } catch {
            // The file may be half written: the second reading counts.
            await provider.refused(first.reading)
            throw error
        }
        // A key that has already expired is used anyway: the service refuses it, which is reported.
        guard let end, end < now().advanced(by: Self.margin) else { return (key, first.reading) }
        await provider.refused(first.reading)
        let second = try await provider.current()
        do { return (try self.key(second.headers).key, second.reading) } catch {
            await provider.refused(second.reading)
            throw error
        }
    }

    func refused(_ reading: Int) async { await provider.refused(reading) }

    /// A document that is no key; the description contains no secret.
    struct UnusableKeyError: Error, Hashable, CustomStringConvertible { let description: String }

    private func key(_ headers: [(String, String)]) throws(UnusableKeyError) -> (key: S3Key, end: WallTime?) {
        let values = Dictionary(headers) { $1 }
        if let document = values["document"], case .document(let source, let profile) = source {
            return try S3KeyDocument.read(document, profile: profile, from: source.shown)
        }
        let key = S3Key(id: values["id"] ?? "", secret: values["secret"] ?? "", token: values["token"])
        guard case .words(let id, _, let token) = source else { return (key, nil) }
        return (try key.fitting(id: id.shown, token: token?.shown ?? ""), nil)
    }
}

extension S3Key {
    /// Returns the key if it can stand in a header.
    ///
    /// - Parameters: Sources of the id and the token, for messages.
    fileprivate func fitting(id: String, token: String) throws(S3Keys.UnusableKeyError) -> S3Key {
        for (text, words, place) in [(self.id, "an access key", id), (self.token ?? "", "a token", token)]
        where !text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
            throw .init(description: "\(place) has \(words) with a space, a control character or one outside ASCII")
        }
        return self
    }
}

/// Keys in the formats of other S3 tools.
enum S3KeyDocument {
    /// - Parameter place: Where the document comes from, for messages.
    static func read(
        _ text: String, profile: String, from place: String
    ) throws(S3Keys.UnusableKeyError) -> (key: S3Key, end: WallTime?) {
        let isJSON = text.first { !$0.isWhitespace } == "{"
        let values = isJSON ? try json(text, place) : try section(profile, of: text, place)
        guard let id = values["aws_access_key_id"], let secret = values["aws_secret_access_key"], !id.isEmpty,
            !secret.isEmpty
        else { throw .init(description: "\(place) has no access key with its secret") }
        let token = values["aws_session_token"].flatMap { $0.isEmpty ? nil : $0 }
        let end = values["expiration"].flatMap { WallTime(rfc3339: $0) }
        // Credentials files have no such field: some tools write one under that name for their own use.
        if isJSON, values["expiration"] != nil, end == nil {
            throw .init(description: "\(place) has an `Expiration` that is not a time of RFC 3339")
        }
        return (try S3Key(id: id, secret: secret, token: token).fitting(id: place, token: place), end)
    }

    /// The output of `credential_process`, version 1; also with the spelling of instance metadata.
    private static func json(_ text: String, _ place: String) throws(S3Keys.UnusableKeyError) -> [String: String] {
        guard case .object(let fields)? = JSONValue.read(Array(text.utf8)) else {
            throw .init(description: "\(place) is not a JSON object")
        }
        let names = [
            "AccessKeyId": "aws_access_key_id", "SecretAccessKey": "aws_secret_access_key",
            "SessionToken": "aws_session_token", "Token": "aws_session_token", "Expiration": "expiration",
            // Temporary keys of Alibaba Cloud use these names.
            "AccessKeySecret": "aws_secret_access_key", "SecurityToken": "aws_session_token",
        ]
        var found: [String: String] = [:]
        for (name, value) in fields where value != .null {
            if let own = names[name] { found[own] = value.string ?? "" }
        }
        return found
    }

    /// A section of a shared credentials file: `[name]`, lines of `key = value`, comments after `#` and `;`.
    private static func section(
        _ profile: String, of text: String, _ place: String
    ) throws(S3Keys.UnusableKeyError) -> [String: String] {
        var (isInside, isThere) = (false, false)
        var found: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let line = line.drop(while: \.isWhitespace)
            if line.first == "[" {
                let name = line.dropFirst().prefix { $0 != "]" }.split(separator: " ").joined(separator: " ")
                isInside = name == profile || name == "profile \(profile)"
                isThere = isThere || isInside
            } else if isInside, line.first != "#", line.first != ";", let equals = line.firstIndex(of: "=") {
                let value = line[line.index(after: equals)...].split(separator: " ").joined(separator: " ")
                found[line[..<equals].split(separator: " ").joined().lowercased()] = value
            }
        }
        guard isThere else { throw .init(description: "\(place) has no section `[\(FilePath(profile).display)]`") }
        return found
    }
}
