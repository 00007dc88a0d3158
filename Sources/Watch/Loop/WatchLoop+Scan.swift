internal import Core
internal import Linux

extension WatchLoop {
    /// Directory entries in one turn.
    private static let slice = 2_000
    /// Identities in one query: enough for the store to find the files of a directory side by side.
    private static let question = 2_048

    /// No rule takes the name, but the listing did not tell its type: it may be a directory.
    private static let nobody = -1
    /// Some rule takes the name; the rule is known when the size is.
    private static let somebody = 0

    /// Whether there is something to scan, and capacity for the files found.
    var canScan: Bool {
        (cursor != nil || !urgent.isEmpty || !ordinary.isEmpty) && room > 0
    }

    /// The number of names that may still be listed before the found files are passed on.
    private var room: Int {
        min(
            Self.question - found.count, 4 * Self.question - skipped.count,
            pace.candidates - pace.candidates / 5 - settling.count - found.count - (asked?.count ?? 0))
    }

    /// Scans a slice.
    func scan() {
        var left = Self.slice
        while left > 0 && room > 0 {
            if cursor == nil {
                // Events from before the listing of a directory are read first: an event that says that the directory
                // is new here makes its files new too.
                if !skipped.isEmpty || roots.contains(where: \.isFirst) { readNews() }
                guard let (directory, origin) = nextVisit() else { return }
                open(directory, origin)
                left -= 10
                continue
            }
            left -= step(atMost: min(left, room))
        }
    }

    private func open(_ directory: Directory, _ origin: VisitReason) {
        let root = directory.root
        // Being renamed; it will be visited under its new name.
        guard let relative = directory.relative else { return endVisit(directory) }
        let path = root.path.appending(relative)
        generation += 1
        do {
            let top = try root.folder.open()
            let stream = try top.stream(relative)
            let status = try stream.status()
            if directory.isTop {
                if let missing = try root.gate.missing(in: top) {
                    leaveAbsent(root, missing)
                    return endVisit(directory)
                }
                arrive(root, stream)
            }
            // Changes between the opening and the watch are reported by neither.
            if watch(directory, stream, status, path) { stream.rewind() }
            if directory.modified != status.modified { directory.isLively = true }
            directory.modified = status.modified
            var origin = origin
            if readIgnore(directory, stream, path) { origin = max(origin, .reconcile) }
            forgetTrouble(of: directory)
            cursor = DirectoryScan(
                directory, origin, stream, visit: generation, relative: relative, rules: rules, moves: moves,
                device: status.device, fileSystem: fileSystems.identity(of: stream, device: status.device))
        } catch {
            miss(directory, path, error)
            endVisit(directory)
        }
    }

    /// - Returns: Whether its content differs from before, so that everything below must be scanned again.
    private func readIgnore(_ directory: Directory, _ stream: FolderStream, _ path: FilePath) -> Bool {
        let (ignore, trouble) = Ignore.read(in: stream, named: path)
        if let trouble { complain(of: directory, trouble) }
        defer { directory.ignore = ignore }
        return ignore != directory.ignore
    }

    /// Handles a folder that exists and is not the intended one: its files are not examined, and no conclusions are
    /// drawn.
    private func leaveAbsent(_ root: Root, _ missing: String) {
        dissolve(root.top)
        forgetFiles(of: root)
        (root.top.device, root.top.inode, root.points) = (0, 0, nil)
        root.nextCheck = min(root.nextCheck, now.advanced(by: pace.absent))
        if root.condition != .absent(missing) {
            notice("folder \(root.path.display) is absent: \(missing); looking again every \(words(pace.absent))")
        }
        root.condition = .absent(missing)
    }

    /// Files that settle in an absent folder are not the folder's: they are found again when it is back.
    private func forgetFiles(of root: Root) {
        for place in settling.all.keys where place.directory.root === root { settling.forget(place) }
        found.leaveOut { $0.root === root }
        asked?.leaveOut { $0.root === root }
        ready.removeAll { $0.place.directory.root === root }
        skipped = skipped.filter { $0.key.directory.root !== root }
    }

    /// Handles the opened top of a tree.
    private func arrive(_ root: Root, _ stream: FolderStream) {
        switch root.condition {
        case .absent, .failed: notice("folder \(root.path.display) is there again")
        case .unknown, .present: break
        }
        root.condition = .present
        if let real = stream.realPath, real != root.real {
            root.real = real
            reclaim()
            root.points = nil
        }
        // Before the scan below it: mounts during the scan count as changes.
        if root.points == nil { root.points = MountTable().points(below: root.real) }
    }

    private func miss(_ directory: Directory, _ path: FilePath, _ error: SystemError) {
        guard directory.isTop else {
            // The top of the tree is handled by the next look at it.
            if error.isOfAnotherFolder { directory.root.nextCheck = now }
            if error.isMissing || error.isLink {
                remove(directory)
            } else {
                complain(
                    of: directory,
                    "cannot look into a directory (\(error)); its files are not seen until that is mended",
                    error)
            }
            return
        }
        let root = directory.root
        dissolve(directory)
        (root.top.device, root.top.inode, root.points) = (0, 0, nil)
        root.nextCheck = min(root.nextCheck, now.advanced(by: pace.absent))
        let condition: Root.Condition =
            error.isMissing || error.isOfAnotherFolder
            ? .absent(root.gate.absence(after: error)) : .failed(error.reason)
        if root.condition != condition {
            let every = "looking again every \(words(pace.absent))"
            if case .absent(let reason) = condition {
                notice("folder \(root.path.display) is absent: \(reason); \(every)")
            } else {
                notice("folder \(root.path.display) cannot be watched (\(error)); \(every)")
            }
        }
        root.condition = condition
    }

    /// - Returns: The number of names read, at least 1.
    private func step(atMost most: Int) -> Int {
        guard let cursor, cursor.refresh(rules, after: moves) else {
            close(isWhole: false)
            return 1
        }
        var read = 0
        var isOver = false
        var isWhole = true
        do {
            let stream = cursor.stream
            while read < most && !isOver {
                read += 1
                isOver = try !stream.next { name, kind in list(name, kind, cursor) }
            }
        } catch {
            notice(
                error, below: cursor.directory.root,
                "cannot list a directory to its end (\(error)); it is tried again with the next scan")
            (isOver, isWhole) = (true, false)
        }
        lookAtListed(cursor)
        if isOver { close(isWhole: isWhole) }
        return read
    }

    /// - Parameter isWhole: Whether everything was listed, so that subdirectories that were not met do not exist any
    ///   more.
    private func close(isWhole: Bool) {
        guard let cursor else { return }
        self.cursor = nil
        if isWhole {
            for child in cursor.directory.children.values where child.seen < generation {
                cursor.directory.isLively = true
                remove(child)
            }
        }
        endVisit(cursor.directory)
    }

    private func list(_ name: UnsafeBufferPointer<UInt8>, _ kind: FolderStream.Kind, _ cursor: DirectoryScan) {
        switch kind {
        case .other: return
        case .folder: takeFolder(name, cursor)
        case .file, .unknown:
            if !awaited.isEmpty { noteMarker(FilePath(fromKernel: name), in: cursor.directory) }
            let isTaken = cursor.contenders.hasWinner(for: name) && !cursor.ignored.ignores(name)
            if !isTaken, case .file = kind { return }
            listed.add(name, tag: isTaken ? Self.somebody : Self.nobody, in: cursor.stream)
        }
    }

    private func lookAtListed(_ cursor: DirectoryScan) {
        if listed.isEmpty { return }
        // No file begins to settle during this loop.
        let settles = settling.count > 0
        listed.read(in: cursor.stream) { name, tag, status in
            switch status {
            case .failure(let error):
                notice(
                    error, below: cursor.directory.root,
                    "cannot look at a file (\(error)); it is tried again with the next scan")
            case .success(nil): return
            case .success(let status?):
                if status.isDirectory { return takeFolder(name, cursor) }
                guard status.isRegular, tag != Self.nobody,
                    let winner = cursor.contenders.winner(for: name, size: status.size)
                else { return }
                takeFile(name, status, rule: winner, cursor, settles)
            }
        }
    }

    private func takeFolder(_ name: UnsafeBufferPointer<UInt8>, _ cursor: DirectoryScan) {
        guard cursor.directory.root.isRecursive, !TemporaryNames.contains(name),
            !cursor.ignored.ignores(name, isFolder: true)
        else { return }
        let name = FilePath(fromKernel: name)
        let isNew = cursor.directory.children[name] == nil
        let child = child(name, of: cursor.directory)
        child.seen = generation
        if isNew || cursor.origin != .poll { enqueue(child, cursor.origin) }
    }

    /// - Parameter settles: Whether some file settles, which may be this one.
    private func takeFile(
        _ name: UnsafeBufferPointer<UInt8>, _ status: FileStatus, rule: Int, _ cursor: DirectoryScan, _ settles: Bool
    ) {
        if settles {
            let place = Place(directory: cursor.directory, name: FilePath(fromKernel: name))
            if settling.contains(place) {
                settling.note(
                    place, .found, group: rule, status: status, quietFor: rules[rule].settings.quietFor, at: now)
                return
            }
        }
        // If the file is still growing, it is found again, or an event comes.
        if rules[rule].hasLimits, rules[rule].settings.limits.objection(to: status, now: clocks.wall()) != nil {
            return
        }
        if cursor.origin == .first && rules[rule].skipsExisting {
            return skip(name, status, rules[rule].settings, cursor)
        }
        found.append(name, status, rule: rule, of: cursor, at: now) {
            (rules[rule].settings.name, fileSystem(FilePath(fromKernel: name), status, cursor))
        }
    }

    private func skip(
        _ name: UnsafeBufferPointer<UInt8>, _ status: FileStatus, _ rule: WatchRule, _ cursor: DirectoryScan
    ) {
        let name = FilePath(fromKernel: name)
        let relative = cursor.relative.appending(name)
        let identity = StoredIdentity(
            status, folder: rule.name, relative: relative, on: fileSystem(name, status, cursor))
        skipped[Place(directory: cursor.directory, name: name)] = SettledFile(
            folder: identity.folder, root: rule.path, relative: relative, status: status, identity: identity,
            settledBy: .quiet)
    }

    private func fileSystem(_ name: FilePath, _ status: FileStatus, _ cursor: DirectoryScan) -> FileSystemIdentity? {
        // Files nearly always have the device of their directory.
        if status.device == cursor.device { return cursor.fileSystem }
        let relative = cursor.relative.appending(name)
        // If it cannot be determined, it is none of the known ones.
        guard let top = try? cursor.directory.root.folder.open() else { return nil }
        return fileSystems.identity(of: top, at: relative, device: status.device)
    }

    // MARK: - Found files

    /// Passes on the old files: those in the first scan of a folder without an event since they were listed.
    ///
    /// Must be called when all events queued by the kernel were read.
    func passOnSkipped() {
        guard !skipped.isEmpty else { return }
        let files = Array(skipped.values)
        skipped = [:]
        for start in stride(from: 0, to: files.count, by: pace.batch) {
            outbox.append(.skipped(Array(files[start..<min(start + pace.batch, files.count)])))
        }
    }

    /// Asks which of the found files are known, when there are enough for a query or no more are coming.
    func askAboutFound() {
        guard asked == nil else { return }
        if found.isEmpty {
            if !canScan {
                spare = ScanBatch()
                listed = FolderStatusReader()
            }
            return
        }
        guard found.count >= Self.question || !canScan else { return }
        asked = found
        for (rule, count) in found.countsByRule where rules.indices.contains(rule) {
            cameAcross[rules[rule].settings.name, default: Count()].files += count
        }
        ask(found.identities)
        found = spare
        spare = ScanBatch()
    }

    func takeAnswer(_ known: [Bool]) {
        guard var asked else { return }
        self.asked = nil
        // Nearly all are known, and no values are made for those.
        for index in asked.indices where index < known.count && !known[index] {
            guard let file = asked[index] else { continue }
            // An event may have come first, and has newer information.
            guard !file.directory.isGone, !settling.contains(file.place),
                isWorthWaiting(file.place, file.rule, file.directory.relative ?? file.identity.relative.parent)
            else { continue }
            cameAcross[rules[file.rule].settings.name, default: Count()].new += 1
            settling.note(
                file.place, file.evidence, group: file.rule, status: file.status,
                quietFor: rules[file.rule].settings.quietFor, at: file.at)
            quicken(file.directory)
        }
        asked.removeAll()
        spare = asked
    }

    /// Reports that the first scan of a folder is over. Folders reported together are recorded together: otherwise,
    /// with a thousand folders, files would wait for a thousand syncs.
    func noteScanned() {
        guard skipped.isEmpty else { return }
        var folders: [String] = []
        for root in roots where root.isFirst && root.condition == .present && root.visits == 0 {
            root.isFirst = false
            folders += root.rules.map { rules[$0].settings.name }
        }
        if folders.isEmpty { return }
        if case .scanned(let waiting) = outbox.last {
            outbox.removeLast()
            folders = waiting + folders
        }
        outbox.append(.scanned(folders: folders))
    }
}
