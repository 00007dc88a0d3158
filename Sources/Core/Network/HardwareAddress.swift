/// The address of a network card: `02:fc:00:00:00:01`.
package struct HardwareAddress: Hashable, Sendable, CustomStringConvertible {
    /// 6 bytes for Ethernet and Wi-Fi; other media have other lengths.
    package let bytes: [UInt8]

    /// - Returns: `nil` for no bytes, and for more than the kernel ever has (`MAX_ADDR_LEN`).
    package init?(_ bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
        if self.bytes.isEmpty || self.bytes.count > 32 { return nil }
    }

    /// Pairs of hexadecimal digits with `:` or `-` between, as in `02-FC-00-00-00-01`.
    package init?(_ text: String) {
        let hyphen = UInt8(ascii: "-")
        let separator = text.utf8.contains(hyphen) ? hyphen : UInt8(ascii: ":")
        var bytes: [UInt8] = []
        for part in text.utf8.split(separator: separator, omittingEmptySubsequences: false) {
            guard part.count == 2, let byte = Core.bytes(hexadecimal: String(decoding: part, as: UTF8.self)) else {
                return nil
            }
            bytes += byte
        }
        // A single pair is a typing mistake and not an address.
        guard bytes.count >= 6 else { return nil }
        self.init(bytes)
    }

    /// Assigned by software and not by the maker of the card (IEEE 802, the second bit of the first byte).
    package var isMadeUp: Bool { bytes.first.map { $0 & 0x02 != 0 } ?? false }

    package var description: String { bytes.map { hexadecimal([$0]) }.joined(separator: ":") }
}
