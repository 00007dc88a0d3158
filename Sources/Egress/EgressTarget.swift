package import Core

/// The server that a program wants to connect to.
package struct EgressTarget: Hashable, Sendable, CustomStringConvertible {
    package enum Host: Hashable, Sendable {
        /// In lower case, without a dot at its end.
        case name(String)
        case address(IPAddress)
    }

    package let host: Host
    /// 1 to 65535.
    package let port: UInt16

    package init(_ host: Host, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// `HOST:PORT`, or `[IPv6]:PORT` (RFC 3986, section 3.2, without a user).
    ///
    /// - Parameter port: The port of a text without one; `nil` where it needs one.
    init?(authority text: ArraySlice<UInt8>, otherwise port: UInt16? = nil) {
        var (host, digits) = (text, ArraySlice<UInt8>?.none)
        if text.first == UInt8(ascii: "[") {
            guard let end = text.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            host = text[...end]
            let rest = text[(end + 1)...]
            if !rest.isEmpty {
                guard rest.first == UInt8(ascii: ":") else { return nil }
                digits = rest.dropFirst()
            }
        } else if let colon = text.firstIndex(of: UInt8(ascii: ":")) {
            (host, digits) = (text[..<colon], text[(colon + 1)...])
        }
        guard let known = Host(host), let number = digits.map({ Self.port($0) }) ?? port, number > 0 else { return nil }
        self.init(known, port: number)
    }

    private static func port(_ digits: ArraySlice<UInt8>) -> UInt16 {
        guard (1...5).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return 0 }
        return UInt16(exactly: digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }) ?? 0
    }

    package var description: String {
        switch host {
        case .name(let name): "\(name):\(port)"
        case .address(let address): address.isIPv6 ? "[\(address)]:\(port)" : "\(address):\(port)"
        }
    }
}

extension EgressTarget.Host {
    /// A name, an IPv4 address, or an IPv6 address in brackets.
    init?(_ text: ArraySlice<UInt8>) {
        if text.first == UInt8(ascii: "["), text.last == UInt8(ascii: "]") {
            guard let address = IPAddress(String(decoding: text.dropFirst().dropLast(), as: UTF8.self)) else {
                return nil
            }
            self = .address(address)
            return
        }
        let words = String(decoding: text, as: UTF8.self)
        if !words.contains(":"), let address = IPAddress(words) {
            self = .address(address)
            return
        }
        guard let name = Self.name(text) else { return nil }
        self = .name(name)
    }

    /// A host name (RFC 1123, section 2.1; an underscore is common). One whose last label is a number is none: resolvers
    /// read `127.1` and `0x7f000001` as addresses.
    private static func name(_ text: ArraySlice<UInt8>) -> String? {
        let text = text.last == UInt8(ascii: ".") ? text.dropLast() : text
        let labels = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (1...253).contains(text.count), labels.allSatisfy({ (1...63).contains($0.count) }),
            let last = labels.last, last.contains(where: { !(0x30...0x39).contains($0) }),
            !last.starts(with: "0x".utf8), !last.starts(with: "0X".utf8)
        else { return nil }
        let isFine = text.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || "-_.".utf8.contains(byte)
        }
        return isFine ? String(decoding: text, as: UTF8.self).lowercased() : nil
    }
}
