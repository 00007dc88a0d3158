internal import Core
internal import Linux

// Handling of events. An event proves nothing: it only says where to look.

extension WatchLoop {
    /// Reads of the queue in one turn.
    private static let maxReadsPerTurn = 16

    /// Reads queued events, up to a limit, so that a flood of events does not delay other work.
    ///
    /// - Returns: Whether none are left.
    @discardableResult
    func readEvents() -> Bool {
        guard let inotify = tree.inotify else { return true }
        for _ in 0..<Self.maxReadsPerTurn {
            do {
                guard try inotify.read({ apply($0) }) else { return true }
            } catch {
                // Not specific to one folder: scans continue as if there were no events.
                log.notice(
                    "cannot read inotify events (\(error)); scanning folders periodically instead")
                for directory in tree.endEvents() { polls.add(directory, at: now) }
                scanAll()
                return true
            }
            board.markChanged()
        }
        return false
    }

    private func apply(_ event: Inotify.Event) {
        if event.kind.contains(.overflow) {
            if tree.countOverflow(at: now) {
                log.notice(
                    "the kernel lost events (more than fs.inotify.max_queued_events at once); "
                        + "scanning every folder again")
            }
            scanAll()
            return
        }
        guard let directories = tree.directories(of: event.watch) else { return }
        if event.kind.contains(.ignored) {
            tree.endWatch(event.watch)
            // Gone, unmounted or replaced: the next scan decides.
            for directory in directories {
                if directory.isTop {
                    directory.root.state.requestCheck(at: now)
                } else {
                    scanner.enqueue(directory, .event)
                }
            }
            return
        }
        for directory in directories { apply(event, in: directory) }
    }

    private func apply(_ event: Inotify.Event, in directory: WatchedDirectory) {
        if event.name.isEmpty {
            if directory.isTop && !event.kind.isDisjoint(with: [.moveSelf, .deleteSelf, .unmount]) {
                directory.root.state.requestCheck(at: now)
            }
        } else if event.name == IgnoreRules.fileName {
            // Read when the directory is visited, which also rescans everything below it.
            scanner.enqueue(directory, .event)
        } else if event.kind.contains(.isFolder) {
            applyToDirectory(event, in: directory)
        } else if !event.kind.isDisjoint(with: [.delete, .movedFrom]) {
            if directory.isTop { checkRequirements(of: directory.root, without: event.name) }
            tracker.forget(WatchedFile(directory: directory, name: event.name))
        } else {
            let isClosed = !event.kind.isDisjoint(with: [.closeWrite, .movedTo])
            noteFile(event.name, in: directory, isClosed ? .closed : .event)
        }
    }

    /// Checks a folder again if a file that it must contain is gone.
    private func checkRequirements(of root: Root, without name: FilePath) {
        if root.requirements.contains(where: { $0.file?.components.first == name }) {
            root.state.requestCheck(at: now)
        }
    }

    private func applyToDirectory(_ event: Inotify.Event, in parent: WatchedDirectory) {
        let root = parent.root
        if parent.isTop && !event.kind.isDisjoint(with: [.delete, .movedFrom]) {
            checkRequirements(of: root, without: event.name)
        }
        if event.kind.contains(.delete) {
            if let child = parent.children[event.name] { forget(tree.remove(child)) }
        } else if event.kind.contains(.movedFrom) {
            tree.detach(event.name, from: parent, cookie: event.cookie, at: now)
        } else if event.kind.contains(.movedTo) || event.kind.contains(.create) {
            let moved = event.kind.contains(.movedTo) ? tree.removeDetached(event.cookie, in: root) : nil
            guard root.isRecursive, !TemporaryNames.contains(event.name),
                !parent.ignored.ignores(event.name, isFolder: true)
            else {
                if let moved { forget(tree.remove(moved)) }
                return
            }
            // The earlier directory under this name is gone: a rename replaces it.
            if let moved { forget(tree.attach(moved, as: event.name, to: parent, visit: scanner.visit)) }
            scanner.enqueue(tree.child(event.name, of: parent, visit: scanner.visit), .event)
        }
    }

    /// Handles a file named by an event or a request.
    func noteFile(_ name: FilePath, in directory: WatchedDirectory, _ evidence: Settling<WatchedFile>.Evidence) {
        guard let relative = directory.relative else { return }
        noteMarker(name, in: directory)
        guard directory.hasRule(for: name, at: relative, among: roots.rules) else { return }
        let place = WatchedFile(directory: directory, name: name)
        found.forgetSkipped(place)
        if tracker.isFull && !tracker.contains(place) {
            // No capacity: the directory is scanned when there is.
            scanner.enqueue(directory, .reconcile)
            return
        }
        // Gone again, or unreachable, which a scan will report.
        guard let status = try? directory.root.folder.open().status(at: relative.appending(name)), status.isRegular
        else { return tracker.forget(place) }
        guard let rule = directory.rule(for: name, size: status.size, at: relative, among: roots.rules) else {
            return tracker.forget(place)
        }
        guard tracker.accepts(place, rule: roots.rules[rule], at: relative, at: now) else { return }
        tracker.note(place, evidence, rule: rule, of: roots.rules, status, at: clocks.monotonic())
        polls.accelerate(directory, at: now)
    }

    /// Handles a file named by an event, which may be a marker. If it is the marker of a file that was not kept as a
    /// candidate, that file is examined.
    private func noteMarker(_ name: FilePath, in directory: WatchedDirectory) {
        tracker.noteMarker(name, in: directory, at: now)
        guard directory.hasUnmarkedFiles else { return }
        for index in directory.root.rules {
            guard let marker = roots.rules[index].settings.marker,
                name.bytes.withUnsafeBufferPointer(marker.isMarker)
            else { continue }
            if let file = marker.file(of: name) {
                if !tracker.contains(WatchedFile(directory: directory, name: file)) {
                    noteFile(file, in: directory, .event)
                }
            } else {
                scanner.enqueue(directory, .reconcile)
            }
        }
    }

    // MARK: - Mounts

    /// Scans the folders that another directory covers now, or no longer, and the directories below them where that
    /// happened: no event of a directory reports it. The others are left alone: on a machine with containers, mounts
    /// change all the time.
    func checkMounts() {
        fileSystems.forget()
        board.countMountChange()
        let table = MountTable()
        for root in roots.watched {
            // A folder that cannot be examined is handled by the scan.
            let status = try? root.folder.open().status(at: "")
            if status?.device != root.top.device || status?.inode != root.top.inode
                || !root.requirements.allSatisfy(\.isFree)
            {
                root.state.requestCheck(at: clocks.monotonic())
            }
            let points = table.points(below: root.real)
            let changed = root.replaceMountPoints(points)
            guard root.isRecursive else { continue }
            for point in changed { scanner.enqueue(tree.deepestKnown(point, in: root), .event) }
            for directory in tree.covered(by: points, in: root) { scanner.enqueue(directory, .event) }
        }
    }
}

extension FolderRequirement {
    /// Whether nothing is required except possibly by fstab(5).
    fileprivate var isFree: Bool { file == nil && mount == nil }
}
