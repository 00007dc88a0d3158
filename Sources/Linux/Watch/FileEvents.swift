package import Core
internal import Glibc
internal import Synchronization

/// Reports when a file may have appeared under a path, or may have disappeared (inotify(7)).
///
/// Each folder on the path is watched for the next name only, as far as the path exists: so any part of it may appear,
/// move or disappear. Uses one thread, which sleeps in the kernel until there is an event; it ends with ``stop()``, or
/// with this object.
package final class FileEvents: Sendable {
    private final class WatchedPath: Sendable {
        struct State {
            var paths: Set<FilePath> = []
            var isNew = false
            var isOver = false
            var unwatched: [FilePath: String] = [:]
        }

        let signal: EventFD
        let state = Mutex(State())

        init() throws(SystemError) { signal = try EventFD() }

        func change(_ body: (inout State) -> Void) {
            state.withLock { body(&$0) }
            signal.signal()
        }
    }

    private let watchedPath: WatchedPath

    /// - Parameters:
    ///   - limit: The most watches to take; one more is refused as if the kernel's own limit were reached.
    ///   - tell: Called on the thread of the events: when the paths of ``watch(_:)`` are watched, and whenever they
    ///     have to be checked again. It must not wait.
    package init(limit: Int = .max, _ tell: @escaping @Sendable () -> Void) throws(SystemError) {
        let wish = try WatchedPath()
        self.watchedPath = wish
        try startThread("file-events") {
            let listener = PathListener(limit: limit)
            while true {
                let (paths, isOver) = wish.state.withLock { state in
                    defer { state.isNew = false }
                    return (state.isNew ? state.paths : nil, state.isOver)
                }
                if isOver { return }
                if let paths { listener.paths = paths }
                if paths != nil || listener.hasEvents || listener.mountsChanged {
                    let before = (listener.watchedNames, wish.state.withLock { $0.unwatched })
                    // Most mount changes are not about these paths: then the same folders are watched as before.
                    let isChanged = paths != nil || listener.hasEvents
                    let unwatched = listener.watch()
                    wish.state.withLock { $0.unwatched = unwatched }
                    if isChanged || before != (listener.watchedNames, unwatched) { tell() }
                }
                listener.handle(wish.signal.wait(or: listener.pollDescriptors, longest: nil).prefix(2))
            }
        }
    }

    deinit { stop() }

    /// Replaces the watched paths. They must be absolute, without `..`.
    package func watch(_ paths: Set<FilePath>) { watchedPath.change { ($0.paths, $0.isNew) = (paths, true) } }

    /// The paths without events, each with the reason: a file system that reports no events or may not answer, a limit,
    /// missing rights.
    package var unwatched: [FilePath: String] { watchedPath.state.withLock { $0.unwatched } }

    /// Ends the thread. A running call is completed.
    package func stop() { watchedPath.change { $0.isOver = true } }
}
