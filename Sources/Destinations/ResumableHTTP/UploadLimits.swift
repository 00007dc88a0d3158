internal import Transport

/// The `Upload-Limit` header: what a server accepts, in bytes.
struct UploadLimits: Hashable, Sendable {
    /// Of a whole file.
    var maxSize: Int64?
    var minSize: Int64?
    /// Of the bytes in one request.
    var maxAppendSize: Int64?
    /// The same. Creations without bytes, and requests that complete an upload, may carry less.
    var minAppendSize: Int64?
    /// Seconds for which the upload is kept, counted from the answer.
    var maxAge: Int64?

    /// The limits that every resource may leave out.
    init() {}

    /// - Returns: `nil` without the header, and for one that is void: it cannot be parsed, or a known key has a value of
    ///   another type. A negative number is no limit either.
    init?(_ headers: Headers) {
        guard let members = StructuredField.dictionary("Upload-Limit", in: headers) else { return nil }
        for (key, value) in members {
            guard let property = Self.properties[key] else { continue }
            guard case .integer(let number) = value, number >= 0 else { return nil }
            self[keyPath: property] = number
        }
    }

    private static var properties: [String: WritableKeyPath<UploadLimits, Int64?>] {
        [
            "max-size": \.maxSize, "min-size": \.minSize, "max-append-size": \.maxAppendSize,
            "min-append-size": \.minAppendSize, "max-age": \.maxAge,
        ]
    }

    /// Takes over each limit that `newer` has.
    mutating func merge(_ newer: UploadLimits) {
        for property in Self.properties.values {
            if let value = newer[keyPath: property] { self[keyPath: property] = value }
        }
    }

    /// Why a file of this size is refused; `nil` if it is not. A text that follows "the server".
    func objection(toSize size: Int64) -> String? {
        if let maxSize, size > maxSize { return "takes at most \(maxSize)" }
        if let minSize, size < minSize { return "takes no less than \(minSize)" }
        if size > 0, maxAppendSize == 0 { return "takes no bytes (max-append-size=0)" }
        return nil
    }

    /// Minimum bytes of a request that does not complete the upload. A server whose limits contradict each other gets
    /// none above ``maxAppendSize``.
    var minRequest: Int64 { min(minAppendSize ?? 0, maxAppendSize ?? .max) }

    /// For `check`: `at most 5000 bytes a file`.
    var words: [String] {
        var words: [String] = []
        if let maxSize { words.append("at most \(maxSize) bytes a file") }
        if let minSize, minSize > 0 { words.append("at least \(minSize) bytes a file") }
        if let maxAppendSize { words.append("at most \(maxAppendSize) bytes a request") }
        if let minAppendSize, minAppendSize > 0 { words.append("at least \(minAppendSize) bytes a request") }
        if let maxAge { words.append("an unfinished upload is kept for \(maxAge) s") }
        return words
    }
}
