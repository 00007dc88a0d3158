internal import Core

/// The effective configuration: every setting with its value and the origin of the value. It contains no secrets.
///
/// As YAML it is a configuration again, with the same meaning, except for secrets that were written in the old one
/// itself.
package struct EffectiveConfiguration: Sendable {
    package struct Row: Sendable {
        /// `folders.door.settle.quiet_for`: folders are identified by name.
        package let path: String
        /// `nil` for a row that contains other rows.
        package let value: WrittenValue?
        /// `FILE:LINE`, `default`, or another origin; `nil` where the rows below have it.
        package let from: String?
        /// The line without its comment.
        fileprivate let line: String
    }

    package private(set) var rows: [Row] = []
    private let origins: [String: String]

    package init(_ loaded: LoadedSettings) { self.init(loaded, hides: true) }

    /// - Parameter hides: Only a test that compares the result of reading it again needs the secrets.
    init(_ loaded: LoadedSettings, hides: Bool) {
        origins = loaded.origins
        write(EffectivePieces(hides: hides, keys: loaded.keys).root(loaded.settings), path: "", depth: 0)
    }

    package var yaml: String {
        let column = 48
        return rows.map { row in
            guard let from = row.from else { return row.line + "\n" }
            let gap = max(2, column - row.line.unicodeScalars.count)
            return row.line + String(repeating: " ", count: gap) + "# " + printable(from) + "\n"
        }.joined()
    }

    private mutating func write(_ piece: EffectivePiece, path: String, depth: Int) {
        let indent = String(repeating: "  ", count: depth)
        switch piece {
        case .value: break
        case .mapping(let fields, let known):
            for (key, piece) in fields { write(key, piece, path: path.isEmpty ? key : "\(path).\(key)", indent, depth) }
            let unset = known.filter { key in !fields.contains { $0.key == key } }
            if !unset.isEmpty { comment(indent + "# not set: " + unset.joined(separator: ", ")) }
        case .items(let items):
            for (name, item) in items {
                let first = rows.count
                write(item, path: "\(path).\(name)", depth: depth + 1)
                // Its first row begins the list item.
                guard rows.indices.contains(first) else { continue }
                let row = rows[first]
                rows[first] = Row(
                    path: row.path, value: row.value, from: row.from,
                    line: "\(indent)- " + row.line.dropFirst(indent.count + 2))
            }
        }
    }

    private mutating func write(_ key: String, _ piece: EffectivePiece, path: String, _ indent: String, _ depth: Int) {
        guard case .value(let value, let otherwise, let note) = piece else {
            rows.append(Row(path: path, value: nil, from: nil, line: "\(indent)\(scalar(key)):"))
            write(piece, path: path, depth: depth + 1)
            return
        }
        let from = (origins[path] ?? otherwise) + (note.map { "; \($0)" } ?? "")
        rows.append(Row(path: path, value: value, from: from, line: "\(indent)\(scalar(key)): \(value.yaml)"))
    }

    private mutating func comment(_ line: String) { rows.append(Row(path: "", value: nil, from: nil, line: line)) }
}

/// Settings in the form of the file.
indirect enum EffectivePiece {
    /// - Parameters:
    ///   - otherwise: The origin when the file does not set it.
    ///   - note: A remark for a person.
    case value(WrittenValue, otherwise: String = "default", note: String? = nil)
    /// Lists the keys that are allowed there.
    case mapping([(key: String, piece: EffectivePiece)], known: [String] = [])
    case items([(name: String, piece: EffectivePiece)])

    /// The same value with this origin, when the file does not set it.
    func withOrigin(_ origin: String) -> EffectivePiece {
        guard case .value(let value, _, let note) = self else { return self }
        return .value(value, otherwise: origin, note: note)
    }
}
