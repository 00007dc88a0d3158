internal import Core
internal import Linux
internal import Store

/// The files that travel together, among those that a rebuild has found.
struct RestoredUnits: Sendable {
    private struct Place: Hashable {
        var folder: String
        var relative: FilePath
    }

    /// Assets by their group.
    private var units: [Grouping.Key: (assets: [Int64], isNamed: Bool)] = [:]
    /// Files that a manifest may list.
    private var listable: [Place: Int64] = [:]
    private var manifests: [(folder: String, path: SourcePath)] = []

    mutating func add(_ asset: Int64, _ file: SettledFile, _ rule: GroupRule, in sources: SourceFolders) async {
        guard let key = await rule.key(of: file, in: sources) else { return }
        guard rule.by == .manifest else {
            units[key, default: ([], rule.by == .directory)].assets.append(asset)
            return
        }
        listable[Place(folder: file.folder, relative: file.relative)] = asset
        if rule.isManifest(file.relative.name) { manifests.append((file.folder, file.path)) }
    }

    /// The units. Reads the manifests; a manifest that cannot be used travels alone.
    consuming func united(in sources: SourceFolders) async throws -> [RestoredUnit] {
        // The first by name has a file that several list, as in a folder that is watched.
        for (folder, path) in manifests.sorted(by: { $0.path.relative < $1.path.relative }) {
            guard let own = listable[Place(folder: folder, relative: path.relative)] else { continue }
            var assets = [own]
            if let read = try? await blocking({ try ReadManifest.read(path, in: sources) }),
                case .success(let manifest) = read.result
            {
                assets += manifest.files.sorted().compactMap {
                    listable.removeValue(forKey: Place(folder: folder, relative: $0))
                }
            }
            units[.manifest(path.relative, in: folder)] = (assets, true)
        }
        return units.map { RestoredUnit(assets: $1.assets, name: $1.isNamed ? $0.name : nil) }
            .filter { $0.assets.count > 1 || $0.name != nil }
    }
}
