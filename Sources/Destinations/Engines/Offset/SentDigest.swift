internal import Core
internal import Digests
internal import Linux
internal import Synchronization
internal import Transport

/// The digest of a staged copy, computed from the bytes as they leave, in order. When the digest of the whole is not
/// the recorded one, the last bytes are held back. So a copy that has rotted is found before the remote has a complete
/// file of it, and no byte is read twice.
final class SentDigest: BodyCheck {
    private struct State {
        /// Where the current request began, and the digest of the bytes before that.
        var start: Int64 = 0
        var before = Hasher(.sha256)
        /// Up to where its bytes have left, and the digest of the bytes before that.
        var position: Int64 = 0
        var hasher = Hasher(.sha256)

        mutating func begin() { (start, before) = (position, Hasher(copying: hasher)) }

        /// - Returns: Whether the request can begin at `offset`, by continuing or by repeating from its beginning.
        mutating func goesOn(at offset: Int64) -> Bool {
            if offset == position { return true }
            guard offset == start else { return false }
            (position, hasher) = (start, Hasher(copying: before))
            return true
        }
    }

    private let file: StagedFile?
    private let state = Mutex(State())

    /// - Parameter file: `nil` for a section of a file, of which no digest is known: nothing is computed.
    init(of file: StagedFile?) { self.file = file }

    /// Prepares for a request that begins at `offset`. Earlier bytes that did not leave in this attempt are read from
    /// the copy.
    ///
    /// - Throws: ``UploadError`` when the copy cannot be read; `CancellationError`.
    func begin(at offset: Int64, _ failure: StagedFile.MakeFailure) async throws {
        guard let file else { return }
        let read = state.withLock { state in
            if !state.goesOn(at: offset), offset < state.position { state = State() }
            return state.position..<offset
        }
        if !read.isEmpty {
            do { try await blocking { [self] in try add(read, of: file) } } catch let error as SystemError {
                throw UploadError(failure(.local, .stagedUnreadable, "\(error)", true), remedy: .restage(.unreadable))
            }
        }
        state.withLock { $0.begin() }
    }

    private func add(_ range: Range<Int64>, of file: StagedFile) throws(SystemError) {
        try readPieces(of: file.place, range) { append($0) }
    }

    func admit(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SourceProblem) {
        if file == nil { return }
        let isNext = state.withLock { $0.goesOn(at: offset) }
        if isNext { append(bytes) }
        if !isNext || hasDiffered { throw SourceProblem(description: "the bytes are not those that were staged") }
    }

    private func append(_ bytes: UnsafeRawBufferPointer) {
        let bytes = Array(bytes)
        state.withLock { state in
            state.hasher.update(bytes)
            state.position += Int64(bytes.count)
        }
    }

    private var hasDiffered: Bool {
        guard let file else { return false }
        return state.withLock { state in
            state.position == file.size && Hasher(copying: state.hasher).finish() != file.sha256
        }
    }

    /// The error that the copy differs from its record; `nil` as long as nothing shows it.
    func damage(_ failure: StagedFile.MakeFailure) -> UploadError? {
        guard hasDiffered else { return nil }
        return file?.changed("no longer has the content that was staged", failure)
    }
}
