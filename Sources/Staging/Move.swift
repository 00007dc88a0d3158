package import Core
internal import Glibc
package import Linux

/// The destination path of a moved source.
package struct MoveTarget: Sendable, Hashable {
    /// The part that is fixed by the configuration; links in it are followed.
    package var base: FilePath
    /// The path below that, from the template: created if missing, and no link in it is followed.
    package var relative: FilePath

    package init(base: FilePath, relative: FilePath) {
        self.base = base
        self.relative = relative
    }

    package var shown: FilePath { base.appending(relative) }

    /// Returns the source of an interrupted move to the source's directory, and removes a copy that was incomplete.
    ///
    /// - Parameter isTrial: Only returns the path where it would be.
    /// - Returns: `nil` when there is nothing, or the source's directory does not exist any more.
    package func returnSource(
        _ asset: Int64, _ token: ReleaseToken, to source: SourceFile, isTrial: Bool
    ) throws(SystemError) -> FilePath? {
        let place: OpenFolder
        do { place = try openPlace() } catch {
            guard error.isMissing else { throw error }
            return nil
        }
        let waiting = Self.waiting(asset, token)
        if !isTrial { try place.removeIfPresent(Self.partial(asset, token)) }
        guard try place.has(waiting), let folder = try source.openParentIfPresent() else { return nil }
        if isTrial { return source.path.shown }
        let name = try place.renameToFreeName(waiting, as: source.name, in: folder)
        try folder.sync()
        try place.sync()
        return folder.path.appending(name)
    }

    /// The name of a source in the target's directory until it was checked there.
    fileprivate static func waiting(_ asset: Int64, _ token: ReleaseToken) -> FilePath {
        FilePath(".sluice-move-\(asset)-\(token)")
    }

    /// The name of an incomplete copy. Several daemons may move into one directory, each with an asset of this number.
    fileprivate static func partial(_ asset: Int64, _ token: ReleaseToken) -> FilePath {
        FilePath(".sluice-move-\(asset)-\(token).part")
    }

    /// Opens the target's directory.
    fileprivate func openPlace(isMaking: Bool = false) throws(SystemError) -> OpenFolder {
        if isMaking { try Files.makeFolders(base, durably: true) }
        let top = try OpenFolder(following: base)
        do throws(SystemError) {
            guard isMaking else { return try top.folder(relative.parent) }
            return try top.makingFolders(relative.parent, durably: true)
        } catch {
            guard error.isLink else { throw error }
            throw SystemError(
                call: error.call, subject: error.subject, code: error.code,
                detail:
                    "a symbolic link, and links below the configured part of a move's target are not followed: put "
                    + "a directory there, or configure the place that the link leads to")
        }
    }
}

/// Moves a source that a release has caught out of its folder.
struct Move {
    private let asset: SourceRelease.AssetIdentity
    private let caught: FilePath
    private let target: MoveTarget
    private let token: ReleaseToken

    init(
        _ asset: SourceRelease.AssetIdentity, _ caught: FilePath, _ target: MoveTarget, _ token: ReleaseToken
    ) {
        self.asset = asset
        self.caught = caught
        self.target = target
        self.token = token
    }

    enum Result {
        /// The source is there, durably; `isCopied` where that took a copy.
        case moved(FilePath, isCopied: Bool)
        /// Another file had the hidden name by then. It is back in the source's directory.
        case anotherFile(FilePath)
    }

    /// Programs that can write in the source's directory see the source's hidden name there, and may put another file
    /// under it; no other program writes here.
    private var waiting: FilePath { MoveTarget.waiting(asset.id, token) }

    /// The file that a crash between the two renames of a move has left in the target's directory.
    enum Leftover: Sendable {
        case nothing
        /// The source, which has its own name there now, durably.
        case source(FilePath)
        /// Another file: it must be returned.
        case anotherFile
    }

    /// Finishes an interrupted move, if the file is the source.
    func finishLeftover() throws(SystemError) -> Leftover {
        let place: OpenFolder
        do { place = try target.openPlace() } catch {
            guard error.isMissing else { throw error }
            return .nothing
        }
        guard let status = try place.statusIfPresent(at: waiting) else { return .nothing }
        guard status.isRegular, status.size == asset.size, try digest(of: waiting, in: place) == asset.sha256 else {
            return .anotherFile
        }
        return .source(try assignName(in: place))
    }

    /// The path of that file, for people.
    var leftoverPath: FilePath { target.base.appending(target.relative.parent).appending(waiting) }

    /// Puts a file that is not the source back into its former directory.
    func returnLeftover(to folder: borrowing OpenFolder) throws(SystemError) -> FilePath {
        try returnFile(from: try target.openPlace(), to: folder)
    }

    /// - Parameter judged: The status of the caught file, which was found to be the staged one.
    func run(_ judged: FileStatus, from folder: borrowing OpenFolder) throws(SystemError) -> Result {
        let place = try target.openPlace(isMaking: true)
        let wanted = target.relative.name
        // Including the names that it may have got before a crash.
        for number in 1..<10_000 {
            let there = wanted.numbered(number)
            guard let status = try place.statusIfPresent(at: there) else { break }
            guard status.isRegular, status.size == asset.size, try digest(of: there, in: place) == asset.sha256 else {
                continue
            }
            // A file with the same bytes exists: moved before a crash, or a copy of the same file, which may not be on
            // disk yet.
            try place.open(there, for: .reading).sync(named: place.path.appending(there))
            try place.sync()
            try folder.remove(caught)
            return .moved(place.path.appending(there), isCopied: false)
        }
        do { try folder.renameNoReplace(caught, to: waiting, in: place, isOurs: true) } catch {
            guard error.crossesFileSystems else { throw error }
            return .moved(place.path.appending(try copy(from: folder, to: place, as: wanted)), isCopied: true)
        }
        CrashPoint.reached("release-moved")
        let moved = try place.status(at: waiting)
        guard moved.isRegular, moved.hasSameContent(as: judged) else {
            return .anotherFile(try returnFile(from: place, to: folder))
        }
        return .moved(try assignName(in: place), isCopied: false)
    }

    private func assignName(in place: borrowing OpenFolder) throws(SystemError) -> FilePath {
        let name = try place.renameToFreeName(waiting, as: target.relative.name, in: place)
        try place.sync()
        return place.path.appending(name)
    }

    private func returnFile(
        from place: borrowing OpenFolder, to folder: borrowing OpenFolder
    ) throws(SystemError) -> FilePath {
        let back = try place.renameToFreeName(waiting, as: asset.source.name, in: folder)
        try folder.sync()
        try place.sync()
        return folder.path.appending(back)
    }

    /// Between file systems a move is a copy, made durable and compared, and only then is the source removed. It keeps
    /// the permissions without set-id bits, the times, and owner and group where this process may change them.
    private func copy(
        from folder: borrowing OpenFolder, to place: borrowing OpenFolder, as wanted: FilePath
    ) throws(SystemError) -> FilePath {
        let partial = MoveTarget.partial(asset.id, token)
        let (source, target) = (folder.path.appending(caught), place.path.appending(partial))
        try place.removeIfPresent(partial)
        do {
            let from = try folder.open(caught, for: .reading)
            let to = try place.open(partial, for: .creating)
            let copied = try DigestingCopier.run(from: from, source: source, to: to, target: target, size: asset.size)
            guard copied.sha256 == asset.sha256 else {
                throw SystemError(call: "read", subject: source.display, code: EIO)
            }
            try to.copyAccess(of: from, named: target)
            try to.setModified(asset.modified, named: target)
            try to.sync(named: target)
            try to.close(named: target)
        } catch let error as SystemError {
            try place.removeIfPresent(partial)
            throw error
        } catch let error as StagingError {
            try place.removeIfPresent(partial)
            switch error {
            case .full(let error), .broken(let error), .tooLarge(let error), .unreadable(let error): throw error
            case .changed, .missing, .stopped, .cannotShare, .noCommand, .commandFailed, .commandEnded:
                throw SystemError(call: "read", subject: source.display, code: ENOENT)
            }
        } catch {
            throw SystemError(call: "copy", subject: source.display, code: EIO)
        }
        let name = try place.renameToFreeName(partial, as: wanted, in: place)
        try place.sync()
        CrashPoint.reached("release-copied")
        try folder.remove(caught)
        return name
    }
}
