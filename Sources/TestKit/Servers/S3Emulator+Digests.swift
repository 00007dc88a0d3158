internal import Core
internal import Digests

extension S3Emulator {
    /// The form of ETags.
    package enum Tags: Sendable {
        /// Text that is not only digits.
        case words
        case md5
        /// As long as an MD5, but not one.
        case digits

        func tag(of bytes: [UInt8], _ words: String) -> String {
            switch self {
            case .words: "\"\(words)\""
            case .md5: "\"\(S3Emulator.md5(bytes))\""
            case .digits: "\"\(S3Emulator.md5(Array(words.utf8)))\""
            }
        }
    }

    /// The tag that Amazon makes for an object from parts: from the bytes that are stored by then.
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

    /// An error if the digests in the headers do not match the body, as services check it.
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
    /// The checksums of a request, as Amazon repeats them in its answer.
    func repeated(_ exchange: Exchange) -> [(String, String)] {
        if ignoresChecksums { return [] }
        return ["crc64nvme", "crc32c", "sha256"].compactMap { kind in
            exchange.header("x-amz-checksum-\(kind)").map { ("x-amz-checksum-\(kind)", $0) }
        }
    }
}
