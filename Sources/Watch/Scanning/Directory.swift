internal import Core
internal import Linux

/// A directory of a watched tree. Paths are computed from the chain of parents, so a rename is one assignment.
///
/// Touched by the watching thread only, like everything it refers to.
final class Directory {
    unowned let root: Root
    /// `nil` at the top, and for what left the tree.
    var parent: Directory?
    var name: FilePath
    var children: [FilePath: Directory] = [:]
    /// The watch, and which directory it was set on.
    var watch: Int32?
    var device: UInt64 = 0
    var inode: UInt64 = 0
    /// A visit that is queued.
    var visit: Origin?
    /// The last visit of the parent that came across it.
    var seen = 0
    /// It left the tree for good.
    var isGone = false
    /// What the ignore file in it says.
    var ignore = Ignore.nothing
    /// Its file system may not tell of changes.
    var isSilent = false
    /// How often it is looked through, and when next, where events do not tell of everything.
    var pollEvery = Duration.zero
    var pollAt: MonotonicTime?
    /// Something new was seen in it since the last look through it.
    var isLively = false
    /// Files in it that lack their markers were not kept in mind.
    var hasUnmarked = false
    /// Its own modification time at the last visit.
    var modified: Int64?

    init(root: Root, parent: Directory?, name: FilePath) {
        self.root = root
        self.parent = parent
        self.name = name
    }

    var isTop: Bool { root.top === self }

    /// The path below the root, empty for the root; `nil` while it is on the way from one name to another, or gone.
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

    /// What is left alone among its names.
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

/// What keeps the files of a directory from being taken, or from being noticed at once.
struct Trouble {
    let directory: Directory
    let text: String
    /// The visit that met it last.
    let visit: Int
}

/// Why a directory is visited. The strongest reason counts.
enum Origin: Int, Comparable {
    /// It has no watch, and its time has come; only what is new in it is followed down.
    case poll
    /// Nobody knows what happened meanwhile.
    case reconcile
    /// The first time since the start.
    case first
    /// An event told that it is new here.
    case event

    static func < (a: Origin, b: Origin) -> Bool { a.rawValue < b.rawValue }
}

/// A file in a directory. Follows the directory when that is renamed.
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
        /// Nobody has looked yet.
        case unknown
        case present
        case absent(String)
        case failed(String)
    }

    /// Everything in the tree is reached through it.
    let folder: SourceFolder
    var path: FilePath { folder.path }
    let isRecursive: Bool
    /// Indices of the rules that name this path.
    var rules: [Int]
    private(set) lazy var top = Directory(root: self, parent: nil, name: FilePath(""))
    /// Where the path leads with every link followed.
    var real: FilePath
    var condition = Condition.unknown
    /// It was said that its disk fails, and not of each file on it.
    var hasLostDisk = false
    /// Its disk has failed since the last full scan began.
    var hasFailed = false
    /// Visits that are queued or under way.
    var visits = 0
    /// The first scan has not ended.
    var isFirst = true
    var nextLook: MonotonicTime
    /// When the last look through all of it began.
    var lookBegan: MonotonicTime?
    /// The same of the last one that is over.
    var lookedSince: MonotonicTime?
    /// What had been come across for each of its folders when the last look began.
    var before: [String: Lookout.Count] = [:]
    /// Who may claim files here, in the order of the rules.
    var claimants: [Claimant] = []
    /// Says whether what is meant is there at all.
    let gate: FolderGate
    let requirements: [FolderRequirement]
    /// No events are asked for.
    let isPolled: Bool
    /// What is mounted below it, as far as is known.
    var points: [FilePath: UInt64]?

    /// - Parameter all: The rules that the indices mean.
    init(_ folder: SourceFolder, rules: [Int], of all: [Rule], nextLook: MonotonicTime) {
        self.folder = folder
        let own = rules.map { all[$0].settings }
        isRecursive = own.contains(where: \.recursive)
        isPolled = own.contains { $0.watching == .poll }
        requirements = own.map(\.requirement)
        gate = FolderGate(folder, requirements)
        self.rules = rules
        self.nextLook = nextLook
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
