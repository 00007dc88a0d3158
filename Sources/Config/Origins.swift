internal import Core

/// Where each setting of some files stands: `folders.door.settle.quiet_for` to `FILE:LINE`.
///
/// Folders go by their names, since their numbers begin anew in each file.
struct Origins {
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
            guard path.isEmpty, entry.key == "folders", case .list(let folders) = entry.value.content else {
                note(entry.value, under: key)
                continue
            }
            for folder in folders {
                guard case .scalar(let name, _)? = folder.entries.first(where: { $0.key == "name" })?.value.content
                else { continue }
                note(folder, under: "folders.\(name)")
            }
        }
    }
}
