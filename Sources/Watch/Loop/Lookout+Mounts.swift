internal import Core
internal import Linux

// What is mounted and unmounted while it runs: no event of a directory tells of that.

extension Lookout {
    /// Scans the folders that another directory stands in front of now, or no longer, and the directories below them
    /// where that happened. The others are left alone: on a machine with containers something is mounted all the time.
    func lookForMounts() {
        fileSystems.forget()
        mountNews += 1
        hasNews = true
        let table = MountTable()
        for root in roots {
            // What cannot be looked at is found out by the scan.
            let look = try? root.folder.open().look(at: "")
            if look?.device != root.top.device || look?.inode != root.top.inode
                || !root.requirements.allSatisfy(\.isFree)
            {
                root.nextLook = clocks.monotonic()
            }
            guard let before = root.points else { continue }
            let points = table.points(below: root.real)
            root.points = points
            if points == before { continue }
            for point in Set(points.keys).union(before.keys) where points[point] != before[point] {
                if let directory = directory(point, in: root) { enqueue(directory, .event) }
            }
        }
    }

    /// The directory of a path below a root, as far down as the tree is known.
    private func directory(_ relative: FilePath, in root: Root) -> Directory? {
        guard root.isRecursive else { return nil }
        var at = root.top
        for name in relative.components {
            guard let child = at.children[name] else { return at }
            at = child
        }
        return at
    }
}

extension FolderRequirement {
    /// Nothing is asked for but what fstab(5) may say.
    fileprivate var isFree: Bool { file == nil && mount == nil }
}
