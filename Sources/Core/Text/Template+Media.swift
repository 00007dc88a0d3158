extension Template {
    /// Placeholders whose values a recording tells of itself. `recorded` is the source's mtime where it does not.
    package static let mediaFacts = ["recorded", "duration", "width", "height", "camera"]

    /// A value can only be put in when the recording was read.
    package var namesMediaFacts: Bool {
        pieces.contains { if case .placeholder(let name, _) = $0 { Self.mediaFacts.contains(name) } else { false } }
    }

    /// The template with these placeholders filled in and all others left.
    ///
    /// - Parameter value: Bytes for a placeholder of ``mediaFacts`` and its format; they are text.
    package func fillingMediaFacts(_ value: (_ name: String, _ format: String?) -> [UInt8]) -> Template {
        guard namesMediaFacts else { return self }
        var source = ""
        for piece in pieces {
            switch piece {
            case .text(let text): source += Self.escaped(text)
            case .placeholder(let name, let format) where Self.mediaFacts.contains(name):
                source += Self.escaped(String(decoding: value(name, format), as: UTF8.self))
            case .placeholder(let name, let format):
                source += "{" + name + (format.map { ":" + $0 } ?? "") + "}"
            }
        }
        // What was a template stays one.
        return (try? Template(source)) ?? self
    }

    private static func escaped(_ text: String) -> String {
        text.map { $0 == "{" || $0 == "}" ? "\($0)\($0)" : String($0) }.joined()
    }
}
