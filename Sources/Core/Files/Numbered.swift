extension FilePath {
    /// `NAME_MAX` of every common Linux file system, in bytes.
    package static let longestName = 255

    /// The `number`th path to try where the first is taken: the path itself, `name (2).ext`, `name (3).ext` …. Its last
    /// component is shortened to the limit of file systems. The cut shortens the stem and keeps the extension.
    package func numbered(_ number: Int) -> FilePath {
        let name = name
        var tail = name.fileExtension.map { [UInt8(ascii: ".")] + $0.bytes } ?? []
        var stem = name.stem.bytes
        if tail.count > 64 {
            // An ending of this length is not an extension.
            stem = name.bytes
            tail = []
        }
        if number > 1 { tail = Array(" (\(number))".utf8) + tail }
        return parent.appending(FilePath(bytes: Self.shortened(stem, to: Self.longestName - tail.count) + tail))
    }

    /// At most `count` bytes, not ending in the middle of a UTF-8 sequence.
    package static func shortened(_ bytes: [UInt8], to count: Int) -> [UInt8] {
        guard bytes.count > count else { return bytes }
        var end = count
        // Bytes that are not UTF-8 may all look like the inside of a sequence; a sequence has at most three of them.
        while end > count - 3, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        return Array(bytes[..<(bytes[end] & 0xC0 == 0x80 ? count : end)])
    }
}
