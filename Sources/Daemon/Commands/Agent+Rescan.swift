internal import Config
internal import Core
internal import Linux
internal import Watch

/// Which folders are to be looked through now.
package struct RescanRequest: Codable, Sendable, Hashable {
    /// By its name; all when it is absent.
    package var folder: String?
    /// The answer comes when they were.
    package var wait: Bool

    package init(folder: String? = nil, wait: Bool = false) {
        self.folder = folder
        self.wait = wait
    }
}

package struct RescanView: Codable, Sendable, Hashable {
    package var name: String
    package var path: String
    /// As `status` says it.
    package var state: String
    /// Files that were come across, and the new ones among them; absent where nobody waited. What settles already is not
    /// among them.
    package var files: Int?
    package var new: Int?
    /// Files that have not settled yet.
    package var settling: Int

    package init(name: String, path: String, state: String, files: Int?, new: Int?, settling: Int) {
        self.name = name
        self.path = path
        self.state = state
        self.files = files
        self.new = new
        self.settling = settling
    }
}

package struct RescanReply: Codable, Sendable, Hashable {
    /// Whether they were looked through; `false` where nobody waited.
    package var done: Bool
    package var folders: [RescanView]

    package init(done: Bool, folders: [RescanView]) {
        self.done = done
        self.folders = folders
    }
}

extension Agent {
    package func rescan(_ request: RescanRequest) async throws -> RescanReply {
        try requireReady()
        try requireKnown(folder: request.folder, destination: nil)
        if let name = request.folder, let path = house.folder(name)?.watch.path { try await requireOwn(path) }
        let folders = request.folder.map { Set([$0]) }
        // What waits for its folder or for its target is tried as well.
        let named = folders ?? Set(house.settings.folders.map(\.watch.name))
        await stager.retry(named)
        try await releaser.retry(named)
        guard request.wait else {
            watcher.rescan(folders)
            return RescanReply(done: false, folders: views(states(of: folders), counted: false))
        }
        // The bell first: what is told between the order and the first look at the board is not missed.
        return try await watchNews.lend { bell in
            let asked = watcher.rescan(folders)
            while true {
                let states = states(of: folders)
                // A reload may have taken a folder away meanwhile; nobody waits for that, nor for a server that is gone.
                if states.allSatisfy({ $0.isStuck || $0.lookedSince.map { $0 >= asked } ?? false }) {
                    return RescanReply(done: true, folders: views(states, counted: true))
                }
                try Task.checkCancellation()
                if watchNews.isOver { throw Refusal(.unavailable, "the daemon is stopping") }
                // The limit for a file system that stops to answer, which nobody tells.
                await bell.wait(atMost: .seconds(5))
            }
        }
    }

    /// - Throws: ``Refusal`` where the folder's directory, or a link on the way to it, is somebody else's.
    private func requireOwn(_ path: FilePath) async throws {
        let folder = house.sources[path]
        do { _ = try await SlowDisk(patience: .seconds(3)).run { _ in try folder.open().path } } catch let error
            as SystemError where error.isOfAnotherFolder
        {
            throw Refusal(.conflict, error.description)
        } catch {
            // Whatever else keeps it from being opened is its state.
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
