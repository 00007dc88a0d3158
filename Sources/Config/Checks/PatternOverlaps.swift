internal import Core

/// Finds files that would be uploaded in a loop, or twice, because of folders whose path is a pattern. A pattern is
/// compared with other paths as it is written: which mount points there will be is not known.
struct PatternOverlaps {
    let findings: ProblemCollector
    let patterns: [SettingsReading.ReadFolder]

    private var all: [(folder: SettingsReading.ReadFolder, pattern: MountPattern)] {
        patterns.compactMap { folder in folder.settings.pattern.map { (folder, $0) } }
    }

    /// Checks a path that the daemon or a program writes to.
    func refuse(_ what: String, _ path: FilePath, at place: ConfigLocation, key: String) {
        guard let (folder, _) = all.first(where: { $0.pattern.mayContain(path) }) else { return }
        findings.error(
            "\(what) `\(path.display)` is in one of the folders that `\(folder.settings.watch.name)` "
                + "(`\(folder.settings.watch.path.display)`) stands for, so files put there would be uploaded again; "
                + "choose a path outside", at: place, key: key)
    }

    /// - Parameter staging: With links resolved.
    func check(besides staging: FilePath) {
        for (folder, pattern) in all where pattern.mayLie(below: staging) {
            findings.error(
                "may lie inside the staging folder `\(staging.display)`, whose files would be uploaded again",
                at: folder.place, key: folder.key + ".path")
        }
    }

    /// Checks a folder with a path of its own.
    ///
    /// - Parameter path: With links resolved.
    func check(_ folder: SettingsReading.ReadFolder, at path: FilePath) {
        let name = folder.settings.watch.name
        for (other, _) in all where name.hasPrefix(other.settings.watch.name + "-") {
            findings.warning(
                "may be the name of a card of `\(other.settings.watch.name)`, which would get another name then, and all "
                    + "its files be sent again; choose a name that does not begin with `\(other.settings.watch.name)-`",
                at: folder.place, key: folder.key + ".name")
        }
        for (other, pattern) in all where pattern.mayContain(path) || pattern.mayLie(below: path) {
            if areApart(folder.settings.watch, other.settings.watch) { continue }
            findings.error(
                "`\(path.display)` may be, contain or lie in a folder that `\(other.settings.watch.name)` "
                    + "(`\(other.settings.watch.path.display)`) stands for, so its files would be uploaded twice; choose "
                    + "mount points that one of them does not name", at: folder.place, key: folder.key + ".path")
        }
    }

    func checkAgainstEachOther() {
        for (index, (folder, pattern)) in all.enumerated() {
            for (other, earlier) in all[..<index] where mayMeet(pattern, earlier) {
                if areApart(folder.settings.watch, other.settings.watch) { continue }
                findings.error(
                    "may be, contain or lie in a folder that `\(other.settings.watch.name)` "
                        + "(`\(other.settings.watch.path.display)`) stands for, so files would be uploaded twice; separate "
                        + "them by `include`, or by the directories that they name",
                    at: folder.place, key: folder.key + ".path")
            }
        }
    }

    private func areApart(_ a: WatchRule, _ b: WatchRule) -> Bool {
        GlobComparison.areDisjoint(GlobComparison.folded(a.include), GlobComparison.folded(b.include))
    }

    /// Whether a folder of one pattern may be, or contain, or lie in one of the other's.
    private func mayMeet(_ a: MountPattern, _ b: MountPattern) -> Bool {
        let (own, theirs) = (a.mount.appending(a.rest).components, b.mount.appending(b.rest).components)
        return zip(own, theirs).allSatisfy { own, theirs in
            switch (Glob.hasWildcard(own), Glob.hasWildcard(theirs)) {
            case (true, true): GlobComparison.mayOverlap(own.display.loweredInASCII, theirs.display.loweredInASCII)
            case (true, false): Glob(bytes: own.bytes).matches(theirs)
            case (false, true): Glob(bytes: theirs.bytes).matches(own)
            case (false, false): own == theirs
            }
        }
    }
}
