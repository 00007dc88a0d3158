package import Core
package import Linux
internal import Synchronization

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

    /// A partial copy that is whole, and perhaps not on the disk yet. Held open until it is: what goes wrong on the way
    /// there is told to who wrote it.
    package final class FreshCopy: Sendable {
        fileprivate let name: FilePath
        /// SHA-256 of the content.
        package let sha256: [UInt8]
        /// The look that the source had throughout.
        package let look: FileLook
        private let file: Mutex<Descriptor?>

        fileprivate init(_ name: FilePath, _ sha256: [UInt8], _ look: FileLook, _ file: consuming Descriptor) {
            self.name = name
            self.sha256 = sha256
            self.look = look
            self.file = Mutex(consume file)
        }

        fileprivate func sync(named partial: FilePath) throws(SystemError) {
            guard let file = file.withLock({ $0.take() }) else { return }
            try file.sync(named: partial)
            file.forget(from: 0, count: 0)
            try file.close(named: partial)
        }
    }

    /// Copies `source` to a partial file that is on its way to the disk: ``publish(_:)`` follows.
    ///
    /// One pass reads, writes and digests; the digest runs on a second thread. The source is looked at before and
    /// after: a copy of anything but one unchanged version is thrown away.
    ///
    /// - Parameters:
    ///   - expected: The version that was recorded.
    ///   - changed: Its ctime, ns since 1970.
    ///   - origin: Kept with the copy, for a day on which the database is lost.
    ///   - isStopped: Asked between blocks; `true` ends the copy with ``StagingError/stopped(_:)``.
    package func copy(
        _ source: FilePath, expecting expected: StoredIdentity, changed: Int64, as name: FilePath,
        origin: Origin? = nil, isStopped: () -> Bool = { false }
    ) throws(StagingError) -> FreshCopy {
        let partial = partial(name)
        do {
            return try copy(source, expected, changed, as: name, to: partial, origin, isStopped)
        } catch {
            // The first error is the one worth reporting; what stays is swept at the next start.
            try? Files.removeIfPresent(partial)
            throw error
        }
    }

    private func copy(
        _ source: FilePath, _ expected: StoredIdentity, _ changed: Int64, as name: FilePath, to partial: FilePath,
        _ origin: Origin?, _ isStopped: () -> Bool
    ) throws(StagingError) -> FreshCopy {
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
        to.startFlushing(from: 0, count: 0)
        from.forget(from: 0, count: 0)
        CrashPoint.reached("copied")
        return FreshCopy(name, sha256, before, to)
    }

    /// Gives partial copies their names when they are on the disk, all with one sync of the folder. Durable when it
    /// returns.
    ///
    /// - Throws: ``StagingError/full(_:)``, ``StagingError/broken(_:)``.
    package func publish(_ copies: [FreshCopy]) throws(StagingError) {
        try writing { () throws(SystemError) in
            for copy in copies { try copy.sync(named: partial(copy.name)) }
            for copy in copies { try Files.rename(partial(copy.name), to: path(copy.name)) }
            CrashPoint.reached("renamed")
            try Files.syncFolder(folder)
        }
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

    private func reading<R: ~Copyable>(
        _ source: FilePath, _ body: () throws(SystemError) -> R
    ) throws(StagingError) -> R {
        do { return try body() } catch { throw error.isMissing ? .missing(source) : .unreadable(error) }
    }

    private func writing<R: ~Copyable>(_ body: () throws(SystemError) -> R) throws(StagingError) -> R {
        do { return try body() } catch { throw error.isFull ? .full(error) : .broken(error) }
    }
}
