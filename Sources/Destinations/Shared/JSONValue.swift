internal import Core
internal import FoundationEssentials

/// Somebody else's JSON, read for the few places that matter: whatever else stands in it, and whatever is missing.
enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case number(Double)
    case whole(Int64)
    case text(String)
    case list([JSONValue])
    case object([String: JSONValue])

    /// - Returns: `nil` for what is no JSON, or nested deeper than any honest answer. The mark of UTF-8 before it is left out
    ///   (RFC 8259, section 8.1).
    static func read(_ bytes: [UInt8]) -> JSONValue? {
        let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
        guard (try? checkJSON(bytes)) != nil else { return nil }
        return try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }

    subscript(key: String) -> JSONValue? {
        guard case .object(let fields) = self, let value = fields[key], value != .null else { return nil }
        return value
    }

    var text: String? {
        switch self {
        case .text(let text): text
        case .whole(let number): "\(number)"
        default: nil
        }
    }

    /// Of a text alone.
    var string: String? { if case .text(let text) = self { text } else { nil } }

    /// Also of a number that is written as a text.
    var whole: Int64? {
        switch self {
        case .whole(let number): number
        case .number(let number): Int64(exactly: number)
        case .text(let text): Int64(text)
        default: nil
        }
    }

    var flag: Bool? { if case .bool(let flag) = self { flag } else { nil } }

    var items: [JSONValue] { if case .list(let items) = self { items } else { [] } }
}

extension JSONValue: Codable {
    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let flag = try? value.decode(Bool.self) {
            self = .bool(flag)
        } else if let number = try? value.decode(Int64.self) {
            self = .whole(number)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let items = try? value.decode([JSONValue].self) {
            self = .list(items)
        } else {
            self = .object(try value.decode([String: JSONValue].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let flag): try container.encode(flag)
        case .number(let number): try container.encode(number)
        case .whole(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .list(let items): try container.encode(items)
        case .object(let fields): try container.encode(fields)
        }
    }

    /// Its keys in order, slashes as they are.
    var bytes: [UInt8] {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return Array(try encoder.encode(self))
        }
    }
}
