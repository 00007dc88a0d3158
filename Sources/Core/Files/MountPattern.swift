/// A watched path that stands for the same folder of any file system mounted at certain points: the path
/// `/media/*/*/DCIM` with the required mount point `/media/*/*`.
package struct MountPattern: Hashable, Sendable {
    /// Absolute. Each component may be a ``Glob``.
    package let mount: FilePath
    /// Below the mount point, without wildcards; empty for the whole file system.
    package let rest: FilePath

    /// - Returns: `nil` where the mount point has no wildcard, or does not begin the path.
    package init?(path: FilePath, mount: FilePath) {
        guard mount.isAbsolute, Glob.hasWildcard(mount) else { return nil }
        if path == mount {
            rest = ""
        } else {
            guard let rest = path.relative(to: mount) else { return nil }
            self.rest = rest
        }
        self.mount = mount
    }

    /// Whether a mount point is one of those that it names.
    package func matches(_ point: FilePath) -> Bool {
        let (own, theirs) = (mount.components, point.components)
        return own.count == theirs.count && zip(own, theirs).allSatisfy(Self.component)
    }

    /// The folder on the file system that is mounted at a point.
    package func folder(at point: FilePath) -> FilePath { point.appending(rest) }

    /// Whether a path may be one of the folders, or lie in one.
    package func mayContain(_ path: FilePath) -> Bool {
        let (own, theirs) = (mount.appending(rest).components, path.components)
        return own.count <= theirs.count && zip(own, theirs).allSatisfy(Self.component)
    }

    /// Whether one of the folders may lie below a path.
    package func mayLie(below path: FilePath) -> Bool {
        let (own, theirs) = (mount.appending(rest).components, path.components)
        return own.count > theirs.count && zip(own, theirs).allSatisfy(Self.component)
    }

    /// The folders before the first wildcard.
    package var fixedFolder: FilePath {
        FilePath(
            bytes: Array("/".utf8)
                + mount.components.prefix { !Glob.hasWildcard($0) }.map(\.bytes).joined(separator: [0x2F]))
    }

    private static func component(_ own: FilePath, _ theirs: FilePath) -> Bool {
        Glob.hasWildcard(own) ? Glob(bytes: own.bytes).matches(theirs) : own == theirs
    }
}

/// A file system that is mounted where a ``MountPattern`` may take it.
package struct MountedCard: Hashable, Sendable {
    package let point: FilePath
    /// As in ``FileIdentity/fileSystem``.
    package let fileSystem: String
    /// The label of the file system, otherwise the name of its mount point.
    package let label: FilePath
    /// The disk that it is on now, by its number in this boot.
    package let device: UInt64
    /// The part of the file system that is mounted: `/`, or less for a bind mount or a subvolume.
    package let root: FilePath

    package init(point: FilePath, fileSystem: String, label: FilePath, device: UInt64 = 0, root: FilePath = "/") {
        self.point = point
        self.fileSystem = fileSystem
        self.label = label
        self.device = device
        self.root = root
    }

    /// Whether both show the same files.
    fileprivate func isSame(as other: MountedCard) -> Bool {
        fileSystem == other.fileSystem && device == other.device && root == other.root
    }
}

/// The folder of one file system among those of a ``MountPattern``. The file system keeps the name of its folder
/// wherever it is mounted, so that none of its files is recorded twice.
package struct Card: Hashable, Sendable {
    /// The name of the configured folder with the pattern.
    package let pattern: String
    package let fileSystem: String
    /// The name of its own folder.
    package let name: String
    /// Where it is mounted, or was mounted last.
    package var point: FilePath
    package var isMounted: Bool

    package init(pattern: String, fileSystem: String, name: String, point: FilePath, isMounted: Bool = false) {
        self.pattern = pattern
        self.fileSystem = fileSystem
        self.name = name
        self.point = point
        self.isMounted = isMounted
    }
}

/// Assigns a folder to each mounted file system that a pattern names.
package struct CardAssignment: Hashable, Sendable {
    /// A file system that a pattern names and that has no folder.
    package struct LeftOut: Hashable, Sendable {
        package enum Reason: Hashable, Sendable {
            /// The pattern has ``CardAssignment/most``.
            case full
            /// Another one with the same identity is mounted there: a copy of its disk, or another part of it.
            case twin(of: FilePath)
        }

        package let point: FilePath
        package let reason: Reason

        package init(point: FilePath, reason: Reason) {
            self.point = point
            self.reason = reason
        }

        /// Words that follow "a card is not watched".
        package var words: String {
            switch reason {
            case .full: "a folder with a pattern takes \(CardAssignment.most) file systems at a time"
            case .twin(let other):
                "it has the same UUID as what is mounted at \(other.display), or is another part of it; unmount that one, "
                    + "or give one of two disks another UUID"
            }
        }
    }

    /// Mounted file systems that one pattern takes at a time.
    package static let most = 32
    /// Those that are mounted, and those that were mounted before.
    package private(set) var cards: [Card]
    package private(set) var leftOut: [LeftOut] = []
    private var taken: Set<String>

    /// - Parameters:
    ///   - known: The file systems that were mounted before.
    ///   - fixed: The names of the other folders.
    package init(known: [Card], fixed: Set<String>) {
        // A folder of the configuration has its name, whatever had it before.
        cards = known.filter { !fixed.contains($0.name) }
        for index in cards.indices { cards[index].isMounted = false }
        taken = fixed.union(cards.map(\.name))
    }

    /// Assigns the file systems that are mounted now.
    package mutating func add(_ mounted: [MountedCard], to name: String, _ pattern: MountPattern) {
        var places: [String: Int] = [:]
        for (index, card) in cards.enumerated() where card.pattern == name { places[card.fileSystem] = index }
        let matching = mounted.filter { pattern.matches($0.point) }.sorted { $0.point < $1.point }
        // One file system at two points is one card: it stays where it was.
        var points: [String: MountedCard] = [:]
        for mount in matching {
            let last = places[mount.fileSystem].map { cards[$0].point }
            if points[mount.fileSystem] == nil || mount.point == last { points[mount.fileSystem] = mount }
        }
        let once = matching.filter { points[$0.fileSystem] == $0 }
        for mount in matching {
            guard let chosen = points[mount.fileSystem], !chosen.isSame(as: mount) else { continue }
            leftOut.append(LeftOut(point: mount.point, reason: .twin(of: chosen.point)))
        }
        let (old, new) = (once.filter { places[$0.fileSystem] != nil }, once.filter { places[$0.fileSystem] == nil })
        for mount in old.prefix(Self.most) {
            guard let place = places[mount.fileSystem] else { continue }
            (cards[place].point, cards[place].isMounted) = (mount.point, true)
        }
        let room = max(0, Self.most - old.count)
        for mount in new.prefix(room) {
            let own = unusedName(name, mount)
            taken.insert(own)
            cards.append(
                Card(pattern: name, fileSystem: mount.fileSystem, name: own, point: mount.point, isMounted: true))
        }
        leftOut += (old.dropFirst(Self.most) + new.dropFirst(room)).map { LeftOut(point: $0.point, reason: .full) }
    }

    /// `PATTERN-LABEL`. Another file system with this label gets the end of its identity besides.
    private func unusedName(_ pattern: String, _ mount: MountedCard) -> String {
        let label = Self.word(mount.label.bytes)
        // A folder's name has at most 64 bytes.
        let base = String((pattern + "-" + (label.isEmpty ? "card" : label)).prefix(56))
        if !taken.contains(base) { return base }
        let digits = Self.word(mount.fileSystem.utf8.filter { $0.isLetterOrDigit() })
        let distinct = base + "-" + digits.suffix(4)
        if !taken.contains(distinct) { return distinct }
        var number = 2
        while taken.contains("\(distinct)-\(number)") { number += 1 }
        return "\(distinct)-\(number)"
    }

    /// With the bytes that a folder's name may have.
    private static func word(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.map { $0.isLetterOrDigit(or: "_.-") ? $0 : UInt8(ascii: "_") }, as: UTF8.self)
    }
}
