internal import Core
internal import Linux

// Handling of events. An event proves nothing: it only says where to look.

extension WatchLoop {
    /// Time in which a directory that left its name must appear under another. Both halves of a rename are queued
    /// together, but a read may end between them.
    private static let renameTime = Duration.milliseconds(50)

    /// Reads queued events, up to a limit, so that a flood of events does not delay other work.
    ///
    /// - Returns: Whether none are left.
    @discardableResult
    func readNews() -> Bool {
        guard let inotify else { return true }
        for _ in 0..<16 {
            do {
                guard try inotify.read({ take($0) }) else { return true }
            } catch {
                // Not specific to one folder: scans continue as if there were no events.
                notice("reading events failed (\(error)); folders are looked through from time to time instead")
                loseEvents()
                return true
            }
            hasNews = true
        }
        return false
    }

    private func loseEvents() {
        inotify = nil
        for directories in watches.values {
            for directory in directories {
                directory.watch = nil
                poll(directory)
            }
        }
        watches = [:]
        scanAll()
    }

    private func take(_ event: Inotify.Event) {
        if event.kind.contains(.overflow) {
            overflows += 1
            let isNews = lastOverflow.map { now.since($0) > Self.burst } ?? true
            lastOverflow = now
            if isNews {
                notice(
                    "the kernel lost events (more than fs.inotify.max_queued_events at once); "
                        + "every folder is scanned again")
            }
            scanAll()
            return
        }
        // A removed watch may still have events in the queue.
        guard let directories = watches[event.watch] else { return }
        if event.kind.contains(.ignored) {
            watches[event.watch] = nil
            inotify?.ended()
            for directory in directories {
                directory.watch = nil
                // Gone, unmounted or replaced: the next scan decides.
                if directory.isTop { directory.root.nextCheck = now } else { enqueue(directory, .event) }
            }
            return
        }
        for directory in directories { take(event, in: directory) }
    }

    private func take(_ event: Inotify.Event, in directory: Directory) {
        if event.name.isEmpty {
            if directory.isTop && !event.kind.isDisjoint(with: [.moveSelf, .deleteSelf, .unmount]) {
                directory.root.nextCheck = now
            }
        } else if event.name == IgnoreRules.fileName {
            // Read when the directory is visited, which also rescans everything below it.
            enqueue(directory, .event)
        } else if event.kind.contains(.isFolder) {
            takeFolder(event, in: directory)
        } else if !event.kind.isDisjoint(with: [.delete, .movedFrom]) {
            if directory.isTop { lookAfterGate(directory.root, event.name) }
            settling.forget(Place(directory: directory, name: event.name))
        } else {
            let isClosed = !event.kind.isDisjoint(with: [.closeWrite, .movedTo])
            hear(of: event.name, in: directory, isClosed ? .closed : .heard)
        }
    }

    /// Checks a folder again if a file that it must contain is gone.
    private func lookAfterGate(_ root: Root, _ name: FilePath) {
        if root.requirements.contains(where: { $0.file?.components.first == name }) { root.nextCheck = now }
    }

    private func takeFolder(_ event: Inotify.Event, in directory: Directory) {
        let root = directory.root
        if directory.isTop && !event.kind.isDisjoint(with: [.delete, .movedFrom]) { lookAfterGate(root, event.name) }
        if event.kind.contains(.delete) {
            if let child = directory.children[event.name] { remove(child) }
        } else if event.kind.contains(.movedFrom) {
            guard let child = directory.children.removeValue(forKey: event.name) else { return }
            child.parent = nil
            moves += 1
            moving.append((event.cookie, child, now.advanced(by: Self.renameTime)))
        } else if event.kind.contains(.movedTo) || event.kind.contains(.create) {
            let moved = event.kind.contains(.movedTo) ? takeMoving(event.cookie, root) : nil
            guard root.isRecursive, !TemporaryNames.contains(event.name),
                !directory.ignored.ignores(event.name, isFolder: true)
            else {
                if let moved { remove(moved) }
                return
            }
            // The earlier directory under this name is gone: a rename replaces it.
            if let moved {
                if let old = directory.children[event.name] { remove(old) }
                moved.name = event.name
                moved.parent = directory
                moved.seen = generation
                directory.children[event.name] = moved
                moves += 1
            }
            enqueue(child(event.name, of: directory), .event)
        }
    }

    private func takeMoving(_ cookie: UInt32, _ root: Root) -> Directory? {
        guard let index = moving.firstIndex(where: { $0.cookie == cookie && $0.directory.root === root }) else {
            return nil
        }
        return moving.remove(at: index).directory
    }

    /// Removes directories that were moved away and did not come back; their watches would go on reporting.
    func expireMoves() {
        while let first = moving.first, first.until <= now {
            moving.removeFirst()
            remove(first.directory)
        }
    }

    /// Handles a file named by an event or a request.
    func hear(of name: FilePath, in directory: Directory, _ evidence: Settling<Place>.Evidence) {
        guard let relative = directory.relative else { return }
        hearMarker(name, in: directory)
        guard isTaken(name, in: directory, at: relative) else { return }
        let place = Place(directory: directory, name: name)
        // The file has changed since the scan found it, or came after it: it is no old file.
        if !skipped.isEmpty { skipped[place] = nil }
        if settling.count >= pace.candidates && !settling.contains(place) {
            // No capacity: the directory is scanned when there is.
            enqueue(directory, .reconcile)
            return
        }
        // Gone again, or unreachable, which a scan will report.
        guard let status = try? directory.root.folder.open().status(at: relative.appending(name)), status.isRegular
        else {
            return settling.forget(place)
        }
        guard let rule = taker(of: name, size: status.size, in: directory, at: relative) else {
            return settling.forget(place)
        }
        guard isWorthWaiting(place, rule, relative) else { return }
        settling.note(
            place, evidence, group: rule, status: status, quietFor: rules[rule].settings.quietFor,
            at: clocks.monotonic())
        quicken(directory)
    }

    /// The rule that takes a file of a directory; `nil` if none does, or an ignore file excludes it.
    func taker(of name: FilePath, size: Int64?, in directory: Directory, at relative: FilePath) -> Int? {
        name.bytes.withUnsafeBufferPointer { bytes in
            let root = directory.root
            guard
                let winner = root.claimants.winner(for: bytes, size: size, in: relative, of: root, rules: rules),
                !directory.ignored.ignores(bytes)
            else { return nil }
            return winner
        }
    }

    /// Whether any rule takes a name of a directory: the rule may depend on the size.
    private func isTaken(_ name: FilePath, in directory: Directory, at relative: FilePath) -> Bool {
        name.bytes.withUnsafeBufferPointer { bytes in
            let root = directory.root
            return root.claimants.contenders(in: relative, of: root, rules: rules).hasWinner(for: bytes)
                && !directory.ignored.ignores(bytes)
        }
    }

    /// Handles a request for a file that turned out to be changing still.
    func reconsider(_ folder: String, _ relative: FilePath) {
        guard let rule = rules.firstIndex(where: { $0.settings.name == folder }),
            let root = roots.first(where: { $0.rules.contains(rule) })
        else { return }
        var directory = root.top
        for name in relative.parent.components {
            guard let child = directory.children[name] else {
                // Not seen yet, or moved: a scan finds it in its current place.
                root.nextCheck = now
                return
            }
            directory = child
        }
        hear(of: relative.name, in: directory, .heard)
    }
}
