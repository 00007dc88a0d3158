internal import Core
internal import Linux

/// A directory of a watched tree. Paths are computed from the chain of parents, so a rename is one assignment.
///
/// Used by the watching thread only, like everything it refers to.
final class Directory {
    unowned let root: Root
    /// `nil` at the top, and for directories that left the tree.
    var parent: Directory?
    var name: FilePath
    var children: [FilePath: Directory] = [:]
    /// The watch, and the directory that it was set on.
    var watch: Int32?
    var device: UInt64 = 0
    var inode: UInt64 = 0
    /// A visit that is queued.
    var visit: VisitReason?
    /// The last visit of the parent that met it.
    var seen = 0
    /// Whether it left the tree for good.
    var isGone = false
    /// The rules of the ignore file in it.
    var ignore = Ignore.nothing
    /// Whether its file system may not report changes.
    var lacksChangeEvents = false
    /// The polling interval and the next poll, where events are incomplete.
    var pollEvery = Duration.zero
    var pollAt: MonotonicTime?
    /// Whether something new was seen in it since its last scan.
    var isLively = false
    /// Whether files in it without their markers were not kept as candidates.
    var hasUnmarked = false
    /// Its own modification time at the last visit.
    var modified: Int64?

    init(root: Root, parent: Directory?, name: FilePath) {
        self.root = root
        self.parent = parent
        self.name = name
    }

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

    /// For messages.
    var shown: FilePath? { relative.map { root.path.appending($0) } }

    /// The ignore files that apply to its names.
    var ignored: IgnoreChain {
        var chain = IgnoreChain()
        var at: Directory? = self
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

/// A problem that keeps the files of a directory from being taken, or from being noticed at once.
struct Trouble {
    let directory: Directory
    let text: String
    /// The last visit that met it.
    let visit: Int
}

/// The reason for a visit of a directory. The strongest reason counts.
enum VisitReason: Int, Comparable {
    /// It has no watch, and its time has come; only new directories in it are followed down.
    case poll
    /// Changes may have been missed.
    case reconcile
    /// The first time since the start.
    case first
    /// An event reported that it is new here.
    case event

    static func < (a: VisitReason, b: VisitReason) -> Bool { a.rawValue < b.rawValue }
}

/// A file in a directory. It follows the directory when that is renamed.
struct Place: Hashable {
    let directory: Directory
    let name: FilePath

    static func == (a: Place, b: Place) -> Bool { a.directory === b.directory && a.name == b.name }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(directory))
        hasher.combine(name)
    }
}

/// The top of a tree: one for each distinct path among the rules.
final class Root {
    enum Condition: Equatable {
        /// Not examined yet.
        case unknown
        case present
        case absent(String)
        case failed(String)
    }

    /// The folder through which everything in the tree is reached.
    let folder: SourceFolder
    var path: FilePath { folder.path }
    let isRecursive: Bool
    /// Indices of the rules that name this path.
    var rules: [Int]
    private(set) lazy var top = Directory(root: self, parent: nil, name: FilePath(""))
    /// The real path, with every link followed.
    var real: FilePath
    var condition = Condition.unknown
    /// Whether it was reported that its disk fails, instead of for each file on it.
    var hasLostDisk = false
    /// Whether its disk has failed since the last full scan began.
    var hasFailed = false
    /// Visits that are queued or under way.
    var visits = 0
    /// Whether the first scan has not ended.
    var isFirst = true
    var nextCheck: MonotonicTime
    /// The start of the last full scan.
    var lookBegan: MonotonicTime?
    /// The start of the last finished full scan.
    var lookedSince: MonotonicTime?
    /// The number of files met for each of its folders when the last scan began.
    var before: [String: WatchLoop.Count] = [:]
    /// The rules that may claim files here, in the order of the rules.
    var claimants: [RuleMatcher] = []
    /// Checks whether the intended folder is there at all.
    let gate: FolderGate
    let requirements: [FolderRequirement]
    /// Whether it is polled without events.
    let isPolled: Bool
    /// Mount points below it, as far as they are known.
    var points: [FilePath: UInt64]?

    /// - Parameter all: The rules that the indices refer to.
    init(_ folder: SourceFolder, rules: [Int], of all: [Rule], nextCheck: MonotonicTime) {
        self.folder = folder
        let own = rules.map { all[$0].settings }
        isRecursive = own.contains(where: \.recursive)
        isPolled = own.contains { $0.watching == .poll }
        requirements = own.map(\.requirement)
        gate = FolderGate(folder, requirements)
        self.rules = rules
        self.nextCheck = nextCheck
        real = folder.path
    }
}

/// First in, first out.
struct Queue<Element> {
    private var elements: [Element] = []
    private var head = 0

    var isEmpty: Bool { head == elements.count }

    mutating func append(_ element: Element) { elements.append(element) }

    var last: Element? { isEmpty ? nil : elements.last }

    mutating func removeLast() { elements.removeLast() }

    mutating func removeAll(where isMeant: (Element) -> Bool) {
        elements = elements[head...].filter { !isMeant($0) }
        head = 0
    }

    mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        defer {
            head += 1
            if head > 1024 && head * 2 > elements.count {
                elements.removeFirst(head)
                head = 0
            }
        }
        return elements[head]
    }
}
