internal import Core
internal import Linux

// Scans of directories, and the files that they find.

extension WatchLoop {
    /// Directory entries in one turn.
    private static let slice = 2_000
    /// The cost of opening a directory, in entries.
    private static let openCost = 10

    /// Whether there is something to scan, and capacity for the files found.
    var canScan: Bool { !scanner.isIdle && freeSlots > 0 }

    /// The number of names that may still be listed before the found files are passed on.
    private var freeSlots: Int { min(found.freeSlots, tracker.freeSlotsForScans - found.unansweredCount) }

    /// Scans absent folders, and those whose time has come, from the top.
    func checkRoots() {
        for root in roots.watched where root.state.nextCheck <= now {
            fileSystems.forget()
            board.markChanged()
            let reason = root.state.beginScan(next: now.advanced(by: pace.reconcile))
            // Not `now`, which may be earlier than the request.
            board.scanBegan(root, at: clocks.monotonic())
            scanner.enqueue(root.top, reason)
        }
    }

    /// Requests a visit of each directory whose poll is due.
    func visitPolled() {
        while let directory = polls.popDue(at: now) { scanner.enqueue(directory, .poll) }
    }

    /// Scans a slice.
    func scan() {
        var left = Self.slice
        while left > 0 && freeSlots > 0 {
            if scanner.current != nil {
                left -= list(limit: min(left, freeSlots))
                continue
            }
            // Events from before the listing of a directory are read first: an event that says that the directory is
            // new here makes its files new too.
            if found.hasSkipped || roots.watched.contains(where: \.state.isFirstScan) { readEvents() }
            guard let (directory, reason) = scanner.popVisit() else { return }
            if directory.isGone {
                endVisit(directory)
            } else {
                beginVisit(directory, reason)
                left -= Self.openCost
            }
        }
    }

    // MARK: - Visits

    private func beginVisit(_ directory: WatchedDirectory, _ reason: VisitReason) {
        let root = directory.root
        // Being renamed; it will be visited under its new name.
        guard let relative = directory.relative else { return endVisit(directory) }
        let path = root.path.appending(relative)
        let visit = scanner.nextVisitNumber()
        do {
            let top = try root.folder.open()
            let stream = try top.stream(relative)
            let status = try stream.status()
            if directory.isTop {
                if let missing = try root.mountCheck.missing(in: top) {
                    setAbsent(root, missing)
                    return endVisit(directory)
                }
                setPresent(root, stream)
            }
            // Changes between the opening and the watch are reported by neither.
            if watch(directory, stream, status, path) { stream.rewind() }
            directory.scanned(modified: status.modified)
            let isIgnoreChanged = readIgnore(directory, stream, path)
            board.clearProblem(of: directory, visit: visit)
            scanner.begin(
                DirectoryScan(
                    directory, isIgnoreChanged ? max(reason, .reconcile) : reason, stream, visit: visit,
                    relative: relative, rules: roots.rules, treeVersion: tree.version, device: status.device,
                    fileSystem: fileSystems.identity(of: stream, device: status.device)))
        } catch {
            visitFailed(directory, path, error)
            endVisit(directory)
        }
    }

    private func endVisit(_ directory: WatchedDirectory) {
        scanner.endVisit(directory)
        polls.scanEnded(directory, at: now)
        board.markChanged()
    }

    /// - Returns: Whether its content differs from before, so that everything below must be scanned again.
    private func readIgnore(_ directory: WatchedDirectory, _ stream: FolderStream, _ path: FilePath) -> Bool {
        let (ignore, trouble) = Ignore.read(in: stream, named: path)
        if let trouble { reportProblem(trouble, of: directory) }
        return directory.replaceIgnore(ignore)
    }

    /// Sets a watch on an open directory, and makes it polled where a watch does not report everything.
    ///
    /// - Returns: Whether it has a new watch.
    private func watch(
        _ directory: WatchedDirectory, _ stream: FolderStream, _ status: FileStatus, _ path: FilePath
    ) -> Bool {
        switch tree.watch(directory, stream, status, path) {
        case .unchanged: return false
        case .added:
            if directory.lacksChangeEvents {
                polls.add(directory, at: now)
            } else if polls.remove(directory) {
                board.markChanged()
            }
            if polls.isEmpty { tree.forgetLimitReport() }
            return true
        case .unavailable: polls.add(directory, at: now)
        case .limitReached(let isFirst):
            polls.add(directory, at: now)
            if isFirst {
                log.notice(
                    "no watch for \(path.display): the limit on inotify watches is reached "
                        + "(fs.inotify.max_user_watches is \(Inotify.watchLimit)); such directories are scanned every "
                        + "\(words(pace.poll)) to \(words(pace.pollMost)) instead. Raise it with "
                        + "`sysctl fs.inotify.max_user_watches=524288`")
            }
        case .failed(let error):
            polls.add(directory, at: now)
            reportProblem(
                "cannot watch a directory (\(error)); scanning it periodically instead", of: directory)
        }
        return false
    }

    /// Records a problem of a directory. It is logged when it is new, and shown for as long as visits find it.
    ///
    /// - Parameter error: As for ``WatchLog/notice(_:below:at:_:)``.
    private func reportProblem(_ text: String, of directory: WatchedDirectory, _ error: SystemError? = nil) {
        guard board.addProblem(text, of: directory, visit: scanner.visit) else { return }
        if let error {
            log.notice(error, below: directory.root, at: now, text)
        } else {
            log.warning(text)
        }
    }

    // MARK: - Folders

    /// Handles a folder that exists and is not the intended one: its files are not examined, and no conclusions are
    /// drawn. Files that settle in it are not the folder's: they are found again when it is back.
    private func setAbsent(_ root: Root, _ missing: String) {
        forgetContent(of: root)
        tracker.forgetFiles(of: root)
        found.drop(root)
        deliveries.drop(root)
        if root.state.lost(.absent(missing), again: now.advanced(by: pace.absent)) {
            log.notice(
                "folder \(root.path.display) is absent: \(missing); checking again every \(words(pace.absent))")
        }
    }

    /// Handles the opened top of a tree.
    private func setPresent(_ root: Root, _ stream: FolderStream) {
        if root.state.found() { log.notice("folder \(root.path.display) is available again") }
        // The mount points are read before the scan below it: mounts during the scan count as changes.
        if root.found(at: stream.realPath, mountPoints: { MountTable().points(below: $0) }) {
            roots.updateMatchers()
            tree.invalidatePaths()
        }
    }

    /// Drops the directories of an absent root.
    private func forgetContent(of root: Root) {
        forget(tree.forgetContent(of: root))
        root.forgetMountPoints()
    }

    private func visitFailed(_ directory: WatchedDirectory, _ path: FilePath, _ error: SystemError) {
        let root = directory.root
        guard directory.isTop else {
            // The top of the tree is handled by its next scan.
            if error.isOfAnotherFolder { root.state.requestCheck(at: now) }
            if error.isMissing || error.isLink {
                forget(tree.remove(directory))
            } else {
                reportProblem(
                    "cannot open a directory (\(error)); its files are not found until this is corrected",
                    of: directory, error)
            }
            return
        }
        forgetContent(of: root)
        let condition: RootState.Condition =
            error.isMissing || error.isOfAnotherFolder
            ? .absent(root.mountCheck.absence(after: error)) : .failed(error.reason)
        if root.state.lost(condition, again: now.advanced(by: pace.absent)) {
            let every = "checking again every \(words(pace.absent))"
            if case .absent(let reason) = condition {
                log.notice("folder \(root.path.display) is absent: \(reason); \(every)")
            } else {
                log.notice("folder \(root.path.display) cannot be watched (\(error)); \(every)")
            }
        }
    }

    // MARK: - Listing

    /// - Returns: The number of names read, at least 1.
    private func list(limit: Int) -> Int {
        guard let scan = scanner.current else { return 1 }
        // No file begins to settle during the listing.
        let hasCandidates = !tracker.isEmpty
        let (count, ended) = scanner.list(
            limit: limit, roots.rules, treeVersion: tree.version, includesNames: tracker.awaitsMarkers
        ) { apply($0, of: scan, hasCandidates) }
        if let ended { endListing(ended.directory, ended.end) }
        return count
    }

    private func endListing(_ directory: WatchedDirectory, _ end: DirectoryScanner.End) {
        if end == .complete {
            for child in directory.children.values where child.lastSeen < scanner.visit {
                polls.markChanged(directory)
                forget(tree.remove(child))
            }
        }
        endVisit(directory)
    }

    private func apply(_ entry: DirectoryScanner.Entry, of scan: DirectoryScan, _ hasCandidates: Bool) {
        switch entry {
        case .name(let name): tracker.noteMarker(FilePath(fromKernel: name), in: scan.directory, at: now)
        case .directory(let name): addDirectory(FilePath(fromKernel: name), scan)
        case .file(let name, let status, let rule): addFile(name, status, rule: rule, scan, hasCandidates)
        case .unreadable(let error):
            log.notice(
                error, below: scan.directory.root, at: now,
                "cannot read the status of a file (\(error)); will retry with the next scan")
        case .broken(let error):
            log.notice(
                error, below: scan.directory.root, at: now,
                "cannot list a directory completely (\(error)); will retry with the next scan")
        }
    }

    private func addDirectory(_ name: FilePath, _ scan: DirectoryScan) {
        let isNew = scan.directory.children[name] == nil
        let child = tree.child(name, of: scan.directory, visit: scan.visit)
        tree.markSeen(child, visit: scan.visit)
        if isNew || scan.reason != .poll { scanner.enqueue(child, scan.reason) }
    }

    /// - Parameter hasCandidates: Whether some file settles, which may be this one.
    private func addFile(
        _ name: UnsafeBufferPointer<UInt8>, _ status: FileStatus, rule: Int, _ scan: DirectoryScan,
        _ hasCandidates: Bool
    ) {
        if hasCandidates {
            let place = WatchedFile(directory: scan.directory, name: FilePath(fromKernel: name))
            if tracker.contains(place) {
                return tracker.note(place, .found, rule: rule, of: roots.rules, status, at: now)
            }
        }
        // If the file is still growing, it is found again, or an event comes.
        if roots.rules[rule].hasLimits,
            roots.rules[rule].settings.limits.objection(to: status, now: clocks.wall()) != nil
        {
            return
        }
        if scan.reason == .first && roots.rules[rule].skipsExisting {
            return addSkipped(FilePath(fromKernel: name), status, roots.rules[rule].settings, scan)
        }
        found.append(name, status, rule: rule, of: scan, at: now) {
            (roots.name(of: rule), fileSystem(FilePath(fromKernel: name), status, scan))
        }
    }

    private func addSkipped(_ name: FilePath, _ status: FileStatus, _ rule: WatchRule, _ scan: DirectoryScan) {
        let relative = scan.relative.appending(name)
        let identity = FileIdentity(
            status, folder: rule.name, relative: relative, on: fileSystem(name, status, scan))
        found.addSkipped(
            SettledFile(
                folder: identity.folder, root: rule.path, relative: relative, status: status, identity: identity,
                settledBy: .quiet), at: WatchedFile(directory: scan.directory, name: name))
    }

    private func fileSystem(_ name: FilePath, _ status: FileStatus, _ scan: DirectoryScan) -> FileSystemIdentity? {
        // Files nearly always have the device of their directory.
        if status.device == scan.device { return scan.fileSystem }
        // If it cannot be determined, it is none of the known ones.
        guard let top = try? scan.directory.root.folder.open() else { return nil }
        return fileSystems.identity(of: top, at: scan.relative.appending(name), device: status.device)
    }

    // MARK: - Results

    /// Queries which of the found files are known.
    func queryFound() {
        let isComplete = !canScan
        if let query = found.beginQuery(isComplete: isComplete) {
            for (rule, count) in query.countsByRule where roots.rules.indices.contains(rule) {
                board.addFound(count, in: roots.name(of: rule))
            }
            handlers.query(query.identities)
        } else if isComplete, found.unansweredCount == 0 {
            scanner.releaseMemory()
        }
    }

    /// Reports the first scans that are over.
    func reportFirstScans() {
        if found.hasSkipped { return }
        var folders: [String] = []
        for root in roots.watched where root.state.endFirstScan() {
            folders += root.rules.map { roots.name(of: $0) }
        }
        deliveries.addScanned(folders)
    }
}
