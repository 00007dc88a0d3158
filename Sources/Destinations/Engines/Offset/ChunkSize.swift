internal import Core
internal import Synchronization

/// Maximum size of a request for all uploads to a destination. It is learned from refusals and from requests that were
/// cut.
final class ChunkSize: Sendable {
    /// Smaller sizes are not tried after 413: a remote that accepts less is broken.
    static let floor: Int64 = 256 << 10
    /// Sizes for a path that keeps nothing of a cut request, one step for each such loss. The smallest one costs about 1 %
    /// for the headers of each request, and two requests of it are lost at a cut.
    private static let cautious: [Int64] = [16 << 20, 4 << 20, 1 << 20, 256 << 10, minSize]
    static let minSize: Int64 = 64 << 10
    /// After this many requests in a row without trouble, twice the size is tried.
    private static let cleanRun = 8

    /// After this many requests, a size that has failed is tried again: proxies get new limits. The number doubles each
    /// time the size fails again.
    static let forgivingRun = 64
    private static let longestRun = 4096

    private struct State {
        var cap: Int64
        /// The smallest size that has failed.
        var failed = Int64.max
        var clean = 0
        /// After this many requests in a row without trouble, `failed` is tried again.
        var requiredRun = ChunkSize.forgivingRun
        /// The size `failed` is being tried again.
        var isRetrying = false

        mutating func fail(_ size: Int64, next: Int64) {
            if isRetrying { requiredRun = min(requiredRun * 2, ChunkSize.longestRun) }
            (cap, failed, clean, isRetrying) = (min(cap, next), min(size, failed), 0, false)
        }
    }

    private let configured: Int64
    /// No smaller size is tried.
    private let least: Int64
    private let state: Mutex<State>

    /// Unless `chunk_size` is set.
    static let standard: Int64 = 64 << 20

    static func key<Owner: DeclaredSettings>(_ path: DestinationKey<Owner>.Property<Int64?>) -> DestinationKey<Owner> {
        DestinationKey(
            "chunk_size", path, "Maximum bytes of one request, \(shownSize(standard)) by default; 0 for no limit.")
    }

    /// - Parameter chosen: The value of `chunk_size`: 0 for no limit, `nil` where it is not set.
    convenience init(chosen: Int64?, otherwise: Int64 = standard, least: Int64 = 0) {
        self.init(chosen == 0 ? .max : chosen ?? otherwise, least: least)
    }

    /// - Parameter configured: `Int64.max` for no limit.
    init(_ configured: Int64, least: Int64 = 0) {
        self.configured = configured
        self.least = least
        state = Mutex(State(cap: configured))
    }

    var cap: Int64 { state.withLock { max($0.cap, least) } }

    /// The learned size; `nil` where no request has failed.
    var learned: RequestSize? {
        state.withLock {
            $0.failed == .max ? nil : RequestSize(most: $0.cap, failed: $0.failed, requiredRun: $0.requiredRun)
        }
    }

    /// Restores the size that an earlier process has learned for the same remote.
    func recall(_ size: RequestSize) {
        state.withLock { state in
            guard size.failed > 0, size.most > 0 else { return }
            state = State(
                cap: min(configured, max(size.most, Self.minSize)), failed: size.failed,
                requiredRun: min(max(size.requiredRun, Self.forgivingRun), Self.longestRun))
        }
    }

    /// Records that `size` bytes were refused as too many.
    ///
    /// - Returns: `false` when there is nothing smaller to try.
    func refused(_ size: Int64) -> Bool {
        state.withLock { state in
            guard size > max(Self.floor, least) else { return false }
            state.fail(size, next: max(size / 2, Self.floor))
            return true
        }
    }

    /// Records that the remote kept nothing of a cut request of `size` bytes, twice in a row. Either a proxy buffers
    /// bodies, or the remote takes them only as a whole.
    func recordNothingKept(_ size: Int64) {
        state.withLock { state in
            let now = min(state.cap, size)
            state.fail(size, next: Self.cautious.first { $0 < now } ?? min(state.cap, Self.minSize))
        }
    }

    /// Records that a request of `size` bytes was accepted as a whole.
    func accepted(_ size: Int64) {
        state.withLock { state in
            guard state.cap < configured, size >= state.cap else { return }
            state.clean += 1
            let next = state.cap > configured / 2 ? configured : state.cap * 2
            if next < state.failed {
                if state.clean >= Self.cleanRun { (state.cap, state.clean, state.isRetrying) = (next, 0, false) }
            } else if state.clean >= state.requiredRun {
                state.cap = next
                (state.failed, state.clean, state.isRetrying) = (.max, 0, true)
            }
        }
    }
}

extension RequestSize {
    /// No size has failed.
    static let unlimited = RequestSize(most: .max, failed: .max, requiredRun: ChunkSize.forgivingRun)
}

// Facts about interrupted requests in a checkpoint.

extension ChunkSize {
    /// A single cut request that carried less does not show whether the path keeps partial bodies. Several of about the
    /// same size do.
    private static let significantLoss: Int64 = 1 << 20

    /// - Parameter size: The size of the whole request.
    static func noteCut(from start: Int64, to end: Int64, of size: Int64, _ checkpoint: inout OffsetCheckpoint) {
        checkpoint.cutFrom = start
        checkpoint.cutTo = end
        checkpoint.cutSize = size
    }

    static func forgetCuts(_ checkpoint: inout OffsetCheckpoint) {
        checkpoint.cutLosses = nil
        checkpoint.smallLoss = nil
        forgetLastCut(&checkpoint)
    }

    private static func forgetLastCut(_ checkpoint: inout OffsetCheckpoint) {
        checkpoint.cutFrom = nil
        checkpoint.cutTo = nil
        checkpoint.cutSize = nil
    }

    /// Makes requests shorter after two cut requests in a row that left nothing behind.
    ///
    /// - Parameter offset: The remote's offset since the last one.
    func learn(from offset: Int64, _ checkpoint: inout OffsetCheckpoint) {
        guard let start = checkpoint.cutFrom else { return }
        let lost = (checkpoint.cutTo ?? 0).subtractingReportingOverflow(start).partialValue
        let size = max(lost, checkpoint.cutSize ?? 0)
        Self.forgetLastCut(&checkpoint)
        if offset > start {
            Self.forgetCuts(&checkpoint)
        } else if Self.isSignificant(lost, &checkpoint), checkpoint.increment(\.cutLosses) >= 2 {
            checkpoint.cutLosses = nil
            recordNothingKept(size)
        }
    }

    /// Whether a loss shows that the path keeps no partial bodies. A small one does if it is about as large as the small
    /// one before it: a path that cuts bodies at a size does so again and again.
    private static func isSignificant(_ lost: Int64, _ checkpoint: inout OffsetCheckpoint) -> Bool {
        if lost >= significantLoss { return true }
        guard lost >= minSize else { return false }
        let last = checkpoint.smallLoss
        checkpoint.smallLoss = lost
        return last.map { max($0, lost) / 2 <= min($0, lost) } ?? false
    }
}
