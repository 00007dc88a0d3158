internal import Core
internal import Linux

/// Finds files that would be uploaded in a loop, or twice: outputs inside watched folders, and folders inside folders.
///
/// Paths are compared after resolving symbolic links and bind mounts. A folder is looked up by each parent of a path,
/// so that a thousand folders cost no million comparisons.
struct Overlaps {
    private let findings: ProblemCollector
    private let disk: Disk
    private let mounts: MountTable
    private let folders: [SettingsReading.ReadFolder]
    private let patterns: PatternOverlaps
    private let real: [FilePath]
    private let byPath: [FilePath: [Int]]
    /// For each folder with a watched folder below it, one of those.
    private let anyBelow: [FilePath: Int]

    /// - Parameters:
    ///   - folders: Those with a path of their own.
    ///   - patterns: The others.
    init(
        findings: ProblemCollector, disk: Disk, folders: [SettingsReading.ReadFolder],
        patterns: [SettingsReading.ReadFolder]
    ) {
        self.patterns = PatternOverlaps(findings: findings, patterns: patterns)
        self.findings = findings
        self.disk = disk
        self.folders = folders
        let mounts = disk.checks == .checked ? MountTable() : MountTable(nil)
        self.mounts = mounts
        let real = folders.map { mounts.origin(of: disk.resolved(watched: $0.settings.watch.path)) }
        self.real = real
        byPath = Dictionary(grouping: real.indices) { real[$0] }
        var anyBelow: [FilePath: Int] = [:]
        for (index, path) in real.enumerated() {
            var above = path
            while above != "/", !above.isEmpty {
                above = above.parent
                if anyBelow[above] == nil { anyBelow[above] = index }
            }
        }
        self.anyBelow = anyBelow
    }

    private func resolved(_ path: FilePath) -> FilePath { mounts.origin(of: disk.resolved(path)) }

    func check(state: FilePath, at place: ConfigLocation) {
        refuse("the state folder", state, inside: place, key: "state")
    }

    func check(staging: FilePath, at place: ConfigLocation) {
        refuse("the staging folder", staging, inside: place, key: "staging.path")
    }

    /// Checks a file that is rewritten again and again.
    func check(report: FilePath, at place: ConfigLocation, key: String) {
        refuse("the file", report, inside: place, key: key)
    }

    func checkStaging(_ staging: FilePath, besides state: FilePath, at place: ConfigLocation) {
        let (staging, state) = (resolved(staging), resolved(state))
        if staging == state || state.relative(to: staging) != nil {
            findings.error(
                "the state folder `\(state.display)` is, or lies in, the staging folder, where unknown files are "
                    + "swept away; give staging a folder of its own, like `\(state.appending("staging").display)`",
                at: place, key: "staging.path")
        }
        for (index, folder) in folders.enumerated() where real[index].relative(to: staging) != nil {
            findings.error(
                "lies inside the staging folder `\(staging.display)`, whose files would be uploaded again",
                at: folder.place, key: folder.key + ".path")
        }
        patterns.check(besides: staging)
    }

    /// Checks a destination that stores files in a folder of this machine.
    func check(
        destination: DestinationSettings, besides staging: FilePath, and state: FilePath, at place: ConfigLocation
    ) {
        guard destination.type == "directory", case .path(let path)? = destination.values["path"] else { return }
        let key = "destinations.\(destination.name).path"
        refuse("the destination `\(destination.name)`", path, inside: place, key: key)
        warn("the destination `\(destination.name)`", path, around: place, key: key)
        let real = resolved(path)
        for (what, own) in [("staging", resolved(staging)), ("state", resolved(state))] {
            if real == own || real.relative(to: own) != nil {
                findings.error(
                    "`\(real.display)` is, or lies in, the \(what) folder `\(own.display)`, which belongs to the "
                        + "daemon alone; choose a path outside", at: place, key: key)
            } else if own.relative(to: real) != nil {
                findings.error(
                    "the \(what) folder `\(own.display)` lies inside the destination `\(destination.name)`, so "
                        + "cleaning up there would delete it; keep them apart", at: place, key: key)
            }
        }
    }

    /// Checks every `move` target, and all folders against each other.
    func checkFolders() {
        for folder in folders + patterns.patterns {
            guard case .move(let template) = folder.settings.afterUpload, let place = folder.target else { continue }
            // The folders before the first placeholder: the part that is known before a file comes.
            let known = FilePath(template.literalPrefix + (template.pieces.count > 1 ? "x" : "")).parent
            let key = folder.key + ".after_upload.to"
            refuse("the target of `move`", known, inside: place, key: key)
            warn("the target of `move`", known, around: place, key: key)
        }
        for index in folders.indices { checkAgainstOthers(index) }
        patterns.checkAgainstEachOther()
        for (index, folder) in folders.enumerated() { patterns.check(folder, at: real[index]) }
    }

    private func refuse(_ what: String, _ path: FilePath, inside place: ConfigLocation, key: String) {
        let path = resolved(path)
        patterns.refuse(what, path, at: place, key: key)
        for index in ancestors(of: path, andItself: true) {
            let folder = folders[index].settings.watch
            findings.error(
                "\(what) `\(path.display)` lies inside the watched folder `\(folder.name)` "
                    + "(`\(folder.path.display)`), so files put there would be uploaded again; choose a path outside",
                at: place, key: key)
            return
        }
    }

    private func warn(_ what: String, _ path: FilePath, around place: ConfigLocation, key: String) {
        let path = resolved(path)
        guard let folder = anyBelow[path].map({ folders[$0].settings.watch }) else { return }
        findings.warning(
            "the watched folder `\(folder.name)` (`\(folder.path.display)`) lies below \(what) `\(path.display)`; "
                + "make sure that no file is put into it", at: place, key: key)
    }

    /// The watched folders that contain a path, the nearest first.
    private func ancestors(of path: FilePath, andItself: Bool) -> [Int] {
        var found: [Int] = []
        var current = andItself ? path : path.parent
        while !current.isEmpty {
            found += byPath[current] ?? []
            if current == "/" { break }
            current = current.parent
        }
        return found
    }

    private func checkAgainstOthers(_ index: Int) {
        let folder = folders[index]
        for earlier in byPath[real[index]] ?? [] where earlier < index {
            if compare(folder, after: folders[earlier]) { return }
        }
        guard real[index] != "/" else { return }
        for outer in ancestors(of: real[index], andItself: false) {
            let around = folders[outer].settings.watch
            guard around.recursive, let below = real[index].relative(to: real[outer]) else { continue }
            let isLeftOut = around.exclude.contains { GlobComparison.matches($0, everythingBelow: below) }
            let areApart =
                GlobComparison.areDisjoint(
                    GlobComparison.folded(around.include), GlobComparison.folded(folder.settings.watch.include))
                || !around.limits.sizes.overlaps(folder.settings.watch.limits.sizes)
            if isLeftOut || areApart { continue }
            let (sizes, others) = (around.limits.sizes, folder.settings.watch.limits.sizes)
            let ofSize = sizes.meets(others) ? "" : " of exactly \(max(sizes.lowerBound, others.lowerBound)) bytes"
            findings.error(
                "`\(real[index].display)` lies inside the folder `\(around.name)` (`\(around.path.display)`), which would "
                    + "take the same files\(ofSize); exclude `\(below.display)/*` there, or set `recursive: false`",
                at: folder.place, key: folder.key + ".path")
            return
        }
    }

    /// Compares two folders with one path: the earlier takes the files that match its `include` and its sizes, so some
    /// files must be left for the later.
    ///
    /// - Returns: Whether nothing is left. Then that has been reported.
    private func compare(
        _ folder: SettingsReading.ReadFolder, after earlier: SettingsReading.ReadFolder
    ) -> Bool {
        let (mine, theirs) = (folder.settings.watch, earlier.settings.watch)
        let (sizes, taken) = (mine.limits.sizes, theirs.limits.sizes)
        guard sizes.meets(taken) else { return false }
        let bySize = taken.lowerBound > sizes.lowerBound || taken.upperBound < sizes.upperBound
        let patterns = (
            mine: mine.include.isEmpty ? ["*"] : mine.include, theirs: theirs.include.isEmpty ? ["*"] : theirs.include
        )
        // A folder that is not recursive takes only the files directly in it.
        let isShallow = !theirs.recursive && mine.recursive
        let shadowed = patterns.mine.filter { glob in
            if isShallow, glob.contains("/") { return false }
            let (glob, excluded) = (glob.loweredInASCII, GlobComparison.folded(theirs.exclude))
            return GlobComparison.folded(patterns.theirs).contains { GlobComparison.covers($0, glob) }
                && !excluded.contains { GlobComparison.covers($0, glob) || GlobComparison.covers(glob, $0) }
        }
        let whose = "`\(theirs.name)` (\(findings.name(of: earlier.place))) watches the same folder and comes first"
        if shadowed.count == patterns.mine.count, !bySize, !isShallow {
            findings.error(
                "\(whose), so no file would be left for this one; separate them by `include`, or by `min_size` and "
                    + "`max_size`", at: folder.place, key: folder.key + ".path")
            return true
        }
        let ofSize =
            (isShallow ? ", directly in the folder" : "") + (bySize ? ", of the sizes that both accept" : "")
        if !shadowed.isEmpty {
            findings.warning(
                "\(whose), so it takes the files that \(shadowed.map { "`\($0)`" }.joined(separator: ", ")) names here\(ofSize)",
                at: folder.place, key: folder.key + ".include")
        }
        let crossing = overlappingPatterns(of: mine, theirs, besides: shadowed, isShallow: isShallow)
        if !crossing.isEmpty {
            findings.warning(
                "\(whose), so it takes the files that \(crossing.joined(separator: ", ")) both name\(ofSize)",
                at: folder.place,
                key: folder.key + ".include")
        }
        return false
    }

    /// Pairs of patterns that match some common names: such names of `mine` go to `theirs`. A folder without `include`
    /// is meant for the files that the others leave.
    private func overlappingPatterns(
        of mine: WatchRule, _ theirs: WatchRule, besides shadowed: [String], isShallow: Bool
    ) -> [String] {
        mine.include.filter { !shadowed.contains($0) && !(isShallow && $0.contains("/")) }.compactMap { glob in
            let (own, excluded) = (glob.loweredInASCII, GlobComparison.folded(theirs.exclude + mine.exclude))
            let others = theirs.include.filter { other in
                let other = other.loweredInASCII
                return GlobComparison.mayOverlap(other, own)
                    && !excluded.contains { GlobComparison.covers($0, own) || GlobComparison.covers($0, other) }
            }
            return others.isEmpty ? nil : "\(others.map { "`\($0)`" }.joined(separator: ", ")) and `\(glob)`"
        }
    }
}

extension ClosedRange<Int64> {
    /// Whether the two have more in common than a boundary.
    fileprivate func meets(_ other: Self) -> Bool {
        Swift.min(upperBound, other.upperBound) > Swift.max(lowerBound, other.lowerBound) || self == other
    }
}

extension FileLimits {
    /// The accepted sizes.
    fileprivate var sizes: ClosedRange<Int64> {
        let least = minSize ?? 0
        return least...max(least, maxSize ?? .max)
    }
}
