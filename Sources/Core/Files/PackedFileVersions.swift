/// Versions of many files, as a scan finds them. Numbers are stored side by side and all paths in one piece of memory,
/// so that a million files need no object each. An element is made when it is requested.
package struct PackedFileVersions: RandomAccessCollection, Sendable {
    /// The properties that files in one directory share.
    package struct Location: Hashable, Sendable {
        /// The name of the configured folder.
        package var folder: String
        /// The directory's path below the folder's path.
        package var directory: FilePath
        /// As in ``FileIdentity/fileSystem``.
        package var fileSystem: String?

        package init(folder: String, directory: FilePath, fileSystem: String?) {
            self.folder = folder
            self.directory = directory
            self.fileSystem = fileSystem
        }
    }

    private struct Entry {
        let version: FileVersion
        /// The offset of its path.
        let start: Int
        let count: Int32
        let home: Int32
    }

    private var locations: [Location] = []
    /// For each home, the first home with the same folder.
    private var folders: [Int] = []
    private var entries: [Entry] = []
    private var paths: [UInt8] = []

    package init() {}

    package init(_ identities: some Sequence<FileIdentity>) {
        for identity in identities {
            let isAtHome = locations.last.map { $0.folder == identity.folder && $0.fileSystem == identity.fileSystem }
            let home =
                isAtHome == true
                ? locations.count - 1
                : add(Location(folder: identity.folder, directory: "", fileSystem: identity.fileSystem))
            identity.relative.bytes.withUnsafeBufferPointer { append($0, identity.version, in: home) }
        }
    }

    package var startIndex: Int { 0 }
    package var endIndex: Int { entries.count }

    package subscript(index: Int) -> FileIdentity {
        let entry = entries[index]
        let home = locations[Int(entry.home)]
        return FileIdentity(
            folder: home.folder, relative: FilePath(fromKernel: Array(paths[range(of: entry)])),
            size: entry.version.size, modified: entry.version.modified, inode: entry.version.inode,
            born: entry.version.born, fileSystem: home.fileSystem)
    }

    /// - Returns: The home's number, for ``append(_:_:in:)``.
    package mutating func add(_ home: Location) -> Int {
        folders.append(locations.firstIndex { $0.folder == home.folder } ?? locations.count)
        locations.append(home)
        return locations.count - 1
    }

    /// - Parameters:
    ///   - name: Below the home's directory. Contains no NUL.
    ///   - home: The number that ``add(_:)`` returned.
    package mutating func append(_ name: UnsafeBufferPointer<UInt8>, _ version: FileVersion, in home: Int) {
        let start = paths.count
        locations[home].directory.bytes.withUnsafeBufferPointer { directory in
            if directory.isEmpty { return }
            paths.append(contentsOf: directory)
            paths.append(UInt8(ascii: "/"))
        }
        paths.append(contentsOf: name)
        entries.append(Entry(version: version, start: start, count: Int32(paths.count - start), home: Int32(home)))
    }

    /// Removes all elements and keeps the memory.
    package mutating func removeAll() {
        locations.removeAll(keepingCapacity: true)
        folders.removeAll(keepingCapacity: true)
        entries.removeAll(keepingCapacity: true)
        paths.removeAll(keepingCapacity: true)
    }

    // MARK: - Without making an element

    package func version(at index: Int) -> FileVersion { entries[index].version }
    package func fileSystem(at index: Int) -> String? { locations[Int(entries[index].home)].fileSystem }

    package func areInSameFolder(_ a: Int, _ b: Int) -> Bool {
        entries[a].home == entries[b].home || folders[Int(entries[a].home)] == folders[Int(entries[b].home)]
    }

    /// Compares the path at `index` with `bytes`, as ``order(_:_:)`` does.
    package func order(_ index: Int, _ bytes: UnsafeRawBufferPointer) -> Int {
        paths.withUnsafeBytes { Self.order(UnsafeRawBufferPointer(rebasing: $0[range(of: entries[index])]), bytes) }
    }

    /// All indices, sorted by folder, and within a folder by the bytes of the path.
    package func sortedIndices() -> [Int] {
        paths.withUnsafeBytes { paths in
            entries.withUnsafeBufferPointer { entries in
                entries.indices.sorted { a, b in
                    let (a, b) = (entries[a], entries[b])
                    if a.home != b.home {
                        let (mine, others) = (folders[Int(a.home)], folders[Int(b.home)])
                        if mine != others { return mine < others }
                    }
                    return Self.order(
                        UnsafeRawBufferPointer(rebasing: paths[range(of: a)]),
                        UnsafeRawBufferPointer(rebasing: paths[range(of: b)])) < 0
                }
            }
        }
    }

    private func range(of entry: Entry) -> Range<Int> { entry.start..<entry.start + Int(entry.count) }

    /// Compares like SQLite compares blobs: by bytes, and the shorter first where one begins with the other.
    ///
    /// - Returns: Below 0 when `a` comes first, 0 for equal paths.
    private static func order(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        let shared = Swift.min(a.count, b.count)
        var at = 0
        // Eight bytes at a time: names in one directory often begin alike.
        while at + 8 <= shared {
            let mine = UInt64(bigEndian: a.loadUnaligned(fromByteOffset: at, as: UInt64.self))
            let others = UInt64(bigEndian: b.loadUnaligned(fromByteOffset: at, as: UInt64.self))
            if mine != others { return mine < others ? -1 : 1 }
            at += 8
        }
        while at < shared {
            if a[at] != b[at] { return a[at] < b[at] ? -1 : 1 }
            at += 1
        }
        return a.count - b.count
    }
}
