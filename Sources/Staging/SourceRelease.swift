package import Core
internal import Glibc
package import Linux

/// Takes a source out of its folder, after every upload of it was verified and the intention is on disk.
///
/// The source is never unlinked under its own name, since another file may have that by now. It is renamed to
/// `.sluice-release-ID-TOKEN` in its own directory without replacing anything, and the caught file is checked. Only the
/// staged file is deleted or moved; any other gets its name back. All of it happens in one open directory below the
/// configured folder, so that a directory or link that takes its place meanwhile changes nothing.
///
/// May be called again after a crash at any line: it finishes the release.
package struct SourceRelease: Sendable {
    package enum Act: Sendable, Hashable {
        case delete
        case move(to: MoveTarget)
    }

    package enum Result: Sendable, Hashable {
        /// The source is out of its place, durably.
        ///
        /// - Parameter isCopied: Whether it was moved to another file system, by a copy.
        case released(note: String, isCopied: Bool = false)
        /// No file is there: it was taken before a crash, was removed by another program, or its disk is away.
        case gone
        /// The file there is not the staged one, and nothing proves that its content differs: it is left alone for
        /// good.
        case kept(String)
        /// The file's content differs from the staged one, and it keeps its name: it is a new version, to be recorded
        /// again.
        case changed(String)
        /// A program has it open for writing: check again later.
        case later(String)
        /// It is unknown whether a program has it open for writing, and that was not accepted: nothing was done.
        case unsure(WriterSearch.Doubt)
    }

    /// The action when it is unknown whether a program has the source open for writing.
    package enum InDoubt: Sendable, Hashable {
        /// Do nothing.
        case stop
        /// Release it if its bytes still equal the staged ones, whatever its times are.
        case compare
        /// Release it as if no program had it open.
        case accept
    }

    private let asset: AssetIdentity
    private let act: Act
    private let inDoubt: InDoubt
    private let writers: any WriterDetecting
    private let token: ReleaseToken
    private let name: FilePath
    private let aside: FilePath

    /// The identity that a source must have to be released.
    package struct AssetIdentity: Sendable, Hashable {
        package var id: Int64
        package var source: SourceFile
        package var size: Int64
        package var modified: Int64
        package var inode: UInt64?
        /// ctime when it was staged, ns since 1970.
        package var changed: Int64
        package var sha256: [UInt8]
        /// The time when it was recorded, before its bytes were read for the first time; `nil` where that is not known.
        package var acquiredAt: WallTime?

        package init(
            id: Int64, source: SourceFile, size: Int64, modified: Int64, inode: UInt64?, changed: Int64,
            sha256: [UInt8], takenAt: WallTime? = nil
        ) {
            self.acquiredAt = takenAt
            self.id = id
            self.source = source
            self.size = size
            self.modified = modified
            self.inode = inode
            self.changed = changed
            self.sha256 = sha256
        }
    }

    /// - Parameter token: The part of the hidden name that others cannot guess.
    package init(
        _ asset: AssetIdentity, _ act: Act, token: ReleaseToken, inDoubt: InDoubt = .stop, writers: any WriterDetecting
    ) {
        self.asset = asset
        self.act = act
        self.inDoubt = inDoubt
        self.writers = writers
        self.token = token
        name = asset.source.name
        aside = token.name(of: asset.id)
    }

    /// - Throws: Errors of the folder or the target (`EACCES`, `EROFS`, `ENOSPC` …): to be tried again.
    package func run() throws(SystemError) -> Result {
        let left = try finishLeftover()
        if case .source(let place) = left { return Self.moved(to: place) }
        guard let folder = try asset.source.openParentIfPresent() else {
            guard case .anotherFile = left, case .move(let target) = act else { return .gone }
            return .kept(
                "another file took its place while it was moved, and its directory is gone: that file is "
                    + "\(Move(asset, aside, target, token).leftoverPath.display)")
        }
        if case .anotherFile = left, case .move(let target) = act {
            return Self.exchanged(try Move(asset, aside, target, token).returnLeftover(to: folder))
        }
        if let caught = try folder.statusIfPresent(at: aside) {
            // A crash came between. Its ctime is that of the rename, so only the digest can decide.
            return try judge(caught, isTrusted: false, folder)
        }
        guard let status = try folder.statusIfPresent(at: name) else { return try gone(folder) }
        guard asset.matches(status) else { return try leave(status, at: name, folder) }
        let (again, answer) = try writers.findWriter(name, in: folder)
        if let obstacle = obstacle(answer) { return obstacle }
        // chmod, a link, a rename there and back: only the bytes can decide. The same holds where a write may not have
        // changed the times.
        if again.changed != asset.changed || isCompared(answer) || asset.mayHideWrite(again, at: name, in: folder) {
            guard try digest(of: name, in: folder) == asset.sha256 else { return .changed(Self.otherContent) }
            // Reading takes a while: a write during it changes the ctime.
            guard try folder.statusIfPresent(at: name)?.changed == again.changed else {
                return .later("it changed while it was compared")
            }
        }
        do { try folder.renameNoReplace(name, to: aside, in: folder, isOurs: true) } catch {
            guard error.isMissing else { throw error }
            return try gone(folder)
        }
        CrashPoint.reached("release-renamed")
        let caught = try folder.status(at: aside)
        return try judge(caught, isTrusted: again.hasSameContent(as: caught), folder)
    }

    /// The file that a crash has left at the target of a move.
    private func finishLeftover() throws(SystemError) -> Move.Leftover {
        guard case .move(let target) = act else { return .nothing }
        return try Move(asset, aside, target, token).finishLeftover()
    }

    private static func moved(to place: FilePath, isCopied: Bool = false) -> Result {
        .released(note: "moved to \(place.display)", isCopied: isCopied)
    }

    private static func exchanged(_ place: FilePath) -> Result {
        .kept("another file took its place while it was moved; that file is now \(place.display)")
    }

    /// Makes the removal of the name durable before it is recorded.
    private func gone(_ folder: borrowing OpenFolder) throws(SystemError) -> Result {
        try folder.sync()
        return .gone
    }

    /// Checks the caught file, and acts or gives the name back.
    private func judge(
        _ caught: FileStatus, isTrusted: Bool, _ folder: borrowing OpenFolder
    ) throws(SystemError) -> Result {
        guard asset.matches(caught) else { return try restoreName(leave(caught, at: aside, folder), folder) }
        if let obstacle = obstacle(try writers.findWriter(aside, in: folder).answer) {
            return try restoreName(obstacle, folder)
        }
        if !isTrusted, try digest(of: aside, in: folder) != asset.sha256 {
            return try restoreName(.changed(Self.otherContent), folder)
        }
        do { return try perform(caught, folder) } catch {
            // It may be a long time until the target works: until then the file has its own name, unless a new file has
            // that by now. An error that the name is taken adds nothing to the first error.
            try? folder.renameNoReplace(aside, to: name, in: folder)
            throw error
        }
    }

    /// The reason why it is not released now; `nil` when its writers do not prevent it.
    private func obstacle(_ answer: WriterSearch.Answer) -> Result? {
        switch answer {
        case .absent: nil
        case .present: .later("it is open for writing")
        case .unknown(let doubt): inDoubt == .stop ? .unsure(doubt) : nil
        }
    }

    private func isCompared(_ answer: WriterSearch.Answer) -> Bool {
        if case .unknown = answer { inDoubt == .compare } else { false }
    }

    private func perform(_ caught: FileStatus, _ folder: borrowing OpenFolder) throws(SystemError) -> Result {
        var result = Result.released(note: "deleted")
        switch act {
        case .delete: try folder.remove(aside)
        case .move(let target):
            switch try Move(asset, aside, target, token).run(caught, from: folder) {
            case .moved(let place, let isCopied): result = Self.moved(to: place, isCopied: isCopied)
            case .anotherFile(let place): result = Self.exchanged(place)
            }
        }
        CrashPoint.reached("release-done")
        try folder.sync()
        return result
    }

    private static let otherContent = "its content changed after it was staged"

    /// The result for a file whose status differs from the staged version's.
    private func leave(
        _ status: FileStatus, at place: FilePath, _ folder: borrowing OpenFolder
    ) throws(SystemError) -> Result {
        // Another inode alone proves nothing: a restored disk has new ones.
        try asset.isAnotherVersion(status, at: place, in: folder)
            ? .changed("it changed after it was staged")
            : .kept("another file with the same content has its name")
    }

    /// Gives a caught file that must not be released its name back, or a free one beside it where that is taken again.
    ///
    /// Durable when it returns: after the record the hidden name is not looked for any more.
    private func restoreName(_ result: Result, _ folder: borrowing OpenFolder) throws(SystemError) -> Result {
        let place = try folder.renameToFreeName(aside, as: name, in: folder)
        try folder.sync()
        if place == name { return result }
        let now = "; it is now \(folder.path.appending(place).display)"
        switch result {
        case .kept(let reason): return .kept(reason + now)
        // Under its new name a scan finds it; under its own there is another file.
        case .changed(let reason), .later(let reason): return .kept(reason + now)
        case .unsure: return .kept("it is unknown whether it is open for writing" + now)
        case .released, .gone: return result
        }
    }
}

extension OpenFolder {
    /// Renames without replacing anything: to `name`, or to `name` with ` (2)`, ` (3)` … before its extension.
    ///
    /// - Returns: The name that it has then.
    package borrowing func renameToFreeName(
        _ from: FilePath, as name: FilePath, in target: borrowing OpenFolder
    ) throws(SystemError) -> FilePath {
        for number in 1... {
            let place = name.numbered(number)
            do {
                try renameNoReplace(from, to: place, in: target)
                return place
            } catch {
                guard error.exists, number < 10_000 else { throw error }
            }
        }
        return name
    }
}
