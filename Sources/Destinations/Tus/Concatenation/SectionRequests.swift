internal import Core
internal import Synchronization
internal import Transport

/// The requests with bytes of all sections of one file. Where a quota has no room for another one, it waits for one of
/// them to end: they return the part of their reservations that they did not use.
final class SectionRequests: Sendable {
    private struct State {
        var running = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// Reserves the quota for a request with `count` bytes. Has to be followed by ``end(_:sent:of:)``.
    ///
    /// - Returns: The reason why it may not begin; `nil` when it may.
    func begin(_ count: Int64, of permit: any RequestPermit) async -> Shortage? {
        while true {
            // Counted first, so that two of them do not wait for each other.
            state.withLock { $0.running += 1 }
            guard let shortage = await permit.reserve(for: count) else { return nil }
            let isLast = ended(freesQuota: false)
            if isLast || Task.isCancelled { return shortage }
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.running > 0 { state.waiting.append(continuation) }
                    return state.running == 0
                }
                if isOver { continuation.resume() }
            }
        }
    }

    func end(_ count: Int64, sent: Int64, of permit: any RequestPermit) {
        permit.returnReservation(for: count, sent: sent)
        _ = ended(freesQuota: true)
    }

    /// - Parameter freesQuota: Whether those that wait try again. When none is running any more, they do in any case.
    /// - Returns: Whether none is running.
    private func ended(freesQuota: Bool) -> Bool {
        let (waiting, isLast) = state.withLock { state in
            state.running -= 1
            guard freesQuota || state.running == 0 else { return ([CheckedContinuation<Void, Never>](), false) }
            defer { state.waiting = [] }
            return (state.waiting, state.running == 0)
        }
        for continuation in waiting { continuation.resume() }
        return isLast
    }
}
