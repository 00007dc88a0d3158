internal import Core

/// The `Content-Disposition` of a creation, which carries the file's name (RFC 6266; RFC 8187 for `filename*`).
enum ContentDisposition {
    /// Servers and proxies limit a header line to 4 or 8 KiB.
    static let limit = 3 << 10

    /// - Parameter name: The last component of the remote name. Bytes that are no UTF-8 become `%HH`.
    static func header(_ name: FilePath) -> String {
        let text = name.text ?? PercentCoding.encode(name.bytes) { $0 < 0x80 && $0 != 0x25 }
        let coded = PercentCoding.encode(text.utf8, keeping: "!#$&+^`|")
        let header = "inline; filename=\"\(plain(text))\"; filename*=UTF-8''\(coded)"
        // The coded form of a name of 255 bytes has at most 765; only a longer name, of another system, reaches it.
        return header.utf8.count <= limit ? header : "inline; filename=\"\(plain(text).prefix(255))\""
    }

    /// The name for servers that do not read `filename*`: printable ASCII. Quotes, backslashes and percent signs are
    /// read differently by different servers (RFC 6266, appendix D).
    private static func plain(_ text: String) -> String {
        String(
            decoding: text.unicodeScalars.map { scalar -> UInt8 in
                let isPlain = (0x20..<0x7F).contains(scalar.value) && !["\"", "\\", "%"].contains(scalar)
                return isPlain ? UInt8(truncatingIfNeeded: scalar.value) : UInt8(ascii: "_")
            }, as: UTF8.self)
    }
}
