internal import Core

/// The place of each setting in the files: `folders.door.settle.quiet_for` to `FILE:LINE`.
///
/// Folders and hooks are identified by name, because the numbers of folders start again in each file.
struct SettingLocations {
    private(set) var places: [String: String] = [:]
    private let sources: [SourceText]

    init(_ roots: [Node], in sources: [SourceText]) {
        self.sources = sources
        for root in roots { note(root, under: "") }
    }

    private mutating func note(_ node: Node, under path: String) {
        for entry in node.entries {
            let key = path.isEmpty ? entry.key : "\(path).\(entry.key)"
            let source = sources[entry.place.file]
            places[key] = "\(source.file.display):\(entry.place.line)"
            guard path.isEmpty, ["folders", "hooks"].contains(key), case .list(let items) = entry.value.content else {
                note(entry.value, under: key)
                noteItems(of: entry.value, under: key)
                continue
            }
            for (index, item) in items.enumerated() {
                if case .scalar(let name, _)? = item.entries.first(where: { $0.key == "name" })?.value.content {
                    note(item, under: "\(key).\(name)")
                } else if key == "hooks" {
                    note(item, under: "hooks.\(Hook.name(ofNumber: index))")
                }
            }
        }
    }

    /// The items of a list, and what is in them: `policy.pause[0]`, `policy.pause[0].when`.
    private mutating func noteItems(of node: Node, under key: String) {
        guard case .list(let items) = node.content else { return }
        for (index, item) in items.enumerated() {
            places["\(key)[\(index)]"] = "\(sources[item.start.file].file.display):\(item.start.line)"
            note(item, under: "\(key)[\(index)]")
        }
    }
}
