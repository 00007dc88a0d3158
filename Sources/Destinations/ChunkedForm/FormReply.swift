internal import Core

/// The body of an answer, as conditions evaluate it.
enum FormReply: Hashable, Sendable {
    case json(JSONValue)
    /// The body begins like JSON but cannot be relied on, or is no text: cut short, damaged, or in a coding that was
    /// not requested. Its meaning is unknown.
    case cut
    /// An empty body, or a text that is not JSON.
    case other

    init(_ body: [UInt8]) {
        if let document = JSONValue.read(body) {
            // Parsers differ in which of two fields with the same name they use.
            self = JSONValue.hasDuplicateKeys(body) ? .cut : .json(document)
            return
        }
        let start = textStart(of: body)
        let isText = !body.contains(0) && String(validating: body, as: UTF8.self) != nil
        // Some servers put the third string before JSON, so that no page can run it as a script.
        let isLikeJSON = ["{", "[", ")]}'"].contains { start.starts(with: $0.utf8) }
        self = isText && !isLikeJSON ? .other : .cut
    }

    var document: JSONValue? { if case .json(let document) = self { document } else { nil } }
}
