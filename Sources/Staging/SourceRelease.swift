package import Core
internal import Glibc
package import Linux

/// Takes a source out of its folder, after every upload of it was verified and the intention is on disk.
///
/// The source is never unlinked under its own name, since anything may stand there by now: it is renamed to
/// `.sluice-release-ID` in its own folder without replacing anything, and what was caught is looked at. Only what was
/// staged is deleted or moved; anything else gets its name back.
///
/// May be called again after a crash at any line: it finishes what was begun.
package struct SourceRelease: Sendable {
    package enum Act: Sendable, Hashable {
        case delete
        /// Absolute path of the target.
        case move(to: FilePath)
    }

    package enum Result: Sendable, Hashable {
        /// The source is out of its place. `folders` are to be synced before that is recorded.
        case released(note: String, folders: Set<FilePath>)
        /// Nothing stands there: it was taken before a crash, somebody removed it, or its disk is away.
        case gone(folders: Set<FilePath>)
        /// What stands there is not what was staged: it is left alone for good.
        case kept(String)
        /// Somebody has it open for writing: look again later.
        case later(String)
    }

    private let asset: AssetIdentity
    private let act: Act
    private let folder: FilePath
    private let aside: FilePath

    /// What a source has to be, to be taken.
    package struct AssetIdentity: Sendable, Hashable {
        package var id: Int64
        package var path: FilePath
        package var size: Int64
        package var modified: Int64
        package var inode: UInt64?
        /// ctime when it was staged, ns since 1970.
        package var changed: Int64
        package var sha256: [UInt8]

        package init(
            id: Int64, path: FilePath, size: Int64, modified: Int64, inode: UInt64?, changed: Int64, sha256: [UInt8]
        ) {
            self.id = id
            self.path = path
            self.size = size
            self.modified = modified
            self.inode = inode
            self.changed = changed
            self.sha256 = sha256
        }
    }

    package init(_ asset: AssetIdentity, _ act: Act) {
        self.asset = asset
        self.act = act
        folder = asset.path.parent
        aside = folder.appending(FilePath(".sluice-release-\(asset.id)"))
    }

    /// - Throws: What the folder or the target refuses (`EACCES`, `EROFS`, `ENOSPC` …): to be tried again.
    package func run() throws(SystemError) -> Result {
        if let caught = try FileLook.ifPresent(at: aside) {
            // A crash came between. Its ctime is that of the rename, so only the digest can tell.
            return try judge(caught, isTrusted: false)
        }
        guard let look = try FileLook.ifPresent(at: asset.path) else {
            return .gone(folders: [folder])
        }
        guard isSameVersion(look) else { return .kept("it changed after it was staged") }
        let (again, writer) = try Lease.look(at: asset.path)
        if writer == .somebody { return .later("it is open for writing") }
        var isTrusted = again.changed == asset.changed
        if !isTrusted {
            // chmod, a link, a rename there and back: only the bytes can tell.
            guard try contentDigest(of: asset.path) == asset.sha256 else {
                return .kept("its content changed after it was staged")
            }
            isTrusted = true
        }
        do { try Files.renameNoReplace(asset.path, to: aside) } catch {
            guard error.isMissing else { throw error }
            return .gone(folders: [folder])
        }
        CrashPoint.reached("release-renamed")
        return try judge(FileLook(at: aside), isTrusted: again.hasSameContent(as: FileLook(at: aside)))
    }

    /// Looks at what was caught, and acts or gives the name back.
    private func judge(_ caught: FileLook, isTrusted: Bool) throws(SystemError) -> Result {
        guard isSameVersion(caught) else { return try giveBack("it changed after it was staged") }
        let (_, writer) = try Lease.look(at: aside)
        if writer == .somebody {
            _ = try giveBack("it is open for writing")
            return .later("it is open for writing")
        }
        if !isTrusted, try contentDigest(of: aside) != asset.sha256 {
            return try giveBack("its content changed after it was staged")
        }
        do { return try carryOut() } catch {
            // It may be a long time until the target works: until then the file has its own name, unless a new file
            // has that by now. What says that the name is not free is no news beside the first error.
            try? Files.renameNoReplace(aside, to: asset.path)
            throw error
        }
    }

    private func carryOut() throws(SystemError) -> Result {
        switch act {
        case .delete:
            try Files.remove(aside)
            CrashPoint.reached("release-done")
            return .released(note: "deleted", folders: [folder])
        case .move(let target):
            let place = try move(to: target)
            CrashPoint.reached("release-done")
            return .released(note: "moved to \(place.display)", folders: [folder, place.parent])
        }
    }

    private func isSameVersion(_ look: FileLook) -> Bool { asset.fits(look) }

    /// The caught file is somebody else's: it gets its name back, or a free one beside it where that is taken again.
    ///
    /// Durable when it returns: after the record nobody would look for it under the hidden name any more.
    private func giveBack(_ reason: String) throws(SystemError) -> Result {
        let place = try Self.placeFreely(aside, at: asset.path)
        try Files.syncFolder(folder)
        return .kept(place == asset.path ? reason : "\(reason); it stands now as \(place.display)")
    }

    /// Renames without replacing anything: to `target`, else to `target` with ` (2)`, ` (3)` … before its extension.
    private static func placeFreely(_ from: FilePath, at target: FilePath) throws(SystemError) -> FilePath {
        for number in 1... {
            let place = target.numbered(number)
            do {
                try Files.renameNoReplace(from, to: place)
                return place
            } catch {
                guard error.exists, number < 10_000 else { throw error }
            }
        }
        return target
    }

    private func move(to target: FilePath) throws(SystemError) -> FilePath {
        try Files.makeFolders(target.parent, durably: true)
        // Under the names that it may have got before a crash.
        for number in 1..<10_000 {
            let there = target.numbered(number)
            guard let look = try FileLook.ifPresent(at: there) else { break }
            guard look.isRegular, look.size == asset.size, try contentDigest(of: there) == asset.sha256 else {
                continue
            }
            // The same bytes stand there: moved before a crash, or a copy of the same file, which may not be on disk yet.
            try Descriptor.open(there, for: .reading).sync(named: there)
            try Files.syncFolder(there.parent)
            try Files.remove(aside)
            return there
        }
        do { return try Self.placeFreely(aside, at: target) } catch {
            guard error.crossesFileSystems else { throw error }
        }
        return try copyAcross(to: target)
    }

    /// Between file systems a move is a copy, made durable and compared, and only then is the source removed.
    private func copyAcross(to target: FilePath) throws(SystemError) -> FilePath {
        let partial = target.parent.appending(FilePath(".sluice-move-\(asset.id).part"))
        try Files.removeIfPresent(partial)
        do {
            let from = try Descriptor.open(aside, for: .reading)
            let to = try Descriptor.open(partial, for: .creating)
            let copied = try DigestingCopier.run(from: from, source: aside, to: to, target: partial, size: asset.size)
            guard copied.sha256 == asset.sha256 else {
                throw SystemError(call: "read", subject: aside.display, code: EIO)
            }
            try to.setModified(asset.modified, named: partial)
            try to.sync(named: partial)
            try to.close(named: partial)
        } catch let error as SystemError {
            try Files.removeIfPresent(partial)
            throw error
        } catch let error as StagingError {
            try Files.removeIfPresent(partial)
            switch error {
            case .full(let error), .broken(let error), .unreadable(let error): throw error
            case .changed, .missing, .stopped, .cannotShare, .noCommand, .commandFailed, .commandEnded:
                throw SystemError(call: "read", subject: aside.display, code: ENOENT)
            }
        } catch {
            throw SystemError(call: "copy", subject: aside.display, code: EIO)
        }
        let place = try Self.placeFreely(partial, at: target)
        try Files.syncFolder(place.parent)
        CrashPoint.reached("release-copied")
        try Files.remove(aside)
        return place
    }
}
