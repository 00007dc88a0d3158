// Makes text safe to show. Text from outside (a server's answer, a header, a file name) passes here before it reaches a
// log, an error or a terminal.

/// Returns `text` with every character that could act on a terminal or break a line written as `\xHH`.
///
/// Backslashes stay: ``FilePath/display`` has already escaped its own, and its result passes unchanged.
package func printable(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: actsOnTerminal) else { return text }
    var out = ""
    for scalar in text.unicodeScalars {
        if actsOnTerminal(scalar) {
            for byte in String(scalar).utf8 { out += "\\x" + hexadecimal([byte]) }
        } else {
            out.unicodeScalars.append(scalar)
        }
    }
    return out
}

private func actsOnTerminal(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
    switch scalar.properties.generalCategory {
    // Format characters include those that reverse the direction of a line.
    case .control, .format, .lineSeparator, .paragraphSeparator: return true
    default: return false
    }
}

/// Returns `text` without secrets: users and passwords of URLs, values of parameters, headers and fields that carry
/// secrets, bearer and basic credentials, signed tokens and private keys. Each is replaced by `***`.
///
/// This is the last line of defence, not the first: code that makes a message must leave secrets out.
///
/// - Parameter headers: Whether `name: value` is a header, up to the end of its line. In a text of our own it may be a
///   key with what is wrong about it.
package func redacted(_ text: String, headers: Bool = true) -> String {
    // None of the following matches without one of these characters; most lines have none.
    guard text.utf8.contains(where: { "=: ".utf8.contains($0) }) || text.contains(signedTokenStart) else { return text }
    let plain = PrivateKeys.hide(in: withoutSignedTokens(withoutUserInfo(text)))
    return withoutCredentials(withoutParameters(withoutFields(plain), headers: headers))
}

/// Names whose value is always a secret, in lower case; so are names with one of `secretEndings`.
private let secretNames: Set<String> = [
    "token", "sig", "signature", "apikey", "password", "passwd", "pwd", "secret", "authorization",
    "proxy-authorization", "cookie", "set-cookie", "accesskeysecret", "secretaccesskey", "securitytoken",
    "sessiontoken",
    "uploadauth",
]
private let secretEndings = [
    "-token", "_token", "-signature", "_signature", "-key", "_key", "-secret", "_secret", "-credential", "password",
    "passphrase", "-passwd", "_passwd", "-pwd", "_pwd", "-pass", "_pass",
]
/// Names that are secrets in the query of a URL; elsewhere `key=` and `code=` are ordinary words.
private let secretQueryNames: Set<String> = [
    "key", "code", "session", "credential", "policy", "auth", "accesskeyid", "awsaccesskeyid",
]

private func isSecret(_ name: some StringProtocol, inQuery: Bool) -> Bool {
    let lower = name.lowercased()
    return secretNames.contains(lower) || secretEndings.contains { lower.hasSuffix($0) }
        || inQuery && secretQueryNames.contains(lower)
}

/// Whether a field with this name is a secret, regardless of its value.
package func isSecretName(_ name: String) -> Bool { isSecret(name, inQuery: false) }

/// `scheme://user:password@host` becomes `scheme://***@host`.
private func withoutUserInfo(_ text: String) -> String {
    var out: [UInt8] = []
    let bytes = Array(text.utf8)
    var index = 0
    while index < bytes.count {
        guard bytes[index...].starts(with: "://".utf8) else {
            out.append(bytes[index])
            index += 1
            continue
        }
        index += 3
        out += Array("://".utf8)
        let authority = bytes[index...].prefix { !isSpace($0) && !"/?#\"'<>".utf8.contains($0) }
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            out += Array("***@".utf8)
            index = at + 1
        }
    }
    return String(decoding: out, as: UTF8.self)
}

/// `name=value` and `name: value` with a secret's name keep only the name.
private func withoutParameters(_ text: String, headers: Bool) -> String {
    var out: [UInt8] = []
    let bytes = Array(text.utf8)
    var name: [UInt8] = []
    var inQuery = false
    var index = 0
    while index < bytes.count {
        let byte = bytes[index]
        index += 1
        out.append(byte)
        if isNamePart(byte) {
            name.append(byte)
            continue
        }
        let isHeader = byte == UInt8(ascii: ":") && headers
        guard byte == UInt8(ascii: "=") || isHeader, isSecret(String(decoding: name, as: UTF8.self), inQuery: inQuery)
        else {
            name = []
            // The fragment of a link that signs in is `#code=…`.
            inQuery = "?&#".utf8.contains(byte)
            continue
        }
        name = []
        inQuery = false
        // A header's value begins after a space and goes to the end of the line.
        if isHeader {
            guard index < bytes.count, bytes[index] == UInt8(ascii: " ") else { continue }
            out.append(bytes[index])
            index += 1
        }
        // The command whose output is the value is none itself.
        if !isHeader, let value = quoted(at: bytes[index...]), value.upperBound < bytes.endIndex,
            !bytes[value].contains(UInt8(ascii: "\n")), !bytes[value].starts(with: "$(".utf8)
        {
            out += bytes[index..<value.lowerBound]
            if !value.isEmpty { out += Array("***".utf8) }
            index = value.upperBound
            continue
        }
        let value = bytes[index...].prefix {
            isHeader
                ? $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\"") : !endsParameter($0)
        }
        if !value.isEmpty { out += Array("***".utf8) }
        index = value.endIndex
    }
    return String(decoding: out, as: UTF8.self)
}

/// `"name": "value"` in JSON, also where the whole is a JSON string itself, with a secret's name keeps only the name.
private func withoutFields(_ text: String) -> String {
    let bytes = Array(text.utf8)
    var out: [UInt8] = []
    var index = 0
    var name: [UInt8] = []
    while index < bytes.count {
        let byte = bytes[index]
        let isQuote = byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
        if isQuote, isSecretName(String(decoding: name, as: UTF8.self)), let value = quotedValue(after: bytes[index...])
        {
            out += bytes[index..<value.lowerBound] + Array("***".utf8)
            index = value.upperBound
        } else {
            out.append(byte)
            index += 1
        }
        if isNamePart(byte) { name.append(byte) } else { name = [] }
    }
    return String(decoding: out, as: UTF8.self)
}

/// Where the value is, if `rest` continues `"name` by `": "value"`.
private func quotedValue(after rest: ArraySlice<UInt8>) -> Range<Int>? {
    let quote = rest.prefix { $0 == UInt8(ascii: "\\") } + [UInt8(ascii: "\"")]
    guard rest.starts(with: quote) else { return nil }
    var rest = rest.dropFirst(quote.count).drop(while: isSpace)
    guard rest.first == UInt8(ascii: ":") else { return nil }
    rest = rest.dropFirst().drop(while: isSpace)
    return rest.starts(with: quote) ? quoted(at: rest) : nil
}

/// What is between the quotes that `rest` begins with. Quotes in a string of another language have backslashes.
private func quoted(at rest: ArraySlice<UInt8>) -> Range<Int>? {
    let backslashes = rest.prefix { $0 == UInt8(ascii: "\\") }
    guard let mark = rest.dropFirst(backslashes.count).first, "\"'".utf8.contains(mark) else { return nil }
    let quote = backslashes + [mark]
    let start = rest.startIndex + quote.count
    var end = start
    while end < rest.endIndex, !rest[end...].starts(with: quote) {
        // A quote in the value has one more backslash.
        end += rest[end] == UInt8(ascii: "\\") && quote.count == 1 ? 2 : 1
    }
    return start..<min(end, rest.endIndex)
}

/// How a JSON Web Token begins: `{"` in base 64 (RFC 7519, section 3).
private let signedTokenStart = "eyJ"

/// A JSON Web Token: three parts in base 64 with dots between them (RFC 7515, section 3.1).
private func withoutSignedTokens(_ text: String) -> String {
    guard text.contains(signedTokenStart) else { return text }
    var out: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let first = rest.first {
        let word = rest.prefix { isNamePart($0) || $0 == UInt8(ascii: ".") }
        let isToken =
            word.starts(with: signedTokenStart.utf8) && word.count >= 24 && word.count { $0 == UInt8(ascii: ".") } >= 2
        out += word.isEmpty ? [first] : isToken ? Array("***".utf8) : Array(word)
        rest = rest.dropFirst(max(1, word.count))
    }
    return String(decoding: out, as: UTF8.self)
}

/// `Bearer abc` and `Basic abc` keep the first word.
private func withoutCredentials(_ text: String) -> String {
    var hideNext = false
    let words = text.split(separator: " ", omittingEmptySubsequences: false).map { word -> Substring in
        defer { hideNext = ["bearer", "basic"].contains(word.lowercased().drop { !$0.isLetter }) }
        // "Basic settings" in prose stays: credentials are not all lower case.
        return hideNext && looksLikeCredential(word) ? "***" : word
    }
    return words.joined(separator: " ")
}

private func looksLikeCredential(_ word: Substring) -> Bool {
    word.utf8.count >= 8 && word.utf8.allSatisfy { isNamePart($0) || "+/=.~".utf8.contains($0) }
        && !word.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
}
private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
private func isNamePart(_ byte: UInt8) -> Bool { byte.isLetterOrDigit(or: "-_") }
private func endsParameter(_ byte: UInt8) -> Bool { isSpace(byte) || "&#;,\"'<>)".utf8.contains(byte) }
