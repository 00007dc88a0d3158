internal import Config
internal import Core
internal import Linux
internal import Store

// Files whose content was uploaded before.

extension Scheduler {
    /// Folders that skip duplicates.
    var alike: [String] { house.settings.folders.filter { $0.duplicates == .skip }.map(\.watch.name) }

    nonisolated func tellRepeat(_ asset: AssetRecord) {
        house.log.info(
            "not sent again: the same content was uploaded before, `sluice show` says as what; the source is kept",
            ["path": asset.path.display])
        house.releaseSignal.signal()
    }
}
