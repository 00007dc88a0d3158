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
    /// The folder through which everything in the tree is reached.
    let folder: SourceFolder
    var path: FilePath { folder.path }
    let isRecursive: Bool
    /// Indices of the rules that name this path.
    private(set) var rules: [Int]
    private(set) lazy var top = WatchedDirectory(root: self, parent: nil, name: FilePath(""))
    /// The real path, with every link followed.
    private(set) var real: FilePath
    /// Whether it is there, how far it is scanned, and when it is examined next.
    var state: RootState
    /// The rules that may take files here, in the order of the rules.
    private(set) var matchers: [RuleMatcher] = []
    /// Checks whether the intended folder exists.
    let mountCheck: MountCheck
    let requirements: [FolderRequirement]
    /// Whether it is polled without events.
    let isPolled: Bool
    /// Mount points below it; `nil` until it is found.
    private(set) var mountPoints: [FilePath: MountTable.Mounted]?

    /// - Parameters:
    ///   - all: The rules that the indices refer to.
    ///   - real: The real path, if it is known.
    init(_ folder: SourceFolder, rules: [Int], of all: [CompiledRule], real: FilePath? = nil, nextCheck: MonotonicTime)
    {
        self.folder = folder
        let own = rules.map { all[$0].settings }
        isRecursive = own.contains(where: \.recursive)
        isPolled = own.contains { $0.watching == .poll }
        requirements = own.map(\.requirement)
        mountCheck = MountCheck(folder, requirements)
        self.rules = rules
        self.real = real ?? folder.path
        state = RootState(nextCheck: nextCheck)
    }

    /// Applies the rules that name this path now, in place of the former ones.
    ///
    /// - Parameter rules: Their indices.
    func change(to rules: [Int]) { self.rules = rules }

    /// Determines which rules may take files here.
    ///
    /// - Parameter all: All roots, this one among them.
    func match(among all: [Root], rules: [CompiledRule]) {
        matchers = RuleMatcher.all(for: self, among: all, rules: rules)
    }

    /// The folder was found, with this real path; `nil` where that cannot be determined.
    ///
    /// - Parameter points: Reads the mount points below a path.
    /// - Returns: Whether its real path is another one than before.
    func found(at real: FilePath?, mountPoints points: (FilePath) -> [FilePath: MountTable.Mounted]) -> Bool {
        let hasMoved = real.map { $0 != self.real } ?? false
        if let real, hasMoved {
            self.real = real
            mountPoints = nil
        }
        if mountPoints == nil { mountPoints = points(self.real) }
        return hasMoved
    }

    /// The folder is away, and the mount points below it are not known.
    func forgetMountPoints() { mountPoints = nil }

    /// Records the present mount points.
    ///
    /// - Returns: The paths where another file system is mounted than before; none while those before are not known.
    func replaceMountPoints(_ points: [FilePath: MountTable.Mounted]) -> [FilePath] {
        guard let before = mountPoints else { return [] }
        mountPoints = points
        return Set(points.keys).union(before.keys).filter { points[$0] != before[$0] }
    }
}
