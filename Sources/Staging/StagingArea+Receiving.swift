package import Core
internal import Digests
internal import Linux
internal import Synchronization

// Bytes that a client sends, and that exist nowhere else.

extension StagingArea {
    /// A partial copy that is written as its bytes come. Until it is published, a start sweeps it.
    package final class Incoming: Sendable {
        private struct State: ~Copyable {
            var file: Descriptor?
            var count: Int64 = 0
            let hasher = Hasher(.sha256)
        }

        private let name: FilePath
        private let partial: FilePath
        private let state: Mutex<State>

        fileprivate init(_ name: FilePath, _ partial: FilePath, _ file: consuming Descriptor) {
            self.name = name
            self.partial = partial
            state = Mutex(State(file: consume file))
        }

        /// Waits for the disk, so that no more than a few windows are being written.
        package func write(_ bytes: [UInt8]) throws(StagingError) {
            let failure = state.withLock { state -> SystemError? in
                defer { state.count += Int64(bytes.count) }
                return bytes.withUnsafeBytes { piece -> SystemError? in
                    if let error = state.file?.write(piece, at: state.count, named: partial).error { return error }
                    state.hasher.update(piece)
                    do throws(SystemError) {
                        try state.file?.writeBack(state.count, piece.count, named: partial)
                        return nil
                    } catch { return error }
                }
            }
            if let failure { throw StagingError(writing: failure) }
        }

        /// Ends the copy when all bytes are there: ``StagingArea/publish(_:)`` makes them durable.
        package func finish(_ origin: (_ size: Int64) -> CopyOrigin) throws(StagingError) -> FreshCopy {
            try state.withLock { state throws(StagingError) in
                guard let file = state.file.take() else { throw .stopped(partial) }
                let sha256 = state.hasher.finish()
                var origin = origin(state.count)
                origin.sha256 = hexadecimal(sha256)
                origin.write(to: file, named: partial)
                file.startFlushing(from: 0, count: 0)
                CrashPoint.reached("received")
                return FreshCopy(name, sha256, size: state.count, file)
            }
        }
    }

    /// Begins a copy of bytes that will come.
    package func receive(_ name: FilePath) throws(StagingError) -> Incoming {
        let partial = partial(name)
        return Incoming(
            name, partial,
            try writing { () throws(SystemError) in
                try Files.removeIfPresent(partial)
                return try Descriptor.open(partial, for: .creating)
            })
    }
}
