internal import Core

/// Every key of the configuration with its form, its default and its meaning: for manual pages and for the JSON Schema.
/// The keys of each type of destination are not among them: ``DestinationSchema`` has those.
package struct SettingsReference: Sendable {
    /// One key.
    package struct Key: Hashable, Sendable {
        package let name: String
        package let kind: ValueKind
        package let isRequired: Bool
        /// The default in words, with backticks around words of the file: `` `1h` ``, `every file`. `nil` for a key that
        /// has none.
        package let defaultText: String?
        /// The meaning in words, with backticks around words of the file; no full stop at its end.
        package let summary: String

        /// The default in the form of the file; `nil` where it is not one value.
        package var defaultValue: String? {
            guard let text = defaultText, text.count > 2, text.hasPrefix("`"), text.hasSuffix("`") else { return nil }
            let word = text.dropFirst().dropLast()
            return word.contains("`") ? nil : String(word)
        }
    }

    /// The keys of one mapping in the file.
    package struct Mapping: Hashable, Sendable {
        /// Its path: `folders[].settle`; empty for the top of the file, `SECRET` for the form of every secret.
        package let path: String
        package let keys: [Key]
        /// Keys of which exactly one is set.
        package let exactlyOneOf: [String]
        /// Keys of which at least one is set.
        package let someOf: [String]
    }

    /// In the order of the manual.
    package static let mappings: [Mapping] = {
        Section.all.map { section in
            let keys = section.keys.map { name in
                let row = texts[section.path.isEmpty ? name : "\(section.path).\(name)"] ?? ["", ""]
                return Key(
                    name: name, kind: section.kinds[name] ?? .text, isRequired: row[0] == "required",
                    defaultText: row[0].isEmpty || row[0] == "required" ? nil : row[0], summary: row[1])
            }
            return Mapping(
                path: section.path, keys: keys, exactlyOneOf: section.exactlyOneOf, someOf: section.someOf)
        }
    }()

    /// Default and meaning by the path of the key.
    static let texts: [String: [String]] = {
        var texts: [String: [String]] = [:]
        for line in KeyTexts.table.split(separator: "\n") {
            let parts = line.split(separator: "|", omittingEmptySubsequences: false).map { part in
                var part = part.drop { $0 == " " }
                while part.last == " " { part.removeLast() }
                return String(part)
            }
            if parts.count == 3 { texts[parts[0]] = Array(parts.dropFirst()) }
        }
        return texts
    }()
}
