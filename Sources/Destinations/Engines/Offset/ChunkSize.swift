internal import Core
internal import Synchronization

/// How many bytes one request carries at most: learned from refusals and from requests that were cut, for all uploads to a destination.
final class ChunkSize: Sendable {
    /// Smaller ones are not tried: a remote that takes less than this is out of order.
    static let floor: Int64 = 256 << 10
    /// What a path that keeps nothing of a cut request is given, one step for each disappointment.
    private static let cautious: [Int64] = [16 << 20, 4 << 20, 1 << 20]
    /// So many requests in a row without trouble, and twice as much is tried.
    private static let cleanRun = 8

    /// After so many, a size that has failed is tried again: proxies get new limits. Twice as many each time that it fails again.
    private static let forgivingRun = 64
    private static let longestRun = 4096

    private struct State {
        var cap: Int64
        /// The smallest size that has failed.
        var failed = Int64.max
        var clean = 0
        /// So many requests in a row without trouble, and `failed` is tried again.
        var patience = ChunkSize.forgivingRun
        /// `failed` is being tried again.
        var isRetrying = false

        mutating func fail(_ size: Int64, next: Int64) {
            if isRetrying { patience = min(patience * 2, ChunkSize.longestRun) }
            (cap, failed, clean, isRetrying) = (min(cap, next), min(size, failed), 0, false)
        }
    }

    private let configured: Int64
    private let state: Mutex<State>

    /// - Parameter configured: `Int64.max` for no bound.
    init(_ configured: Int64) {
        self.configured = configured
        state = Mutex(State(cap: configured))
    }

    var cap: Int64 { state.withLock { $0.cap } }

    /// What was learned; `nil` where nothing has failed.
    var learned: RequestSize? {
        state.withLock { $0.failed == .max ? nil : RequestSize(most: $0.cap, failed: $0.failed, patience: $0.patience) }
    }

    /// Takes up what an earlier run has learned of the same remote.
    func recall(_ size: RequestSize) {
        state.withLock { state in
            guard size.failed > 0, size.most > 0 else { return }
            state = State(
                cap: min(configured, max(size.most, Self.floor)), failed: size.failed,
                patience: min(max(size.patience, Self.forgivingRun), Self.longestRun))
        }
    }

    /// `size` bytes were refused as too many.
    ///
    /// - Returns: `false` when there is nothing smaller to try.
    func refused(_ size: Int64) -> Bool {
        state.withLock { state in
            guard size > Self.floor else { return false }
            state.fail(size, next: max(size / 2, Self.floor))
            return true
        }
    }

    /// Twice in a row a cut request of `size` bytes left nothing behind: a proxy that collects bodies, or a remote that takes them whole.
    func keptNothing(_ size: Int64) {
        state.withLock { state in
            let now = min(state.cap, size)
            let least = Self.cautious.last ?? now
            state.fail(size, next: Self.cautious.first { $0 < now } ?? min(state.cap, least))
        }
    }

    /// A request of `size` bytes was taken whole.
    func accepted(_ size: Int64) {
        state.withLock { state in
            guard state.cap < configured, size >= state.cap else { return }
            state.clean += 1
            let next = state.cap > configured / 2 ? configured : state.cap * 2
            if next < state.failed {
                if state.clean >= Self.cleanRun { (state.cap, state.clean, state.isRetrying) = (next, 0, false) }
            } else if state.clean >= state.patience {
                state.cap = next
                (state.failed, state.clean, state.isRetrying) = (.max, 0, true)
            }
        }
    }
}

/// What requests that were cut leave in a checkpoint:
///
/// | field | means |
/// |---|---|
/// | `sent_from`, `sent_to` | the bytes that left of the last request that was cut |
/// | `sent_size` | how many it was to carry |
/// | `losses` | how many of them in a row left nothing at the remote |
extension ChunkSize {
    /// A cut request that carried less says nothing about whether the path keeps partial bodies.
    private static let tellingLoss: Int64 = 1 << 20

    /// - Parameter size: What the whole request was to carry.
    static func noteCut(from start: Int64, to end: Int64, of size: Int64, _ checkpoint: inout Checkpoint) {
        checkpoint["sent_from"] = "\(start)"
        checkpoint["sent_to"] = "\(end)"
        checkpoint["sent_size"] = "\(size)"
    }

    private static let ofCut = ["sent_from", "sent_to", "sent_size"]

    static func forgetCuts(_ checkpoint: inout Checkpoint) {
        for field in ["losses"] + ofCut { checkpoint[field] = nil }
    }

    /// Two cut requests in a row that left nothing behind: shorter ones from now on.
    ///
    /// - Parameter offset: Where the remote stands since the last one.
    func learn(from offset: Int64, _ checkpoint: inout Checkpoint) {
        guard let start = checkpoint["sent_from"].flatMap({ Int64($0) }) else { return }
        let lost = checkpoint.number("sent_to").subtractingReportingOverflow(start).partialValue
        let size = max(lost, checkpoint.number("sent_size"))
        for field in Self.ofCut { checkpoint[field] = nil }
        if offset > start {
            checkpoint["losses"] = nil
        } else if lost >= Self.tellingLoss, checkpoint.count("losses") >= 2 {
            checkpoint["losses"] = nil
            keptNothing(size)
        }
    }
}
