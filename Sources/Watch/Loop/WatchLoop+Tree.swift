internal import Core
internal import Linux

// The tree of directories and their watches.

extension WatchLoop {
    func child(_ name: FilePath, of parent: Directory) -> Directory {
        if let child = parent.children[name] { return child }
        let child = Directory(root: parent.root, parent: parent, name: name)
        child.seen = generation
        parent.children[name] = child
        return child
    }

    /// Removes a directory and everything below it from the tree.
    func remove(_ directory: Directory) {
        if let parent = directory.parent, parent.children[directory.name] === directory {
            parent.children[directory.name] = nil
        }
        dissolve(directory)
        directory.isGone = true
        directory.parent = nil
        moves += 1
    }

    /// Forgets everything below a directory, and its watch.
    func dissolve(_ directory: Directory) {
        unwatch(directory)
        endPolling(directory)
        troubles[ObjectIdentifier(directory)] = nil
        for child in directory.children.values {
            dissolve(child)
            child.isGone = true
            child.parent = nil
        }
        directory.children = [:]
    }

    private func unwatch(_ directory: Directory) {
        guard let watch = directory.watch else { return }
        directory.watch = nil
        watches[watch]?.removeAll { $0 === directory }
        guard watches[watch]?.isEmpty == true else { return }
        watches[watch] = nil
        inotify?.unwatch(watch)
        inotify?.ended()
    }

    /// Records a problem of a directory that keeps files from being taken, or from being noticed at once. It is logged
    /// when it is new, and shown for as long as visits find it.
    ///
    /// - Parameter error: As for ``notice(_:below:_:)``.
    func complain(of directory: Directory, _ text: String, _ error: SystemError? = nil) {
        let old = troubles.updateValue(
            Trouble(directory: directory, text: text, visit: generation), forKey: ObjectIdentifier(directory))
        if old?.text == text { return }
        if let error { notice(error, below: directory.root, text) } else { log(Remark(.warning, text)) }
        hasNews = true
    }

    /// Removes the problem after a visit without one.
    func forgetTrouble(of directory: Directory) {
        let key = ObjectIdentifier(directory)
        guard let trouble = troubles[key], trouble.visit != generation else { return }
        troubles[key] = nil
        hasNews = true
    }

    /// Sets a watch on a directory that was just opened, unless its present watch is still on that very directory. Also
    /// makes it polled where a watch does not report everything.
    ///
    /// - Returns: Whether it has a new watch.
    func watch(_ directory: Directory, _ stream: FolderStream, _ status: FileStatus, _ path: FilePath) -> Bool {
        let isSame = directory.device == status.device && directory.inode == status.inode
        if directory.watch != nil && isSame { return false }
        if !isSame || directory.isTop {
            // One query for a whole tree: directories nearly always share a file system.
            let parent = directory.parent.flatMap { $0.device == status.device ? $0 : nil }
            directory.lacksChangeEvents = parent?.lacksChangeEvents ?? FileSystemKind.lacksChangeEvents(stream)
        }
        unwatch(directory)
        (directory.device, directory.inode) = (status.device, status.inode)
        do {
            guard !directory.root.isPolled, let inotify else {
                poll(directory)
                return false
            }
            let watch = try inotify.watch(stream, named: path)
            directory.watch = watch
            if watches[watch] == nil { inotify.began() }
            watches[watch, default: []].append(directory)
            if directory.lacksChangeEvents { poll(directory) } else { endPolling(directory) }
            if polled.isEmpty { hasSaidLimit = false }
            return true
        } catch {
            poll(directory)
            if error.isWatchLimit {
                if hasSaidLimit { return false }
                hasSaidLimit = true
                notice(
                    "no watch for \(path.display): the limit on inotify watches is reached "
                        + "(fs.inotify.max_user_watches is \(Inotify.watchLimit)); such directories are looked through every "
                        + "\(words(pace.poll)) to \(words(pace.pollMost)) instead. Raise it with "
                        + "`sysctl fs.inotify.max_user_watches=524288`")
            } else {
                complain(
                    of: directory, "no watch for a directory (\(error)); it is looked through from time to time instead"
                )
            }
            return false
        }
    }

    /// Requests a visit. A directory that waits for one already keeps the stronger reason.
    func enqueue(_ directory: Directory, _ origin: VisitReason) {
        if directory.isGone { return }
        if let waiting = directory.visit {
            if origin > waiting { directory.visit = origin }
            // One more entry, in the faster queue; the first of the two makes the visit.
            if origin == .event && waiting != .event { urgent.append(directory) }
            return
        }
        directory.visit = origin
        directory.root.visits += 1
        if origin == .event { urgent.append(directory) } else { ordinary.append(directory) }
    }

    /// The next directory to visit, with the reason.
    func nextVisit() -> (Directory, VisitReason)? {
        while let directory = urgent.popFirst() ?? ordinary.popFirst() {
            guard let origin = directory.visit else { continue }
            directory.visit = nil
            if !directory.isGone { return (directory, origin) }
            endVisit(directory)
        }
        return nil
    }

    func endVisit(_ directory: Directory) {
        let root = directory.root
        root.visits -= 1
        if root.visits == 0, !root.hasFailed { root.hasLostDisk = false }
        slacken(directory)
        hasNews = true
    }
}
