internal import Core
internal import Glibc

/// Notices files that appear or disappear under some paths. It is ``FileEvents`` without a thread, for a thread that
/// waits for other events too.
///
/// A final class, not `Sendable`: one thread owns it.
final class PathListener {
    var paths: Set<FilePath> = []
    /// The paths have to be checked again.
    private(set) var hasEvents = false
    /// A mount over a folder hides it without an event: only ``watch()`` finds out whether it was one of ours.
    private(set) var mountsChanged = false
    private let limit: Int
    private var inotify: Inotify?
    /// Where the table cannot be read, no mount can be noticed.
    private let mounts = try? MountEvents()
    /// The relevant names in each watched folder.
    private(set) var watchedNames: [Int32: Set<FilePath>] = [:]

    init(limit: Int = .max) { self.limit = limit }

    /// Watches the existing part of each path.
    ///
    /// - Returns: The paths without events.
    func watch() -> [FilePath: String] {
        (hasEvents, mountsChanged) = (false, false)
        if paths.isEmpty {
            (inotify, watchedNames) = (nil, [:])
            return [:]
        }
        do {
            let inotify = try self.inotify ?? Inotify(limit: limit)
            self.inotify = inotify
            let before = Set(watchedNames.keys)
            watchedNames = [:]
            let table = MountTable()
            var unheard: [FilePath: String] = [:]
            for path in paths { unheard[path] = watch(path, inotify, before, table) }
            for watch in before where watchedNames[watch] == nil {
                inotify.unwatch(watch)
                inotify.uncountWatch()
            }
            return unheard
        } catch {
            return Dictionary(uniqueKeysWithValues: paths.map { ($0, "\(error)") })
        }
    }

    /// Works from the top down: if a name appears below meanwhile, the watch on the folder above notices it.
    ///
    /// - Returns: Why some events are missing.
    private func watch(_ path: FilePath, _ inotify: Inotify, _ before: Set<Int32>, _ table: MountTable) -> String? {
        if let slow = table.place(of: path.parent).slow {
            return "\(slow.display) is mounted from elsewhere, and not all changes there are reported"
        }
        var folder: FilePath = "/"
        var trouble: String?
        for name in path.components {
            do {
                let stream = try FolderStream(folder, followsLink: true)
                if FileSystemKind.lacksChangeEvents(stream) {
                    trouble = "the file system of \(folder.display) does not report changes"
                }
                let watch = try inotify.watch(stream, named: folder, for: .names)
                if watchedNames[watch] == nil, !before.contains(watch) { inotify.countWatch() }
                watchedNames[watch, default: []].insert(name)
            } catch {
                // When the missing name appears, the folder above reports it.
                if error.isMissing { break }
                trouble = "\(error)"
            }
            folder = folder.appending(name)
        }
        return trouble
    }

    /// Descriptors for poll(2).
    var pollDescriptors: [pollfd] {
        [
            pollfd(fd: inotify?.withNumber { $0 } ?? -1, events: Int16(POLLIN), revents: 0),
            pollfd(fd: paths.isEmpty ? -1 : mounts?.withNumber { $0 } ?? -1, events: Int16(POLLPRI), revents: 0),
        ]
    }

    /// Reads the present events.
    ///
    /// - Parameter ready: ``pollDescriptors``, with the result of each.
    func handle(_ ready: ArraySlice<pollfd>) {
        if ready.last.map({ $0.revents != 0 }) == true { mountsChanged = true }
        guard let inotify, ready.first.map({ $0.revents != 0 }) == true else { return }
        do {
            while try inotify.read({ if self.isRelevant($0) { self.hasEvents = true } }) {}
        } catch {
            // For every kind of event, a check finds the present state.
            hasEvents = true
        }
    }

    private func isRelevant(_ event: Inotify.Event) -> Bool {
        if event.kind.contains(.overflow) { return true }
        guard let names = watchedNames[event.watch] else { return false }
        // An event without a name is about the folder itself.
        return event.name.isEmpty || names.contains(event.name)
    }
}
