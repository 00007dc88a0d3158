internal import Synchronization

/// Progress of all parts together. The transport's thread reports the parts in flight.
final class PartsInFlight: Sendable {
    private let state = Mutex((acked: Int64(0), sent: [Int: Int64]()))

    /// - Returns: Bytes that are acknowledged or in flight.
    func set(_ index: Int, _ bytes: Int64) -> Int64 {
        state.withLock { state in
            state.sent[index] = bytes
            return state.acked + state.sent.values.reduce(0, +)
        }
    }

    /// - Parameter ended: Parts among them that are no longer in flight. Both change in one step, so that the sum never
    ///   drops.
    func acknowledge(_ bytes: Int64, ended: [Int] = []) {
        state.withLock { state in
            state.acked = bytes
            for index in ended { state.sent[index] = nil }
        }
    }
    /// The upload starts again.
    func clear() { state.withLock { $0 = (0, [:]) } }
    func end(_ index: Int) { state.withLock { $0.sent[index] = nil } }
}
