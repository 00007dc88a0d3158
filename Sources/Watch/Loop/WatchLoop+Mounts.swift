internal import Core
internal import Linux

// Mounts and unmounts during the run: no event of a directory reports them.

extension WatchLoop {
    /// Scans the folders that another directory covers now, or no longer, and the directories below them where that
    /// happened. The others are left alone: on a machine with containers, mounts change all the time.
    func lookForMounts() {
        fileSystems.forget()
        mountNews += 1
        hasNews = true
        let table = MountTable()
        for root in roots {
            // A folder that cannot be examined is handled by the scan.
            let status = try? root.folder.open().status(at: "")
            if status?.device != root.top.device || status?.inode != root.top.inode
                || !root.requirements.allSatisfy(\.isFree)
            {
                root.nextCheck = clocks.monotonic()
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
    /// Whether nothing is required except possibly by fstab(5).
    fileprivate var isFree: Bool { file == nil && mount == nil }
}
