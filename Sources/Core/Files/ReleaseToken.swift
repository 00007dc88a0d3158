/// The unguessable part of a source's name during its release. A user who can write to the folder cannot take that name
/// before, nor put a file there in place of ours.
package struct ReleaseToken: Hashable, Sendable, Codable, CustomStringConvertible {
    /// Hexadecimal digits.
    package let description: String

    /// - Parameter random: Unguessable bytes.
    package init(random: [UInt8]) { description = hexadecimal(random) }

    /// - Returns: `nil` for a text that is not a token.
    package init?(_ text: String) {
        guard text.utf8.count >= 16, bytes(hexadecimal: text) != nil else { return nil }
        description = text
    }

    package init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let token = ReleaseToken(text) else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "no token of a release"))
        }
        self = token
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    private static let prefix = ".sluice-release-"

    /// The name of a source in its own directory during its release.
    package func name(of asset: Int64) -> FilePath { FilePath("\(Self.prefix)\(asset)-\(description)") }

    /// Whether a name has the form of such a name, regardless of who made it.
    package static func isName(_ name: FilePath) -> Bool { name.bytes.starts(with: Array(prefix.utf8)) }

    /// The asset and the token in such a name; `nil` for any other.
    package static func parse(_ name: FilePath) -> (asset: Int64, token: ReleaseToken)? {
        guard isName(name), let text = name.text?.dropFirst(prefix.count), let dash = text.firstIndex(of: "-"),
            let asset = Int64(text[..<dash]), let token = ReleaseToken(String(text[text.index(after: dash)...]))
        else { return nil }
        return (asset, token)
    }
}
