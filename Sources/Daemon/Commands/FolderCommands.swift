internal import API
internal import Config
internal import Core
internal import Linux
internal import Staging
internal import Store
internal import Watch

/// Commands about watched folders: scan them now, and accept another directory in place of the recorded one.
struct FolderCommands: Sendable {
    let context: Context
    let lifecycle: DaemonPhase
    let sources: SourceFolders
    let watcher: Watcher
    /// Signalled when the watcher reports a change of a folder.
    let watchChanges: AsyncBroadcast
    let stager: Stager
    let releaser: Releaser
    let absentDisks: AbsentDisks

    func rescan(_ request: RescanRequest) async throws -> RescanReply {
        try lifecycle.requireReady()
        try context.configuration.names.require(folder: request.folder, destination: nil)
        if let name = request.folder, let folder = context.configuration.folder(name), !folder.isCardAway {
            let path = folder.watch.path
            try await requireOwn(path)
        }
        let folders = request.folder.map { Set([$0]) }
        // Files that wait for their folder or for their target are tried as well.
        let named = folders ?? Set(context.settings.presentFolders.map(\.watch.name))
        await stager.retry(named)
        try await absentDisks.recordReturn(of: named)
        try await releaser.retry(named)
        guard request.wait else {
            watcher.rescan(folders)
            return RescanReply(done: false, folders: views(states(of: folders), counted: false))
        }
        // The signal first: a change between the request and the first check of the states is not missed.
        return try await watchChanges.withSignal { signal in
            let asked = watcher.rescan(folders)
            while true {
                let states = states(of: folders)
                // A reload may have removed a folder meanwhile. The request waits neither for such a folder nor for a
                // server that does not answer.
                if states.allSatisfy({ $0.isStuck || $0.scannedSince.map { $0 >= asked } ?? false }) {
                    return RescanReply(done: true, folders: views(states, counted: true))
                }
                try Task.checkCancellation()
                if watchChanges.isOver { throw Refusal(.unavailable, "the daemon is stopping") }
                // A limit, since a file system that stops answering reports no change.
                await signal.wait(atMost: .seconds(5))
            }
        }
    }

    /// Accepts the present directory at a folder's path as the right one, and scans it.
    func accept(folder name: String) async throws -> RescanReply {
        try lifecycle.requireReady()
        try context.configuration.names.require(folder: name, destination: nil)
        guard let path = context.settings.presentFolders.first(where: { $0.watch.name == name })?.watch.path else {
            throw Refusal(
                .notFound, "folder `\(printable(name))` cannot be accepted now: its card is not mounted; mount it first"
            )
        }
        // In this order: an inspection in between records the directory that is accepted.
        try await context.store.write { try $0.folders.forget(at: path) }
        sources.accept(path)
        context.log.notice("the directory of a folder was accepted by command", ["folder": name, "path": path.display])
        return try await rescan(RescanRequest(folder: name, wait: true))
    }

    /// - Throws: ``Refusal`` where the folder's directory, or a link on the way to it, belongs to another user.
    private func requireOwn(_ path: FilePath) async throws {
        let folder = sources[path]
        do { _ = try await SlowDisk(timeout: .seconds(3)).run { _ in try folder.open().path } } catch let error
            as SystemError where error.isOfAnotherFolder
        {
            throw Refusal(.conflict, error.description)
        } catch {
            // Any other error while opening it shows in its state.
        }
    }

    private func states(of folders: Set<String>?) -> [WatchState] {
        watcher.states().filter { folders?.contains($0.folder) ?? true }
    }

    private func views(_ states: [WatchState], counted: Bool) -> [RescanView] {
        states.map { state in
            RescanView(
                name: state.folder, path: state.path.display, state: FolderView(state).state,
                files: counted ? state.found : nil, new: counted ? state.fresh : nil, settling: state.settling)
        }
    }
}
