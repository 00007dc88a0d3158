internal import Core

/// A configured folder, its globs compiled.
struct Rule {
    let settings: WatchRule
    let names: NameRules
    /// Files that its first scan finds are reported and left alone.
    let skipsExisting: Bool
    let hasLimits: Bool

    init(_ settings: WatchRule, skipsExisting: Bool) {
        self.settings = settings
        self.skipsExisting = skipsExisting
        hasLimits = settings.limits != .none
        names = NameRules(include: settings.include, exclude: settings.exclude, marker: settings.marker)
    }
}

/// A rule that may take files of a root: its own, or one whose folder lies above or below it.
struct Claimant {
    enum Position: Equatable {
        case here
        /// The rule's folder lies above; the path from there to this root.
        case above(FilePath)
        /// The rule's folder lies below; the path from this root to it.
        case below(FilePath)
    }

    let rule: Int
    let position: Position

    /// Who may claim files of `root`. What comes after the root's own last rule could only take what that left.
    static func all(for root: Root, among roots: [Root], rules: [Rule]) -> [Claimant] {
        var claimants: [Claimant] = []
        for other in roots {
            let position: Position
            if other === root || other.real == root.real {
                position = .here
            } else if let between = root.real.relative(to: other.real) {
                // The other tree never comes here if it leaves out a directory on the way.
                guard other.isRecursive, !between.components.contains(where: { TemporaryNames.contains($0) }) else {
                    continue
                }
                position = .above(between)
            } else if root.isRecursive, let between = other.real.relative(to: root.real) {
                position = .below(between)
            } else {
                continue
            }
            claimants += other.rules.map { Claimant(rule: $0, position: position) }
        }
        claimants.sort { $0.rule < $1.rule }
        let own = Set(root.rules)
        return Array(claimants.prefix(through: claimants.lastIndex { own.contains($0.rule) } ?? -1))
    }

    /// The folder of a file, as the rule sees it; `nil` when it is outside.
    private func folder(_ relative: FilePath) -> FilePath? {
        switch position {
        case .here: return relative
        case .above(let between): return between.appending(relative)
        case .below(let between):
            if relative == between { return FilePath("") }
            return relative.relative(to: between)
        }
    }

    func takes(_ name: UnsafeBufferPointer<UInt8>, in relative: FilePath, rules: [Rule]) -> Bool {
        guard let folder = folder(relative) else { return false }
        // Read where it stands: a rule has many parts, and a scan asks for each name.
        return (rules[rule].settings.recursive || folder.isEmpty) && rules[rule].names.takes(name, in: folder)
    }
}

extension Array where Element == Claimant {
    fileprivate func prefix(through index: Int) -> ArraySlice<Claimant> { self[..<(index + 1)] }

    /// The first rule that takes the name, if it is one of this root's own.
    func winner(for name: UnsafeBufferPointer<UInt8>, in relative: FilePath, of root: Root, rules: [Rule]) -> Int? {
        for claimant in self where claimant.takes(name, in: relative, rules: rules) {
            return root.rules.contains(claimant.rule) ? claimant.rule : nil
        }
        return nil
    }
}
