package import Core
internal import Digests
package import Linux

/// Reports the progress of a copy, and asks whether it is still wanted.
package struct CopyProgress {
    /// Called with the number of source bytes that are done.
    let progress: (Int64) -> Void
    /// Called between blocks; `true` ends the copy.
    let isStopped: () -> Bool

    package init(progress: @escaping (Int64) -> Void = { _ in }, isStopped: @escaping () -> Bool = { false }) {
        self.progress = progress
        self.isStopped = isStopped
    }
}

/// The number of bytes read, and their digests.
struct DigestResult {
    var bytes: Int64
    var sha256: [UInt8]
    var parts: PartDigests
}

/// Copies from one descriptor to another and digests on the way: one thread moves the bytes, others digest them.
enum DigestingCopier {
    /// Larger blocks gain nothing, and four of them are the most that a copy holds in memory.
    static let blockSize = 1 << 20
    private static let blocks = 4
    /// After this many bytes, writing to the disk is started, and the bytes of the window before leave the page cache.
    /// A large file must not push out the data of other programs, and little is left for the last sync.
    static let window: Int64 = 8 << 20
    /// Zeros are left out in pieces of this size; file systems have no smaller holes.
    private static let holeBlockSize = 4096

    /// Reads up to `size` bytes, and one more to notice a source that grew.
    ///
    /// - Parameter isSparse: Whether the source has holes: blocks of zeros are not written. They are found by their
    ///   bytes and not by a query for holes, since file systems have reported theirs wrongly.
    /// - Returns: The bytes copied, which differ from `size` when the source changed; and their digests.
    static func run(
        from: borrowing Descriptor, source: FilePath, to: borrowing Descriptor, target: FilePath, size: Int64,
        isSparse: Bool = false, requestedDigests: [PartDigests.RequestedDigest] = [],
        pace: CopyProgress = CopyProgress()
    ) throws(StagingError) -> DigestResult {
        let copied = try read(from, source, size: size, requestedDigests, pace) { block, offset throws(SystemError) in
            if isSparse {
                try writeWithoutZeros(block, at: offset, to, target)
            } else if let error = to.write(block, at: offset, named: target).error {
                throw error
            }
            try to.writeBack(offset, block.count, named: target)
        }
        // A hole at the end does not exist until the size is set.
        if isSparse {
            do { try to.setSize(copied.bytes, named: target) } catch {
                throw StagingError(writing: error)
            }
        }
        return copied
    }

    /// Digests the content of a descriptor; ``run(from:source:to:target:size:isSparse:requestedDigests:pace:)`` without
    /// a copy.
    static func digest(
        of file: borrowing Descriptor, named path: FilePath, size: Int64,
        requestedDigests: [PartDigests.RequestedDigest] = [], pace: CopyProgress
    ) throws(StagingError) -> DigestResult {
        try read(file, path, size: size, requestedDigests, pace) { _, _ in }
    }

    private static func read(
        _ from: borrowing Descriptor, _ source: FilePath, size: Int64,
        _ requestedDigests: [PartDigests.RequestedDigest], _ pace: CopyProgress,
        _ sink: (_ block: UnsafeRawBufferPointer, _ offset: Int64) throws(SystemError) -> Void
    ) throws(StagingError) -> DigestResult {
        // For a small file, as much as it needs and a little to notice that it grew.
        let blockSize = Int(min(size, Int64(blockSize) - 1) >> 12 + 1) << 12
        let digest = DigestThreads(blocks: size > Int64(blockSize) ? blocks : 1, blockSize: blockSize, requestedDigests)
        var copied: Int64 = 0
        while true {
            if pace.isStopped() {
                digest.drain()
                throw .stopped(source)
            }
            let block = digest.next()
            let got: Int
            do { got = try from.read(into: block.bytes, at: copied, named: source) } catch {
                digest.drain()
                throw .unreadable(error)
            }
            if got == 0 {
                digest.drain()
                break
            }
            digest.process(block, count: got)
            do { try sink(UnsafeRawBufferPointer(rebasing: block.bytes[..<got]), copied) } catch {
                digest.drain()
                throw StagingError(writing: error)
            }
            let before = copied / window * window
            copied += Int64(got)
            pace.progress(min(copied, size))
            if copied / window * window != before { from.forget(from: before, count: copied - before) }
            if copied > size || got < blockSize {
                digest.drain()
                break
            }
        }
        let (sha256, parts) = digest.finish()
        return DigestResult(bytes: copied, sha256: sha256, parts: parts)
    }

    private static func writeWithoutZeros(
        _ block: UnsafeRawBufferPointer, at offset: Int64, _ to: borrowing Descriptor, _ target: FilePath
    ) throws(SystemError) {
        func piece(_ start: Int, _ end: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: block[start..<min(end, block.count)])
        }
        var start = 0
        while start < block.count {
            var end = start
            if isZero(piece(start, start + holeBlockSize)) {
                start += holeBlockSize
                continue
            }
            while end < block.count, !isZero(piece(end, end + holeBlockSize)) { end += holeBlockSize }
            if let error = to.write(piece(start, end), at: offset + Int64(start), named: target).error { throw error }
            start = end
        }
    }
}

extension Descriptor {
    /// Sends written bytes to the disk, a window at a time.
    ///
    /// - Parameters:
    ///   - offset: The offset of the last written bytes.
    ///   - count: Their number.
    borrowing func writeBack(
        _ offset: Int64, _ count: Int, named path: FilePath
    ) throws(SystemError) {
        let window = DigestingCopier.window
        let start = offset / window * window
        guard (offset + Int64(count)) / window * window != start else { return }
        startFlushing(from: start, count: window)
        guard start >= window else { return }
        try flush(from: start - window, count: window, named: path)
        forget(from: start - window, count: window)
    }
}

/// SHA-256 of a descriptor's content from its beginning.
func digest(of file: borrowing Descriptor, named path: FilePath) throws(SystemError) -> [UInt8] {
    try Hasher.digest(.sha256) { block, offset throws(SystemError) in
        try file.read(into: block, at: offset, named: path)
    }
}

/// SHA-256 of a file in an open directory: for the last check before a source is removed, and for moves across file
/// systems.
func digest(of name: FilePath, in folder: borrowing OpenFolder) throws(SystemError) -> [UInt8] {
    let file = try folder.open(name, for: .reading)
    let sha256 = try digest(of: file, named: folder.path.appending(name))
    file.forget(from: 0, count: 0)
    return sha256
}

/// SHA-256 of a source.
package func contentDigest(of source: SourceFile) throws(SystemError) -> [UInt8] {
    let file = try source.open()
    let sha256 = try digest(of: file, named: source.path.shown)
    file.forget(from: 0, count: 0)
    return sha256
}

/// SHA-256 of a file of our own, by its path.
package func contentDigest(of path: FilePath) throws(SystemError) -> [UInt8] {
    let file = try Descriptor.open(path, for: .reading)
    let sha256 = try digest(of: file, named: path)
    file.forget(from: 0, count: 0)
    return sha256
}
