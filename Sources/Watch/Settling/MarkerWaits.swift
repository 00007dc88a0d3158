internal import Core

/// Files that wait for their marker files, which say that they are finished (`settle.marker`).
struct MarkerWaits {
    /// Time between two searches for entries of files that no longer wait.
    private static let sweepInterval = Duration.seconds(10)

    /// The waiting files, by the place of the marker.
    private var files: [WatchedFile: Set<WatchedFile>] = [:]
    private var lastSweep: MonotonicTime?

    var isEmpty: Bool { files.isEmpty }

    /// Remembers the file to be woken when the marker comes.
    mutating func add(_ file: WatchedFile, marker: FilePath) {
        files[WatchedFile(directory: file.directory, name: marker), default: []].insert(file)
    }

    /// Removes and returns the files that wait for the marker at a place.
    mutating func remove(marker: WatchedFile) -> Set<WatchedFile> {
        if files.isEmpty { return [] }
        return files.removeValue(forKey: marker) ?? []
    }

    /// Whether as many markers are missing as there may be.
    ///
    /// - Parameter isWaiting: Whether a file is still a candidate. Files that were removed without their markers have
    ///   left their entries.
    mutating func isFull(limit: Int, at now: MonotonicTime, isWaiting: (WatchedFile) -> Bool) -> Bool {
        guard files.count >= limit else { return false }
        if lastSweep.map({ now.since($0) > Self.sweepInterval }) ?? true {
            lastSweep = now
            files = files.filter { $0.value.contains(where: isWaiting) }
        }
        return files.count >= limit
    }

    /// Forgets the files of a root.
    mutating func drop(_ root: Root) { files = files.filter { $0.key.directory.root !== root } }
}
