internal import Transport

// Reasons that a server gives as plain text.

extension Response {
    /// `ERR_UPLOAD_LOCKED: …`: the beginning of tusd's plain-text answers; `nil` for any other.
    var leadingErrorCode: String? {
        let start = body.prefix(64)
        guard start.starts(with: "ERR_".utf8) else { return nil }
        return String(decoding: start.prefix { $0 == 0x5F || (0x41...0x5A).contains($0) }, as: UTF8.self)
    }

    /// A plain text, and not the page of a proxy, gives the reason why there is no space.
    var mentionsFullStorage: Bool {
        if headers["Content-Type"]?.lowercased().hasPrefix("text/html") == true { return false }
        let text = String(decoding: body.prefix(1024), as: UTF8.self).lowercased()
        return ["quota", "insufficient storage", "no space left", "disk full", "disk is full"].contains {
            text.contains($0)
        }
    }

    /// The server has no space for the file or its bytes, by its status or its text.
    var isOfFullStorage: Bool { status == 507 || status == 413 && mentionsFullStorage }

    /// The longest wait that is accepted from a server without space, in seconds. Its quota may be monthly; then it says
    /// when that ends. A person who makes space before that runs `sluice resume`; a restart queries as well.
    static let longestFullWait: Int64 = 7 * 86_400

    /// `Upload already completed` and similar texts. A hook that refuses the file has others.
    var mentionsOffset: Bool {
        if isWebPage { return false }
        let text = String(decoding: body.prefix(1024), as: UTF8.self).lowercased()
        return text.contains("offset")
            || text.contains("already") && (text.contains("complete") || text.contains("finish"))
    }
}
