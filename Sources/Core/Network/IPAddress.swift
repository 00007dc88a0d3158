/// An address of the Internet, without port or interface.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// 4 or 16 bytes, in network order.
    package let bytes: [UInt8]

    /// - Returns: `nil` for any other length. An IPv4 address inside IPv6 (`::ffff:192.0.2.1`) becomes the IPv4
    ///   address, to which its packets go.
    package init?(_ bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        switch bytes.count {
        case 4: self.bytes = bytes
        case 16: self.bytes = bytes.starts(with: Self.mapped) ? Array(bytes[12...]) : bytes
        default: return nil
        }
    }

    /// `192.0.2.1` or `2001:db8::1`, without a zone (RFC 4291, section 2.2).
    package init?(_ text: String) {
        guard let bytes = text.utf8.contains(UInt8(ascii: ":")) ? Self.long(text) : Self.short(text) else { return nil }
        self.init(bytes)
    }

    package var isIPv6: Bool { bytes.count == 16 }

    /// Whether it belongs to this machine itself: `127.0.0.0/8` and `::1`.
    package var isLoopback: Bool {
        isIPv6 ? bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1 : bytes[0] == 127
    }

    /// Whether it is `0.0.0.0` or `::`.
    package var isUnspecified: Bool { bytes.allSatisfy { $0 == 0 } }

    /// Whether it is valid only on its own link, and therefore leads to no other network: `169.254.0.0/16` and
    /// `fe80::/10`.
    package var isLinkLocal: Bool {
        isIPv6 ? bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80 : bytes[0] == 169 && bytes[1] == 254
    }

    /// Whether a machine other than this one may have it, seen from more than one link: it is neither loopback nor
    /// link-local, neither unspecified (`0.0.0.0/8`, `::`) nor a group, nor the broadcast address.
    package var mayBeElsewhere: Bool {
        if isLoopback || isLinkLocal { return false }
        if isIPv6 { return bytes[0] != 0xFF && bytes.contains { $0 != 0 } }
        return bytes[0] != 0 && bytes[0] < 224 || bytes[0] >= 240 && bytes.contains { $0 != 255 }
    }

    private static let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

    /// Four decimal numbers. A number with a leading zero is octal to some programs and decimal to others, and is
    /// refused.
    private static func short(_ text: String) -> [UInt8]? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for part in parts {
            guard let number = decimal(part, most: 255), part.count == 1 || part.first != UInt8(ascii: "0") else {
                return nil
            }
            bytes.append(UInt8(number))
        }
        return bytes
    }

    /// Eight groups of up to four hexadecimal digits, `::` once for all missing zeros, and optionally the last two
    /// groups as an IPv4 address.
    private static func long(_ text: String) -> [UInt8]? {
        var head: [UInt8] = []
        var tail: [UInt8]?
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if part.isEmpty {
                // At either end the two colons make two empty parts.
                if index == 0 {
                    guard parts.count > 2, parts[1].isEmpty else { return nil }
                } else if index == parts.count - 1 {
                    guard parts[index - 1].isEmpty else { return nil }
                } else {
                    guard tail == nil else { return nil }
                    tail = []
                }
                continue
            }
            var group: [UInt8] = []
            if index == parts.count - 1, part.contains(UInt8(ascii: ".")) {
                guard let inner = short(String(decoding: part, as: UTF8.self)) else { return nil }
                group = inner
            } else {
                let digits = String(decoding: part, as: UTF8.self)
                guard part.count <= 4,
                    let pair = Core.bytes(hexadecimal: String(repeating: "0", count: 4 - part.count) + digits)
                else { return nil }
                group = pair
            }
            if tail == nil { head += group } else { tail? += group }
        }
        guard let tail else { return head.count == 16 ? head : nil }
        let missing = 16 - head.count - tail.count
        return missing >= 2 ? head + Array(repeating: 0, count: missing) + tail : nil
    }

    /// The form of RFC 5952: lower case, and the longest run of zeros as `::`.
    package var description: String {
        if !isIPv6 { return bytes.map { "\($0)" }.joined(separator: ".") }
        let groups = stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        var longest = 0..<0
        var start = 0
        while start < 8 {
            let end = groups[start...].firstIndex { $0 != 0 } ?? 8
            if end - start > max(longest.count, 1) { longest = start..<end }
            start = end + 1
        }
        func written(_ groups: ArraySlice<UInt16>) -> String {
            groups.map { String($0, radix: 16) }.joined(separator: ":")
        }
        if longest.isEmpty { return written(groups[...]) }
        return "\(written(groups[..<longest.lowerBound]))::\(written(groups[longest.upperBound...]))"
    }
}

/// An address and the number of its first bits that belong to the network: `192.168.42.0/24`.
package struct IPSubnet: Hashable, Sendable, CustomStringConvertible {
    /// Bits after the prefix may be set, as in the address of an interface.
    package let address: IPAddress
    /// 0 to 32, or to 128.
    package let prefix: Int

    /// - Returns: `nil` when the address has fewer bits.
    package init?(_ address: IPAddress, prefix: Int) {
        guard (0...address.bytes.count * 8).contains(prefix) else { return nil }
        self.address = address
        self.prefix = prefix
    }

    /// `192.168.42.0/24`; an address alone is a network of one.
    package init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard let address = parts.first.flatMap({ IPAddress(String(decoding: $0, as: UTF8.self)) }) else { return nil }
        switch parts.count {
        case 1: self.init(address, prefix: address.bytes.count * 8)
        case 2:
            guard let prefix = decimal(parts[1], most: 128) else { return nil }
            self.init(address, prefix: prefix)
        default: return nil
        }
    }

    package func contains(_ other: IPAddress) -> Bool {
        guard other.bytes.count == address.bytes.count else { return false }
        let (whole, rest) = prefix.quotientAndRemainder(dividingBy: 8)
        guard other.bytes[..<whole].elementsEqual(address.bytes[..<whole]) else { return false }
        return rest == 0 || (other.bytes[whole] ^ address.bytes[whole]) >> UInt8(8 - rest) == 0
    }

    /// The two networks that form it; none where it is a single address.
    package var halves: [IPSubnet] {
        guard prefix < address.bytes.count * 8 else { return [] }
        let lower = network.address.bytes
        var upper = lower
        upper[prefix / 8] |= 0x80 >> UInt8(prefix % 8)
        return [lower, upper].compactMap { IPAddress($0) }.compactMap { IPSubnet($0, prefix: prefix + 1) }
    }

    /// The same without the bits after the prefix.
    package var network: IPSubnet {
        var bytes = address.bytes
        for index in bytes.indices {
            let kept = min(8, max(0, prefix - index * 8))
            bytes[index] &= kept == 0 ? 0 : UInt8.max << UInt8(8 - kept)
        }
        return IPAddress(bytes).flatMap { IPSubnet($0, prefix: prefix) } ?? self
    }

    package var description: String { "\(address)/\(prefix)" }
}

private func decimal(_ digits: some Collection<UInt8>, most: Int) -> Int? {
    guard (1...3).contains(digits.count) else { return nil }
    var number = 0
    for digit in digits {
        guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
        number = number * 10 + Int(digit - UInt8(ascii: "0"))
    }
    return number <= most ? number : nil
}
