internal import Core
internal import Linux
internal import Staging
internal import Store

/// Removes leftovers of a crash from the staging folder: partial copies, and complete ones that no asset needs. A copy
/// of an unknown asset may be all that is left of a file, and is set aside.
///
/// Has to end before the first copy is made, since a new copy has the name of the leftover that it replaces. Uploads do
/// not wait for it: the copy of a *staged* asset is never touched.
struct Sweep: Sendable {
    let context: Context
    let troubles: Alerts

    /// The number of names that are read at once, 8 bytes each. A folder returns them in no order, and only sorted ones
    /// are adjacent in the store: in small pieces each would be looked up alone.
    private static let piece = 1 << 18
    /// Names in one query, so that other queries do not wait long.
    private static let question = 1_000

    /// Sweeps, and tries again while the folder or the state does not allow it.
    func run() async throws {
        while !Task.isCancelled {
            do {
                try await sweep()
                if troubles.clear("staging") { context.log.notice("staging continues") }
                return
            } catch let error where !(error is CancellationError) {
                let hold = Hold(
                    .disk, since: context.clocks.wall(), text: "cannot list the staging folder: \(error)")
                if troubles.set("staging", hold) {
                    context.log.error("staging waits: cannot list its folder", ["reason": "\(error)"])
                }
                try await Alarms.shared.sleep(for: .seconds(10))
            }
        }
    }

    private func sweep() async throws {
        let staging = context.staging
        try await blocking { try staging.prepare() }
        let sweep = StagingWalk(staging)
        var swept = 0
        while let numbers = try await sweep.next(atMost: Self.piece) {
            for asked in numbers.pieces(of: Self.question) {
                try Task.checkCancellation()
                let owned = try await context.store.read { try $0.assets.owned(Array(asked)) }
                let loose = asked.filter { !owned.contains($0) }
                if loose.isEmpty { continue }
                let known = try await context.store.read { try $0.assets.existing(loose) }
                let stray = loose.filter { known.contains($0) }
                try await blocking { for number in stray { try staging.remove(FilePath("\(number)")) } }
                swept += stray.count
                for number in loose where !known.contains(number) { try await setAside(number) }
            }
        }
        // Before new bytes can be handed over.
        try await context.store.forgetReceptions()
        if swept > 0 { context.log.info("removed unneeded staged copies", ["files": "\(swept)"]) }
    }

    private func setAside(_ number: Int64) async throws {
        let staging = context.staging
        let place = try await blocking { try staging.setAside(FilePath("\(number)")) }
        context.log.warning(
            "moved a staged copy without a database record aside; `getfattr -d` shows its source",
            ["path": place.display])
    }
}
