/// Collects settled files until their group is complete.
///
/// A group is passed on when no file joined it for the time in its rule, and a check of the disk found no missing file.
/// Time is passed as an argument.
package struct Grouping {
    package struct Key: Hashable, Sendable {
        /// The configured folder's name.
        package var folder: String
        /// The directory below the folder's path.
        package var directory: FilePath
        /// What the names of its files have in common; empty for all files of a directory.
        package var stem: FilePath

        package init(folder: String, directory: FilePath, stem: FilePath) {
            self.folder = folder
            self.directory = directory
            self.stem = stem
        }

        package init(_ file: SettledFile) {
            folder = file.folder
            directory = file.relative.parent
            stem = file.relative.stem
        }
    }

    package struct Group: Sendable {
        package fileprivate(set) var members: [FilePath: SettledFile] = [:]
        package fileprivate(set) var since: MonotonicTime
        /// When the group is due for a check; `nil` if only another file can change its state.
        package fileprivate(set) var next: MonotonicTime?
        /// The reason why it waits, after the first look.
        package fileprivate(set) var reason: String?
        /// The file below the folder that it waits for, where that exists.
        package fileprivate(set) var awaited: FilePath?
        fileprivate var evaluations = 0
        /// The directory was not checked since a file joined: the rule's time has not ended.
        package var isFresh: Bool { evaluations == 0 }
    }

    private var groups: [Key: Group] = [:]
    /// Whether a file was added: its group has another time for its check.
    private var needsWake = false

    package init() {}

    /// - Returns: Whether to wake the task that checks the groups.
    package mutating func takeWake() -> Bool {
        defer { needsWake = false }
        return needsWake
    }

    package var all: [Key: Group] { groups }

    /// The number of waiting files.
    package var count: Int { groups.values.reduce(0) { $0 + $1.members.count } }

    /// When the next group is due for a check.
    package var next: MonotonicTime? { groups.values.compactMap(\.next).min() }

    /// Adds a settled file. A file that is added again replaces its earlier version.
    ///
    /// - Parameter key: The group; by default that of its stem.
    package mutating func add(_ file: SettledFile, under key: Key? = nil, wait: Duration, at now: MonotonicTime) {
        let key = key ?? Key(file)
        var group = groups[key] ?? Group(since: now)
        group.members[file.relative] = file
        group.next = now.advanced(by: wait)
        group.evaluations = 0
        groups[key] = group
        needsWake = true
    }

    /// Moves the files that wait under one key to another: `clip.mp4.json`, when `clip.mp4` has come.
    package mutating func move(_ from: Key, to key: Key) {
        guard from != key, groups[key] != nil, let others = groups.removeValue(forKey: from) else { return }
        groups[key]?.members.merge(others.members) { $1 }
    }

    /// Moves some of the files that wait under one key to another. Its next check comes after `wait`.
    package mutating func move(_ members: Set<FilePath>, from: Key, to key: Key, wait: Duration, at now: MonotonicTime)
    {
        guard from != key, let found = groups[from]?.members.filter({ members.contains($0.key) }) else { return }
        for file in found.values { add(file, under: key, wait: wait, at: now) }
        drop(Array(found.keys), of: from)
    }

    /// The groups that are due for a check. Each must be answered with ``remove(_:)``, ``drop(_:of:)`` or
    /// ``wait(_:for:awaiting:isExpected:at:)``.
    package func due(at now: MonotonicTime) -> [Key] {
        groups.filter { $0.value.next.map { $0 <= now } ?? false }.keys.sorted {
            ($0.folder, $0.directory.bytes, $0.stem.bytes) < ($1.folder, $1.directory.bytes, $1.stem.bytes)
        }
    }

    /// The group is complete, and is passed on.
    package mutating func remove(_ key: Key) -> [SettledFile] {
        (groups.removeValue(forKey: key)?.members.values).map {
            $0.sorted { $0.relative.bytes.lexicographicallyPrecedes($1.relative.bytes) }
        } ?? []
    }

    /// All waiting files of a folder are grouped again.
    package mutating func removeAll(of folder: String) -> [SettledFile] {
        groups.keys.filter { $0.folder == folder }.flatMap { remove($0) }
    }

    /// Some files of a group are passed on.
    package mutating func remove(_ members: Set<FilePath>, of key: Key) -> [SettledFile] {
        let found = groups[key]?.members.values.filter { members.contains($0.relative) } ?? []
        drop(found.map(\.relative), of: key)
        return found.sorted { $0.relative < $1.relative }
    }

    /// Removes files that have changed or no longer exist.
    package mutating func drop(_ members: [FilePath], of key: Key) {
        for member in members { groups[key]?.members[member] = nil }
        if groups[key]?.members.isEmpty == true { groups[key] = nil }
    }

    /// The group is incomplete.
    ///
    /// - Parameters:
    ///   - awaited: The missing file below the folder, if it exists.
    ///   - isExpected: The missing file exists and will settle; it is checked for again, less and less often. Otherwise
    ///     only another file can complete the group, and the first look comes later.
    /// - Returns: Whether the reason is new.
    package mutating func wait(
        _ key: Key, for reason: String, awaiting awaited: FilePath? = nil, isExpected: Bool, at now: MonotonicTime
    ) -> Bool {
        guard var group = groups[key] else { return false }
        let isNew = group.reason != reason
        (group.reason, group.awaited) = (reason, awaited)
        group.evaluations += 1
        // There is a next look also where only another file can change the state: a waiting file may be removed, which
        // causes no event.
        let least = isExpected ? 0 : 3
        group.next = now.advanced(by: .seconds(1 << min(max(group.evaluations - 1, least), 6)))
        groups[key] = group
        return isNew
    }
}

private func < (a: (String, [UInt8], [UInt8]), b: (String, [UInt8], [UInt8])) -> Bool {
    if a.0 != b.0 { return a.0 < b.0 }
    if a.1 != b.1 { return a.1.lexicographicallyPrecedes(b.1) }
    return a.2.lexicographicallyPrecedes(b.2)
}
