internal import Core
internal import Glibc

/// Notices when a socket may have appeared under a path: watches the folder that it is to be in, or the nearest one above
/// that exists.
///
/// A final class, not `Sendable`: one thread owns it.
final class SocketWatch {
    private let inotify: Inotify
    /// What has to appear in the folder: the socket, or the next folder on the way.
    private let awaited: FilePath

    /// - Throws: When nothing of the kind can be watched, with the kernel's reason.
    init(_ path: FilePath) throws(SystemError) {
        inotify = try Inotify()
        var folder = path.parent
        var awaited = path.name
        while true {
            do {
                _ = try inotify.watch(try FolderStream(folder, followsLink: true), named: folder)
                break
            } catch {
                guard error.isMissing, !folder.isEmpty, folder != folder.parent else { throw error }
                (awaited, folder) = (folder.name, folder.parent)
            }
        }
        self.awaited = awaited
    }

    /// For poll(2).
    var waited: pollfd { inotify.withNumber { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) } }

    /// Takes the news there are.
    ///
    /// - Returns: Whether it is worth looking again. Then this watch may be of the wrong folder, and another is needed.
    func hasCome() throws(SystemError) -> Bool {
        var hasCome = false
        while try inotify.read({ event in
            // Without a name it is about the folder, which may be gone.
            if event.name.isEmpty || event.name == awaited { hasCome = true }
        }) {}
        return hasCome
    }
}
