internal import Core
internal import Linux

/// The directories that wait for a visit, and the listing of the current one.
///
/// A class, because the consumer of a listing queues further visits. Used by the watching thread only.
final class DirectoryScanner {
    /// An entry of a listing that concerns the caller.
    enum Entry {
        /// A name of a file, whether a rule takes it or not. Only where names were requested.
        case name(UnsafeBufferPointer<UInt8>)
        /// A directory that rules and ignore files do not exclude.
        case directory(UnsafeBufferPointer<UInt8>)
        /// A regular file that the rule takes.
        case file(UnsafeBufferPointer<UInt8>, FileStatus, rule: Int)
        /// The status of a file cannot be read.
        case unreadable(SystemError)
        /// The listing ends early.
        case broken(SystemError)
    }

    /// How the listing of a directory ended.
    enum End {
        case complete
        /// Subdirectories that were not met may exist.
        case incomplete
    }

    /// No rule matches the name, but the listing did not include its type: it may be a directory.
    private static let unmatched = -1
    /// Some rule takes the name; the rule is known when the size is.
    private static let matched = 0

    /// Directories with events, and all others.
    private var urgent = FIFO<WatchedDirectory>()
    private var ordinary = FIFO<WatchedDirectory>()
    /// The strongest reason for the visit of each directory in the queues.
    private var reasons: [ObjectIdentifier: VisitReason] = [:]
    /// The directory that is being listed.
    private(set) var current: DirectoryScan?
    /// The number of the last visit.
    private(set) var visit = 0
    /// Names of the current directory, whose status is read together; each with whether a rule takes it.
    private var names = FolderStatusReader()

    /// Whether no directory is being listed or waits.
    var isIdle: Bool { current == nil && urgent.isEmpty && ordinary.isEmpty }

    // MARK: - Visits

    /// Requests a visit. A directory that waits for one already keeps the stronger reason.
    func enqueue(_ directory: WatchedDirectory, _ reason: VisitReason) {
        if directory.isGone { return }
        let id = ObjectIdentifier(directory)
        if let pending = reasons[id] {
            reasons[id] = max(pending, reason)
            // One more entry, in the faster queue; the first of the two makes the visit.
            if reason == .event && pending != .event { urgent.append(directory) }
            return
        }
        reasons[id] = reason
        directory.root.state.visitQueued()
        if reason == .event { urgent.append(directory) } else { ordinary.append(directory) }
    }

    /// Removes and returns the next directory to visit, with the reason. It may be gone.
    func popVisit() -> (WatchedDirectory, VisitReason)? {
        while let directory = urgent.popFirst() ?? ordinary.popFirst() {
            guard let reason = reasons.removeValue(forKey: ObjectIdentifier(directory)) else { continue }
            return (directory, reason)
        }
        return nil
    }

    /// The number of the visit that begins now, unique among all directories.
    func nextVisitNumber() -> Int {
        visit += 1
        return visit
    }

    /// Begins the listing of a directory.
    func begin(_ scan: DirectoryScan) { current = scan }

    /// Ends a visit, with or without a listing.
    func endVisit(_ directory: WatchedDirectory) { directory.root.state.visitEnded() }

    /// Forgets the visits of a root.
    func drop(_ root: Root) {
        if current?.directory.root === root { current = nil }
        func isDropped(_ directory: WatchedDirectory) -> Bool {
            guard directory.root === root else { return false }
            reasons[ObjectIdentifier(directory)] = nil
            return true
        }
        urgent.removeAll(where: isDropped)
        ordinary.removeAll(where: isDropped)
    }

    // MARK: - Listing

    /// Releases the memory for names.
    func releaseMemory() { names = FolderStatusReader() }

    /// Lists the next names of the current directory.
    ///
    /// - Parameters:
    ///   - limit: Names at most.
    ///   - treeVersion: See ``WatchTree/version``.
    ///   - includesNames: Whether ``Entry/name(_:)`` is wanted.
    /// - Returns: The number of names, at least 1, and the directory with the end of its listing where that was
    ///   reached.
    func list(
        limit: Int, _ rules: [CompiledRule], treeVersion: Int, includesNames: Bool, _ body: (Entry) -> Void
    ) -> (count: Int, ended: (directory: WatchedDirectory, end: End)?) {
        guard let scan = current else { return (1, nil) }
        guard scan.refresh(rules, treeVersion: treeVersion) else { return (1, end(.incomplete)) }
        var count = 0
        var end: End?
        do {
            while count < limit && end == nil {
                count += 1
                let hasMore = try scan.stream.next { name, kind in
                    add(name, kind, scan, includesNames: includesNames, body)
                }
                if !hasMore { end = .complete }
            }
        } catch {
            body(.broken(error))
            end = .incomplete
        }
        readStatuses(scan, body)
        return (count, end.flatMap { self.end($0) })
    }

    private func end(_ end: End) -> (directory: WatchedDirectory, end: End)? {
        defer { current = nil }
        return current.map { ($0.directory, end) }
    }

    private func add(
        _ name: UnsafeBufferPointer<UInt8>, _ kind: FolderStream.Kind, _ scan: DirectoryScan, includesNames: Bool,
        _ body: (Entry) -> Void
    ) {
        switch kind {
        case .other: return
        case .folder: addDirectory(name, scan, body)
        case .file, .unknown:
            if includesNames { body(.name(name)) }
            let isMatched = scan.contenders.hasMatch(for: name) && !scan.ignored.ignores(name)
            if !isMatched, case .file = kind { return }
            names.add(name, tag: isMatched ? Self.matched : Self.unmatched, in: scan.stream)
        }
    }

    private func addDirectory(_ name: UnsafeBufferPointer<UInt8>, _ scan: DirectoryScan, _ body: (Entry) -> Void) {
        guard scan.directory.root.isRecursive, !TemporaryNames.contains(name),
            !scan.ignored.ignores(name, isFolder: true)
        else { return }
        body(.directory(name))
    }

    private func readStatuses(_ scan: DirectoryScan, _ body: (Entry) -> Void) {
        if names.isEmpty { return }
        names.read(in: scan.stream) { name, tag, status in
            switch status {
            case .failure(let error): body(.unreadable(error))
            case .success(nil): return
            case .success(let status?):
                if status.isDirectory { return addDirectory(name, scan, body) }
                guard status.isRegular, tag != Self.unmatched,
                    let rule = scan.contenders.firstMatch(for: name, size: status.size)
                else { return }
                body(.file(name, status, rule: rule))
            }
        }
    }
}
