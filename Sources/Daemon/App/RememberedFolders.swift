internal import Config
internal import Core
internal import Linux
internal import Store

extension SourceFolders {
    /// The configured folders, with the directories that earlier runs recorded for them; new directories are recorded.
    convenience init(recordedIn store: Store, _ log: Log) async throws {
        let remembered = try await store.read { try $0.folders.identities() }
        self.init(remembered: remembered) { change in
            let (path, identity): (FilePath, FolderIdentity)
            switch change {
            case .remembered(let folder, let found): (path, identity) = (folder, found)
            case .replaced(let folder, let found, let before):
                (path, identity) = (folder, found)
                log.notice(
                    "the directory of a folder was replaced; the new one is accepted because its owner may replace it",
                    [
                        "path": folder.display, "owner": UserDatabase.shown(found.owner),
                        "owner_before": UserDatabase.shown(before.owner),
                    ])
            }
            // Stored outside the calling thread, which waits for a disk. An identity that is not stored is found again
            // by the next start.
            Task {
                do { try await store.write { try $0.folders.remember(identity, at: path) } } catch {
                    log.warning(
                        "cannot record the identity of a folder's directory",
                        ["path": path.display, "reason": "\(error)"])
                }
            }
        }
    }
}
