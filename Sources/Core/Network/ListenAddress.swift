/// The address on which a server listens: `HOST:PORT`, `[IPv6]:PORT` or `:PORT`.
package struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// A name or numeric address of this machine, without brackets.
    package let host: String
    /// 0: the system chooses one.
    package let port: Int

    /// The reason why a text is no address, for people.
    package struct ParseError: Error, Hashable, Sendable {
        /// `nil`: the text has the wrong form.
        package let text: String?
    }

    package init(_ text: String) throws(ParseError) {
        guard let cut = text.lastIndex(of: ":") else { throw ParseError(text: nil) }
        let digits = text[cut...].dropFirst()
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = Int(digits), port <= 65_535 else {
            throw ParseError(text: nil)
        }
        var host = String(text[..<cut])
        if host.hasPrefix("[") && host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
            guard IPAddress(host) != nil else { throw ParseError(text: nil) }
        } else if host.contains(":") {
            throw ParseError(text: "takes an IPv6 address in brackets: [\(host)]:\(port)")
        }
        self.host = host.isEmpty ? "0.0.0.0" : host
        self.port = port
    }

    /// Whether only this machine can reach it.
    package var isLoopback: Bool { host == "localhost" || IPAddress(host)?.isLoopback == true }

    package var description: String { (host.contains(":") ? "[\(host)]" : host) + ":\(port)" }
}
