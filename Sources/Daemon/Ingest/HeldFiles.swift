/// Settled files that are in memory only so far: those that wait for others of their group, and those that wait to be
/// read.
struct HeldFiles: Sendable {
    let grouping: FileGrouper
    let reading: MediaQueue

    /// The waiting files, by folder.
    ///
    /// - Parameter most: Files to name in each.
    func waiting(naming most: Int) async -> [String: GroupWaits] {
        await grouping.waiting(naming: most).merging(reading.waits(naming: most)) { one, other in
            GroupWaits(files: one.files + other.files, first: one.first + other.first)
        }
    }

    /// Their number in each folder, with those that are being recorded.
    var counts: [String: Int] {
        get async { await grouping.held.merging(reading.held, uniquingKeysWith: +) }
    }

    /// Whether every group waits only for another file, and no file waits to be read.
    var isAtRest: Bool {
        get async {
            let isGrouped = await grouping.isAtRest
            return await reading.isAtRest && isGrouped
        }
    }
}
