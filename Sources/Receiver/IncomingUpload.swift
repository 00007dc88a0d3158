internal import Core
internal import Digests
internal import Linux
internal import Synchronization
internal import WebServer

/// One upload that is being received, or was received recently.
///
/// Two numbers matter: how far the file was written, and how far it is known to be on the disk. Clients only learn the
/// second.
///
/// The newest request wins: a HEAD or another PATCH takes the right to write from the earlier PATCH. That PATCH may
/// belong to a dead connection, and would otherwise block its own client's return. If it is still alive, it gets a 423
/// at its next byte.
final class IncomingUpload: Sendable {
    /// The result of taking a piece of a body.
    enum Appended: Hashable, Sendable {
        case stored
        /// The piece exceeds the announced length; none of it is kept.
        case tooLong
        /// A newer request has the upload, or it was deleted.
        case interrupted
        case failed(SystemError)
    }

    /// The state of an upload, all of it durable.
    enum ReceptionState: Hashable, Sendable {
        case partial(Int64)
        case finished
        /// The content differs from the announced one; the upload is back at 0.
        case refused(String)
        case gone
    }

    let id: String
    let length: Int64
    let metadata: UploadMetadataHeader
    let requestedPath: FilePath

    /// A running digest.
    ///
    /// `@unchecked Sendable`: it is stored only in `state`, and accessed only with its lock held.
    private struct Digesting: @unchecked Sendable {
        private let hasher = Hasher(.sha256)
        func update(_ bytes: UnsafeRawBufferPointer) { hasher.update(bytes) }
        func finish() -> [UInt8] { hasher.finish() }
    }

    private struct State {
        var record: Record
        /// Bytes written so far.
        var offset: Int64
        /// The digest of exactly the bytes below `offset`; `nil` when they must be read again.
        var hasher: Digesting?
        /// The number of the request that may write.
        var writer: UInt64 = 0
        var isFinished: Bool
        var isGone = false
        /// Where the last running sync began.
        var flushedTo: Int64
    }
    private let state: Mutex<State>
    /// Held during work that waits for the disk, by one request at a time. Never taken on the server's threads.
    private let work = Mutex<Void>(())

    /// - Parameter offset: How far the data can be trusted.
    init(_ record: Record, metadata: UploadMetadataHeader, requestedPath: FilePath, offset: Int64, isFinished: Bool) {
        id = record.id
        length = record.length
        self.metadata = metadata
        self.requestedPath = requestedPath
        state = Mutex(
            State(
                record: record, offset: offset, hasher: offset == 0 ? Digesting() : nil, isFinished: isFinished,
                flushedTo: offset))
    }

    var record: Record { state.withLock(\.record) }
    var isFinished: Bool { state.withLock(\.isFinished) }
    /// The offset of the next byte; HEAD waits for the disk before it reports it.
    var nextOffset: Int64 { state.withLock { $0.isFinished ? length : $0.offset } }
    var hasAllBytes: Bool { state.withLock { $0.offset == length } }
    /// For logs.
    var shownID: Substring { id.prefix(8) }

    /// Gives a request the right to write from now on.
    ///
    /// - Returns: `nil`, without a change, when `offset` is not the upload's offset; otherwise the number of missing
    ///   bytes.
    func beginWriting(_ writer: UInt64, at offset: Int64) -> Int64? {
        state.withLock { state in
            guard state.offset == offset, !state.isGone else { return nil }
            state.writer = writer
            return length - offset
        }
    }

    /// No request may write until the next PATCH.
    func interrupt() { state.withLock { $0.writer = 0 } }

    /// - Returns: Also whether so much was written since the last sync that another should begin.
    func append(
        _ bytes: UnsafeRawBufferPointer, by writer: UInt64, to file: borrowing Descriptor, named path: FilePath
    ) -> (Appended, needsFlush: Bool) {
        state.withLock { state in
            guard state.writer == writer, !state.isGone, !state.isFinished else { return (.interrupted, false) }
            guard Int64(bytes.count) <= length - state.offset else { return (.tooLong, false) }
            let (count, error) = file.write(bytes, at: state.offset, named: path)
            state.hasher?.update(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            state.offset += Int64(count)
            if let error { return (.failed(error), false) }
            // 64 MiB: the most that a power cut may cost a client that sends everything in one request.
            guard state.offset - state.flushedTo >= 64 << 20 else { return (.stored, false) }
            state.flushedTo = state.offset
            return (.stored, true)
        }
    }

    /// Makes the received bytes durable, and finishes the upload when all are there. Waits for the disk.
    func commit(on directory: UploadDirectory) throws -> ReceptionState {
        try work.withLock { _ in
            let (offset, isFinished, isGone) = state.withLock { ($0.offset, $0.isFinished, $0.isGone) }
            if isGone { return .gone }
            if isFinished { return .finished }
            if offset == length { return try finish(on: directory) }
            do { return .partial(try sync(on: directory)) } catch let error as SystemError where error.isFull {
                // The record needs a block on the full disk: the last bytes are given up for it.
                try rewind(to: max(record.offset, offset - (64 << 10)), on: directory)
                return .partial(try sync(on: directory))
            }
        }
    }

    /// The content exists already under the requested name: the upload is finished without a byte.
    func adopt(_ held: Lookup.Held, digest: String, on directory: UploadDirectory) throws {
        try work.withLock { _ in
            try note(on: directory) { record in
                record.offset = length
                record.digest = digest
                record.name = PercentCoding.encode(held.path.bytes, keeping: "/")
                record.inode = held.status.inode
                record.modified = held.status.modified
                record.born = held.status.born
                record.isOurs = false
            }
            try Files.removeIfPresent(directory.data(of: id))
            state.withLock { state in
                state.offset = length
                state.hasher = nil
                state.isFinished = true
            }
        }
    }

    /// Forgets the upload: its bytes, its record, and its finished file if that is still the same file.
    func delete(from directory: UploadDirectory) throws {
        try work.withLock { _ in
            let (record, isFinished) = state.withLock { state in
                state.isGone = true
                return (state.record, state.isFinished)
            }
            if isFinished { try FilePublisher(directory: directory, arrival: self).undo(record) }
            try directory.discard(record)
        }
    }

    // MARK: With `work` held

    private func sync(on directory: UploadDirectory) throws -> Int64 {
        let (offset, record) = state.withLock { ($0.offset, $0.record) }
        if offset == record.offset, record.boot == directory.boot { return offset }
        let path = directory.data(of: id)
        let file = try Descriptor.open(path, for: .updating)
        do { try file.sync(named: path) } catch {
            // Data that the disk refused cannot be trusted, even if the cache still shows it (fsync(2)).
            try rewind(to: record.offset, on: directory)
            throw error
        }
        try note(on: directory) { $0.offset = offset }
        return offset
    }

    /// Changes the record, durably.
    private func note(on directory: UploadDirectory, _ change: (inout Record) -> Void) throws {
        var record = record
        change(&record)
        record.boot = directory.boot
        record.touched = directory.now().milliseconds
        try record.write(directory.record(of: id))
        let written = record
        state.withLock { $0.record = written }
    }

    private func rewind(to offset: Int64, on directory: UploadDirectory) throws {
        let path = directory.data(of: id)
        let file = try Descriptor.open(path, for: .updating)
        try state.withLock { state throws(SystemError) in
            state.writer = 0
            try file.setSize(offset, named: path)
            state.offset = offset
            state.flushedTo = offset
            state.hasher = offset == 0 ? Digesting() : nil
            state.record.digest = nil
        }
    }

    private func finish(on directory: UploadDirectory) throws -> ReceptionState {
        let path = directory.data(of: id)
        let file = try Descriptor.open(path, for: .updating)
        let digest = try digest(of: file, named: path)
        if let expected = metadata.text("sha256"), expected.lowercased() != digest {
            try rewind(to: 0, on: directory)
            try note(on: directory) { $0.offset = 0 }
            return .refused(
                "the content's SHA-256 is \(digest), but the upload was announced with \(expected.prefix(64))")
        }
        try file.setMode(0o640, named: path)
        if let modified = metadata.text("mtime").flatMap({ Int64($0) }) { try file.setModified(modified, named: path) }
        try file.sync(named: path)
        try file.close(named: path)
        let name = try FilePublisher(directory: directory, arrival: self).place(digest: digest) {
            name, status, isOurs in
            try note(on: directory) { record in
                record.offset = length
                record.digest = digest
                record.name = name
                record.inode = status.inode
                record.modified = status.modified
                record.born = status.born
                record.isOurs = isOurs
            }
        }
        state.withLock { $0.isFinished = true }
        directory.log("received \(name.display), \(length) bytes, sha256 \(digest), upload \(shownID)")
        return .finished
    }

    private func digest(of file: borrowing Descriptor, named path: FilePath) throws -> String {
        let known = state.withLock { state in
            if let hasher = state.hasher {
                state.record.digest = hexadecimal(hasher.finish())
                state.hasher = nil
            }
            return state.record.digest
        }
        if let known { return known }
        let digest = try FilePublisher.digest(of: file, named: path)
        state.withLock { $0.record.digest = digest }
        return digest
    }
}
