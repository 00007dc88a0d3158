internal import Core

/// The body of an answer, as conditions see it.
enum FormReply: Hashable, Sendable {
    case json(JSONValue)
    /// Begins as JSON does and is none that can be relied on, or is no text: cut short, spoiled, or in a coding that nobody asked for. What it would
    /// have said is not known.
    case cut
    /// Nothing, or another text.
    case other

    init(_ body: [UInt8]) {
        if let document = JSONValue.read(body) {
            // Of two fields of one name readers see the one or the other.
            self = JSONValue.hasTwins(body) ? .cut : .json(document)
            return
        }
        let start = textStart(of: body)
        let isText = !body.contains(0) && String(validating: body, as: UTF8.self) != nil
        // The third stands before JSON that no page may take for a script.
        let isLikeJSON = ["{", "[", ")]}'"].contains { start.starts(with: $0.utf8) }
        self = isText && !isLikeJSON ? .other : .cut
    }

    var document: JSONValue? { if case .json(let document) = self { document } else { nil } }
}
