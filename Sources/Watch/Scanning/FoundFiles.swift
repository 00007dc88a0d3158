internal import Core
internal import Linux

/// Files that scans found and that have no decision yet: those of the next query whether they are recorded, those of
/// the query under way, and old files that are to be skipped.
struct FoundFiles {
    /// Identities in one query: enough for the store to find the files of a directory side by side.
    static let queryLimit = 2_048
    /// Old files at once, which wait only for the events that are queued already.
    private static let skippedLimit = 4 * queryLimit

    /// Files of the next query.
    private var batch = ScanBatch()
    /// Files of the query under way.
    private var queried: ScanBatch?
    /// Empty, with the memory of the last query, for as long as a scan runs.
    private var spare = ScanBatch()
    /// Files of a first scan that are to be skipped, unless an event that is still queued reports them.
    private var skipped: [WatchedFile: SettledFile] = [:]

    var isEmpty: Bool { batch.isEmpty && queried == nil && skipped.isEmpty }
    var isQuerying: Bool { queried != nil }
    var hasSkipped: Bool { !skipped.isEmpty }
    /// The number of files without an answer.
    var unansweredCount: Int { batch.count + (queried?.count ?? 0) }
    /// The number of files that may still be added before a query or the events have to be waited for.
    var freeSlots: Int { min(Self.queryLimit - batch.count, Self.skippedLimit - skipped.count) }

    /// Adds a file to the next query.
    ///
    /// - Parameter place: As for ``ScanBatch/append(_:_:rule:of:at:place:)``.
    mutating func append(
        _ name: UnsafeBufferPointer<UInt8>, _ status: FileStatus, rule: Int, of scan: DirectoryScan,
        at now: MonotonicTime, place: () -> (folder: String, fileSystem: FileSystemIdentity?)
    ) {
        batch.append(name, status, rule: rule, of: scan, at: now, place: place)
    }

    /// Starts the next query, if none is running and it is full or all files were found.
    ///
    /// - Parameter isComplete: Whether all files were found; the spare memory is released then.
    /// - Returns: The identities to query, and the number of files that each rule takes, by its index.
    mutating func beginQuery(isComplete: Bool) -> (identities: PackedFileVersions, countsByRule: [Int: Int])? {
        guard queried == nil else { return nil }
        if batch.isEmpty {
            if isComplete { spare = ScanBatch() }
            return nil
        }
        guard batch.count >= Self.queryLimit || isComplete else { return nil }
        let query = (batch.identities, batch.countsByRule)
        queried = batch
        batch = spare
        spare = ScanBatch()
        return query
    }

    /// Ends the query under way.
    ///
    /// - Parameters:
    ///   - known: For each identity, whether it is recorded.
    ///   - body: Called for each file that is new.
    mutating func endQuery(_ known: [Bool], _ body: (ScannedFile) -> Void) {
        guard var answered = queried else { return }
        queried = nil
        // Nearly all are known, and no values are made for those.
        for index in answered.indices where index < known.count && !known[index] {
            if let file = answered[index] { body(file) }
        }
        answered.removeAll()
        spare = answered
    }

    // MARK: - Old files

    mutating func addSkipped(_ file: SettledFile, at place: WatchedFile) { skipped[place] = file }

    /// Notes that a file has changed since the scan found it, or came after it: it is no old file.
    mutating func forgetSkipped(_ place: WatchedFile) {
        if !skipped.isEmpty { skipped[place] = nil }
    }

    /// Removes and returns the old files: those in the first scan of a folder without an event since they were listed.
    ///
    /// Must be called when all events queued by the kernel were read.
    mutating func removeSkipped() -> [SettledFile] {
        if skipped.isEmpty { return [] }
        defer { skipped = [:] }
        return Array(skipped.values)
    }

    // MARK: - Changes of the roots

    /// Forgets the files of a root.
    mutating func drop(_ root: Root) {
        batch.drop { $0.root === root }
        queried?.drop { $0.root === root }
        skipped = skipped.filter { $0.key.directory.root !== root }
    }

    /// Determines the files' rules again; `nil` leaves one out.
    ///
    /// - Parameter isSkipped: Whether an old file is still to be skipped.
    mutating func reassign(_ rule: (ScannedFile) -> Int?, isSkipped: (WatchedFile, SettledFile) -> Bool) {
        batch.reassign(rule)
        queried?.reassign(rule)
        skipped = skipped.filter { isSkipped($0.key, $0.value) }
    }
}
