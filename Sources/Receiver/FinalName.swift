internal import Core
internal import WebServer

/// Where below the receiver's folder a file is to appear, as its sender asked.
///
/// | metadata       | value                                         |
/// |----------------|-----------------------------------------------|
/// | `sluicePath`   | our own: the path's bytes, percent-coded      |
/// | `relativePath` | a path, as some browsers' clients send it     |
/// | `filename`     | a name; one with slashes counts as a path     |
///
/// The first that is there counts. A path that leads out of the folder is refused and not mended: its sender would look
/// for the file elsewhere.
enum FinalName {
    /// The receiver's own folder, first part of no name.
    static let ownFolder: FilePath = ".sluice-receive"
    /// `NAME_MAX` of every common Linux file system, in bytes.
    static let longest = 255

    struct Refusal: Error, Hashable {
        let text: String
    }

    static func path(from metadata: Metadata) throws(Refusal) -> FilePath {
        if let coded = metadata.bytes("sluicePath"), !coded.isEmpty {
            guard let text = String(validating: coded, as: UTF8.self),
                let bytes = PercentCoding.bytes(decoding: text)
            else { throw Refusal(text: "the metadata sluicePath is not percent-coded") }
            return try checked(bytes)
        }
        for key in ["relativePath", "filename"] {
            if let bytes = metadata.bytes(key), !bytes.isEmpty { return try checked(bytes) }
        }
        return "unnamed"
    }

    /// The path with overlong parts cut; throws when it is not safe to use below a folder.
    static func checked(_ bytes: [UInt8]) throws(Refusal) -> FilePath {
        guard !bytes.contains(0) else { throw Refusal(text: "the name holds a NUL") }
        guard bytes.count <= 4096 else { throw Refusal(text: "the name is longer than 4096 bytes") }
        let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map {
            FilePath(bytes: $0)
        }
        for part in parts where part.isEmpty || part == "." || part == ".." {
            throw Refusal(
                text: "the name is no plain relative path (it begins with a slash or holds an empty part, . or ..)")
        }
        if let first = parts.first, first.bytes.starts(with: ownFolder.bytes) {
            throw Refusal(text: "names that begin with \(ownFolder) belong to the receiver")
        }
        let cut = parts.map { candidate(1, of: $0).bytes }
        return FilePath(bytes: Array(cut.joined(separator: [UInt8(ascii: "/")])))
    }

    /// The `number`th name to try for `name`: itself, `name (2).ext`, `name (3).ext` …, cut to what a file system takes.
    /// The cut takes from the stem and leaves the extension.
    static func candidate(_ number: Int, of name: FilePath) -> FilePath {
        var tail = name.fileExtension.map { [UInt8(ascii: ".")] + $0.bytes } ?? []
        var stem = name.stem.bytes
        if tail.count > 64 {
            // So long an ending is no extension.
            stem = name.bytes
            tail = []
        }
        if number > 1 { tail = Array(" (\(number))".utf8) + tail }
        return FilePath(bytes: shortened(stem, to: longest - tail.count) + tail)
    }

    /// At most `count` bytes, not ending in the middle of a UTF-8 sequence.
    private static func shortened(_ bytes: [UInt8], to count: Int) -> [UInt8] {
        guard bytes.count > count else { return bytes }
        var end = count
        // Bytes that are no UTF-8 may all look like the inside of a sequence; a sequence has at most three of them.
        while end > count - 3, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        return Array(bytes[..<(bytes[end] & 0xC0 == 0x80 ? count : end)])
    }
}
