internal import Core
internal import Digests
internal import Linux
internal import Synchronization

/// The digest of a staged copy, computed from its parts after they have arrived, in order and from the first one on.
///
/// The bytes are in the page cache then, so the disk is not read twice, and a file of some GiB is not read once more
/// while nothing goes to the remote. A part is never read before it has arrived: damage between the reading and the
/// sending would go unnoticed.
final class ArrivedPartsDigest: Sendable {
    private struct State {
        /// Bytes from the beginning that were read, and the limit up to which they may be read.
        var done: Int64 = 0
        var wanted: Int64 = 0
        var isRunning = false
        var isBroken = false
    }

    private let place: FilePlace
    private let state = Mutex(State())
    /// Locked by the task that runs.
    private let hasher = Mutex(Hasher(.sha256))

    /// Bytes between two checks for cancellation.
    private static let step: Int64 = 4 << 20

    init(_ place: FilePlace) { self.place = place }

    /// Bytes below `end` have arrived.
    ///
    /// - Returns: Whether the caller has to call ``run()``: there is something to read, and no task is reading.
    func extend(to end: Int64) -> Bool {
        state.withLock { state in
            guard end > state.wanted, !state.isBroken else { return false }
            state.wanted = end
            defer { state.isRunning = true }
            return !state.isRunning
        }
    }

    /// Bytes from `offset` on are sent once more: the bytes that were read are not those that arrive.
    func forget(from offset: Int64) { state.withLock { if offset < $0.wanted { $0.isBroken = true } } }

    /// Reads the bytes that may be read. Ends early when it is cancelled, or the copy cannot be read: then there is no
    /// digest.
    func run() async {
        while let range = next() {
            let count: Int64
            do {
                if Task.isCancelled { throw CancellationError() }
                count = try await blocking { [place, self] in
                    try self.hasher.withLock { hasher throws(SystemError) in
                        var count: Int64 = 0
                        try readPieces(of: place, range) {
                            hasher.update($0)
                            count += Int64($0.count)
                        }
                        return count
                    }
                }
            } catch {
                // A read of the whole copy reports the error later.
                count = 0
            }
            state.withLock { state in
                state.isBroken = count < range.upperBound - range.lowerBound
                state.done = range.upperBound
            }
        }
    }

    private func next() -> Range<Int64>? {
        state.withLock { state in
            guard state.done < state.wanted, !state.isBroken else {
                state.isRunning = false
                return nil
            }
            return state.done..<min(state.done + Self.step, state.wanted)
        }
    }

    /// - Returns: The digest of the first `size` bytes; `nil` when they were not all read in order.
    func digest(of size: Int64) -> [UInt8]? {
        let isThere = state.withLock { $0.done == size && $0.wanted == size && !$0.isBroken && !$0.isRunning }
        return isThere ? hasher.withLock { Hasher(copying: $0).finish() } : nil
    }
}
