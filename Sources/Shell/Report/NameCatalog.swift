internal import Core

/// The names and paths of all files that are hidden, and their marks.
struct NameCatalog {
    /// Whole paths below watched folders, and whether each is that of a folder.
    private(set) var paths: [String: Bool] = [:]
    /// All others: names, paths below a watched folder, and paths elsewhere.
    private(set) var texts: Set<String> = []
    private let hidden: HiddenNames
    /// The files and folders of each name, by their longest known paths, sorted.
    private var places: [Substring: [String]] = [:]

    /// - Parameter starts: The watched folders, each with a slash at the end.
    init(_ hidden: HiddenNames, below starts: [String]) {
        self.hidden = hidden
        var relatives: Set<String> = []
        var owners: [Substring: Set<String>] = [:]
        for text in hidden.texts {
            if let start = starts.filter({ text.hasPrefix($0) }).max(by: { $0.utf8.count < $1.utf8.count }) {
                let relative = text.dropFirst(start.count)
                guard !relative.isEmpty else { continue }
                for path in Self.beginnings(of: relative) {
                    paths[start + path] = path != relative && paths[start + path] != false
                    owners[Self.name(path), default: []].insert(start + path)
                }
                relatives.insert(String(relative))
            } else if text.hasPrefix("/") {
                guard text.count > 1, !hidden.kept.contains(text) else { continue }
                texts.insert(text)
                texts.insert(String(Self.name(text[...])))
                owners[Self.name(text[...]), default: []].insert(text)
            } else if !text.isEmpty {
                relatives.insert(text)
            }
        }
        for relative in relatives {
            texts.insert(relative)
            for part in relative.split(separator: "/") { texts.insert(String(part)) }
            for path in Self.beginnings(of: relative[...]) where path.contains("/") {
                texts.insert(String(path))
                let name = Self.name(path)
                // Most belong to a path that is known.
                if owners[name, default: []].contains(where: { $0.hasSuffix("/" + path) }) { continue }
                owners[name, default: []].insert(String(path))
            }
        }
        places = owners.mapValues { $0.sorted() }
    }

    /// `a`, `a/b` and `a/b/c.mp4`.
    private static func beginnings(of path: Substring) -> [Substring] {
        path.indices.filter { path[$0] == "/" && $0 > path.startIndex }.map { path[..<$0] } + [path]
    }

    private static func name(_ path: Substring) -> Substring { path.split(separator: "/").last ?? path }

    func mark(ofPath path: String) -> String {
        let name = Self.name(path[...])
        let all = places[name] ?? []
        guard all.count > 1, let number = all.firstIndex(of: path) else { return hidden.mark(String(name)) }
        return hidden.mark(String(name), number: number + 1)
    }

    /// The mark of the file that has this path below a watched folder; where several have it, that of their name.
    func mark(ofText text: String) -> String {
        let name = Self.name(text[...])
        let fitting = (places[name] ?? []).filter { $0 == text || $0.hasSuffix("/" + text) }
        return fitting.count == 1 ? mark(ofPath: fitting[0]) : hidden.mark(String(name))
    }
}
