internal import Core
internal import Linux

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
    /// Visits that are queued or under way; ``DirectoryScanner`` counts them.
    var visits = 0
    /// Whether the first scan has not ended.
    var isFirstScan = true
    /// When it is scanned next from the top, or looked for.
    var nextCheck: MonotonicTime
    /// The rules that may take files here, in the order of the rules.
    var matchers: [RuleMatcher] = []
    /// Checks whether the intended folder exists.
    let gate: FolderGate
    let requirements: [FolderRequirement]
    /// Whether it is polled without events.
    let isPolled: Bool
    /// Mount points below it, as far as they are known.
    var mountPoints: [FilePath: UInt64]?

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
