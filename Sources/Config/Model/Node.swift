/// A piece of a YAML file, with its place.
struct Node {
    enum Content {
        case scalar(String, isPlain: Bool)
        case list([Node])
        case mapping([Entry])
    }

    struct Entry {
        var key: String
        var place: ConfigLocation
        /// The end of the key.
        var end: ConfigLocation
        var value: Node
    }

    var content: Content
    var start: ConfigLocation
    var end: ConfigLocation
    /// Number of nodes in it, including itself and the targets of aliases.
    var weight: Int
    /// Levels of nesting, including itself.
    var height: Int

    /// A key as a value, so that a reader can check it. For a key, quotes do not matter.
    init(key: String, at place: ConfigLocation) {
        self.init(content: .scalar(key, isPlain: false), start: place, end: place, weight: 1, height: 1)
    }

    init(content: Content, start: ConfigLocation, end: ConfigLocation, weight: Int, height: Int) {
        self.content = content
        self.start = start
        self.end = end
        self.weight = weight
        self.height = height
    }

    /// The text of a single value.
    var scalar: String? { if case .scalar(let text, _) = content { text } else { nil } }

    /// The place of an item of a list, which is written as `[0]`; the list's own, where there is none.
    func place(ofItem index: Substring) -> ConfigLocation {
        guard case .list(let items) = content, let number = Int(index.dropFirst().dropLast()),
            items.indices.contains(number)
        else { return start }
        return items[number].start
    }

    /// The kind of node, for messages.
    var kindName: String {
        switch content {
        case .scalar(let text, let isPlain): isPlain && text.isEmpty ? "nothing" : "a single value"
        case .list: "a list"
        case .mapping: "a mapping"
        }
    }
}

/// Converts one file into nodes, within limits that no sensible configuration reaches.
struct NodeReader {
    /// Maximum nodes of a file, counting the targets of aliases each time. A folder with all settings has about 60.
    static let maxNodes = 100_000
    static let deepest = 32

    private let events: YAMLEvents
    private let file: Int
    private var anchors: [String: Node] = [:]
    private var open: Set<String> = []
    private var weight = 0

    /// - Parameter bytes: Valid UTF-8 without a byte order mark.
    /// - Returns: The one document's root; `nil` when the file is empty.
    static func read(_ bytes: [UInt8], file: Int) throws(YAMLSyntaxError) -> Node? {
        var reader = NodeReader(events: YAMLEvents(bytes), file: file)
        return try reader.document()
    }

    private init(events: YAMLEvents, file: Int) {
        self.events = events
        self.file = file
    }

    private mutating func document() throws(YAMLSyntaxError) -> Node? {
        var root: Node?
        while true {
            let event = try events.next()
            switch event.kind {
            case .streamEnd: return root
            case .documentStart:
                guard root == nil else {
                    throw mistake(event, "a second document begins here; a configuration is one document")
                }
                root = try node(try events.next(), depth: 1)
            default: break
            }
        }
    }

    private mutating func node(_ event: YAMLEvents.Event, depth: Int) throws(YAMLSyntaxError) -> Node {
        // The names of tags and anchors are in no message: where a secret has no quotes, they are parts of it.
        if event.tag != nil { throw mistake(event, "a tag (`!…`) is not supported here; remove it") }
        if case .alias(let name) = event.kind { return try node(alias: name, event, depth: depth) }
        guard depth <= Self.deepest else {
            throw mistake(event, "nested deeper than \(Self.deepest) levels")
        }
        try count(1, event)
        if let anchor = event.anchor { open.insert(anchor) }
        var node = Node(content: .list([]), start: place(event.start), end: place(event.end), weight: 1, height: 1)
        switch event.kind {
        case .scalar(let text, let isPlain):
            guard !text.utf8.contains(0) else { throw mistake(event, "a value with a NUL character in it") }
            node.content = .scalar(text, isPlain: isPlain)
        case .listStart: try readList(into: &node, depth: depth)
        case .mappingStart: try readMapping(into: &node, depth: depth)
        default: throw mistake(event, "a value was expected")
        }
        if let anchor = event.anchor {
            open.remove(anchor)
            anchors[anchor] = node
        }
        return node
    }

    private mutating func node(alias name: String, _ event: YAMLEvents.Event, depth: Int) throws(YAMLSyntaxError)
        -> Node
    {
        guard let node = anchors[name] else {
            throw mistake(
                event,
                open.contains(name)
                    ? "this alias is inside the value that it refers to"
                    : "no anchor of this name comes before the alias; a text that begins with `*` needs quotes")
        }
        // Counted before the node is used: this stops a "billion laughs" file at its first line.
        try count(node.weight, event)
        guard depth + node.height - 1 <= Self.deepest else {
            throw mistake(event, "nested deeper than \(Self.deepest) levels")
        }
        return node
    }

    private mutating func readList(into list: inout Node, depth: Int) throws(YAMLSyntaxError) {
        var items: [Node] = []
        while true {
            let event = try events.next()
            if case .listEnd = event.kind {
                list.content = .list(items)
                list.end = place(event.end)
                return
            }
            let item = try node(event, depth: depth + 1)
            list.weight += item.weight
            list.height = max(list.height, item.height + 1)
            items.append(item)
        }
    }

    private mutating func readMapping(into mapping: inout Node, depth: Int) throws(YAMLSyntaxError) {
        var entries: [Node.Entry] = []
        while true {
            let event = try events.next()
            if case .mappingEnd = event.kind {
                mapping.content = .mapping(entries)
                mapping.end = place(event.end)
                return
            }
            let key = try node(event, depth: depth + 1)
            guard case .scalar(let name, let isPlain) = key.content else {
                throw mistake(event, "a key must be a word; a text that begins with `{`, `[` or `*` needs quotes")
            }
            guard name != "<<" || !isPlain else {
                throw mistake(
                    event, "merge keys (`<<`) are not supported; repeat the keys, or use an alias for the whole value")
            }
            let value = try node(try events.next(), depth: depth + 1)
            mapping.weight += 1 + value.weight
            mapping.height = max(mapping.height, value.height + 1)
            entries.append(
                Node.Entry(key: name, place: place(event.start), end: place(event.end), value: value))
        }
    }

    private mutating func count(_ nodes: Int, _ event: YAMLEvents.Event) throws(YAMLSyntaxError) {
        weight += nodes
        guard weight <= Self.maxNodes else {
            throw mistake(event, "more than \(Self.maxNodes) values, with aliases expanded")
        }
    }

    private func place(_ mark: (line: Int, column: Int)) -> ConfigLocation {
        ConfigLocation(file: file, line: mark.line, column: mark.column)
    }

    private func mistake(_ event: YAMLEvents.Event, _ text: String) -> YAMLSyntaxError {
        YAMLSyntaxError(line: event.start.line, column: event.start.column, text: text)
    }
}
