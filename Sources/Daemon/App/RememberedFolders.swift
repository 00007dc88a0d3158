internal import Config
internal import Core
internal import Linux
internal import Store

extension SourceFolders {
    /// The configured folders, with the directories that earlier runs recorded for them; new directories are recorded.
    convenience init(recordedIn store: Store, _ log: Log) async throws {
        let remembered = try await store.read { try $0.folders.identities() }
        self.init(remembered: remembered) { news in
            let (path, identity): (FilePath, FolderIdentity)
            switch news {
            case .remembered(let folder, let found): (path, identity) = (folder, found)
            case .replaced(let folder, let found, let before):
                (path, identity) = (folder, found)
                log.notice(
                    "another directory stands in place of the one before, and is taken for its owner",
                    [
                        "path": folder.display, "owner": Accounts.shown(found.owner),
                        "owner_before": Accounts.shown(before.owner),
                    ])
            }
            // Stored outside the calling thread, which waits for a disk. An identity that is not stored is found again
            // by the next start.
            Task {
                do { try await store.write { try $0.folders.remember(identity, at: path) } } catch {
                    log.warning(
                        "which directory a folder is could not be kept", ["path": path.display, "reason": "\(error)"])
                }
            }
        }
    }
}
