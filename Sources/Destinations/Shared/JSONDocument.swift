internal import Core
internal import FoundationEssentials

/// What a server answered, where it is JSON: for questions by pointers (RFC 6901).
enum JSONDocument: Hashable, Sendable {
    case null
    case flag(Bool)
    case number(Double)
    case text(String)
    case list([JSONDocument])
    case object([String: JSONDocument])

    /// - Returns: `nil` for what is no JSON.
    init?(_ bytes: [UInt8]) {
        // Whatever is wrong with it, it is no JSON; the answer itself is shown.
        guard (try? checkJSON(bytes)) != nil, let read = try? JSONDecoder().decode(Decoded.self, from: Data(bytes))
        else { return nil }
        self = read.document
    }

    /// - Returns: `nil` where nothing stands.
    subscript(pointer: JSONPointer) -> JSONDocument? {
        var place = self
        for step in pointer.steps {
            switch place {
            case .object(let fields):
                guard let next = fields[step] else { return nil }
                place = next
            case .list(let items):
                guard let index = Int(step), items.indices.contains(index) else { return nil }
                place = items[index]
            default: return nil
            }
        }
        return place
    }

    /// As a text: numbers as they are written shortest.
    var words: String? {
        switch self {
        case .text(let text): text
        case .flag(let flag): flag ? "true" : "false"
        case .number(let number): Int64(exactly: number).map { "\($0)" } ?? "\(number)"
        case .null: "null"
        case .list, .object: nil
        }
    }

    private struct Decoded: Decodable {
        let document: JSONDocument

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if value.decodeNil() {
                document = .null
            } else if let flag = try? value.decode(Bool.self) {  // what is not this is one of the next
                document = .flag(flag)
            } else if let number = try? value.decode(Double.self) {
                document = .number(number)
            } else if let text = try? value.decode(String.self) {
                document = .text(text)
            } else if let items = try? value.decode([Decoded].self) {
                document = .list(items.map(\.document))
            } else {
                document = .object(try value.decode([String: Decoded].self).mapValues(\.document))
            }
        }
    }
}

/// A place in a JSON document (RFC 6901): `/data/fileUrl`.
struct JSONPointer: Hashable, Sendable {
    let source: String
    let steps: [String]

    /// - Returns: `nil` for a text that does not begin with `/`.
    init?(_ source: String) {
        guard source.hasPrefix("/") else { return nil }
        self.source = source
        steps = source.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map {
            String($0).replacing("~1", with: "/").replacing("~0", with: "~")
        }
    }
}
