extension Template {
    /// Placeholders whose values come from a recording's metadata. Without it, `recorded` is the source's mtime.
    package static let mediaFacts = ["recorded", "duration", "width", "height", "camera"]

    /// Whether values can only be filled in after the recording was read.
    package var namesMediaFacts: Bool {
        pieces.contains { if case .placeholder(let name, _) = $0 { Self.mediaFacts.contains(name) } else { false } }
    }

    /// Returns the template with these placeholders filled in and all others unchanged.
    ///
    /// - Parameter value: Returns the bytes for a placeholder of ``mediaFacts`` and its format; they are text.
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
        // A valid template stays valid.
        return (try? Template(source)) ?? self
    }

    private static func escaped(_ text: String) -> String {
        text.map { $0 == "{" || $0 == "}" ? "\($0)\($0)" : String($0) }.joined()
    }
}
