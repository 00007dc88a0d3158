/// Rules for files that are uploaded together.
package struct GroupRule: Hashable, Sendable {
    /// What makes a group.
    package enum Basis: String, CaseIterable, Sendable {
        /// A video and its sidecars (`.xml`, `.srt` …), recognised by their names in one directory.
        case stem
        /// A directory of the folder with everything in it.
        case directory
        /// A file that lists the others.
        case manifest
    }

    package var by: Basis
    /// How long a finished file waits for another file of its group.
    package var wait: Duration
    /// Endings of sidecars, in lower case and without the dot.
    package var sidecars: [String]
    /// Patterns for the names of manifests.
    package var manifests: [String]

    package static let commonSidecars = ["xml", "srt", "thm", "json"]

    /// - Parameter wait: By default longer for a directory, where nothing tells that another file will come.
    package init(
        by: Basis = .stem, wait: Duration? = nil, sidecars: [String] = commonSidecars, manifests: [String] = []
    ) {
        self.by = by
        self.wait = wait ?? (by == .directory ? .seconds(60) : .seconds(5))
        self.sidecars = sidecars
        self.manifests = manifests
    }

    /// Whether its ending marks it as a sidecar of another file. Case does not count: cameras write `.XML`.
    package func isSidecar(_ name: FilePath) -> Bool {
        guard by == .stem, let ending = name.fileExtension?.bytes else { return false }
        return sidecars.contains { $0.utf8.elementsEqual(ending.lazy.map(\.lowered)) }
    }

    /// Whether it lists the files of its group.
    package func isManifest(_ name: FilePath) -> Bool {
        by == .manifest && manifests.contains { Glob($0).matches(name) }
    }

    /// Whether it only accompanies other files of its group.
    package func isAuxiliary(_ name: FilePath) -> Bool { isSidecar(name) || isManifest(name) }

    /// The group of a file; `nil` for a file that is in none. A file that a manifest may list is in the group of those
    /// that no manifest lists yet.
    ///
    /// `clip.xml` belongs to `clip.mp4`; so does `clip.mp4.xml`, if that video is in the directory.
    ///
    /// - Parameter isThere: Whether a name exists in the file's directory.
    package func key(of file: SettledFile, isThere: (_ name: FilePath) -> Bool) -> Grouping.Key? {
        switch by {
        case .stem:
            var key = Grouping.Key(file)
            if isSidecar(file.relative.name), key.stem.fileExtension != nil, !isSidecar(key.stem), isThere(key.stem) {
                key.stem = key.stem.stem
            }
            return key
        case .directory:
            guard let top = file.relative.parent.components.first else { return nil }
            return Grouping.Key(folder: file.folder, directory: top, stem: "")
        case .manifest:
            if isManifest(file.relative.name) { return .manifest(file.relative, in: file.folder) }
            return .unlisted(in: file.relative.parent, of: file.folder)
        }
    }

    /// The patterns that also include what accompanies other files, where `include` names only those.
    package func include(with include: [String]) -> [String] {
        if include.isEmpty { return [] }
        let others =
            switch by {
            case .stem: sidecars.map { "*." + $0 }
            case .directory: [String]()
            case .manifest: manifests
            }
        return include + others.filter { !include.contains($0) }
    }
}

extension Grouping.Key {
    /// The group of a manifest: its own name stands for the stem.
    package static func manifest(_ relative: FilePath, in folder: String) -> Self {
        Self(folder: folder, directory: relative.parent, stem: relative.name)
    }

    /// The files of a directory that no manifest lists yet.
    package static func unlisted(in directory: FilePath, of folder: String) -> Self {
        Self(folder: folder, directory: directory, stem: "")
    }

    /// The name of the group: a path below its folder.
    package var name: FilePath { stem.isEmpty ? directory : directory.appending(stem) }
}
