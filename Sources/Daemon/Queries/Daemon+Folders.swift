internal import Config
internal import Core
internal import Linux
internal import Store

// The directories of the configured folders.

extension Daemon {
    /// The configured folders, with the directories that earlier runs recorded for them; new directories are recorded.
    static func sources(_ store: Store, _ log: Log) async throws -> SourceFolders {
        let remembered = try await store.folderIdentities()
        return SourceFolders(remembered: remembered) { news in
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
                do { try await store.remember(identity, at: path) } catch {
                    log.warning(
                        "which directory a folder is could not be kept", ["path": path.display, "reason": "\(error)"])
                }
            }
        }
    }

    package func accept(folder name: String) async throws -> RescanReply {
        try requireReady()
        try requireKnown(folder: name, destination: nil)
        guard let path = house.settings.folders.first(where: { $0.watch.name == name })?.watch.path else {
            throw Refusal(.notFound, "no folder with a path is called `\(printable(name))`")
        }
        // In this order: an inspection in between records the directory that is accepted.
        try await house.store.forgetFolder(at: path)
        house.sources.accept(path)
        house.log.notice("a person accepted the directory of a folder", ["folder": name, "path": path.display])
        return try await rescan(RescanRequest(folder: name, wait: true))
    }
}
