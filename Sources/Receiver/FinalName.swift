internal import Core

/// The path of a file below the receiver's folder, as its sender requests it.
///
/// | metadata       | value                                         |
/// |----------------|-----------------------------------------------|
/// | `sluicePath`   | our own: the path's bytes, percent-coded      |
/// | `relativePath` | a path, as some browsers' clients send it     |
/// | `filename`     | a name; one with slashes counts as a path     |
///
/// The first one present counts. A path that leads out of the folder is refused and not corrected: its sender would
/// look for the file elsewhere.
enum FinalName {
    /// The receiver's own folder. No name may begin with it.
    static let ownFolder: FilePath = ".sluice-receive"

    struct RefusedNameError: Error, Hashable {
        let text: String
    }

    static func path(from metadata: UploadMetadataHeader) throws(RefusedNameError) -> FilePath {
        if let coded = metadata.bytes("sluicePath"), !coded.isEmpty {
            guard let text = String(validating: coded, as: UTF8.self),
                let bytes = PercentCoding.bytes(decoding: text)
            else { throw RefusedNameError(text: "the metadata sluicePath is not percent-coded") }
            return try checked(bytes)
        }
        for key in ["relativePath", "filename"] {
            if let bytes = metadata.bytes(key), !bytes.isEmpty { return try checked(bytes) }
        }
        return "unnamed"
    }

    /// The path with overlong components shortened; throws when it is not safe to use below a folder.
    static func checked(_ bytes: [UInt8]) throws(RefusedNameError) -> FilePath {
        guard !bytes.contains(0) else { throw RefusedNameError(text: "the name contains a NUL") }
        guard bytes.count <= 4096 else { throw RefusedNameError(text: "the name is longer than 4096 bytes") }
        let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map {
            FilePath(bytes: $0)
        }
        for part in parts where part.isEmpty || part == "." || part == ".." {
            throw RefusedNameError(
                text:
                    "the name is not a plain relative path (it begins with a slash or contains an empty part, . or ..)")
        }
        if let first = parts.first, first.bytes.starts(with: ownFolder.bytes) {
            throw RefusedNameError(text: "names that begin with \(ownFolder) belong to the receiver")
        }
        let cut = parts.map { $0.numbered(1).bytes }
        return FilePath(bytes: Array(cut.joined(separator: [UInt8(ascii: "/")])))
    }
}
