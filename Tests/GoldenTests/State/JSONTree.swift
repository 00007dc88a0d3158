import FoundationEssentials

/// Any JSON, in a form that a test can compare.
indirect enum JSONTree: Decodable, Hashable {
    case null
    case flag(Bool)
    case whole(Int64)
    case real(Double)
    case text(String)
    case list([JSONTree])
    case object([String: JSONTree])

    init(_ text: String) throws {
        self = try JSONDecoder().decode(JSONTree.self, from: Data(text.utf8))
    }

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let flag = try? value.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? value.decode(Int64.self) {
            self = .whole(number)
        } else if let number = try? value.decode(Double.self) {
            self = .real(number)
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let list = try? value.decode([JSONTree].self) {
            self = .list(list)
        } else {
            self = .object(try value.decode([String: JSONTree].self))
        }
    }

    subscript(key: String) -> JSONTree? { if case .object(let fields) = self { fields[key] } else { nil } }
    var items: [JSONTree] { if case .list(let items) = self { items } else { [] } }
    var text: String? { if case .text(let text) = self { text } else { nil } }
    var whole: Int64? { if case .whole(let number) = self { number } else { nil } }

    /// `path: value` for each value that is no list or object, in the order of their paths.
    func lines(_ path: String = "") -> [String] {
        switch self {
        case .null: ["\(path): null"]
        case .flag(let flag): ["\(path): \(flag)"]
        case .whole(let number): ["\(path): \(number)"]
        case .real(let number): ["\(path): \(number)"]
        case .text(let text): ["\(path): \(text)"]
        case .list(let items): items.isEmpty ? ["\(path): []"] : items.flatMap { $0.lines(path + "[]") }
        case .object(let fields):
            fields.sorted { $0.key < $1.key }.flatMap { $0.value.lines(path.isEmpty ? $0.key : "\(path).\($0.key)") }
        }
    }
}
