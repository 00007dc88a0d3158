internal import Core
internal import Store

/// Copies that cannot be made now, and when they are tried again: those of single files whose source cannot be read or
/// changes, and all of them while the staging folder refuses copies.
///
/// A value: the stager passes each event to it, with the time.
struct CopyDeferrals: Sendable {
    /// A recorded file.
    struct Source: Sendable {
        let asset: Int64
        let folder: String
        let exports: Bool
    }

    /// How long a file waits after a failure.
    struct Wait: Hashable, Sendable {
        let duration: Duration
        /// Failures in a row.
        let count: Int
        /// The 1st, 2nd, 4th, 8th … time: a folder with files of another user must not fill the log.
        var shouldLog: Bool { count & (count - 1) == 0 }
    }

    /// The interval between tries of a staging folder that does not work or has no space.
    static let blockTime: Duration = .seconds(10)

    private static let backoff = Backoff(first: .seconds(10), ceiling: .seconds(600))
    private var entries = Deferrals<Int64, Source>(Self.backoff)
    /// Disks that are away, each with all of its files: there may be a hundred thousand.
    private var disks = Deferrals<DiskWork, DiskFiles>(Self.backoff)
    /// How often in a row a file's source had changed when its copy was made.
    private var changes: [Int64: Int] = [:]
    /// Folders whose settings block all of their files.
    private var blockedFolders: Set<String> = []
    /// Folders whose commands for exports policy holds.
    private(set) var heldFolders: Set<String> = []
    /// The staging folder refused a copy: none is tried before this.
    private var blockedUntil: MonotonicTime?

    var isEmpty: Bool { entries.isEmpty && disks.isEmpty }

    /// The files that are not to be tried yet.
    func waiting(at now: MonotonicTime) -> Set<Int64> {
        // The largest comes first, so that only the others are inserted.
        let sets = disks.waiting(at: now).compactMap { disks.detail(of: $0)?.assets }.sorted { $0.count > $1.count }
        var all = sets.first ?? []
        for other in sets.dropFirst() { all.formUnion(other) }
        return all.union(entries.waiting(at: now))
    }

    /// The files whose time has come.
    func due(at now: MonotonicTime, exports: Bool) -> [Int64] {
        entries.due(at: now) { $0.exports == exports }
    }

    /// The disks whose time has come, without those that have one of these files.
    func disksDue(at now: MonotonicTime, exports: Bool, without assets: Set<Int64>) -> [DiskWork] {
        disks.due(at: now) { ($0.disk.kind == .export) == exports && $0.assets.isDisjoint(with: assets) }
    }

    /// Whether a file waits with its disk, which is not to be tried yet.
    func isWaiting(_ asset: Int64, with disk: DiskWork, at now: MonotonicTime) -> Bool {
        disks.isWaiting(disk, at: now) && disks.detail(of: disk)?.assets.contains(asset) == true
    }

    /// Whether a disk is not to be tried yet.
    func isWaiting(_ disk: DiskWork, at now: MonotonicTime) -> Bool { disks.isWaiting(disk, at: now) }

    /// Whether the staging folder has refused a copy shortly before.
    func isBlocked(at now: MonotonicTime) -> Bool { blockedUntil.map { $0 > now } ?? false }

    /// The files whose source had changed during their last copy.
    var changing: [Int64] { Array(changes.keys) }

    /// How long until a file may be copied that cannot be copied now; `nil` while there is none.
    ///
    /// - Parameter isTroubled: The staging folder has no space or does not work. Other programs may free space, without
    ///   notice.
    func nextDeadline(at now: MonotonicTime, isTroubled: Bool) -> Duration? {
        let times = [entries.next, disks.next, blockedUntil].compactMap(\.self)
        // Never at once: a due file may lack space.
        let earliest = times.min().map { max(.seconds(1), $0.since(now)) }
        return isTroubled ? min(earliest ?? Self.blockTime, Self.blockTime) : earliest
    }

    // MARK: One file

    /// The source cannot be copied now: it is tried again after a wait that becomes longer each time.
    mutating func failed(_ source: Source, at now: MonotonicTime, jitter: Double) -> Wait {
        let (wait, deferral) = entries.failed(source.asset, source, at: now, jitter: jitter)
        return Wait(duration: wait, count: deferral.failures)
    }

    /// All files of a disk wait, longer each time, and none for itself any more.
    mutating func away(_ disk: DiskWork, _ assets: Set<Int64>, at now: MonotonicTime, jitter: Double) -> Duration {
        entries.removeAll { asset, _ in assets.contains(asset) }
        return disks.failed(disk, DiskFiles(disk: disk, assets: assets), at: now, jitter: jitter).wait
    }

    /// The source has changed while it was copied.
    ///
    /// - Returns: `nil` for the first times, when its copy is made as soon as it has settled again; then it is copied
    ///   less and less often.
    mutating func changed(_ source: Source, at now: MonotonicTime) -> Wait? {
        end(source.asset, at: now)
        let count = (changes[source.asset] ?? 0) + 1
        changes[source.asset] = count
        guard count >= 3 else { return nil }
        let wait = Backoff(first: .seconds(5), ceiling: .seconds(600)).wait(afterFailures: count - 2, jitter: 1)
        entries.set(Deferrals.Deferral(until: now.advanced(by: wait), failures: 0, source), of: source.asset)
        return Wait(duration: wait, count: count)
    }

    /// Policy holds the command that makes the file to upload: it is tried again when that is over, and now and then.
    ///
    /// - Returns: Whether no other file of its folder waits for that.
    mutating func hold(_ source: Source, at now: MonotonicTime) -> Bool {
        entries.set(Deferrals.Deferral(until: now.advanced(by: .seconds(600)), failures: 0, source), of: source.asset)
        return heldFolders.insert(source.folder).inserted
    }

    /// Policy no longer holds the commands of a folder: its files are tried at once.
    mutating func endHold(of folder: String, at now: MonotonicTime) {
        heldFolders.remove(folder)
        retry([folder], at: now)
    }

    /// Ends the deferral of a file.
    mutating func end(_ asset: Int64, at now: MonotonicTime) {
        entries.remove(asset, at: now)
    }

    /// A file was read: its disk is there again.
    mutating func endDisk(of asset: Int64, at now: MonotonicTime) {
        for disk in disks.keys(where: { $0.assets.contains(asset) }) { end(disk, at: now) }
    }

    /// Ends the deferral of a disk.
    mutating func end(_ disk: DiskWork, at now: MonotonicTime) { disks.remove(disk, at: now) }

    /// Forgets how often the source of a file has changed: it was copied, or never will be.
    mutating func forgetChanges(of asset: Int64) { changes[asset] = nil }

    // MARK: Many files

    /// Files of these folders are tried at once.
    ///
    /// - Parameter folders: `nil` for all.
    mutating func retry(_ folders: Set<String>? = nil, at now: MonotonicTime) {
        entries.retry(at: now) { folders?.contains($0.folder) ?? true }
        disks.retry(at: now) { folders?.contains($0.disk.folder) ?? true }
    }

    /// The staging folder refused a copy, so it would refuse the next: all copies wait a little.
    mutating func block(at now: MonotonicTime) { blockedUntil = now.advanced(by: Self.blockTime) }

    /// The staging folder has accepted a copy.
    mutating func unblock() { blockedUntil = nil }

    /// The settings of a folder block all of its files.
    mutating func block(folder: String) { blockedFolders.insert(folder) }

    /// The settings changed: everything is tried at once.
    ///
    /// - Returns: The folders whose settings blocked their files until now.
    mutating func settingsChanged(at now: MonotonicTime) -> Set<String> {
        blockedUntil = nil
        retry(at: now)
        defer { blockedFolders = [] }
        return blockedFolders
    }

    /// - Returns: Whether to wake the workers.
    mutating func takeWake() -> Bool {
        let (one, other) = (entries.takeWake(), disks.takeWake())
        return one || other
    }
}

extension CopyDeferrals.Source {
    init(_ asset: AssetRecord) {
        self.init(asset: asset.id, folder: asset.folder, exports: asset.stagingMode == .export)
    }
}
