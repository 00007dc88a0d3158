internal import Core
internal import Glibc

/// Hears of what comes to stand under some paths, or goes from there: what ``FileNews`` does on a thread of its own, for a
/// thread that waits for other things too.
///
/// A final class, not `Sendable`: one thread owns it.
final class PathListener {
    var paths: Set<FilePath> = []
    /// It is worth looking at the paths again.
    private(set) var hasNews = false
    /// What is mounted over a folder hides it without an event: only ``watch()`` tells whether it was one of ours.
    private(set) var mountsChanged = false
    private let limit: Int
    private var inotify: Inotify?
    /// Where the table cannot be read, nothing can be mounted.
    private let mounts = try? MountNews()
    /// The names that matter in each watched folder.
    private(set) var awaited: [Int32: Set<FilePath>] = [:]

    init(limit: Int = .max) { self.limit = limit }

    /// Watches what there is of the way to each path.
    ///
    /// - Returns: Those that nothing is heard of.
    func watch() -> [FilePath: String] {
        (hasNews, mountsChanged) = (false, false)
        if paths.isEmpty {
            (inotify, awaited) = (nil, [:])
            return [:]
        }
        do {
            let inotify = try self.inotify ?? Inotify(limit: limit)
            self.inotify = inotify
            let before = Set(awaited.keys)
            awaited = [:]
            let table = MountTable()
            var unheard: [FilePath: String] = [:]
            for path in paths { unheard[path] = watch(path, inotify, before, table) }
            for watch in before where awaited[watch] == nil {
                inotify.unwatch(watch)
                inotify.ended()
            }
            return unheard
        } catch {
            return Dictionary(uniqueKeysWithValues: paths.map { ($0, "\(error)") })
        }
    }

    /// From the top down: what appears below while this goes on is heard by the folder above.
    ///
    /// - Returns: Why not everything is heard.
    private func watch(_ path: FilePath, _ inotify: Inotify, _ before: Set<Int32>, _ table: MountTable) -> String? {
        if let slow = table.place(of: path.parent).slow {
            return "\(slow.display) is mounted from elsewhere, and not everything that happens there is told"
        }
        var folder: FilePath = "/"
        var trouble: String?
        for name in path.components {
            do {
                let stream = try FolderStream(folder, followsLink: true)
                if FileSystemKind.isSilent(stream) {
                    trouble = "the file system of \(folder.display) does not tell of changes"
                }
                let watch = try inotify.watch(stream, named: folder, for: .names)
                if awaited[watch] == nil, !before.contains(watch) { inotify.began() }
                awaited[watch, default: []].insert(name)
            } catch {
                // What is not there will be heard of in the folder above.
                if error.isMissing { break }
                trouble = "\(error)"
            }
            folder = folder.appending(name)
        }
        return trouble
    }

    /// For poll(2).
    var waited: [pollfd] {
        [
            pollfd(fd: inotify?.withNumber { $0 } ?? -1, events: Int16(POLLIN), revents: 0),
            pollfd(fd: paths.isEmpty ? -1 : mounts?.withNumber { $0 } ?? -1, events: Int16(POLLPRI), revents: 0),
        ]
    }

    /// Takes the news there are.
    ///
    /// - Parameter ready: ``waited``, with what came of each.
    func hear(_ ready: ArraySlice<pollfd>) {
        if ready.last.map({ $0.revents != 0 }) == true { mountsChanged = true }
        guard let inotify, ready.first.map({ $0.revents != 0 }) == true else { return }
        do {
            while try inotify.read({ if self.matters($0) { self.hasNews = true } }) {}
        } catch {
            // Whatever it was, a look finds out what is so.
            hasNews = true
        }
    }

    private func matters(_ event: Inotify.Event) -> Bool {
        if event.kind.contains(.overflow) { return true }
        guard let names = awaited[event.watch] else { return false }
        // Without a name it is about the folder itself.
        return event.name.isEmpty || names.contains(event.name)
    }
}
