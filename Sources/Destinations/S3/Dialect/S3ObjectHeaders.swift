internal import Core
internal import Digests

/// The headers with which an object is made.
enum S3ObjectHeaders {
    static func make(_ order: UploadOrder, _ settings: S3Settings) -> [(name: String, value: String)] {
        let wire = settings.preset.wire
        var headers = settings.objectHeaders
        headers.append(("Content-Type", order.mediaType))
        headers.append((wire.digestHeader, hexadecimal(order.file.sha256)))
        // The service that assigned the object has the rest already.
        if settings.assignedObject != nil { return headers }
        headers.append(("\(wire.prefix)meta-mtime", "\(order.modified / 1_000_000_000)"))
        // 2 KiB in all; names are tokens.
        var room = 2000 - 200
        for (name, value) in order.metadata.sorted(by: { $0.key < $1.key }) {
            let word = name.lowercased().filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
            guard !word.isEmpty, !value.isEmpty, word != "mtime", !wire.digestHeader.hasSuffix(word) else { continue }
            let isPlain = value.utf8.allSatisfy { (0x20...0x7E).contains($0) }
            // RFC 2047, as the service's documentation requires.
            let text = isPlain ? value : "=?UTF-8?B?\(base64(Array(value.utf8)))?="
            room -= word.utf8.count + text.utf8.count
            guard room >= 0 else { break }
            headers.append(("\(wire.prefix)meta-\(word)", text))
        }
        return headers
    }
}
