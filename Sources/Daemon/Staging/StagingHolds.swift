internal import Core
internal import Synchronization

/// Reasons why files wait for their copies, or for their sources where these are uploaded in place: those of single
/// files, and one for all files of a disk that is away.
final class StagingHolds: Sendable {
    private struct DiskHold {
        var hold: Hold
        var assets: Set<Int64>
    }

    private let single = Alerts()
    private let disks = Mutex<[DiskWork: DiskHold]>([:])

    /// The hold of an asset. One of its own is newer than that of its disk, which ended all that its files had then.
    subscript(asset: Int64) -> Hold? {
        single["\(asset)"]
            ?? disks.withLock { disks in disks.values.first { $0.assets.contains(asset) }?.hold }
    }

    /// Whether an asset has no hold of its own, and that of its disk.
    func waitsWithDisk(_ asset: Int64) -> Bool {
        single["\(asset)"] == nil && disks.withLock { $0.values.contains { $0.assets.contains(asset) } }
    }

    var isEmpty: Bool { disks.withLock(\.isEmpty) && single.isEmpty }

    /// - Returns: Whether this hold is new.
    @discardableResult
    func set(_ asset: Int64, _ hold: Hold) -> Bool { single.set("\(asset)", hold) }

    /// How often the hold of a single asset was set since it came.
    func count(_ asset: Int64) -> Int { single.count("\(asset)") }

    /// Ends the hold of an asset.
    func clear(_ asset: Int64) { _ = single.clear("\(asset)") }

    /// A file was read: its disk is there again.
    func clearStaging(onDiskOf asset: Int64) {
        disks.withLock { disks in
            disks = disks.filter { $0.key.kind == .uploadInPlace || !$0.value.assets.contains(asset) }
        }
    }

    /// All files of a disk wait. The hold keeps its first time, however often it is set, while its kind is the same.
    func set(_ disk: DiskWork, _ hold: Hold, of assets: Set<Int64>) {
        single.clear(where: { Int64($0).map(assets.contains) ?? false })
        disks.withLock { disks in
            let known = disks[disk]?.hold
            let since = known?.kind == hold.kind ? known?.since ?? hold.since : hold.since
            disks[disk] = DiskHold(
                hold: Hold(hold.kind, since: since, until: hold.until, text: hold.text), assets: assets)
        }
    }

    /// More files of a disk wait; the others of it have this hold too from now on.
    ///
    /// The caller calls it for a disk from one place at a time.
    func add(_ assets: Set<Int64>, to disk: DiskWork, _ hold: Hold) {
        set(disk, hold, of: disks.withLock { $0[disk]?.assets ?? [] }.union(assets))
    }

    /// The files of a disk wait until another time.
    func extend(_ disk: DiskWork, until time: WallTime) { disks.withLock { $0[disk]?.hold.until = time } }

    /// No file of the disk waits any more.
    func clear(_ disk: DiskWork) { disks.withLock { $0[disk] = nil } }
}
