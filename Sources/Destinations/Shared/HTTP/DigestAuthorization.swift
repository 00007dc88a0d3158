internal import Core
internal import Credentials
internal import Digests
internal import Synchronization
internal import Transport

/// `Authorization: Digest` (RFC 7616), with the protection `auth`.
///
/// libcurl can do this too, but it sends each request twice, the first time without its body. A server that asks for no
/// authorisation would then execute both. Here a challenge is kept and used for later requests, whatever their
/// connection.
final class DigestAuthorization: Sendable {
    private struct State {
        var challenge: DigestChallenge?
        /// Requests with its nonce so far.
        var count: UInt32 = 0
        /// The server takes each nonce once.
        var isOfOneTime = false
    }

    private let user: String
    private let password: CredentialProvider
    private let state = Mutex(State())

    init(user: String, password: SecretSource, reader: SecretReader) {
        self.user = user
        self.password = CredentialProvider(
            [.init("password", password, key: "http.password")], reader: reader, areSent: false)
    }

    /// Whether the next request would be refused for lack of a fresh challenge.
    var lacksChallenge: Bool {
        state.withLock { $0.challenge == nil || $0.isOfOneTime && $0.count > 0 }
    }

    /// Takes the challenge from a 401.
    ///
    /// - Parameter wasRefused: The request carried an answer to an earlier challenge.
    /// - Returns: Whether the same request may succeed now.
    func learn(_ headers: Headers, wasRefused: Bool) async -> Bool {
        let offered = DigestChallenge.all(in: headers).max { $0.strength < $1.strength }
        let isStale = DigestChallenge.saysStale(headers)
        state.withLock { state in
            let isOfOneTime = state.isOfOneTime || wasRefused && state.count > 1 && isStale
            state = State(challenge: offered, isOfOneTime: isOfOneTime)
        }
        // A stale nonce says nothing about the password (section 3.3).
        if wasRefused, !isStale { await password.discard() }
        return offered != nil
    }

    /// The value for a request; `nil` without a challenge.
    ///
    /// - Parameters:
    ///   - clientNonce: At random for each request.
    ///   - remember: Called with each secret.
    func value(
        _ method: String, _ url: String, clientNonce: String, remember: (String) -> Void
    ) async throws(SecretError) -> String? {
        let (challenge, count) = state.withLock { state in
            state.count += 1
            return (state.challenge, state.count)
        }
        guard let challenge, let secret = try await password.current().headers.first?.1 else { return nil }
        remember(secret)
        let address = WebAddress(url)
        let target = (address.path.isEmpty ? "/" : address.path) + (address.query.map { "?\($0)" } ?? "")
        return challenge.answer(
            user: user, password: secret, method: method, target: target, clientNonce: clientNonce, count: count)
    }
}

/// A challenge of a server (RFC 7616, section 3.3).
struct DigestChallenge: Hashable, Sendable {
    private let realm: String
    private let nonce: String
    private let opaque: String?
    private let algorithm: Hasher.Algorithm
    /// As the server wrote it.
    private let algorithmName: String?
    private let isOfSession: Bool
    /// Without `qop` the form of RFC 2069 is used.
    private let hasQuality: Bool
    private let hashesUser: Bool
    /// The answer to an earlier challenge had the right password, and a nonce that is too old.
    private let isStale: Bool

    var strength: Int { algorithm == .sha256 ? 1 : 0 }

    /// - Returns: `nil` for an algorithm or protection that is not known.
    init?(_ parameters: [String: String]) {
        guard let realm = parameters["realm"], let nonce = parameters["nonce"] else { return nil }
        self.realm = realm
        self.nonce = nonce
        opaque = parameters["opaque"]
        let name = parameters["algorithm"]
        let lower = name?.lowercased() ?? "md5"
        isOfSession = lower.hasSuffix("-sess")
        switch isOfSession ? String(lower.dropLast(5)) : lower {
        case "md5": algorithm = .md5
        case "sha-256": algorithm = .sha256
        default: return nil
        }
        algorithmName = name
        let qualities = parameters["qop"]?.lowercased().split { $0 == "," || $0 == " " }
        if let qualities, !qualities.contains("auth") { return nil }
        hasQuality = qualities != nil
        hashesUser = parameters["userhash"]?.lowercased() == "true"
        isStale = parameters["stale"]?.lowercased() == "true"
    }

    /// All that can be answered.
    static func all(in headers: Headers) -> [DigestChallenge] {
        written(in: headers).filter { $0.scheme.lowercased() == "digest" }.compactMap {
            DigestChallenge($0.parameters)
        }
    }

    /// Whether a server refuses only the nonce of an earlier answer. It may say so in one of several challenges.
    static func saysStale(_ headers: Headers) -> Bool { all(in: headers).contains { $0.isStale } }

    /// Names the challenges that an answer has, and what can be answered; `nil` where it has none.
    static func objection(to headers: Headers) -> String? {
        let all = written(in: headers)
        if all.isEmpty { return nil }
        let names = all.prefix(5).map { scheme, parameters in
            let isDigest = scheme.lowercased() == "digest"
            let words = [scheme] + (isDigest ? ["algorithm", "qop"].compactMap { parameters[$0] } : [])
            return "`\(FilePath(String(words.joined(separator: " ").prefix(60))).display)`"
        }
        return names.joined(separator: ", ")
            + ", which `http.auth: digest` cannot answer: it supports Digest with MD5 or SHA-256 and the protection `auth`"
            + (all.contains { $0.scheme.lowercased() == "basic" } ? "; `http.auth: basic` is for Basic" : "")
    }

    private static func written(in headers: Headers) -> [(scheme: String, parameters: [String: String])] {
        headers.lines.filter { $0.name.lowercased() == "www-authenticate" }.flatMap { challenges(in: $0.value) }
    }

    func answer(
        user: String, password: String, method: String, target: String, clientNonce: String, count: UInt32
    ) -> String {
        func hash(_ text: String) -> String { hexadecimal(Hasher.digest(algorithm, of: Array(text.utf8))) }
        let digits = String(count, radix: 16)
        let number = String(repeating: "0", count: max(0, 8 - digits.count)) + digits
        var secret = hash("\(user):\(realm):\(password)")
        if isOfSession { secret = hash("\(secret):\(nonce):\(clientNonce)") }
        let request = hash("\(method):\(target)")
        let middle = hasQuality ? "\(nonce):\(number):\(clientNonce):auth" : nonce
        let shownUser = hashesUser ? hash("\(user):\(realm)") : user
        var parts = [
            "username=\(Self.quoted(shownUser))", "realm=\(Self.quoted(realm))", "uri=\(Self.quoted(target))",
            "nonce=\(Self.quoted(nonce))", "response=\"\(hash("\(secret):\(middle):\(request)"))\"",
        ]
        if let algorithmName { parts.append("algorithm=\(algorithmName)") }
        if hasQuality { parts += ["qop=auth", "nc=\(number)"] }
        if hasQuality || isOfSession { parts.append("cnonce=\(Self.quoted(clientNonce))") }
        if let opaque { parts.append("opaque=\(Self.quoted(opaque))") }
        if hashesUser { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }

    private static func quoted(_ text: String) -> String {
        // By scalars: a quote with a combining mark after it is no `"` as a character.
        var quoted = "\"".unicodeScalars
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { quoted.append("\\") }
            quoted.append(scalar)
        }
        quoted.append("\"")
        return String(quoted)
    }

    // MARK: Reading

    /// Reads `Digest realm="a", nonce="b", Basic realm="c"`: schemes with parameters, all separated by commas (RFC 9110,
    /// section 11.6.1).
    private static func challenges(in text: String) -> [(scheme: String, parameters: [String: String])] {
        var found: [(scheme: String, parameters: [String: String])] = []
        var scheme = ""
        var parameters: [String: String] = [:]
        func finish() {
            if !scheme.isEmpty { found.append((scheme, parameters)) }
            parameters = [:]
        }
        for part in parts(of: text) {
            var rest = part[...]
            // The first word is a scheme, unless `=` follows it, perhaps after blanks (RFC 9110, section 11.2).
            let word = part.prefix { $0 != " " && $0 != "=" }
            let after = part[word.endIndex...].drop { $0 == " " }
            if after.first != "=" {
                finish()
                scheme = String(word)
                rest = after
            }
            guard let cut = rest.firstIndex(of: "=") else { continue }
            let name = rest[..<cut].trimmed.lowercased()
            parameters[name] = unquoted(rest[rest.index(after: cut)...].trimmed)
        }
        finish()
        return found
    }

    /// Splits at commas outside quotes.
    private static func parts(of text: String) -> [String] {
        var parts: [String] = []
        var current = ""
        var (isQuoted, isEscaped) = (false, false)
        for character in text {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                isQuoted.toggle()
            } else if character == ",", !isQuoted {
                parts.append(String(current.trimmed))
                current = ""
                continue
            }
            current.append(character)
        }
        parts.append(String(current.trimmed))
        return parts.filter { !$0.isEmpty }
    }

    private static func unquoted(_ text: some StringProtocol) -> String {
        guard text.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return String(text) }
        var plain = ""
        var isEscaped = false
        for character in text.dropFirst().dropLast() {
            if character == "\\", !isEscaped {
                isEscaped = true
                continue
            }
            isEscaped = false
            plain.append(character)
        }
        return plain
    }
}
