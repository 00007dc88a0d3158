/// Files that travel together: a video and its sidecars (`.xml`, `.srt` …), told by their names.
package struct GroupRule: Hashable, Sendable {
    /// How long a finished file waits for one of its group that may still come.
    package var wait: Duration
    /// Endings of sidecars, in lower case and without the dot.
    package var sidecars: [String]

    package static let commonSidecars = ["xml", "srt", "thm", "json"]

    package init(wait: Duration = .seconds(5), sidecars: [String] = commonSidecars) {
        self.wait = wait
        self.sidecars = sidecars
    }

    /// Its ending says that it belongs to another file. Case does not count: cameras write `.XML`.
    package func isSidecar(_ name: FilePath) -> Bool {
        guard let ending = name.fileExtension?.bytes else { return false }
        return sidecars.contains { $0.utf8.elementsEqual(ending.lazy.map(\.lowered)) }
    }

    /// Where a file belongs: `clip.xml` to `clip.mp4`; so does `clip.mp4.xml`, where that stands beside it.
    ///
    /// - Parameter isThere: Whether a name stands in the file's directory.
    package func key(of file: SettledFile, isThere: (_ name: FilePath) -> Bool) -> Grouping.Key {
        var key = Grouping.Key(file)
        if isSidecar(file.relative.name), key.stem.fileExtension != nil, !isSidecar(key.stem), isThere(key.stem) {
            key.stem = key.stem.stem
        }
        return key
    }

    /// The patterns that let sidecars in where `include` names the videos alone.
    package func include(with include: [String]) -> [String] {
        if include.isEmpty { return [] }
        return include + sidecars.map { "*." + $0 }.filter { !include.contains($0) }
    }
}

/// Gathers settled files until their group is whole.
///
/// A group has the names of one directory with one stem. It goes when it has a file that is no sidecar, nothing came to it
/// for as long as its rule says, and whoever looked into the directory found nothing of it missing. A sidecar without
/// its video waits. Time comes in as an argument.
package struct Grouping {
    package struct Key: Hashable, Sendable {
        /// The configured folder's name.
        package var folder: String
        /// Below the folder's path.
        package var directory: FilePath
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
        /// When it is to be looked at; `nil` when only another file can change anything.
        package fileprivate(set) var next: MonotonicTime?
        /// What it waits for, once somebody has looked.
        package fileprivate(set) var reason: String?
        fileprivate var looks = 0
        /// Nobody has looked since a file came to it: its rule's time is not over.
        package var isFresh: Bool { looks == 0 }
    }

    private var groups: [Key: Group] = [:]

    package init() {}

    package var all: [Key: Group] { groups }

    /// The files that wait.
    package var count: Int { groups.values.reduce(0) { $0 + $1.members.count } }

    /// When the next group wants to be looked at.
    package var next: MonotonicTime? { groups.values.compactMap(\.next).min() }

    /// A file settled. One that comes again replaces what it was.
    ///
    /// - Parameter key: Where it belongs; by its stem unless said otherwise.
    package mutating func add(_ file: SettledFile, under key: Key? = nil, wait: Duration, at now: MonotonicTime) {
        let key = key ?? Key(file)
        var group = groups[key] ?? Group(since: now)
        group.members[file.relative] = file
        group.next = now.advanced(by: wait)
        group.looks = 0
        groups[key] = group
    }

    /// What waits under one key goes on waiting under another: `clip.mp4.json`, when `clip.mp4` has come.
    package mutating func join(_ from: Key, to key: Key) {
        guard from != key, groups[key] != nil, let others = groups.removeValue(forKey: from) else { return }
        groups[key]?.members.merge(others.members) { $1 }
    }

    /// The groups whose time to be looked at has come. Each is to be answered with ``take(_:)``, ``drop(_:of:)`` or
    /// ``wait(_:for:again:at:)``.
    package func due(at now: MonotonicTime) -> [Key] {
        groups.filter { $0.value.next.map { $0 <= now } ?? false }.keys.sorted {
            ($0.folder, $0.directory.bytes, $0.stem.bytes) < ($1.folder, $1.directory.bytes, $1.stem.bytes)
        }
    }

    /// It is whole, and goes.
    package mutating func take(_ key: Key) -> [SettledFile] {
        (groups.removeValue(forKey: key)?.members.values).map {
            $0.sorted { $0.relative.bytes.lexicographicallyPrecedes($1.relative.bytes) }
        } ?? []
    }

    /// These are not what they were, or not there any more.
    package mutating func drop(_ members: [FilePath], of key: Key) {
        for member in members { groups[key]?.members[member] = nil }
        if groups[key]?.members.isEmpty == true { groups[key] = nil }
    }

    /// It is not whole.
    ///
    /// - Parameters:
    ///   - isExpected: What is missing stands there and will settle; it is looked for again, ever more rarely. Else only
    ///     another file can bring the group on its way, and the first look comes later.
    /// - Returns: Whether the reason is news.
    package mutating func wait(_ key: Key, for reason: String, isExpected: Bool, at now: MonotonicTime) -> Bool {
        guard var group = groups[key] else { return false }
        let isNews = group.reason != reason
        group.reason = reason
        group.looks += 1
        // Also where only another file can change anything: what waits may be removed, of which nobody tells.
        let least = isExpected ? 0 : 3
        group.next = now.advanced(by: .seconds(1 << min(max(group.looks - 1, least), 6)))
        groups[key] = group
        return isNews
    }
}

private func < (a: (String, [UInt8], [UInt8]), b: (String, [UInt8], [UInt8])) -> Bool {
    if a.0 != b.0 { return a.0 < b.0 }
    if a.1 != b.1 { return a.1.lexicographicallyPrecedes(b.1) }
    return a.2.lexicographicallyPrecedes(b.2)
}
