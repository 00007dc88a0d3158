package import Core
package import Linux

/// Why a file could not be copied into staging.
package enum StagingError: Error, Sendable, CustomStringConvertible {
    /// The source is not what was recorded, or changed while it was copied: it has to settle again.
    case changed(FilePath)
    /// The source is not there.
    case missing(FilePath)
    /// The source cannot be read, for its own sake: permission, an error of its disk.
    case unreadable(SystemError)
    /// There is no room for the copy.
    case full(SystemError)
    /// The staging folder does not work.
    case broken(SystemError)
    /// The caller asked to stop.
    case stopped(FilePath)

    /// The staging folder is to blame: another source would fare no better.
    package var isOfStaging: Bool {
        switch self {
        case .full, .broken: true
        case .changed, .missing, .unreadable, .stopped: false
        }
    }

    package var description: String {
        switch self {
        case .changed(let path): "\(path.display) changed while it was copied"
        case .missing(let path): "\(path.display) is not there any more"
        case .stopped(let path): "the copy of \(path.display) was stopped"
        case .unreadable(let error), .full(let error), .broken(let error): error.description
        }
    }
}

/// The folder that holds the copies: a name without `.part` in it is whole and durable.
///
/// It knows names, bytes and rooms, and nothing of uploads. Every call waits for the disk: not for Swift's own threads.
package struct StagingArea: Sendable {
    package enum Method: Sendable {
        /// Share blocks where the file system can, else copy.
        case auto
        case copy
        case reflink
    }

    package let folder: FilePath
    private let method: Method

    package init(folder: FilePath, method: Method = .auto) {
        self.folder = folder
        self.method = method
    }

    /// Where a whole copy stands.
    package func path(_ name: FilePath) -> FilePath { folder.appending(name) }

    private func partial(_ name: FilePath) -> FilePath { FilePath(bytes: path(name).bytes + Array(".part".utf8)) }

    /// Makes the folder where it is missing.
    package func prepare() throws(SystemError) { try Files.makeFolders(folder, mode: 0o700, durably: true) }

    /// The numbers of the whole copies, lowest first. Changes nothing; a folder that is not there holds none.
    package func copies() throws(SystemError) -> [Int64] {
        guard try FileLook.ifPresent(at: folder) != nil else { return [] }
        return try Files.names(in: folder).compactMap { $0.text.flatMap { Int64($0) } }.filter { $0 > 0 }.sorted()
    }

    /// Where copies go that nobody knows. They may be all that is left of a file, so a person decides.
    package static let recovered: FilePath = "recovered"

    /// Puts a copy that nobody knows where no start sweeps it.
    ///
    /// - Returns: Where it is now.
    package func setAside(_ name: FilePath) throws(SystemError) -> FilePath {
        let shelf = path(Self.recovered)
        try Files.makeFolders(shelf, mode: 0o700)
        for number in 1... {
            let target = shelf.appending(name.numbered(number))
            do {
                try Files.renameNoReplace(path(name), to: target)
                try Files.syncFolder(shelf)
                return target
            } catch {
                guard error.exists, number < 10_000 else { throw error }
            }
        }
        return path(name)
    }

    /// Makes the folder anew where somebody removed it. What was in it is staged again when it is missed.
    package func restore() throws(SystemError) { try Files.makeFolders(folder, mode: 0o700, durably: true) }

    /// Copies `source` to a partial file, durable but not yet under its name: ``publish(_:)`` follows.
    ///
    /// One pass reads, writes and digests; the digest runs on a second thread. The source is looked at before and
    /// after: a copy of anything but one unchanged version is thrown away.
    ///
    /// - Parameters:
    ///   - expected: The version that was recorded.
    ///   - changed: Its ctime, ns since 1970.
    ///   - origin: Kept with the copy, for a day on which the database is lost.
    ///   - isStopped: Asked between blocks; `true` ends the copy with ``StagingError/stopped(_:)``.
    /// - Returns: SHA-256 of the content, and the look that the source had throughout.
    package func copy(
        _ source: FilePath, expecting expected: StoredIdentity, changed: Int64, as name: FilePath,
        origin: Origin? = nil, isStopped: () -> Bool = { false }
    ) throws(StagingError) -> (sha256: [UInt8], look: FileLook) {
        let partial = partial(name)
        do {
            return try copy(source, expected, changed, to: partial, origin, isStopped)
        } catch {
            // The first error is the one worth reporting; what stays is swept at the next start.
            try? Files.removeIfPresent(partial)
            throw error
        }
    }

    private func copy(
        _ source: FilePath, _ expected: StoredIdentity, _ changed: Int64, to partial: FilePath, _ origin: Origin?,
        _ isStopped: () -> Bool
    ) throws(StagingError) -> (sha256: [UInt8], look: FileLook) {
        let from = try reading(source) { () throws(SystemError) in try Descriptor.open(source, for: .reading) }
        let before = try reading(source) { () throws(SystemError) in try FileLook(of: from, named: source) }
        guard before.isRegular, before.size == expected.size, before.modified == expected.modified,
            before.changed == changed, expected.inode == nil || expected.inode == before.inode
        else { throw .changed(source) }

        let to = try writing { () throws(SystemError) in
            try Files.removeIfPresent(partial)
            return try Descriptor.open(partial, for: .creating)
        }
        let isClone = try clone(from, to, partial)
        let sha256: [UInt8]
        if isClone {
            sha256 = try reading(partial) { () throws(SystemError) in
                try digest(of: to, named: partial)
            }
        } else {
            try reserve(before.size, to, partial)
            let copied = try DigestingCopier.run(
                from: from, source: source, to: to, target: partial, size: before.size, isStopped: isStopped)
            guard copied.bytes == before.size else { throw .changed(source) }
            sha256 = copied.sha256
        }
        let after = try reading(source) { () throws(SystemError) in try FileLook(of: from, named: source) }
        let named = try reading(source) { () throws(SystemError) in try FileLook(at: source) }
        guard before == after, before == named else { throw .changed(source) }
        if var origin {
            origin.sha256 = hexadecimal(sha256)
            origin.write(to: to, named: partial)
        }
        try writing { () throws(SystemError) in try to.sync(named: partial) }
        from.forget(from: 0, count: 0)
        to.forget(from: 0, count: 0)
        try closing(to, partial)
        CrashPoint.reached("copied")
        return (sha256, before)
    }

    /// Gives partial copies their names, all with one sync of the folder. Durable when it returns.
    package func publish(_ names: [FilePath]) throws(SystemError) {
        for name in names { try Files.rename(partial(name), to: path(name)) }
        CrashPoint.reached("renamed")
        try Files.syncFolder(folder)
    }

    /// Removes a copy, whole or partial. Not there is fine.
    package func remove(_ name: FilePath) throws(SystemError) {
        try Files.removeIfPresent(path(name))
        try Files.removeIfPresent(partial(name))
    }

    /// The size of a whole copy; `nil` when it is not there.
    package func size(of name: FilePath) throws(SystemError) -> Int64? {
        try FileLook.ifPresent(at: path(name)).map(\.size)
    }

    /// Bytes that the file system has left for us.
    package func free() throws(SystemError) -> Int64 { try Space(at: folder).free }

    private func clone(
        _ from: borrowing Descriptor, _ to: borrowing Descriptor, _ partial: FilePath
    ) throws(StagingError) -> Bool {
        guard method != .copy else { return false }
        let failure = Files.clone(from, to: to, named: partial)
        if let failure, method == .reflink { throw .broken(failure) }
        return failure == nil
    }

    private func reserve(_ size: Int64, _ to: borrowing Descriptor, _ partial: FilePath) throws(StagingError) {
        guard size > 0, let failure = Files.reserve(size, to, named: partial) else { return }
        // A file system that cannot reserve says so when it is full, only later.
        if failure.isFull { throw .full(failure) }
    }

    private func closing(_ to: consuming Descriptor, _ partial: FilePath) throws(StagingError) {
        do { try to.close(named: partial) } catch { throw error.isFull ? .full(error) : .broken(error) }
    }

    private func reading<R: ~Copyable>(
        _ source: FilePath, _ body: () throws(SystemError) -> R
    ) throws(StagingError) -> R {
        do { return try body() } catch { throw error.isMissing ? .missing(source) : .unreadable(error) }
    }

    private func writing<R: ~Copyable>(_ body: () throws(SystemError) -> R) throws(StagingError) -> R {
        do { return try body() } catch { throw error.isFull ? .full(error) : .broken(error) }
    }
}
