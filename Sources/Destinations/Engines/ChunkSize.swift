internal import Synchronization

/// How many bytes one request carries at most: learned from refusals, remembered for all uploads of a destination.
final class ChunkSize: Sendable {
    /// Smaller ones are not tried: a remote that takes less than this is out of order.
    static let floor: Int64 = 256 << 10
    /// What a path that keeps nothing of a cut request is given, one step for each disappointment.
    private static let cautious: [Int64] = [16 << 20, 4 << 20, 1 << 20]
    /// So many requests in a row without trouble, and twice as much is tried.
    private static let cleanRun = 8

    /// After so many, a size that was refused once is tried again: proxies get new limits.
    private static let forgivingRun = 64

    private struct State {
        var cap: Int64
        /// The smallest size that was refused.
        var refused = Int64.max
        var clean = 0
    }

    private let configured: Int64
    private let state: Mutex<State>

    /// - Parameter configured: `Int64.max` for no bound.
    init(_ configured: Int64) {
        self.configured = configured
        state = Mutex(State(cap: configured))
    }

    var cap: Int64 { state.withLock { $0.cap } }

    /// `size` bytes were refused as too many.
    ///
    /// - Returns: `false` when there is nothing smaller to try.
    func refused(_ size: Int64) -> Bool {
        state.withLock { state in
            guard size > Self.floor else { return false }
            state = State(cap: min(state.cap, max(size / 2, Self.floor)), refused: min(size, state.refused))
            return true
        }
    }

    /// Twice in a row a cut request left nothing behind: a proxy that collects bodies, or a remote that takes them whole.
    func keptNothing() {
        state.withLock { state in
            let next = Self.cautious.first { $0 < state.cap } ?? min(state.cap, Self.cautious.last ?? state.cap)
            state = State(cap: next, refused: state.refused)
        }
    }

    /// A request of `size` bytes was taken whole.
    func accepted(_ size: Int64) {
        state.withLock { state in
            guard state.cap < configured, size >= state.cap else { return }
            state.clean += 1
            let next = state.cap > configured / 2 ? configured : state.cap * 2
            if next < state.refused && state.clean >= Self.cleanRun {
                state = State(cap: next, refused: state.refused)
            } else if state.clean >= Self.forgivingRun {
                state = State(cap: next)
            }
        }
    }
}
