internal import Core
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

/// What requests that were cut leave in a checkpoint:
///
/// | field | means |
/// |---|---|
/// | `sent_from`, `sent_to` | the bytes of the last request that was cut |
/// | `losses` | how many of them in a row left nothing at the remote |
extension ChunkSize {
    /// A cut request that carried less says nothing about whether the path keeps partial bodies.
    private static let tellingLoss: Int64 = 1 << 20

    static func noteCut(from start: Int64, to end: Int64, _ checkpoint: inout Checkpoint) {
        checkpoint["sent_from"] = "\(start)"
        checkpoint["sent_to"] = "\(end)"
    }

    static func forgetCuts(_ checkpoint: inout Checkpoint) {
        for field in ["losses", "sent_from", "sent_to"] { checkpoint[field] = nil }
    }

    /// Two cut requests in a row that left nothing behind: shorter ones from now on.
    ///
    /// - Parameter offset: Where the remote stands since the last one.
    func learn(from offset: Int64, _ checkpoint: inout Checkpoint) {
        guard let start = checkpoint["sent_from"].flatMap({ Int64($0) }) else { return }
        let lost = checkpoint.number("sent_to").subtractingReportingOverflow(start).partialValue
        checkpoint["sent_from"] = nil
        checkpoint["sent_to"] = nil
        if offset > start {
            checkpoint["losses"] = nil
        } else if lost >= Self.tellingLoss, checkpoint.count("losses") >= 2 {
            checkpoint["losses"] = nil
            keptNothing()
        }
    }
}
