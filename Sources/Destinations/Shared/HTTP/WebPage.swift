internal import Core
internal import Transport

extension Response {
    /// Whether the body is a web page, regardless of its `Content-Type`: a login portal's, or a proxy's. Many scripts
    /// declare `text/html` for their JSON, and no answer in JSON, in plain text or without a body begins with `<`.
    ///
    /// For requests whose answer is no XML. A page acknowledges nothing, regardless of its status.
    var isWebPage: Bool { textStart.first == UInt8(ascii: "<") }

    /// The same for requests that are answered in XML: such an answer begins with `<` too, so the first element
    /// decides.
    var isWebPageForXML: Bool {
        var rest = textStart
        while rest.first == UInt8(ascii: "<") {
            // Before the first element may stand the declaration, other instructions, and comments.
            let end: [UInt8]
            if rest.starts(with: "<?".utf8) {
                end = Array("?>".utf8)
            } else if rest.starts(with: "<!--".utf8) {
                end = Array("-->".utf8)
            } else {
                break
            }
            guard let found = rest.firstRange(of: end) else { return true }
            rest = Self.withoutBlanks(rest[found.upperBound...])
        }
        guard rest.first == UInt8(ascii: "<") else { return false }
        let name = String(decoding: rest.dropFirst().prefix { $0.isLetterOrDigit(or: "!") }, as: UTF8.self).lowercased()
        // A service's document declares no type; ``XMLValue`` refuses one.
        return ["!doctype", "html", "head", "body", "script", "title", "meta", "div", "center"].contains(name)
    }

    private var textStart: ArraySlice<UInt8> { Destinations.textStart(of: body) }

    private static func withoutBlanks(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> { bytes.drop { $0 <= 0x20 } }
}
