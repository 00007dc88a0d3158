internal import Synchronization

/// How far all parts are together: those on their way are told of by the transport's thread.
final class PartsInFlight: Sendable {
    private let state = Mutex((acked: Int64(0), sent: [Int: Int64]()))

    /// - Returns: Bytes that are acknowledged or on their way.
    func set(_ index: Int, _ bytes: Int64) -> Int64 {
        state.withLock { state in
            state.sent[index] = bytes
            return state.acked + state.sent.values.reduce(0, +)
        }
    }

    /// - Parameter ended: Parts among them that are not on their way any more: in one step, so that nothing counts for less.
    func acknowledge(_ bytes: Int64, ended: [Int] = []) {
        state.withLock { state in
            state.acked = bytes
            for index in ended { state.sent[index] = nil }
        }
    }
    func end(_ index: Int) { state.withLock { $0.sent[index] = nil } }
}
