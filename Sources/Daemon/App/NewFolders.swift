internal import Config
internal import Core
internal import Store
internal import Synchronization
internal import Watch

/// The folders that were never watched before. In these, files that exist already may have to be ignored (`existing:
/// skip`).
final class NewFolders: Sendable {
    private let store: Store
    private let folders = Mutex<Set<String>>([])

    init(store: Store) { self.store = store }

    /// The folders of the settings that were never watched before, as the database records it.
    func find(in settings: Settings) async throws -> Set<String> {
        var found: Set<String> = []
        for folder in settings.folders
        where try await store.read({ try $0.folders.isFirstWatch(of: folder.watch.name) }) {
            found.insert(folder.watch.name)
        }
        return found
    }

    func replace(_ found: Set<String>) { folders.withLock { $0 = found } }

    /// Folders whose existing files are to be ignored.
    func skipping(_ settings: Settings) -> Set<String> {
        let skipping = settings.folders.filter { $0.watch.existing == .skip }.map(\.watch.name)
        return folders.withLock { $0.intersection(skipping) }
    }

    /// Records that these folders were scanned. Only after the scan: if it were recorded before and the process died,
    /// the next start would treat the rest of the old files as new ones.
    func recordScan(of scanned: some Collection<String>) async throws {
        let first = folders.withLock { first in scanned.filter { first.contains($0) } }
        if !first.isEmpty { try await store.write { try $0.folders.recordWatched(first) } }
    }
}
