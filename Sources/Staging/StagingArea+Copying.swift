package import Core
package import Linux
internal import Synchronization

// From a source to a whole copy under its own name.

/// The version of a source that must be copied, as it was recorded.
package struct CopyRequest: Sendable {
    package var source: SourceFile
    package var identity: FileIdentity
    /// Its ctime, ns since 1970.
    package var changed: Int64

    package init(_ source: SourceFile, _ identity: FileIdentity, changed: Int64) {
        self.source = source
        self.identity = identity
        self.changed = changed
    }

    /// For messages.
    var shown: FilePath { source.path.shown }

    func matches(_ status: FileStatus) -> Bool {
        status.isRegular && status.size == identity.size && status.modified == identity.modified
            && status.changed == changed
            && (identity.inode == nil || identity.inode == status.inode)
    }
}

extension StagingArea {
    /// A partial copy that is complete, and perhaps not on the disk yet. It is held open until it is: the kernel
    /// reports later write errors to the descriptor that wrote it.
    package final class FreshCopy: Sendable {
        fileprivate let name: FilePath
        /// SHA-256 of the content.
        package let sha256: [UInt8]
        /// Digests of the requested parts.
        package let parts: PartDigests
        /// Size of the copy.
        package let size: Int64
        private let file: Mutex<Descriptor?>

        init(
            _ name: FilePath, _ sha256: [UInt8], _ parts: PartDigests = PartDigests(), size: Int64,
            _ file: consuming Descriptor
        ) {
            self.name = name
            self.sha256 = sha256
            self.parts = parts
            self.size = size
            self.file = Mutex(consume file)
        }

        fileprivate func sync(named partial: FilePath) throws(SystemError) {
            guard let file = file.withLock({ $0.take() }) else { return }
            try file.sync(named: partial)
            file.forget(from: 0, count: 0)
            try file.close(named: partial)
        }
    }

    /// Copies a source to a partial file that is on its way to the disk: ``publish(_:)`` follows.
    ///
    /// One pass reads, writes and digests; the digest runs on a second thread. Where blocks are shared, the copy is
    /// read once for its digest. The source is checked before and after: a copy of anything but one unchanged version
    /// is deleted.
    ///
    /// - Parameters:
    ///   - method: The area's own by default.
    ///   - origin: Kept with the copy, in case the database is lost.
    ///   - requestedDigests: Digests of its parts that a destination will need.
    package func copy(
        _ wanted: CopyRequest, as name: FilePath, by method: Method? = nil, origin: CopyOrigin? = nil,
        requestedDigests: [PartDigests.RequestedDigest] = [], pace: CopyProgress = CopyProgress()
    ) throws(StagingError) -> FreshCopy {
        let partial = partial(name)
        do {
            return try copy(wanted, as: name, to: partial, method ?? self.method, origin, requestedDigests, pace)
        } catch {
            // The first error is the one worth reporting; remaining files are swept at the next start.
            try? Files.removeIfPresent(partial)
            throw error
        }
    }

    private func copy(
        _ wanted: CopyRequest, as name: FilePath, to partial: FilePath, _ method: Method, _ origin: CopyOrigin?,
        _ requestedDigests: [PartDigests.RequestedDigest], _ pace: CopyProgress
    ) throws(StagingError) -> FreshCopy {
        let source = wanted.shown
        let from = try open(wanted)
        let to = try writing { () throws(SystemError) in
            try Files.removeIfPresent(partial)
            return try Descriptor.open(partial, for: .creating)
        }
        let content: DigestResult
        if try clone(from, to, source, partial, method) {
            // Both descriptors share the blocks, so an error of the disk is the source's too.
            content = try DigestingCopier.digest(
                of: to, named: source, size: wanted.identity.size, requestedDigests: requestedDigests, pace: pace)
        } else {
            let isSparse = try reading(source) { () throws(SystemError) in
                try from.allocated(named: source) < wanted.identity.size
            }
            try reserve(wanted.identity.size, from, isSparse: isSparse, source, to, partial)
            content = try DigestingCopier.run(
                from: from, source: source, to: to, target: partial, size: wanted.identity.size, isSparse: isSparse,
                requestedDigests: requestedDigests, pace: pace)
        }
        guard content.bytes == wanted.identity.size else { throw .changed(source) }
        try verifyUnchanged(wanted, from)
        if var origin {
            origin.sha256 = hexadecimal(content.sha256)
            origin.write(to: to, named: partial)
        }
        to.startFlushing(from: 0, count: 0)
        from.forget(from: 0, count: 0)
        CrashPoint.reached("copied")
        return FreshCopy(name, content.sha256, content.parts, size: wanted.identity.size, to)
    }

    /// Opens the source, if it is the version that was recorded.
    func open(_ wanted: CopyRequest) throws(StagingError) -> Descriptor {
        let source = wanted.shown
        let from = try reading(source) { () throws(SystemError) in try wanted.source.open() }
        let before = try reading(source) { () throws(SystemError) in try FileStatus(of: from, named: source) }
        guard wanted.matches(before) else { throw .changed(source) }
        return from
    }

    /// Fails unless the bytes that were read are still those of the file under the name.
    func verifyUnchanged(_ wanted: CopyRequest, _ from: borrowing Descriptor) throws(StagingError) {
        let source = wanted.shown
        let after = try reading(source) { () throws(SystemError) in try FileStatus(of: from, named: source) }
        let named = try reading(source) { () throws(SystemError) in try wanted.source.status() }
        guard wanted.matches(after), after == named else { throw .changed(source) }
    }

    /// Gives partial copies their names when they are on the disk, all with one sync of the folder. Durable when it
    /// returns.
    ///
    /// - Throws: ``StagingError/full(_:)``, ``StagingError/broken(_:)``.
    package func publish(_ copies: [FreshCopy]) throws(StagingError) {
        if copies.isEmpty { return }
        try writing { () throws(SystemError) in
            for copy in copies { try copy.sync(named: partial(copy.name)) }
            for copy in copies { try Files.rename(partial(copy.name), to: path(copy.name)) }
            CrashPoint.reached("renamed")
            try Files.syncFolder(folder)
        }
    }

    /// Bytes that a copy of a source will take, for a disk without space for its size: fewer when the source has holes,
    /// none when its blocks can be shared. Its size when that is unknown.
    package func need(of source: SourceFile, size: Int64, by method: Method? = nil) -> Int64 {
        // Errors here are not reported: the copy will fail with the same ones.
        do {
            let from = try source.openParent()
            if (method ?? self.method) != .copy, try Files.refusesSharing(from: from, into: folder) == nil { return 0 }
            return min(size, try from.open(source.name, for: .reading).allocated(named: source.path.shown))
        } catch { return size }
    }

    private func clone(
        _ from: borrowing Descriptor, _ to: borrowing Descriptor, _ source: FilePath, _ partial: FilePath,
        _ method: Method
    ) throws(StagingError) -> Bool {
        guard method != .copy, let failure = Files.clone(from, to: to, named: partial) else { return method != .copy }
        guard method == .reflink else { return false }
        if failure.refusesSharing { throw .cannotShare(source, failure) }
        if failure.isFull { throw .full(failure) }
        // Shared blocks that cannot be read, or a source that may not be shared.
        throw .unreadable(failure)
    }

    /// Smaller files are not worth a reservation, which costs the file system a change of its own: their first write
    /// reports a full disk as well.
    private static let smallestReserved: Int64 = 1 << 20
    /// A file in more pieces than that is written without a reservation.
    private static let maxPieces = 1024

    private func reserve(
        _ size: Int64, _ from: borrowing Descriptor, isSparse: Bool, _ source: FilePath, _ to: borrowing Descriptor,
        _ partial: FilePath
    ) throws(StagingError) {
        guard size > Self.smallestReserved else { return }
        var offset: Int64 = 0
        for _ in 0..<Self.maxPieces where offset < size {
            var piece = 0..<size
            if isSparse {
                let data = try reading(source) { () throws(SystemError) in try from.data(from: offset, named: source) }
                // Only a hole is left, or the file shrank meanwhile, which the copy will notice.
                guard let data, data.upperBound > offset else { return }
                piece = data.lowerBound..<min(data.upperBound, max(size, data.lowerBound))
            }
            if let failure = piece.isEmpty ? nil : to.reserve(piece, named: partial) {
                if failure.isFull { throw .full(failure) }
                // A file system that cannot reserve also reports that it is full, only later.
                return
            }
            offset = max(piece.upperBound, offset + 1)
        }
    }

    func reading<R: ~Copyable>(
        _ source: FilePath, _ body: () throws(SystemError) -> R
    ) throws(StagingError) -> R {
        do { return try body() } catch { throw error.isMissing ? .missing(source) : .unreadable(error) }
    }

    func writing<R: ~Copyable>(_ body: () throws(SystemError) -> R) throws(StagingError) -> R {
        do { return try body() } catch { throw StagingError(writing: error) }
    }
}
