internal import Core
internal import Linux

/// A directory of a watched tree. Paths are computed from the chain of parents, so a rename is one assignment.
///
/// Used by the watching thread only, like everything it refers to. ``WatchTree`` writes its place in the tree and its
/// watch; what its scans have met is recorded by its own functions.
final class WatchedDirectory {
    unowned let root: Root
    /// `nil` at the top, and for directories that left the tree.
    fileprivate(set) var parent: WatchedDirectory?
    fileprivate(set) var name: FilePath
    fileprivate(set) var children: [FilePath: WatchedDirectory] = [:]
    /// The watch, and the directory that it was set on.
    fileprivate(set) var watch: Int32?
    fileprivate(set) var device: UInt64 = 0
    fileprivate(set) var inode: UInt64 = 0
    /// The last visit of the parent that met it.
    fileprivate(set) var lastSeen = 0
    /// Whether it left the tree permanently.
    fileprivate(set) var isGone = false
    /// Whether its file system may not report changes.
    fileprivate(set) var lacksChangeEvents = false
    /// Whether something new was seen in it since its last poll.
    private var hasChanged = false
    /// Whether files in it without their markers were not kept as candidates.
    private(set) var hasUnmarkedFiles = false
    /// The rules of the ignore file in it, as of the last scan.
    private(set) var ignore = Ignore.nothing
    /// Its own modification time at the last scan.
    private var modified: Int64?

    init(root: Root, parent: WatchedDirectory?, name: FilePath) {
        self.root = root
        self.parent = parent
        self.name = name
    }

    /// Something new was seen in it.
    func noteChange() { hasChanged = true }

    /// - Returns: Whether something new was seen in it since this was asked last.
    func takeChange() -> Bool {
        defer { hasChanged = false }
        return hasChanged
    }

    /// A scan has opened it, with this modification time of its own. Another one than before is a change.
    func scanned(modified: Int64) {
        if self.modified != modified { noteChange() }
        self.modified = modified
    }

    /// A scan has read its ignore file.
    ///
    /// - Returns: Whether the rules differ from those before.
    func replaceIgnore(_ ignore: Ignore) -> Bool {
        defer { self.ignore = ignore }
        return self.ignore != ignore
    }

    /// A file without its marker was not kept as a candidate.
    func noteUnmarkedFile() { hasUnmarkedFiles = true }

    var isTop: Bool { root.top === self }

    /// The path below the root, empty for the root; `nil` while it is between two names, or gone.
    var relative: FilePath? {
        var names: [FilePath] = []
        var at = self
        while let parent = at.parent {
            names.append(at.name)
            at = parent
        }
        guard at.isTop else { return nil }
        return FilePath(fromKernel: Array(names.reversed().map(\.bytes).joined(separator: [UInt8(ascii: "/")])))
    }

    /// The ignore files that apply to its names.
    var ignored: IgnoreChain {
        var chain = IgnoreChain()
        var at: WatchedDirectory? = self
        var names: [FilePath] = []
        while let directory = at {
            // Hardly any directory has such a file, and a deep tree has long paths.
            if directory.ignore != .nothing {
                chain.add(directory.ignore, below: names.reversed().reduce(FilePath("")) { $0.appending($1) })
            }
            names.append(directory.name)
            at = directory.parent
        }
        return chain
    }
}

/// A file in a directory. It follows the directory when that is renamed.
struct WatchedFile: Hashable {
    let directory: WatchedDirectory
    let name: FilePath

    static func == (a: WatchedFile, b: WatchedFile) -> Bool { a.directory === b.directory && a.name == b.name }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(directory))
        hasher.combine(name)
    }
}

/// The directories below the roots of one watching thread, and their inotify watches.
///
/// It changes nothing but the tree: functions that remove directories return them, so that the caller removes them from
/// the other components too.
struct WatchTree {
    /// The result of a request for a watch.
    enum WatchResult {
        /// The present watch is still on that very directory.
        case unchanged
        case added
        /// Its root is polled without events, or the kernel gave no inotify instance.
        case unavailable
        /// - Parameter isFirst: Whether the limit was not reported before.
        case limitReached(isFirst: Bool)
        case failed(SystemError)
    }

    /// A directory that left one name and may appear under another.
    private struct Rename {
        let cookie: UInt32
        let directory: WatchedDirectory
        let until: MonotonicTime
    }

    /// Time in which a directory that left its name must appear under another. Both halves of a rename are queued
    /// together, but a read may end between them.
    private static let renameTime = Duration.milliseconds(50)
    /// Losses of events within this time belong to the same burst, and are reported once.
    private static let burst: Duration = .seconds(10)

    /// `nil` when the kernel gives no instance: everything is then polled.
    private(set) var inotify: Inotify?
    /// The directories of a watch. There are several where trees overlap: the kernel has one watch for a directory.
    private var watches: [Int32: [WatchedDirectory]] = [:]
    private var renames: [Rename] = []
    /// Incremented with every directory that moves, and when rules change: paths and matches computed before are then
    /// no longer valid.
    private(set) var version = 0
    /// The number of times that the kernel lost events.
    private(set) var overflows = 0
    private var lastOverflow: MonotonicTime?
    private var hasReportedLimit = false

    init(inotify: Inotify?) { self.inotify = inotify }

    // MARK: - Directories

    /// Invalidates paths and matches that were computed before.
    mutating func invalidatePaths() { version += 1 }

    /// The child of this name, which is added if it is missing.
    ///
    /// - Parameter visit: The number of the current visit.
    func child(_ name: FilePath, of parent: WatchedDirectory, visit: Int) -> WatchedDirectory {
        if let child = parent.children[name] { return child }
        let child = WatchedDirectory(root: parent.root, parent: parent, name: name)
        child.lastSeen = visit
        parent.children[name] = child
        return child
    }

    /// Records that a visit of the parent met the directory.
    func markSeen(_ directory: WatchedDirectory, visit: Int) { directory.lastSeen = visit }

    /// The directory of a path below a root, as far down as the tree is known.
    func deepestKnown(_ relative: FilePath, in root: Root) -> WatchedDirectory {
        var at = root.top
        for name in relative.components {
            guard let child = at.children[name] else { return at }
            at = child
        }
        return at
    }

    /// The directory of a path below a root; `nil` when it was not seen yet, or has moved.
    func directory(_ relative: FilePath, in root: Root) -> WatchedDirectory? {
        var at = root.top
        for name in relative.components {
            guard let child = at.children[name] else { return nil }
            at = child
        }
        return at
    }

    /// The directories that were last visited while nothing was mounted on them, and that a mount covers now.
    ///
    /// The mount points before and now do not show this if a file system was away only between two readings of them.
    func covered(by points: [FilePath: MountTable.Mounted], in root: Root) -> [WatchedDirectory] {
        points.compactMap { point, mounted in
            guard let directory = directory(point, in: root), let parent = directory.parent else { return nil }
            // A bind mount may have the device of its parent, and a Btrfs subvolume another one than the table has.
            let isCovered = directory.device == parent.device && directory.device != mounted.device
            return isCovered ? directory : nil
        }
    }

    /// Removes a directory and everything below it.
    ///
    /// - Returns: All removed directories.
    mutating func remove(_ directory: WatchedDirectory) -> [WatchedDirectory] {
        if let parent = directory.parent, parent.children[directory.name] === directory {
            parent.children[directory.name] = nil
        }
        let removed = clear(directory)
        directory.isGone = true
        directory.parent = nil
        version += 1
        return removed
    }

    /// Removes everything below the top of a tree, and the top's watch.
    ///
    /// - Returns: The top, and all removed directories.
    mutating func forgetContent(of root: Root) -> [WatchedDirectory] {
        let removed = clear(root.top)
        (root.top.device, root.top.inode) = (0, 0)
        return removed
    }

    /// Removes a tree permanently.
    mutating func drop(_ root: Root) {
        for rename in renames where rename.directory.root === root {
            _ = clear(rename.directory)
            rename.directory.isGone = true
        }
        renames.removeAll { $0.directory.root === root }
        _ = clear(root.top)
        root.top.isGone = true
        version += 1
    }

    /// Removes the watch of a directory, and everything below it.
    private mutating func clear(_ directory: WatchedDirectory) -> [WatchedDirectory] {
        var removed: [WatchedDirectory] = []
        clear(directory, &removed)
        return removed
    }

    private mutating func clear(_ directory: WatchedDirectory, _ removed: inout [WatchedDirectory]) {
        unwatch(directory)
        removed.append(directory)
        for child in directory.children.values {
            clear(child, &removed)
            child.isGone = true
            child.parent = nil
        }
        directory.children = [:]
    }

    // MARK: - Renames

    var isRenaming: Bool { !renames.isEmpty }
    func isRenaming(in root: Root) -> Bool { renames.contains { $0.directory.root === root } }
    /// When the first of the directories that left their names expire.
    var nextDeadline: MonotonicTime? { renames.lazy.map(\.until).min() }

    /// Applies the first half of a rename.
    mutating func detach(_ name: FilePath, from parent: WatchedDirectory, cookie: UInt32, at now: MonotonicTime) {
        guard let child = parent.children.removeValue(forKey: name) else { return }
        child.parent = nil
        version += 1
        renames.append(Rename(cookie: cookie, directory: child, until: now.advanced(by: Self.renameTime)))
    }

    /// The directory of the first half of a rename within a tree. It must be attached or removed now.
    mutating func removeDetached(_ cookie: UInt32, in root: Root) -> WatchedDirectory? {
        guard let index = renames.firstIndex(where: { $0.cookie == cookie && $0.directory.root === root }) else {
            return nil
        }
        return renames.remove(at: index).directory
    }

    /// Applies the second half of a rename.
    ///
    /// - Returns: The directories that the rename has replaced.
    mutating func attach(_ directory: WatchedDirectory, as name: FilePath, to parent: WatchedDirectory, visit: Int)
        -> [WatchedDirectory]
    {
        let replaced = parent.children[name].map { remove($0) } ?? []
        directory.name = name
        directory.parent = parent
        directory.lastSeen = visit
        parent.children[name] = directory
        version += 1
        return replaced
    }

    /// Removes directories that left their names and did not come back; their watches would continue to report.
    ///
    /// - Returns: All removed directories.
    mutating func expireRenames(at now: MonotonicTime) -> [WatchedDirectory] {
        var removed: [WatchedDirectory] = []
        while let first = renames.first, first.until <= now {
            renames.removeFirst()
            removed += remove(first.directory)
        }
        return removed
    }

    // MARK: - Watches

    /// The directories that an event of this watch concerns; `nil` for a removed watch, which may still have events in
    /// the queue.
    func directories(of watch: Int32) -> [WatchedDirectory]? { watches[watch] }

    /// Records that the kernel has ended a watch.
    mutating func endWatch(_ watch: Int32) {
        for directory in watches.removeValue(forKey: watch) ?? [] { directory.watch = nil }
        inotify?.uncountWatch()
    }

    /// Gives up all events.
    ///
    /// - Returns: The directories that had a watch.
    mutating func endEvents() -> [WatchedDirectory] {
        inotify = nil
        let directories = watches.values.flatMap { $0 }
        for directory in directories { directory.watch = nil }
        watches = [:]
        return directories
    }

    /// Counts a loss of events.
    ///
    /// - Returns: Whether it begins a burst of losses.
    mutating func countOverflow(at now: MonotonicTime) -> Bool {
        overflows += 1
        let isFirst = lastOverflow.map { now.since($0) > Self.burst } ?? true
        lastOverflow = now
        return isFirst
    }

    /// Sets a watch on a directory that was just opened, unless its present watch is still on that very directory.
    mutating func watch(
        _ directory: WatchedDirectory, _ stream: FolderStream, _ status: FileStatus, _ path: FilePath
    ) -> WatchResult {
        let isSame = directory.device == status.device && directory.inode == status.inode
        if directory.watch != nil && isSame { return .unchanged }
        if !isSame || directory.isTop {
            // One query for a whole tree: directories nearly always share a file system.
            let parent = directory.parent.flatMap { $0.device == status.device ? $0 : nil }
            directory.lacksChangeEvents = parent?.lacksChangeEvents ?? FileSystemKind.lacksChangeEvents(stream)
        }
        unwatch(directory)
        (directory.device, directory.inode) = (status.device, status.inode)
        guard !directory.root.isPolled, let inotify else { return .unavailable }
        do {
            let watch = try inotify.watch(stream, named: path)
            directory.watch = watch
            if watches[watch] == nil { inotify.countWatch() }
            watches[watch, default: []].append(directory)
            return .added
        } catch {
            guard error.isWatchLimit else { return .failed(error) }
            defer { hasReportedLimit = true }
            return .limitReached(isFirst: !hasReportedLimit)
        }
    }

    /// Reports the limit on watches again when it is reached the next time.
    mutating func forgetLimitReport() { hasReportedLimit = false }

    private mutating func unwatch(_ directory: WatchedDirectory) {
        guard let watch = directory.watch else { return }
        directory.watch = nil
        watches[watch]?.removeAll { $0 === directory }
        guard watches[watch]?.isEmpty == true else { return }
        watches[watch] = nil
        inotify?.unwatch(watch)
        inotify?.uncountWatch()
    }
}
