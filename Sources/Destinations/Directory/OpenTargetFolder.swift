internal import Core
internal import Digests
internal import Glibc
internal import Linux
internal import Synchronization

/// A folder of the target, held open for one attempt: a file system that is mounted over its path meanwhile does not
/// get our bytes.
final class OpenTargetFolder: RemoteDirectory {
    let target: DirectoryTarget
    let folder: Descriptor
    /// The path below the target's path.
    let relative: FilePath
    let root: FileStatus
    private let notices = Mutex<[String]>([])

    private static let blockSize = 1 << 20
    /// At most this many bytes are in write-back while more is written, so that no sync takes long.
    private static let flushEvery: Int64 = 8 << 20
    /// On a slow disk, a durable point is made after this time, at any offset.
    private static let longestStretch: Duration = .seconds(5)
    /// Space for less than this is not reserved: the call costs more than it gains.
    private static let worthReserving: Int64 = 1 << 20

    init(_ target: DirectoryTarget, _ folder: consuming Descriptor, relative: FilePath, root: FileStatus) throws {
        self.target = target
        self.folder = folder
        self.relative = relative
        self.root = root
    }

    var warnings: [String] { notices.withLock { $0 } }
    func address(of name: FilePath) -> String { target.path.appending(relative).appending(name).display }

    // MARK: Looking

    func status(at name: FilePath, for file: StagedFile) async throws -> RemoteNameState {
        try await run(name) { pulse in
            guard
                let status = try self.naming(
                    name,
                    { () throws(SystemError) in
                        try FileStatus.ifPresent(at: name, in: self.folder)
                    })
            else { return .free }
            guard status.isRegular else { return .other(isFile: false) }
            guard status.size == file.size else { return .other(isFile: true) }
            return try self.digest(of: name, expecting: file.size, pulse) == file.sha256 ? .same : .other(isFile: true)
        }
    }

    func length(of part: FilePath) async throws -> Int64? {
        try await run(part) { _ in
            try FileStatus.ifPresent(at: part, in: self.folder).flatMap { $0.isRegular ? $0.size : nil }
        }
    }

    func holds(_ file: StagedFile, as part: FilePath) async throws -> Bool {
        try await run(part) { pulse in
            guard let status = try FileStatus.ifPresent(at: part, in: self.folder) else { throw self.gone(part) }
            guard status.size == file.size else { return false }
            return try self.digest(of: part, expecting: file.size, pulse) == file.sha256
        }
    }

    /// Digests the content on the disk or the server, as far as the kernel drops its page cache.
    func digest(of name: FilePath, expecting size: Int64, _ pulse: SlowDisk.Pulse) throws -> [UInt8] {
        let file = try folder.open(name, for: .reading)
        file.forget(from: 0, count: 0)
        let sha256 = try Hasher.digest(.sha256, expecting: size) { block, offset in
            try pulse.reportProgress()
            return try file.read(into: block, at: offset, named: name)
        }
        file.forget(from: 0, count: 0)
        return sha256
    }

    // MARK: Writing

    func send(
        from offset: Int64, of order: UploadOrder, to part: FilePath, _ spent: @escaping Spent,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async throws -> Int64 {
        try await run(part) { pulse in
            let staged = try self.openStaged(order.file)
            let file = try offset == 0 ? self.make(part, for: order.file) : self.reopen(part)
            let end = try self.copy(staged, order.file, from: offset, to: file, part, pulse, spent, sent)
            if end == order.file.size { self.setAttributes(file, part, order) }
            try file.sync(named: part)
            // On a network mount or with a quota, close may be the first call to report lost data.
            try file.close(named: part)
            return end
        }
    }

    func openStaged(_ file: StagedFile) throws -> Descriptor {
        do { return try Descriptor.open(file.place) } catch {
            throw UploadError(
                target.failure(.local, .stagedUnreadable, "\(error)", retryable: true), remedy: .restage(.unreadable))
        }
    }

    /// Makes a new file, even if an earlier try left one: a failed write may have left pages that only look right.
    func make(_ part: FilePath, for staged: StagedFile) throws -> Descriptor {
        try removeLeftover(part)
        let file = try naming(part) { () throws(SystemError) in
            try Files.openFile(part, in: folder, creating: target.mode ?? 0o666)
        }
        if staged.size >= Self.worthReserving, let error = Files.reserve(staged.size, file, named: part), error.isFull {
            // A file that does not fit must not take the space that others need.
            try Files.removeIfPresent(part, in: folder)
            throw error
        }
        return file
    }

    private func removeLeftover(_ part: FilePath) throws {
        // A name that the file system cannot have is reported when the file is made.
        do { try Files.removeIfPresent(part, in: folder) } catch {
            guard [EINVAL, EILSEQ, ENAMETOOLONG].contains(error.code) else { throw error }
        }
    }

    private func reopen(_ part: FilePath) throws -> Descriptor { try Files.openFile(part, in: folder, creating: nil) }

    /// - Returns: The first byte that was not copied.
    func copy(
        _ staged: borrowing Descriptor, _ source: StagedFile, from start: Int64, to file: borrowing Descriptor,
        _ part: FilePath, _ pulse: SlowDisk.Pulse, _ spent: Spent, _ sent: (Int64) -> Void
    ) throws -> Int64 {
        let end = min(source.size, start + target.syncInterval)
        let block = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(1, min(Self.blockSize, Int(end - start))), alignment: 4096)
        defer { block.deallocate() }
        let began = target.clocks.monotonic()
        var offset = start
        while offset < end {
            try pulse.reportProgress()
            let want = min(block.count, Int(end - offset))
            let got = try read(
                staged, source, at: offset, into: UnsafeMutableRawBufferPointer(rebasing: block[..<want]))
            let (written, error) = file.write(UnsafeRawBufferPointer(rebasing: block[..<got]), at: offset, named: part)
            spent(Int64(written))
            if let error { throw error }
            let before = offset
            offset += Int64(got)
            sent(offset)
            if offset / Self.flushEvery != before / Self.flushEvery {
                let flushed = before / Self.flushEvery * Self.flushEvery
                file.startFlushing(from: flushed, count: Self.flushEvery)
                if flushed > start {
                    try file.flush(from: flushed - Self.flushEvery, count: Self.flushEvery, named: part)
                }
                staged.forget(from: 0, count: offset)
                if target.clocks.monotonic().since(began) > Self.longestStretch { break }
            }
        }
        return offset
    }

    private func read(
        _ staged: borrowing Descriptor, _ source: StagedFile, at offset: Int64,
        into block: UnsafeMutableRawBufferPointer
    ) throws -> Int {
        let got: Int
        do { got = try staged.read(into: block, at: offset, named: source.place.shown) } catch {
            throw UploadError(
                target.failure(.local, .stagedUnreadable, "\(error)", retryable: true), remedy: .restage(.unreadable))
        }
        guard got == block.count else {
            throw source.changed("ends after \(offset + Int64(got)) bytes, and \(source.size) were staged", failure)
        }
        return got
    }

    private var failure: StagedFile.MakeFailure { { self.target.failure($0, $1, $2, retryable: $3) } }

    /// Sets time and mode, where the file system keeps them. A failure is no reason to refuse the file.
    func setAttributes(_ file: borrowing Descriptor, _ part: FilePath, _ order: UploadOrder) {
        do {
            try file.setModified(order.modified, named: part)
            if let mode = target.mode { try file.setMode(mode, named: part) }
        } catch {
            let text = "\(error.call == "fchmod" ? "its mode" : "its time") could not be kept there: \(error.reason)"
            notices.withLock { $0 = [text] }
        }
    }

    // MARK: Names

    func rename(_ part: FilePath, to name: FilePath, isReplacing: Bool) async throws -> Bool {
        try await run(name) { pulse in
            try self.target.checkRoot(self.root)
            try pulse.reportProgress()
            guard try FileStatus.ifPresent(at: part, in: self.folder) != nil else { throw self.gone(part) }
            let isDone = try self.naming(name) { () throws(SystemError) in
                if isReplacing {
                    try Files.rename(part, to: name, in: self.folder)
                    return true
                }
                return try self.renameNoReplace(part, to: name)
            }
            guard isDone else { return false }
            CrashPoint.reached("part-renamed")
            // In one step with the rename: a stop between them would leave a file that is not counted.
            try self.folder.sync(named: self.relative)
            return true
        }
    }

    private func gone(_ part: FilePath) -> UploadError {
        UploadError(
            target.failure(
                .transient, .partGone, "\(address(of: part)) is gone: it was removed there", retryable: true),
            remedy: .retry(after: nil))
    }

    func renameNoReplace(_ part: FilePath, to name: FilePath) throws(SystemError) -> Bool {
        do { try Files.renameNoReplace(part, in: folder, to: name, in: folder) } catch {
            if error.exists { return false }
            // The file system supports neither rename without replacing nor hard links, and no other way is safe.
            if error.call == "linkat", [EPERM, ENOSYS, EMLINK, EINVAL].contains(error.code) {
                throw SystemError(call: error.call, subject: error.subject, code: EOPNOTSUPP)
            }
            throw error
        }
        return true
    }

    func makeDurable(_ name: FilePath) async throws {
        try await run(name) { _ in
            try self.folder.open(name, for: .reading).sync(named: name)
            try self.folder.sync(named: self.relative)
        }
    }

    func remove(_ part: FilePath) async throws {
        try await run(part) { _ in
            if try Files.removeIfPresent(part, in: self.folder) { try self.folder.sync(named: self.relative) }
        }
    }

    func run<R: Sendable>(
        _ name: FilePath, _ body: @escaping @Sendable (SlowDisk.Pulse) throws -> R
    ) async throws -> R { try await target.run(relative.appending(name), body) }

    /// An error that the name causes, and not the folder, ends this upload alone.
    private func naming<R: ~Copyable>(_ name: FilePath, _ call: () throws(SystemError) -> R) throws -> R {
        do { return try call() } catch {
            throw target.nameFailure(error, target.path.appending(relative).appending(name), in: root)
        }
    }
}
