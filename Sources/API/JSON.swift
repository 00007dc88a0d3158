internal import Core
internal import FoundationEssentials

/// The JSON form of the views: snake_case names, sorted, so that a person can compare two replies.
package enum JSON {
    package static func bytes(_ value: some Encodable) throws -> [UInt8] {
        Array(try encoder().encode(value))
    }

    /// The same as one line of text, for files and programs.
    package static func line(_ value: some Encodable) throws -> [UInt8] { try bytes(value) + [UInt8(ascii: "\n")] }

    /// The same for a page, with its uploads written one after another: the encoder keeps its whole output as a tree,
    /// which for a thousand uploads is many times the size of their text.
    package static func bytes(_ page: UploadPage) throws -> [UInt8] {
        let encoder = encoder()
        var around = page
        around.uploads = []
        var out = Array(try encoder.encode(around))
        // The keys are sorted, and this one is the last: its list is still open.
        out.removeLast(2)
        for (index, upload) in page.uploads.enumerated() {
            if index > 0 { out.append(UInt8(ascii: ",")) }
            out += try encoder.encode(upload)
        }
        return out + [UInt8(ascii: "]"), UInt8(ascii: "}")]
    }

    /// A new one each time: it is not Sendable, and is cheap compared with the encoding.
    private static func encoder() -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }

    package static func text(_ value: some Encodable) throws -> String {
        String(decoding: try bytes(value), as: UTF8.self)
    }

    package static func value<T: Decodable>(_ type: T.Type, from bytes: [UInt8]) throws -> T {
        try checkJSON(bytes)
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(bytes))
    }
}
