internal import Core
internal import Linux

/// The rules of the configuration, and a root for each distinct path among them.
struct WatchRoots {
    /// The result of a change of the rules.
    struct Change {
        /// Roots that are no longer watched, or are watched in another way.
        let dropped: [Root]
        /// The folders of the rules before, by their index.
        let oldFolders: [String]
    }

    /// A setting that decides which files of a tree are taken, and how they settle.
    private struct Match: Equatable {
        let rule: WatchRule
        let position: RuleMatcher.Position
    }

    private let folders: SourceFolders
    private(set) var rules: [CompiledRule]
    /// The roots that this thread watches.
    private(set) var watched: [Root]
    /// Trees that another thread watches: they take files of ours where one tree contains the other.
    private var foreignRoots: [Root]

    /// - Parameter ours: Paths of the trees that this thread watches.
    init(rules: [CompiledRule], ours: Set<FilePath>, in folders: SourceFolders, at now: MonotonicTime) {
        self.folders = folders
        self.rules = rules
        (watched, foreignRoots) = Self.roots(of: rules, ours: ours, in: folders, at: now)
        updateMatchers()
    }

    func name(of rule: Int) -> String { rules[rule].settings.name }

    /// The root of the rule of this name, if this thread watches it.
    func root(ofFolder name: String) -> Root? {
        guard let rule = rules.firstIndex(where: { $0.settings.name == name }) else { return nil }
        return watched.first { $0.rules.contains(rule) }
    }

    /// Determines again which rules may take files of each root.
    func updateMatchers() {
        for root in watched { root.match(among: watched + foreignRoots, rules: rules) }
    }

    /// Applies other rules. A root with unchanged matches stays as it is. A root with changed matches is scanned as if
    /// for the first time.
    mutating func change(to new: [CompiledRule], ours: Set<FilePath>, at now: MonotonicTime) -> Change {
        let before = watched.map { (root: $0, matches: matches(in: $0)) }
        let oldFolders = rules.map(\.settings.name)
        let fresh = Self.roots(of: new, ours: ours, in: folders, at: now)
        foreignRoots = fresh.others
        rules = new
        watched = fresh.watched.map { root in
            guard let old = before.first(where: { $0.root.isWatched(like: root) })?.root else { return root }
            old.change(to: root.rules)
            return old
        }
        updateMatchers()
        let kept = Set(watched.map { ObjectIdentifier($0) })
        for (root, old) in before where kept.contains(ObjectIdentifier(root)) && matches(in: root) != old {
            root.state.matchesChanged(at: now)
        }
        return Change(
            dropped: before.map(\.root).filter { !kept.contains(ObjectIdentifier($0)) }, oldFolders: oldFolders)
    }

    private func matches(in root: Root) -> [Match] {
        root.matchers.map { Match(rule: rules[$0.rule].settings, position: $0.position) }
    }

    /// A root for each distinct path: those that this thread watches, and the others.
    private static func roots(
        of rules: [CompiledRule], ours: Set<FilePath>, in folders: SourceFolders, at now: MonotonicTime
    ) -> (watched: [Root], others: [Root]) {
        var paths: [FilePath] = []
        for rule in rules where !paths.contains(rule.settings.path) { paths.append(rule.settings.path) }
        let mounts = paths.allSatisfy(ours.contains) ? nil : MountTable()
        let roots = paths.map { path in
            Root(
                folders[path], rules: rules.indices.filter { rules[$0].settings.path == path }, of: rules,
                real: ours.contains(path) ? nil : mounts?.place(of: path).path, nextCheck: now)
        }
        return (roots.filter { ours.contains($0.path) }, roots.filter { !ours.contains($0.path) })
    }
}

extension Root {
    /// Whether it is watched in the same way.
    fileprivate func isWatched(like other: Root) -> Bool {
        path == other.path && isRecursive == other.isRecursive && isPolled == other.isPolled
            && requirements == other.requirements
    }
}
