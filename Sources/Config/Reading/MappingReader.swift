internal import Core

/// Reads the fields of one mapping, and reports unknown ones.
///
/// A misspelt key is the most expensive mistake in a configuration: without a report, `retri: {attempts: 3}` would have
/// no effect. Every `take` reports problems itself and returns `nil`, so that reading continues and a person sees all
/// mistakes at once.
struct MappingReader {
    /// A value with its place.
    struct Found<Value> {
        var value: Value
        var node: Node
        var key: String
        var place: ConfigLocation { node.start }
    }

    let section: Section
    /// The key path in messages: `folders[0].settle`; empty at the top.
    let path: String
    /// The place of the mapping, for messages about missing keys.
    let start: ConfigLocation
    let findings: ProblemCollector
    private var entries: [String: Node.Entry] = [:]

    /// - Parameter node: `nil` for a section that the file leaves out: it has no values.
    init(_ node: Node?, _ section: Section, path: String, start: ConfigLocation, findings: ProblemCollector) {
        self.section = section
        self.path = path
        self.start = node?.start ?? start
        self.findings = findings
        guard let node else { return }
        for entry in findings.entries(of: node, path: path, likely: section.keys.first) {
            if section.keys.contains(entry.key) {
                entries[entry.key] = entry
            } else {
                let isHidden = findings.hides(entry.place)
                findings.error(
                    isHidden ? section.objection(toHidden: entry.key) : section.objection(to: entry.key, entry.value),
                    at: entry.place, key: findings.path(of: entry, in: path))
            }
        }
    }

    func path(of key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }
    func has(_ key: String) -> Bool { entries[key] != nil }
    func node(_ key: String) -> Node? { entries[key]?.value }
    /// The place of a key; the start of the mapping when it is not set.
    func place(of key: String) -> ConfigLocation { entries[key]?.place ?? start }

    func error(_ text: @autoclosure () -> String, _ key: String, at place: ConfigLocation? = nil) {
        findings.error(text(), at: place ?? node(key)?.start ?? start, key: path(of: key))
    }

    func warning(_ text: @autoclosure () -> String, _ key: String, at place: ConfigLocation? = nil) {
        findings.warning(text(), at: place ?? node(key)?.start ?? start, key: path(of: key))
    }

    /// Reports the key when it is not set.
    func require(_ key: String, _ why: String) {
        if !has(key) { error("`\(key)` is missing; \(why)", key) }
    }

    @_semantics("optimize.sil.specialize.generic.never")
    func read<Value>(_ key: String, as reader: Reader<Value>) -> Found<Value>? {
        assert(section.keys.contains(key), "the section \(section.path) does not list \(key)")
        guard let node = node(key), let value = findings.read(node, path: path(of: key), as: reader) else { return nil }
        return Found(value: value, node: node, key: path(of: key))
    }

    /// - Parameter orOne: Allows a single value in place of a list with one item.
    /// - Returns: The readable items; `nil` when the key is not set or is no list.
    func list<Value>(_ key: String, as reader: Reader<Value>, orOne: Bool = false) -> [Found<Value>]? {
        if orOne, let node = node(key), case .scalar = node.content {
            return read(key, as: reader).map { [$0] } ?? []
        }
        guard let items = items(key, expected: "a list, like `[a, b]`") else { return nil }
        return items.enumerated().compactMap { index, item in
            let key = "\(path(of: key))[\(index)]"
            return findings.read(item, path: key, as: reader).map { Found(value: $0, node: item, key: key) }
        }
    }

    /// A list of words, or ``SettingKey/auto``.
    func choices(_ key: String, among words: [String]) -> SettingValue? {
        if let node = node(key), case .scalar = node.content {
            return read(key, as: .word(of: [SettingKey.auto])).map { .text($0.value) }
        }
        return list(key, as: .word(of: words)).map { .texts($0.map(\.value)) }
    }

    func items(_ key: String, expected: String) -> [Node]? {
        guard let node = node(key) else { return nil }
        guard case .list(let items) = node.content else {
            error("takes \(expected), not \(node.kindName)", key)
            return nil
        }
        return items
    }

    /// Names, each with a value.
    func map<Value>(
        _ key: String, names: Reader<String>, as reader: Reader<Value>
    ) -> [(name: String, found: Found<Value>)] {
        guard let node = node(key) else { return [] }
        return findings.entries(of: node, path: path(of: key)).compactMap { entry in
            let key = findings.path(of: entry, in: path(of: key))
            let name = Node(key: entry.key, at: entry.place)
            guard findings.read(name, path: key, as: names) != nil,
                let value = findings.read(entry.value, path: key, as: reader)
            else { return nil }
            return (entry.key, Found(value: value, node: entry.value, key: key))
        }
    }

    /// The file `ca_file`, whose certificates are trusted for an address.
    func certificates(for url: String, _ disk: Disk) -> FilePath? {
        guard let file = read("ca_file", as: .path)?.value else { return nil }
        if let trouble = disk.troubleReading(file) { error(trouble, "ca_file") }
        if url.lowercased().hasPrefix("http://") {
            error("has no effect: `url` begins with `http://`; write `https://` there, or take this out", "ca_file")
        }
        return file
    }

    /// The fields of a mapping inside this one.
    func fields(_ key: String, _ section: Section) -> MappingReader {
        MappingReader(node(key), section, path: path(of: key), start: place(of: key), findings: findings)
    }
}

extension ProblemCollector {
    /// The entries of a mapping; reports other nodes, and duplicate keys.
    ///
    /// - Parameter likely: A key that belongs there, for the message about another node.
    func entries(of node: Node, path: String, likely: String? = nil) -> [Node.Entry] {
        guard case .mapping(let entries) = node.content else {
            let example = likely.map { "{\($0): …}" } ?? "key: value"
            error("takes a mapping, like `\(example)`, not \(node.kindName)", at: node.start, key: path)
            return []
        }
        var first: [String: ConfigLocation] = [:]
        return entries.filter { entry in
            guard let earlier = first.updateValue(entry.place, forKey: entry.key) else { return true }
            first[entry.key] = earlier
            error(
                "\(hides(entry.place) ? "a key" : quoted(entry.key)) is set a second time; the first is in line "
                    + "\(earlier.line)", at: entry.place, key: self.path(of: entry, in: path))
            return false
        }
    }

    @_semantics("optimize.sil.specialize.generic.never")
    func read<Value>(_ node: Node, path: String, as reader: Reader<Value>) -> Value? {
        func fail(_ text: String, offset: Int = 0) -> Value? {
            error(text, at: place(in: node, offset: offset), key: path)
            return nil
        }
        guard case .scalar(let text, let isPlain) = node.content else {
            var hint = ""
            if case .mapping = node.content, reader.isText { hint = "; a text that begins with `{` needs quotes" }
            if case .list = node.content, reader.isText { hint = "; a text that begins with `[` needs quotes" }
            return fail("takes \(reader.expected), not \(node.kindName)\(hint)")
        }
        if isPlain && ["", "~", "null", "Null", "NULL"].contains(text) {
            return fail("has no value; it takes \(reader.expected)")
        }
        let trap = isPlain ? yaml11Meaning(text) : nil
        let isHidden = hides(node.start)
        if reader.isText, trap != nil, isHidden {
            return fail("takes \(reader.expected), and a bare value like this one is ambiguous; put it in quotes")
        }
        if reader.isText, let trap {
            return fail("takes \(reader.expected), and a bare `\(text)` is ambiguous: \(trap); write `\"\(text)\"`")
        }
        if reader.isPlain && !isPlain {
            return fail("takes \(reader.expected), not a text; leave the quotes out")
        }
        do { return try reader.read(text) } catch {
            if isHidden {
                let plain = "takes \(reader.expected); \(Self.hidden)"
                return fail(error.repeatsValue ? plain : error.text ?? plain, offset: error.offset)
            }
            let note = trap.map { " (\($0))" } ?? ""
            return fail((error.text ?? "takes \(reader.expected), not \(quoted(text))") + note, offset: error.offset)
        }
    }

    /// The place of the `offset`th scalar of a value's text; the value's start where escapes or line breaks prevent
    /// that.
    func place(in node: Node, offset: Int) -> ConfigLocation {
        guard offset > 0, case .scalar(let text, let isPlain) = node.content else { return node.start }
        var place = node.start
        if !isPlain { place.column += 1 }  // the quote
        guard sources[place.file].has(text, atLine: place.line, column: place.column) else { return node.start }
        place.column += offset
        return place
    }
}
