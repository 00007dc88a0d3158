/// A path or a file name in the form of Linux: bytes, where only `/` and NUL have a meaning.
///
/// Two names that differ only in Unicode normalisation, or that are not valid Unicode, are different files. So only
/// ``display`` and ``init(_:)`` use `String`.
package struct FilePath: Hashable, Sendable, Comparable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The bytes without a terminating NUL. Never contains one.
    package let bytes: [UInt8]

    /// - Parameter bytes: Bytes from a NUL on are ignored, as the kernel does.
    package init(bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes.prefix { $0 != 0 })
    }

    /// For bytes that are known to contain no NUL.
    init(unchecked bytes: [UInt8]) { self.bytes = bytes }

    package init(_ text: String) { self.init(bytes: text.utf8) }
    package init(stringLiteral value: String) { self.init(value) }

    private static let slash = UInt8(ascii: "/")

    package var isAbsolute: Bool { bytes.first == Self.slash }
    package var isEmpty: Bool { bytes.isEmpty }

    /// The parts between slashes, without the empty ones.
    package var components: [FilePath] { bytes.split(separator: Self.slash).map { FilePath(bytes: $0) } }

    /// The part after the last slash; the whole path where there is none. Empty after a trailing slash.
    package var name: FilePath {
        guard let cut = bytes.lastIndex(of: Self.slash) else { return self }
        return FilePath(bytes: bytes[(cut + 1)...])
    }

    /// The part before the last slash: `/` for `/a`, empty for `a`.
    package var parent: FilePath {
        guard let cut = bytes.lastIndex(of: Self.slash) else { return FilePath(bytes: []) }
        return FilePath(bytes: cut == 0 ? bytes[...0] : bytes[..<cut])
    }

    /// The name without its last extension: `a.tar` for `a.tar.gz`, `.profile` for `.profile`.
    package var stem: FilePath {
        let name = name.bytes
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return FilePath(bytes: name) }
        return FilePath(bytes: name[..<dot])
    }

    /// The last extension without its dot, unchanged; `nil` when there is none.
    package var fileExtension: FilePath? {
        let name = name.bytes
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return nil }
        return FilePath(bytes: name[(dot + 1)...])
    }

    /// A name up to its first dot; a dot at the beginning does not count.
    package var beforeDots: FilePath {
        let rest = bytes.dropFirst()
        return FilePath(bytes: bytes.prefix(1) + rest.prefix { $0 != UInt8(ascii: ".") })
    }

    /// Whether these are in one directory with one stem, as `clip.mp4`, `clip.srt` and `clip.mp4.json` are.
    package func sharesStem(with other: FilePath) -> Bool {
        stem == other.stem || stem.stem == other.stem || stem == other.stem.stem
    }

    /// Joins the two with exactly one slash.
    package func appending(_ relative: FilePath) -> FilePath {
        if bytes.isEmpty { return relative }
        if relative.isEmpty { return self }
        let join: [UInt8] = bytes.last == Self.slash ? [] : [Self.slash]
        return FilePath(bytes: bytes + join + relative.bytes)
    }

    /// The path below `folder`, without a leading slash. `nil` when it is not below it; `/a/cam10` is not below `/a/cam1`.
    package func relative(to folder: FilePath) -> FilePath? {
        var base = folder.bytes
        if base.last != Self.slash { base.append(Self.slash) }
        guard bytes.count > base.count, bytes.starts(with: base) else { return nil }
        return FilePath(bytes: bytes[base.count...])
    }

    /// The path without `.`, empty parts and a trailing slash; `..` removes its parent. Does not access the disk, so
    /// symbolic links stay.
    package var normalised: FilePath {
        var parts: [FilePath] = []
        for part in components where part != "." {
            if part == "..", let last = parts.last, last != ".." {
                parts.removeLast()
            } else if part != ".." || !isAbsolute {
                parts.append(part)
            }
        }
        let joined = parts.map(\.bytes).joined(separator: [Self.slash])
        return FilePath(bytes: (isAbsolute ? [Self.slash] : []) + joined)
    }

    /// The text, where the bytes are valid UTF-8.
    package var text: String? { String(validating: bytes, as: UTF8.self) }

    /// The path for people: printable text unchanged; control characters, backslash and bytes that are not UTF-8 as
    /// `\xHH`.
    ///
    /// Reversible, and safe to print to a terminal or a log.
    package var display: String {
        var out = ""
        var rest = bytes[...]
        while let first = rest.first {
            let length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
            if let piece = String(validating: rest.prefix(length), as: UTF8.self),
                let scalar = piece.unicodeScalars.first,
                piece.unicodeScalars.count == 1, !Self.isUnprintable(scalar)
            {
                out += piece
                rest = rest.dropFirst(length)
            } else {
                out += "\\x" + hexadecimal([first])
                rest = rest.dropFirst()
            }
        }
        return out
    }

    /// The path that ``display`` shows as `text`; `nil` when there is none.
    package init?(display text: String) {
        var out: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let first = rest.popFirst() {
            guard first == UInt8(ascii: "\\") else {
                out.append(first)
                continue
            }
            guard rest.popFirst() == UInt8(ascii: "x"), rest.count >= 2,
                let escaped = Core.bytes(hexadecimal: String(decoding: rest.prefix(2), as: UTF8.self))
            else { return nil }
            out += escaped
            rest = rest.dropFirst(2)
        }
        self.init(bytes: out)
    }

    package var description: String { display }

    package static func < (a: FilePath, b: FilePath) -> Bool { a.bytes.lexicographicallyPrecedes(b.bytes) }

    private static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        // Format characters include those that reverse the direction of a line.
        case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse, .surrogate: return true
        default: return scalar == "\\"
        }
    }
}

/// Lower-case hexadecimal digits, two for each byte.
package func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var out: [UInt8] = []
    for byte in bytes { out += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
    return String(decoding: out, as: UTF8.self)
}

/// The bytes that `text` contains in hexadecimal; `nil` for an odd length or any other character.
package func bytes(hexadecimal text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count.isMultiple(of: 2) else { return nil }
    var out: [UInt8] = []
    for pair in stride(from: 0, to: digits.count, by: 2) {
        guard let high = digits[pair].hexadecimalValue, let low = digits[pair + 1].hexadecimalValue else { return nil }
        out.append(high << 4 | low)
    }
    return out
}
