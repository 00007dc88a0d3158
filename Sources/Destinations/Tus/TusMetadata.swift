internal import Core

/// The `Upload-Metadata` header (tus 1.0, "Creation"): pairs of a key and a value in base 64, with commas and no blanks.
enum TusMetadata {
    /// Servers and proxies limit a header line to 4 or 8 KiB; with its name and the rest, the line stays below.
    static let limit = 3 << 10

    /// Always contains `filename` and `filetype`; the others as far as there is space, those of the configuration last.
    ///
    /// - Parameters:
    ///   - isASCII: Writes everything that is not ASCII in `filename` as `%HH`: some servers refuse such names.
    ///   - titleKey: The key of the title, which is the file's name where the folder sets no other.
    ///   - isMinimal: Writes only the names and the title.
    ///   - part: The name of a part of the file that is sent as a partial upload. It gets no more than an id, by which
    ///     no server takes it for another part with the same length.
    static func header(
        _ order: UploadOrder, isASCII: Bool, titleKey: String? = nil, isMinimal: Bool, isRepeat: Bool,
        part: String? = nil
    ) -> String {
        var pairs: [(String, [UInt8])] = [
            ("filename", Array(fileName(order.name.name, isASCII: isASCII).utf8)),
            ("filetype", Array(order.mediaType.utf8)),
        ]
        if let titleKey {
            let title = order.metadata[titleKey] ?? fileName(order.name.name, isASCII: isASCII)
            pairs.append((titleKey, Array(title.utf8)))
        }
        let required = pairs.count
        if !isMinimal {
            // Lets a server recognise a repeat of this upload.
            let id = ["\(order.id)", "\(order.generation)", part].compactMap { $0 }.joined(separator: ".")
            pairs.append(("sluiceId", Array(id.utf8)))
        }
        if !isMinimal, part == nil {
            if isRepeat { pairs.append(("possibleDuplicate", Array("1".utf8))) }
            pairs.append(("sha256", Array(hexadecimal(order.file.sha256).utf8)))
            pairs.append(("mtime", Array("\(order.modified)".utf8)))
            pairs.append(("sluicePath", Array(PercentCoding.encode(order.name.bytes, keeping: "/").utf8)))
            pairs.append(("relativePath", Array(text(order.name).utf8)))
            let taken = Set(pairs.map { $0.0 })
            for (key, value) in order.metadata.sorted(by: { $0.key < $1.key }) {
                let plain = String(decoding: key.utf8.filter { $0.isLetterOrDigit(or: "-_") }, as: UTF8.self)
                if !plain.isEmpty, !taken.contains(plain) { pairs.append((plain, Array(value.utf8))) }
            }
        }
        var header = ""
        for (index, (key, value)) in pairs.enumerated() {
            let pair = (header.isEmpty ? "" : ",") + key + (value.isEmpty ? "" : " " + base64(value))
            if index < required || header.utf8.count + pair.utf8.count <= limit { header += pair }
        }
        return header
    }

    /// The pairs of a header, as servers return it: blanks anywhere, any order. `nil` values are no base 64.
    static func values(_ header: String) -> [String: [UInt8]] {
        var values: [String: [UInt8]] = [:]
        for pair in header.split(separator: ",") {
            let words = pair.split(separator: " ")
            guard let key = words.first, words.count <= 2 else { continue }
            if let value = words.count == 1 ? [] : bytes(base64: String(words[1])) { values[String(key)] = value }
        }
        return values
    }

    static func fileName(_ name: FilePath, isASCII: Bool) -> String {
        if isASCII {
            return PercentCoding.encode(name.bytes) { (0x20..<0x7F).contains($0) && $0 != 0x25 }
        }
        return text(name)
    }

    /// The text unchanged if it is UTF-8; otherwise with every byte above ASCII as `%HH`.
    private static func text(_ name: FilePath) -> String {
        name.text ?? PercentCoding.encode(name.bytes) { $0 < 0x80 && $0 != 0x25 }
    }
}
