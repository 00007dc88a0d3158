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
        /// What stands there is not the file that was staged, and nothing proves another content: it is left alone for good.
        case kept(String)
        /// The file has another content than was staged, and keeps its name: it is a new version, to be taken up again.
        case changed(String)
        /// Somebody has it open for writing: look again later.
        case later(String)
        /// It cannot be known whether somebody has it open for writing, and that was not accepted: nothing was done.
        case unsure(WriterSearch.Doubt)
    }

    /// What is done where it cannot be known whether somebody has the source open for writing.
    package enum InDoubt: Sendable, Hashable {
        /// Nothing.
        case stop
        /// It is released when its bytes are still those that were staged, whatever its times say.
        case compare
        /// It is released as if nobody had it open.
        case accept
    }

    private let asset: AssetIdentity
    private let act: Act
    private let inDoubt: InDoubt
    private let writers: any WriterAsking
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
        /// When it was taken up, which is before its bytes were read for the first time; `nil` where that is not known.
        package var takenAt: WallTime?

        package init(
            id: Int64, path: FilePath, size: Int64, modified: Int64, inode: UInt64?, changed: Int64, sha256: [UInt8],
            takenAt: WallTime? = nil
        ) {
            self.takenAt = takenAt
            self.id = id
            self.path = path
            self.size = size
            self.modified = modified
            self.inode = inode
            self.changed = changed
            self.sha256 = sha256
        }
    }

    package init(_ asset: AssetIdentity, _ act: Act, inDoubt: InDoubt = .stop, writers: any WriterAsking) {
        self.asset = asset
        self.act = act
        self.inDoubt = inDoubt
        self.writers = writers
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
        guard isSameVersion(look) else { return try leave(look, at: asset.path) }
        let (again, answer) = try writers.ask(asset.path)
        if let obstacle = obstacle(answer) { return obstacle }
        // chmod, a link, a rename there and back: only the bytes can tell. The same where a write may have moved no time.
        if again.changed != asset.changed || isCompared(answer) || asset.mayHideWrite(again, at: asset.path) {
            guard try contentDigest(of: asset.path) == asset.sha256 else { return .changed(Self.otherContent) }
            // Reading takes a while: what was written meanwhile moves the change time.
            guard try FileLook.ifPresent(at: asset.path)?.changed == again.changed else {
                return .later("it changed while it was compared")
            }
        }
        do { try Files.renameNoReplace(asset.path, to: aside, isOurs: true) } catch {
            guard error.isMissing else { throw error }
            return .gone(folders: [folder])
        }
        CrashPoint.reached("release-renamed")
        return try judge(FileLook(at: aside), isTrusted: again.hasSameContent(as: FileLook(at: aside)))
    }

    /// Looks at what was caught, and acts or gives the name back.
    private func judge(_ caught: FileLook, isTrusted: Bool) throws(SystemError) -> Result {
        guard isSameVersion(caught) else { return try giveBack(leave(caught, at: aside)) }
        if let obstacle = obstacle(try writers.ask(aside).answer) { return try giveBack(obstacle) }
        if !isTrusted, try contentDigest(of: aside) != asset.sha256 {
            return try giveBack(.changed(Self.otherContent))
        }
        do { return try carryOut() } catch {
            // It may be a long time until the target works: until then the file has its own name, unless a new file
            // has that by now. What says that the name is not free is no news beside the first error.
            try? Files.renameNoReplace(aside, to: asset.path)
            throw error
        }
    }

    /// Why it is not released now; `nil` when its writers are not in the way.
    private func obstacle(_ answer: WriterSearch.Answer) -> Result? {
        switch answer {
        case .nobody: nil
        case .somebody: .later("it is open for writing")
        case .unknown(let doubt): inDoubt == .stop ? .unsure(doubt) : nil
        }
    }

    private func isCompared(_ answer: WriterSearch.Answer) -> Bool {
        if case .unknown = answer { inDoubt == .compare } else { false }
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

    private static let otherContent = "its content changed after it was staged"

    /// What becomes of a file that does not look like the version that was staged.
    private func leave(_ look: FileLook, at place: FilePath) throws(SystemError) -> Result {
        // Another inode alone proves nothing: a restored disk has new ones.
        try asset.isAnotherVersion(look, at: place)
            ? .changed("it changed after it was staged")
            : .kept("another file with the same content has its name")
    }

    /// The caught file is not to be released: it gets its name back, or a free one beside it where that is taken again.
    ///
    /// Durable when it returns: after the record the hidden name is not looked for any more.
    private func giveBack(_ result: Result) throws(SystemError) -> Result {
        let place = try Self.placeFreely(aside, at: asset.path)
        try Files.syncFolder(folder)
        if place == asset.path { return result }
        let now = "; it stands now as \(place.display)"
        switch result {
        case .kept(let reason): return .kept(reason + now)
        // Under its new name it is found by itself; under its own there is another file.
        case .changed(let reason), .later(let reason): return .kept(reason + now)
        case .unsure: return .kept("it could not be known whether it is open for writing" + now)
        case .released, .gone: return result
        }
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
