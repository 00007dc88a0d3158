/// A request that ended without an answer.
package struct TransportError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Kind: String, Hashable, Sendable {
        /// The name has no address.
        case resolve
        /// Nobody answers there, or the interface is gone.
        case connect
        /// No trust: certificate, protocol version.
        case tls
        /// Nothing moved for as long as ``Limits`` allow.
        case stalled
        /// The whole request took too long.
        case timedOut
        /// The connection broke.
        case reset
        /// The file could not be read, or ended before the promised length.
        case sourceFile
        /// The answer is longer than allowed.
        case tooLarge
        case cancelled
        case other
    }

    package let kind: Kind
    /// The `CURLcode`, as in libcurl-errors(3); 0 where libcurl was not the one to object.
    package let code: Int32
    /// One sentence, which often names the host, port or certificate.
    package let detail: String
    /// Without user, query and fragment, so that no password or signature reaches a log.
    package let url: String
    /// Bytes of the body that the socket had taken.
    package let bytesSent: Int64

    /// - Parameter url: As asked; what may be secret is taken off here.
    package init(kind: Kind, code: Int32 = 0, detail: String, url: String, bytesSent: Int64 = 0) {
        self.kind = kind
        self.code = code
        self.detail = detail
        self.url = withoutSecrets(url)
        self.bytesSent = bytesSent
    }

    package var description: String { "\(url): \(detail)" }
}

/// `url` without user, password, query and fragment.
package func withoutSecrets(_ url: String) -> String {
    var text = Substring(url)
    if let cut = text.firstIndex(where: { $0 == "?" || $0 == "#" }) { text = text[..<cut] }
    guard let start = text.range(of: "://") else { return String(text) }
    let rest = text[start.upperBound...]
    let end = rest.firstIndex(of: "/") ?? rest.endIndex
    guard let at = rest[..<end].lastIndex(of: "@") else { return String(text) }
    return text[..<start.upperBound] + String(rest[rest.index(after: at)...])
}

extension Substring {
    /// The first place where `text` stands.
    fileprivate func range(of text: String) -> Range<Index>? {
        var at = startIndex
        while at < endIndex {
            if self[at...].hasPrefix(text) { return at..<index(at, offsetBy: text.count) }
            at = index(after: at)
        }
        return nil
    }
}
