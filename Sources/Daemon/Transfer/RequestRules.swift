internal import Config
internal import Core
internal import Linux
internal import Synchronization
internal import Transport

/// What holds for each request to one destination: how many may begin, and how packets are marked.
final class RequestRules: Sendable {
    private struct State {
        var line = RequestLine<ObjectIdentifier>()
        var trafficClass: TrafficClass?
    }

    private let state = Mutex(State())
    private let clocks: any Clocks
    private let changes = AsyncBroadcast()

    init(clocks: any Clocks) { self.clocks = clocks }

    /// Applies at once to requests that wait.
    func set(_ policy: PolicyOverrides) {
        let isNew = state.withLock { state in
            state.trafficClass = policy.trafficClass
            defer { state.line.rate = policy.requests }
            return state.line.rate != policy.requests
        }
        if isNew { changes.signal() }
    }

    /// Waits for the turn of a request, and marks it.
    ///
    /// - Throws: ``TransportError`` when the task is cancelled.
    func prepare(_ request: inout Request) async throws(TransportError) {
        request.trafficClass = state.withLock { $0.trafficClass }
        let signal = AsyncSignal()
        changes.add(signal)
        defer { changes.remove(signal) }
        let key = ObjectIdentifier(signal)
        while let wait = state.withLock({ $0.line.turn(of: key, at: clocks.monotonic()) }) {
            await signal.wait(atMost: wait)
            if Task.isCancelled {
                state.withLock { $0.line.leave(key) }
                // Those behind it are one place further ahead.
                changes.signal()
                throw TransportError(
                    kind: .cancelled, detail: "the request was stopped before it was sent", url: request.url)
            }
        }
    }
}
