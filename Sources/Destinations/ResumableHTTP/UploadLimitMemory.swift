internal import Core
internal import Synchronization

/// The limits of one upload and its last known position, for the requests of one attempt.
final class UploadLimitMemory: Sendable {
    private struct State {
        var limits = UploadLimits()
        var located: Int64?
    }

    private let state = Mutex(State())

    init(_ checkpoint: OffsetCheckpoint) {
        state.withLock {
            $0.limits.maxAppendSize = checkpoint.draft.maxAppendSize
            $0.limits.minAppendSize = checkpoint.draft.minAppendSize
        }
    }

    var limits: UploadLimits { state.withLock { $0.limits } }

    /// The offset that the server named, where no request with bytes was sent since.
    var located: Int64? {
        get { state.withLock { $0.located } }
        set { state.withLock { $0.located = newValue } }
    }

    /// Takes the limits that the server announces for all uploads. Those that it named for this one stay.
    func assume(_ announced: UploadLimits) {
        state.withLock { state in
            var limits = announced
            limits.merge(state.limits)
            state.limits = limits
        }
    }

    /// Takes the limits in an answer about this upload, and puts them into the checkpoint.
    func take(_ fields: UploadFields, at now: WallTime, _ checkpoint: inout OffsetCheckpoint) {
        guard let limits = fields.limits else { return }
        state.withLock { $0.limits.merge(limits) }
        if let most = limits.maxAppendSize { checkpoint.draft.maxAppendSize = most }
        if let least = limits.minAppendSize { checkpoint.draft.minAppendSize = least }
        // At most 15 digits.
        if let age = limits.maxAge { checkpoint.expires = now.milliseconds + age * 1000 }
    }
}
