internal import Core
internal import Linux

/// A file that a scan met.
struct ScannedFile {
    let directory: WatchedDirectory
    let rule: Int
    let status: FileStatus
    let at: MonotonicTime
    let evidence: Settling<WatchedFile>.Evidence
    let identity: FileIdentity
    var place: WatchedFile { WatchedFile(directory: directory, name: identity.relative.name) }
}

/// Files that a scan met, for a query whether they are known.
///
/// Nearly every file is known, and then its details are not needed: so each is a few numbers here, and ``ScannedFile`` is
/// made only for new ones.
struct ScanBatch {
    /// Files of one directory that share their rule and their file system, listed in one run.
    private struct Visit {
        /// `nil` when no folder takes its files any more. A directory does not outlive its tree.
        var directory: WatchedDirectory?
        let device: UInt64
        let evidence: Settling<WatchedFile>.Evidence
    }

    /// The parts of a file's status besides version and device.
    private struct File {
        let inode: UInt64
        let changed: Int64
        let at: MonotonicTime
        let mode: UInt32
        let visit: Int32
        /// Below 0 when no folder takes it any more.
        var rule: Int32
    }

    /// Distinguishes one visit from the next.
    private struct Key: Equatable {
        let visit: Int
        /// Its path is another one after a move.
        let treeVersion: Int
        let rule: Int
        let device: UInt64
    }

    /// In the order of the indices here.
    private(set) var identities = PackedFileVersions()
    private var visits: [Visit] = []
    private var files: [File] = []
    private var last: Key?
    private var location = 0
    private var keepsInodes = false

    var isEmpty: Bool { files.isEmpty }
    var count: Int { files.count }
    var indices: Range<Int> { files.indices }

    /// The number of files that each rule takes, by its index.
    var countsByRule: [Int: Int] {
        var counts: [Int: Int] = [:]
        // Files of one rule are neighbours.
        var (rule, count) = (Int32(-1), 0)
        for file in files {
            if file.rule != rule {
                if count > 0, rule >= 0 { counts[Int(rule), default: 0] += count }
                (rule, count) = (file.rule, 0)
            }
            count += 1
        }
        if count > 0, rule >= 0 { counts[Int(rule), default: 0] += count }
        return counts
    }

    /// `nil` for a file that no folder takes any more.
    subscript(index: Int) -> ScannedFile? {
        let file = files[index]
        let visit = visits[Int(file.visit)]
        guard file.rule >= 0, let directory = visit.directory else { return nil }
        let version = identities.version(at: index)
        let status = FileStatus(
            device: visit.device, inode: file.inode, size: version.size, modified: version.modified,
            changed: file.changed, born: version.born, mode: file.mode)
        return ScannedFile(
            directory: directory, rule: Int(file.rule), status: status, at: file.at, evidence: visit.evidence,
            identity: identities[index])
    }

    /// - Parameter place: The folder's name, and the file's file system; called when that differs from the last file's.
    mutating func append(
        _ name: UnsafeBufferPointer<UInt8>, _ status: FileStatus, rule: Int, of scan: DirectoryScan,
        at now: MonotonicTime,
        place: () -> (folder: String, fileSystem: FileSystemIdentity?)
    ) {
        let key = Key(visit: scan.visit, treeVersion: scan.treeVersion, rule: rule, device: status.device)
        if key != last {
            last = key
            let (folder, fileSystem) = place()
            keepsInodes = fileSystem?.keepsInodes == true
            location = identities.add(
                PackedFileVersions.Location(folder: folder, directory: scan.relative, fileSystem: fileSystem?.name))
            visits.append(
                Visit(
                    directory: scan.directory, device: status.device,
                    evidence: scan.reason == .event ? .event : .found))
        }
        identities.append(name, FileVersion(status, keepsInodes: keepsInodes), in: location)
        files.append(
            File(
                inode: status.inode, changed: status.changed, at: now, mode: status.mode,
                visit: Int32(visits.count - 1),
                rule: Int32(rule)))
    }

    /// Empties it for the next files, and keeps its memory.
    mutating func removeAll() {
        identities.removeAll()
        visits.removeAll(keepingCapacity: true)
        files.removeAll(keepingCapacity: true)
        last = nil
    }

    /// Releases the matching directories. The answer under way goes by position, so their files stay.
    mutating func drop(_ isMeant: (WatchedDirectory) -> Bool) {
        for index in visits.indices {
            if let directory = visits[index].directory, isMeant(directory) { visits[index].directory = nil }
        }
        // The next file has another rule, or its directory is another one by then.
        last = nil
    }

    /// Determines the files' rules again; `nil` leaves one out.
    mutating func reassign(_ rule: (ScannedFile) -> Int?) {
        for index in indices { if let file = self[index] { files[index].rule = Int32(rule(file) ?? -1) } }
        last = nil
    }
}
