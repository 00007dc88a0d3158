internal import Core

/// A configured folder, with compiled globs.
struct CompiledRule {
    let settings: WatchRule
    let names: NameRules
    /// Whether files that its first scan finds are reported and left alone.
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
struct RuleMatcher {
    enum Position: Equatable {
        case here
        /// The rule's folder lies above; the path from there to this root.
        case above(FilePath)
        /// The rule's folder lies below; the path from this root to it.
        case below(FilePath)
    }

    let rule: Int
    let position: Position

    /// The rules that may claim files of `root`. Those after the root's own last rule could only take files that it
    /// does not take.
    static func all(for root: Root, among roots: [Root], rules: [CompiledRule]) -> [RuleMatcher] {
        var matchers: [RuleMatcher] = []
        for other in roots {
            let position: Position
            if other === root || other.real == root.real {
                position = .here
            } else if let between = root.real.relative(to: other.real) {
                // The other tree's scan never comes here if it leaves out a directory on the way.
                guard other.isRecursive, !between.components.contains(where: { TemporaryNames.contains($0) }) else {
                    continue
                }
                position = .above(between)
            } else if root.isRecursive, let between = other.real.relative(to: root.real) {
                position = .below(between)
            } else {
                continue
            }
            matchers += other.rules.map { RuleMatcher(rule: $0, position: position) }
        }
        matchers.sort { $0.rule < $1.rule }
        let own = Set(root.rules)
        return Array(matchers.prefix(through: matchers.lastIndex { own.contains($0.rule) } ?? -1))
    }

    /// The folder of a file, relative to the rule's folder; `nil` when it is outside.
    private func folder(_ relative: FilePath) -> FilePath? {
        switch position {
        case .here: return relative
        case .above(let between): return between.appending(relative)
        case .below(let between):
            if relative == between { return FilePath("") }
            return relative.relative(to: between)
        }
    }

    /// The contender for the names of one directory; `nil` when that is outside.
    ///
    /// - Parameter relative: The directory's path below the root.
    fileprivate func contender(in relative: FilePath, of root: Root, rules: [CompiledRule]) -> DirectoryMatcher? {
        guard let folder = folder(relative), rules[rule].settings.recursive || folder.isEmpty else { return nil }
        return DirectoryMatcher(
            rule: rule, isOwn: root.rules.contains(rule), names: rules[rule].names, limits: rules[rule].settings.limits,
            folder: folder)
    }
}

/// A matcher, and one directory whose names it may match: computed once, because a scan evaluates each name. A class,
/// because it is passed about as often.
final class DirectoryMatcher {
    let rule: Int
    fileprivate let isOwn: Bool
    private let names: NameRules
    fileprivate let limits: FileLimits
    /// The directory, relative to the rule's folder.
    private let folder: FilePath

    fileprivate init(rule: Int, isOwn: Bool, names: NameRules, limits: FileLimits, folder: FilePath) {
        self.rule = rule
        self.isOwn = isOwn
        self.names = names
        self.limits = limits
        self.folder = folder
    }

    fileprivate func matches(_ name: UnsafeBufferPointer<UInt8>) -> Bool { names.matches(name, in: folder) }
}

extension [DirectoryMatcher] {
    /// The first rule that takes the name, and the size where that is known, if it is one of the directory's own tree.
    /// If no rule takes such a size, the first that takes the name is returned: it explains why the file is left alone.
    func firstMatch(for name: UnsafeBufferPointer<UInt8>, size: Int64? = nil) -> Int? {
        var byName: DirectoryMatcher?
        for contender in self where contender.matches(name) {
            guard let size, !contender.limits.allows(size: size) else { return contender.isOwn ? contender.rule : nil }
            byName = byName ?? contender
        }
        return byName.flatMap { $0.isOwn ? $0.rule : nil }
    }

    /// Whether any rule takes the name: the rule may depend on the size.
    func hasMatch(for name: UnsafeBufferPointer<UInt8>) -> Bool {
        contains { $0.isOwn && $0.matches(name) }
    }
}

extension [RuleMatcher] {
    fileprivate func prefix(through index: Int) -> ArraySlice<RuleMatcher> { self[..<(index + 1)] }

    /// The contenders for the names of a directory.
    func contenders(in relative: FilePath, of root: Root, rules: [CompiledRule]) -> [DirectoryMatcher] {
        compactMap { $0.contender(in: relative, of: root, rules: rules) }
    }

    func winner(
        for name: UnsafeBufferPointer<UInt8>, size: Int64?, in relative: FilePath, of root: Root, rules: [CompiledRule]
    ) -> Int? {
        contenders(in: relative, of: root, rules: rules).firstMatch(for: name, size: size)
    }
}

extension WatchedDirectory {
    /// The rule that takes a file of this directory; `nil` if none does, or an ignore file excludes it.
    ///
    /// - Parameter relative: The path of this directory below its root.
    func rule(for name: FilePath, size: Int64?, at relative: FilePath, among rules: [CompiledRule]) -> Int? {
        name.bytes.withUnsafeBufferPointer { bytes in
            guard let winner = root.matchers.winner(for: bytes, size: size, in: relative, of: root, rules: rules),
                !ignored.ignores(bytes)
            else { return nil }
            return winner
        }
    }

    /// Whether any rule takes a name of this directory: the rule may depend on the size.
    func hasRule(for name: FilePath, at relative: FilePath, among rules: [CompiledRule]) -> Bool {
        name.bytes.withUnsafeBufferPointer { bytes in
            root.matchers.contenders(in: relative, of: root, rules: rules).hasMatch(for: bytes)
                && !ignored.ignores(bytes)
        }
    }
}
