internal import Core
internal import Linux

// Changes of folders during the run.

extension WatchLoop {
    /// A tree for each distinct path: those that this thread watches, and the others.
    static func roots(
        of rules: [Rule], in folders: SourceFolders, ours: Set<FilePath>, nextCheck: MonotonicTime
    ) -> (ours: [Root], others: [Root]) {
        var paths: [FilePath] = []
        for rule in rules where !paths.contains(rule.settings.path) { paths.append(rule.settings.path) }
        let roots = paths.map { path in
            Root(
                folders[path], rules: rules.indices.filter { rules[$0].settings.path == path }, of: rules,
                nextCheck: nextCheck)
        }
        let others = roots.filter { !ours.contains($0.path) }
        if !others.isEmpty {
            let mounts = MountTable()
            for root in others { root.real = mounts.place(of: root.path).path }
        }
        return (roots.filter { ours.contains($0.path) }, others)
    }

    /// The settings that decide which files of a tree are taken, and how they settle.
    private struct Claim: Equatable {
        let rule: WatchRule
        let position: RuleMatcher.Position
    }

    private func claims(on root: Root) -> [Claim] {
        root.claimants.map { Claim(rule: rules[$0.rule].settings, position: $0.position) }
    }

    /// Applies other rules. A tree with unchanged claims keeps its watches, its settling files and the files found in
    /// it. A tree with changed claims is scanned as if for the first time, with its watches in place.
    func change(to new: [Rule], ours: Set<FilePath>) {
        let before = roots.map { (root: $0, claims: claims(on: $0)) }
        let oldNames = rules.map(\.settings.name)
        let fresh = Self.roots(of: new, in: folders, ours: ours, nextCheck: now)
        others = fresh.others
        rules = new
        roots = fresh.ours.map { root in
            guard
                let old = before.first(where: { $0.root.isLike(root) })
            else { return root }
            old.root.rules = root.rules
            return old.root
        }
        let kept = Set(roots.map { ObjectIdentifier($0) })
        for (root, _) in before where !kept.contains(ObjectIdentifier(root)) { leave(root) }
        reclaim()
        for (root, old) in before where kept.contains(ObjectIdentifier(root)) && claims(on: root) != old {
            root.isFirst = true
            root.nextCheck = now
        }
        revise(oldNames)
        hasNews = true
        // People must see their changes at once.
        lastPublished = nil
    }

    /// Removes a tree, and everything that still refers to a directory of it.
    private func leave(_ root: Root) {
        func isOurs(_ directory: Directory) -> Bool { directory.root === root }
        if let directory = cursor?.directory, isOurs(directory) { cursor = nil }
        urgent.removeAll(where: isOurs)
        ordinary.removeAll(where: isOurs)
        for moved in moving where isOurs(moved.directory) {
            dissolve(moved.directory)
            moved.directory.isGone = true
        }
        moving.removeAll { isOurs($0.directory) }
        found.leaveOut(isOurs)
        asked?.leaveOut(isOurs)
        skipped = skipped.filter { !isOurs($0.key.directory) }
        ready.removeAll { isOurs($0.place.directory) }
        awaited = awaited.filter { !isOurs($0.key.directory) }
        complained = complained.filter { !isOurs($0.directory) }
        dissolve(root.top)
        root.top.isGone = true
        moves += 1
    }

    /// Determines the folders again of files that are being processed.
    private func revise(_ oldNames: [String]) {
        func winner(_ place: Place, _ size: Int64?) -> Int? {
            guard !place.directory.isGone, let folder = place.directory.relative else { return nil }
            return taker(of: place.name, size: size, in: place.directory, at: folder)
        }
        func revised(_ file: Found) -> Int? {
            // A file of another folder is another file: the scan after the change finds it under its new name.
            winner(file.place, file.status.size).flatMap { rules[$0].settings.name == file.identity.folder ? $0 : nil }
        }
        found.revise(revised)
        asked?.revise(revised)
        skipped = skipped.filter { place, file in
            winner(place, file.status.size).map { rules[$0].settings.name == file.folder && rules[$0].skipsExisting }
                ?? false
        }
        ready = ready.filter { place, file in
            winner(place, file.status.size).map { rules[$0].settings.name == file.folder } ?? false
        }
        let candidates = settling.all
        settling.revise { place, group in
            // It is between two names: its folder is determined again when its time comes.
            if !place.directory.isGone, place.directory.relative == nil {
                return rules.firstIndex { $0.settings.name == oldNames[group] }.map {
                    ($0, rules[$0].settings.quietFor)
                }
            }
            return winner(place, candidates[place]?.status.size).map { ($0, rules[$0].settings.quietFor) }
        }
    }
}

extension Root {
    /// Whether it is watched in the same way.
    fileprivate func isLike(_ other: Root) -> Bool {
        path == other.path && isRecursive == other.isRecursive && isPolled == other.isPolled
            && requirements == other.requirements
    }
}
