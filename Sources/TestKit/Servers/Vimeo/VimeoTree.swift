internal import FoundationEssentials

/// JSON of any form, as the emulator of Vimeo reads and trims it.
indirect enum VimeoTree: Codable, Sendable {
    case null
    case flag(Bool)
    case whole(Int64)
    case number(Double)
    case text(String)
    case list([VimeoTree])
    case object([String: VimeoTree])

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let flag = try? value.decode(Bool.self) {
            self = .flag(flag)
        } else if let whole = try? value.decode(Int64.self) {
            self = .whole(whole)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let list = try? value.decode([VimeoTree].self) {
            self = .list(list)
        } else {
            self = .object(try value.decode([String: VimeoTree].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .flag(let flag): try container.encode(flag)
        case .whole(let whole): try container.encode(whole)
        case .number(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .list(let list): try container.encode(list)
        case .object(let fields): try container.encode(fields)
        }
    }

    /// `nil` where there is none, or null.
    subscript(name: String) -> VimeoTree? {
        guard case .object(let fields) = self, let value = fields[name] else { return nil }
        if case .null = value { return nil }
        return value
    }

    var text: String? { if case .text(let text) = self { text } else { nil } }
    var flag: Bool? { if case .flag(let flag) = self { flag } else { nil } }
    /// As a text; also for a flag.
    var word: String? { text ?? flag.map { "\($0)" } }
    var items: [VimeoTree] { if case .list(let items) = self { items } else { [] } }

    /// A number of bytes: a number, or a decimal text.
    var count: Int64? {
        switch self {
        case .whole(let whole): whole
        case .text(let text): text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
        default: nil
        }
    }

    /// The part of an answer that `?fields=uri,upload.status` selects; for a list, of each of its items.
    static func trimmed(_ body: String, to fields: String) -> String {
        let paths = fields.split(separator: ",").map { $0.split(separator: ".").map(String.init) }
        guard let tree = try? JSONDecoder().decode(VimeoTree.self, from: Data(body.utf8)) else { return body }
        var shown = tree
        if case .object(var whole) = tree, case .list(let items)? = whole["data"] {
            whole["data"] = .list(items.map { $0.only(paths) })
            shown = .object(whole)
        } else {
            shown = tree.only(paths)
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(shown)).map { String(decoding: $0, as: UTF8.self) } ?? body
    }

    private func only(_ paths: [[String]]) -> VimeoTree {
        guard case .object(let fields) = self else { return self }
        var left: [String: VimeoTree] = [:]
        for (name, value) in fields {
            let below = paths.filter { $0.first == name }.map { Array($0.dropFirst()) }
            if below.isEmpty { continue }
            left[name] = below.contains { $0.isEmpty } ? value : value.only(below)
        }
        return .object(left)
    }
}
