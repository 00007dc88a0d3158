internal import Core
internal import FoundationEssentials

/// JSON values in text columns.
enum StoredJSON {
    static func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    /// - Returns: `nil` for a text that this program did not write.
    static func decode<T: Decodable>(_ type: T.Type, json: String) -> T? {
        // A damaged column must not hide the row: the row is shown without the detail.
        guard (try? checkJSON(json.utf8)) != nil else { return nil }
        return try? JSONDecoder().decode(type, from: Data(json.utf8))
    }
}
