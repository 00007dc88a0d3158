internal import Config
internal import Core
internal import Watch

/// Files that groups wait for: their last status, and since when.
struct AwaitedFiles {
    private var seen: [SourcePath: (status: FileStatus, since: MonotonicTime)] = [:]
    /// How long a file without events has to be quiet before it counts.
    private static let longestQuiet = QuietTimes().withoutEvents

    /// Whether a file that was never recorded has changed so recently that it may still settle. One that has been
    /// unchanged for much longer than settling takes is excluded by another rule of its folder (its size, its age), or
    /// its marker never arrived.
    mutating func hasChangedLately(
        _ path: SourcePath, _ status: FileStatus, _ folder: FolderSettings, at now: MonotonicTime
    ) -> Bool {
        guard let before = seen[path], before.status == status else {
            seen[path] = (status, now)
            return true
        }
        return now.since(before.since) <= max(folder.watch.quietFor ?? .zero, Self.longestQuiet) * 2
    }

    /// The group of this name has gone.
    mutating func forget(of group: SourcePath) {
        seen = seen.filter { $0.key.root != group.root || !$0.key.relative.bytes.starts(with: group.relative.bytes) }
    }
}
