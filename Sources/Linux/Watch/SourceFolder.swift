internal import CLinux
package import Core
internal import Glibc
internal import Synchronization

/// A configured folder. Every source is reached only through it: for scanning, reading, copying, comparing and
/// removing.
///
/// It holds no descriptor. ``open()`` opens it for one piece of work, so that its file system can be unmounted in
/// between.
package final class SourceFolder: Sendable {
    package let path: FilePath

    /// The status of a directory that was accepted in this run.
    private struct Seen: Hashable {
        var device: UInt64
        var inode: UInt64
        var owner: UInt32
    }

    private struct State {
        var remembered: FolderIdentity?
        var seen: Seen?
        /// A requirement (`require:`) checks whether the right disk is mounted.
        var hasRequirement = false
        /// The name in the configuration.
        var name: String?
    }

    private let state: Mutex<State>
    private let onChange: @Sendable (SourceFolders.Change) -> Void

    fileprivate init(
        _ path: FilePath, _ remembered: FolderIdentity?, tell: @escaping @Sendable (SourceFolders.Change) -> Void
    ) {
        self.path = path
        self.onChange = tell
        state = Mutex(State(remembered: remembered))
    }

    /// Opens it, if it is the same directory as before, or one that may replace it.
    ///
    /// - Throws: `ESTALE` with a `detail` where the directory, or a link on the way to it, belongs to an untrusted
    ///   user.
    package func open() throws(SystemError) -> OpenFolder {
        let top = try ConfiguredDirectory(path)
        let seen = Seen(device: top.device, inode: top.inode, owner: top.owner)
        if state.withLock({ $0.seen == seen }) { return top.intoFolder() }
        let identity = FolderIdentity(
            fileSystem: FileSystems().identity(of: top.folder, device: top.device)?.name, inode: top.inode,
            born: top.born, owner: top.owner)
        let (isJudged, real) = (!isExempt(top.folder), top.folder.realPath)
        let change = try state.withLock { state throws(SystemError) -> SourceFolders.Change? in
            var change: SourceFolders.Change?
            if let remembered = state.remembered, isJudged, !state.hasRequirement {
                switch remembered.verdict(on: identity, daemon: geteuid()) {
                case .same: change = remembered == identity ? nil : .remembered(path, identity)
                case .replaced:
                    // A user who may rename there can put any directory in its place, even one that the user may not
                    // enter. That includes the owner of the earlier directory, if this one has another owner.
                    let owner = identity.owner == remembered.owner ? identity.owner : 0
                    if let weak = FolderParents.weakest(above: path, trusting: owner, at: real) {
                        throw another(
                            identity, remembered, state.name, "\(weak.directory.display), above it, \(weak.why). ")
                    }
                    change = .replaced(path, identity, before: remembered)
                case .refused: throw another(identity, remembered, state.name)
                }
            } else if state.remembered != identity {
                change = .remembered(path, identity)
            }
            state.remembered = identity
            state.seen = seen
            return change
        }
        if let change { onChange(change) }
        return top.intoFolder()
    }

    /// The number of the user who owns the directory.
    package func owner() throws(SystemError) -> UInt32 { try ConfiguredDirectory(path).owner }

    private func another(
        _ found: FolderIdentity, _ remembered: FolderIdentity, _ name: String?, _ why: String = ""
    ) -> SystemError {
        SystemError(
            call: "open", subject: path.display, code: ESTALE,
            detail:
                "another directory is there, owned by user \(UserDatabase.shown(found.owner)): the one before was "
                + "owned by user \(UserDatabase.shown(remembered.owner)). "
                + "\(why)`sluice folder accept \(name ?? "NAME")` accepts it")
    }

    /// On a removable disk, and on one without owners, another directory cannot be distinguished from the one before.
    private func isExempt(_ folder: borrowing OpenFolder) -> Bool {
        if FileSystemKind.hasNoOwners(folder) { return true }
        guard let real = folder.realPath else { return false }
        return RemovableDisk().contains(real)
    }

    fileprivate func set(name: String, hasRequirement: Bool) {
        state.withLock {
            if $0.hasRequirement != hasRequirement { $0.seen = nil }
            ($0.name, $0.hasRequirement) = (name, hasRequirement)
        }
    }

    fileprivate func forget() { state.withLock { ($0.remembered, $0.seen) = (nil, nil) } }
}

extension SourceFolder: Hashable {
    package static func == (a: SourceFolder, b: SourceFolder) -> Bool { a === b }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// The configured folders by their paths, with the identity of each directory.
package final class SourceFolders: Sendable {
    package enum Change: Hashable, Sendable {
        /// To be stored for the next start.
        case remembered(FilePath, FolderIdentity)
        /// To be stored too; another directory has replaced the one before, and belongs to a user who may put one
        /// there.
        case replaced(FilePath, FolderIdentity, before: FolderIdentity)
    }

    private let folders: Mutex<[FilePath: SourceFolder]>
    private let onChange: @Sendable (Change) -> Void

    /// - Parameters:
    ///   - remembered: The directories that earlier runs knew.
    ///   - tell: Called on any thread.
    package init(
        remembered: [FilePath: FolderIdentity] = [:], tell: @escaping @Sendable (Change) -> Void = { _ in }
    ) {
        self.onChange = tell
        folders = Mutex(
            Dictionary(uniqueKeysWithValues: remembered.map { ($0.key, SourceFolder($0.key, $0.value, tell: tell)) }))
    }

    /// The folder for a path, as configured now or when a file was found in it.
    package subscript(path: FilePath) -> SourceFolder {
        folders.withLock { folders in
            if let folder = folders[path] { return folder }
            let folder = SourceFolder(path, nil, tell: onChange)
            folders[path] = folder
            return folder
        }
    }

    package func source(_ path: SourcePath) -> SourceFile {
        SourceFile(folder: self[path.root], relative: path.relative)
    }

    /// Sets which of them have a requirement that checks for the right disk.
    package func apply(_ rules: [WatchRule]) {
        let required = Set(rules.filter(\.requirement.identifiesDisk).map(\.path))
        // Of several folders with one path the first gives its name.
        for rule in rules.reversed() {
            self[rule.path].set(name: rule.name, hasRequirement: required.contains(rule.path))
        }
    }

    /// Accepts the directory found by the next check, whichever it is.
    package func accept(_ path: FilePath) { self[path].forget() }
}

/// A source: a name below a configured folder. It is reached only through the folder.
package struct SourceFile: Hashable, Sendable {
    package let folder: SourceFolder
    package let relative: FilePath

    package init(folder: SourceFolder, relative: FilePath) {
        self.folder = folder
        self.relative = relative
    }

    package var path: SourcePath { SourcePath(root: folder.path, relative: relative) }
    package var name: FilePath { relative.name }
    package var display: String { path.display }

    /// Its status, without following a link.
    package func status() throws(SystemError) -> FileStatus { try folder.open().status(at: relative) }

    /// Like ``status()``; `nil` when it does not exist.
    package func statusIfPresent() throws(SystemError) -> FileStatus? {
        do { return try status() } catch {
            if error.isMissing { return nil }
            throw error
        }
    }

    /// Whether its name exists, for any kind of file.
    package func isPresent() throws(SystemError) -> Bool {
        do { return try folder.open().has(relative) } catch {
            if error.isMissing { return false }
            throw error
        }
    }

    /// Opens it for reading.
    package func open() throws(SystemError) -> Descriptor { try folder.open().open(relative, for: .reading) }

    /// Opens the directory that contains it.
    package func openParent() throws(SystemError) -> OpenFolder { try folder.open().parent(of: relative) }

    /// Like ``openParent()``; `nil` when that does not exist.
    package func openParentIfPresent() throws(SystemError) -> OpenFolder? {
        do { return try openParent() } catch {
            if error.isMissing { return nil }
            throw error
        }
    }

    /// Another name in the same directory.
    package func sibling(_ name: FilePath) -> SourceFile {
        SourceFile(folder: folder, relative: relative.parent.appending(name))
    }
}
