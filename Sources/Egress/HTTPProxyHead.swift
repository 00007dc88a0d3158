internal import Core

/// The head of an HTTP request to a proxy: `CONNECT`, or a request with an absolute address (RFC 9112, section 3.2).
struct HTTPProxyHead: Hashable, Sendable {
    /// Maximum size in bytes, with the empty line at its end.
    static let limit = 16 << 10

    /// The user and password of `Proxy-Authorization: Basic` (RFC 7617); `nil` where it is missing, there twice, or in
    /// another form.
    private(set) var login: ProxyLogin?
    let target: EgressTarget
    /// Whether the connection becomes a tunnel.
    let isConnect: Bool
    /// The head for the server itself; empty for a tunnel.
    private(set) var forwarded: [UInt8] = []
    var body = RequestBody.unlimited

    /// - Parameter bytes: Whole, up to and with the empty line.
    /// - Throws: `.malformed` or `.unsupported`.
    init(_ bytes: ArraySlice<UInt8>) throws(EgressRefusal) {
        let lines = try Self.lines(bytes)
        let words = lines[0].split(separator: 0x20, omittingEmptySubsequences: false)
        guard words.count == 3, (1...32).contains(words[0].count), words[0].allSatisfy(Self.isTokenByte),
            !words[1].isEmpty, words[1].allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw .malformed("the first line is not a method, an address and a version") }
        guard words[2].elementsEqual("HTTP/1.1".utf8) || words[2].elementsEqual("HTTP/1.0".utf8) else {
            throw .unsupported("this version of HTTP")
        }
        var fields: [Field] = []
        for line in lines.dropFirst() { fields.append(try Field(line)) }
        let logins = fields.filter { $0.name == "proxy-authorization" }
        if logins.count == 1 { login = ProxyLogin(basic: logins[0].value) }
        isConnect = words[0].elementsEqual("CONNECT".utf8)
        if isConnect {
            guard let target = EgressTarget(authority: words[1]) else {
                throw .malformed("CONNECT takes the name and port of a server")
            }
            self.target = target
            return
        }
        let (target, path) = try Self.split(words[1], isOptions: words[0].elementsEqual("OPTIONS".utf8))
        self.target = target
        body = try Self.body(fields)
        forwarded = try Self.forwarded(words[0], path, words[2], target, fields)
    }

    /// One header field, as it was written, and its name in lower case.
    private struct Field {
        let name: String
        let value: ArraySlice<UInt8>
        let line: ArraySlice<UInt8>

        init(_ line: ArraySlice<UInt8>) throws(EgressRefusal) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                line[..<colon].allSatisfy(HTTPProxyHead.isTokenByte)
            else { throw .malformed("a header has no name, or a space in it, or continues on a second line") }
            name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
            var value = line[(colon + 1)...]
            while let first = value.first, first == 0x20 || first == 0x09 { value = value.dropFirst() }
            while let last = value.last, last == 0x20 || last == 0x09 { value = value.dropLast() }
            self.value = value
            self.line = line
        }

        /// The words of a list, in lower case.
        var words: [String] {
            value.split(separator: UInt8(ascii: ",")).map { word in
                String(decoding: word.filter { $0 != 0x20 && $0 != 0x09 }, as: UTF8.self).lowercased()
            }
        }
    }

    /// The lines without the empty one. Each ends in CR and LF, and neither is inside one.
    private static func lines(_ bytes: ArraySlice<UInt8>) throws(EgressRefusal) -> [ArraySlice<UInt8>] {
        var lines: [ArraySlice<UInt8>] = []
        var start = bytes.startIndex
        for index in bytes.indices {
            let byte = bytes[index]
            if byte == 0x0A {
                guard index > start, bytes[index - 1] == 0x0D else {
                    throw .malformed("a line does not end in CR and LF")
                }
                lines.append(bytes[start..<(index - 1)])
                start = index + 1
            } else if byte == 0x0D {
                guard index + 1 < bytes.endIndex, bytes[index + 1] == 0x0A else {
                    throw .malformed("a line does not end in CR and LF")
                }
            } else if byte < 0x20 && byte != 0x09 || byte == 0x7F {
                throw .malformed("it contains a control character")
            }
        }
        guard start == bytes.endIndex, lines.count > 1, lines.removeLast().isEmpty, lines[0].contains(0x20) else {
            throw .malformed("the first line is not a method, an address and a version")
        }
        return lines
    }

    /// The server and the path of an absolute address.
    private static func split(
        _ address: ArraySlice<UInt8>, isOptions: Bool
    ) throws(EgressRefusal) -> (EgressTarget, ArraySlice<UInt8>) {
        let scheme = Array("http://".utf8)
        guard address.count > scheme.count,
            String(decoding: address.prefix(scheme.count), as: UTF8.self).lowercased() == "http://"
        else {
            throw .malformed(
                "a proxy gets CONNECT, or an address that begins with http://; for other protocols it gets CONNECT")
        }
        let rest = address.dropFirst(scheme.count)
        let end = rest.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
        guard let target = EgressTarget(authority: rest[..<end], otherwise: 80), !rest[end...].contains(0x23) else {
            throw .malformed("the address has no valid server, or a user or fragment")
        }
        var path = rest[end...]
        if path.isEmpty { path = isOptions ? ArraySlice("*".utf8) : ArraySlice("/".utf8) }
        if path.first == UInt8(ascii: "?") { path = [UInt8(ascii: "/")] + path }
        return (target, path)
    }

    /// RFC 9112, section 6.3: where two programs could find different ends, the request is refused.
    private static func body(_ fields: [Field]) throws(EgressRefusal) -> RequestBody {
        let lengths = fields.filter { $0.name == "content-length" }
        let codings = fields.filter { $0.name == "transfer-encoding" }
        if !codings.isEmpty {
            guard lengths.isEmpty, codings.count == 1, codings[0].words == ["chunked"] else {
                throw .malformed("its body has a length and a coding, or another coding than `chunked`")
            }
            return .chunked
        }
        guard let length = lengths.first else { return .length(0) }
        let digits = String(decoding: length.value, as: UTF8.self)
        guard lengths.count == 1, (1...18).contains(digits.utf8.count),
            digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int64(digits)
        else { throw .malformed("Content-Length is not one number") }
        return .length(count)
    }

    /// Fields for one connection (RFC 9110, section 7.6.1), and those that the proxy writes itself.
    private static let dropped: Set<String> = [
        "connection", "proxy-connection", "keep-alive", "te", "upgrade", "proxy-authorization", "proxy-authenticate",
        "proxy-authentication-info", "host",
    ]

    private static func forwarded(
        _ method: ArraySlice<UInt8>, _ path: ArraySlice<UInt8>, _ version: ArraySlice<UInt8>, _ target: EgressTarget,
        _ fields: [Field]
    ) throws(EgressRefusal) -> [UInt8] {
        let named = Set(fields.filter { $0.name == "connection" || $0.name == "proxy-connection" }.flatMap(\.words))
        guard named.isDisjoint(with: ["content-length", "transfer-encoding"]) else {
            throw .malformed("Connection names a header that belongs to the body")
        }
        var head = Array([method, path, version].joined(separator: [0x20])) + [0x0D, 0x0A]
        // RFC 9112, section 3.2.2: `Host` follows from the address.
        let host = target.port == 80 ? "\(target)".dropLast(3) : "\(target)"[...]
        head += Array("Host: \(host)\r\n".utf8)
        for field in fields where !dropped.contains(field.name) && !named.contains(field.name) {
            head += field.line
            head += [0x0D, 0x0A]
        }
        // One request for each connection: the server closes it.
        head += Array("Via: 1.1 sluice\r\nConnection: close\r\n\r\n".utf8)
        return head
    }

    /// RFC 9110, section 5.6.2.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}

/// The user and password that a program shows to the proxy.
struct ProxyLogin: Hashable, Sendable {
    let user: [UInt8]
    let password: [UInt8]

    init(user: [UInt8], password: [UInt8]) {
        self.user = user
        self.password = password
    }

    /// `Basic`, and both in base 64, divided by a colon (RFC 7617, section 2).
    init?(basic value: ArraySlice<UInt8>) {
        let words = value.split(separator: 0x20)
        guard words.count == 2, String(decoding: words[0], as: UTF8.self).lowercased() == "basic",
            let both = bytes(base64: String(decoding: words[1], as: UTF8.self)),
            let colon = both.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        self.init(user: Array(both[..<colon]), password: Array(both[(colon + 1)...]))
    }
}
