internal import Core
internal import Digests

extension S3Emulator {
    /// What ETags are made of.
    package enum Tags: Sendable {
        /// Not of digits alone.
        case words
        case md5
        /// As long as an MD5, and none.
        case digits

        func tag(of bytes: [UInt8], _ words: String) -> String {
            switch self {
            case .words: "\"\(words)\""
            case .md5: "\"\(S3Emulator.md5(bytes))\""
            case .digits: "\"\(S3Emulator.md5(Array(words.utf8)))\""
            }
        }
    }

    /// As Amazon makes it of an object that came in parts: of what it has by then.
    static func joinedTag(of upload: Upload, _ bytes: [UInt8]) -> String {
        var (digests, begin): ([UInt8], Int) = ([], 0)
        for (_, part) in upload.parts.sorted(by: { $0.key < $1.key }) {
            let end = min(bytes.count, begin + part.bytes.count)
            digests += Hasher.digest(.md5, of: Array(bytes[begin..<end]))
            begin = end
        }
        return "\"\(md5(digests))-\(upload.parts.count)\""
    }

    static func md5(_ bytes: [UInt8]) -> String { hexadecimal(Hasher.digest(.md5, of: bytes)) }

    /// A service compares what it is told of a body with what came.
    static func mismatch(_ exchange: Exchange, _ body: [UInt8]) -> Reply? {
        if let md5 = exchange.header("content-md5"), md5 != base64(Hasher.digest(.md5, of: body)) {
            return error(400, "BadDigest")
        }
        if let sha256 = exchange.header("x-amz-content-sha256"), sha256.utf8.count == 64,
            sha256 != hexadecimal(Hasher.digest(.sha256, of: body))
        {
            return error(400, "XAmzContentSHA256Mismatch")
        }
        return nil
    }
}

extension S3Emulator.State {
    /// The checksums of a request, as Amazon says them in its answer.
    func repeated(_ exchange: Exchange) -> [(String, String)] {
        if ignoresChecksums { return [] }
        return ["crc64nvme", "crc32c", "sha256"].compactMap { kind in
            exchange.header("x-amz-checksum-\(kind)").map { ("x-amz-checksum-\(kind)", $0) }
        }
    }
}
