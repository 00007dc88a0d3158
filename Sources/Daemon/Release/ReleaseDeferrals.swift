internal import Core
internal import Store

/// Releases that cannot be done now, and when they are tried again: those of single sources, and those of a disk that is
/// away.
struct ReleaseDeferrals: Sendable {
    private struct AbsentDisk: Sendable {
        let disk: DiskWork
        /// Sources that were tried meanwhile. Others still are: their copies must not fill the cache.
        var assets: Set<Int64> = []
        var until: MonotonicTime
        var failures = 0
    }

    private static let backoff = Backoff(first: .seconds(10), ceiling: .seconds(1800))
    /// Single sources, with their folders.
    private var sources = Deferrals<Int64, String>(Self.backoff)
    /// Few.
    private var disks: [AbsentDisk] = []
    private var needsWake = false

    func isWaiting(_ asset: Int64, at now: MonotonicTime) -> Bool {
        sources.isWaiting(asset, at: now) || disks.contains { $0.until > now && $0.assets.contains(asset) }
    }

    /// Whether the disk of an asset was found to be away shortly before.
    func isDiskAway(of asset: AssetRecord, at now: MonotonicTime) -> Bool {
        disks.contains { $0.until > now && $0.disk == DiskWork(.release, on: asset) }
    }

    /// When the first release is tried again; `nil` while there is none.
    func nextDeadline(at now: MonotonicTime) -> Duration? {
        // Never at once: an asset may have left the list meanwhile.
        ([sources.next].compactMap(\.self) + disks.map(\.until)).min().map { max(.seconds(1), $0.since(now)) }
    }

    /// A source cannot be released now: it is tried again after a wait that becomes longer each time.
    mutating func failed(
        _ asset: AssetRecord, at now: MonotonicTime, jitter: Double
    ) -> Deferrals<Int64, String>.Deferral {
        forgetDisk(of: asset, at: now)
        return sources.failed(asset.id, asset.folder, at: now, jitter: jitter).deferral
    }

    /// A source is not to be released before `time`. That is no failure.
    mutating func wait(_ asset: AssetRecord, until time: MonotonicTime, at now: MonotonicTime) {
        forgetDisk(of: asset, at: now)
        sources.set(
            Deferrals.Deferral(until: time, failures: sources.failures(of: asset.id), asset.folder), of: asset.id)
    }

    /// A source was tried that had waited for its disk, and has another reason to wait now.
    private mutating func forgetDisk(of asset: AssetRecord, at now: MonotonicTime) {
        disks.removeAll { $0.until <= now && $0.assets.contains(asset.id) }
    }

    /// A source cannot be released because its disk is away.
    mutating func waitForDisk(_ asset: AssetRecord, at now: MonotonicTime, jitter: Double) {
        let disk = DiskWork(.release, on: asset)
        sources.remove(asset.id, at: now)
        let index = disks.firstIndex { $0.disk == disk } ?? disks.endIndex
        if index == disks.endIndex { disks.append(AbsentDisk(disk: disk, until: now)) }
        disks[index].assets.insert(asset.id)
        // Many are tried at the same time.
        guard disks[index].until <= now else { return }
        disks[index].failures += 1
        disks[index].until = now.advanced(
            by: Self.backoff.wait(afterFailures: disks[index].failures, jitter: jitter))
    }

    /// A release is over. If its source waited for its disk, that is back.
    mutating func end(_ asset: Int64, at now: MonotonicTime) {
        sources.remove(asset, at: now)
        let count = disks.count
        disks.removeAll { $0.assets.contains(asset) }
        if disks.count < count { needsWake = true }
    }

    /// Releases from these folders are tried at once, and their failures are forgotten.
    mutating func end(of folders: Set<String>) {
        sources.removeAll { _, folder in folders.contains(folder) }
        disks.removeAll { folders.contains($0.disk.folder) }
    }

    /// Forgets all assets but these, which are still to be released.
    mutating func forget(except assets: Set<Int64>) {
        sources.removeAll { asset, _ in !assets.contains(asset) }
        for index in disks.indices { disks[index].assets.formIntersection(assets) }
        disks.removeAll(where: \.assets.isEmpty)
    }

    /// - Returns: Whether releases may be done now that were deferred before.
    mutating func takeWake() -> Bool {
        defer { needsWake = false }
        return sources.takeWake() || needsWake
    }
}
