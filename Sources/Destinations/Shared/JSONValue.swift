internal import Core
internal import FoundationEssentials

/// JSON from a server. Only a few values are read: other and missing values are ignored.
enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case number(Double)
    case whole(Int64)
    case text(String)
    case list([JSONValue])
    case object([String: JSONValue])

    /// - Returns: `nil` for a text that is no JSON, or is nested deeper than any sensible answer. A byte order mark
    ///   before it is ignored (RFC 8259, section 8.1).
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

    /// The value of a text only.
    var string: String? { if case .text(let text) = self { text } else { nil } }

    /// Also the value of a number that is written as a text.
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

extension JSONValue {
    /// Whether an object in it names a field twice.
    ///
    /// - Parameter bytes: JSON that ``read(_:)`` accepts.
    static func hasDuplicateKeys(_ bytes: [UInt8]) -> Bool {
        /// The names in each enclosing object, `nil` for a list.
        var around: [Set<String>?] = []
        var place = bytes.startIndex
        while place < bytes.endIndex {
            switch bytes[place] {
            case UInt8(ascii: "{"): around.append([])
            case UInt8(ascii: "["): around.append(nil)
            case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = around.popLast()
            case UInt8(ascii: "\""):
                let first = place
                place += 1
                while place < bytes.endIndex, bytes[place] != UInt8(ascii: "\"") {
                    place += bytes[place] == UInt8(ascii: "\\") ? 2 : 1
                }
                let next = bytes[min(place + 1, bytes.endIndex)...].first { $0 > 0x20 }
                guard next == UInt8(ascii: ":"), place < bytes.endIndex else { break }
                guard case .text(let name)? = read(Array(bytes[first...place])), var names = around.popLast() ?? nil
                else {
                    return true
                }
                if !names.insert(name).inserted { return true }
                around.append(names)
            default: break
            }
            place += 1
        }
        return false
    }
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

    /// JSON text with sorted keys and unescaped slashes.
    var bytes: [UInt8] {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return Array(try encoder.encode(self))
        }
    }
}
