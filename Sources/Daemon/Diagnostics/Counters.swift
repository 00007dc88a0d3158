internal import API
internal import Core
internal import Synchronization

/// Counters that are increased where the events happen, since the start of the process. From any task; cheap.
final class Counters: Sendable {
    private struct State {
        var counts: [Metric: [[String]: Int64]] = [:]
        var durations: [String: Histogram] = [:]
        /// Bytes that were sent and received, by destination and network.
        var network: [[String]: (sent: ByteCounter, received: ByteCounter)] = [:]
    }

    private let state = Mutex(State())

    func add(_ metric: Metric, _ labels: [String], _ count: Int64 = 1) {
        state.withLock { $0.counts[metric, default: [:]][labels, default: 0] += count }
    }

    func recordDuration(_ duration: Duration, to destination: String) {
        state.withLock { $0.durations[destination, default: Histogram()].add(max(0, duration.inSeconds)) }
    }

    /// The counters for bytes sent and received on this account: looked up once for a transfer, since bytes arrive in
    /// small pieces.
    func network(_ account: SpendingAccount) -> (sent: ByteCounter, received: ByteCounter) {
        let labels = [account.destination, account.network.rawValue]
        return state.withLock { state in
            let counters = state.network[labels] ?? (ByteCounter(), ByteCounter())
            state.network[labels] = counters
            return counters
        }
    }

    func enter(_ view: inout MetricsView) {
        let state = state.withLock { $0 }
        for (metric, counts) in state.counts { for (labels, count) in counts { view.add(metric, labels, count) } }
        for (destination, spread) in state.durations { view.set(.durations, [destination], .spread(spread)) }
        for (labels, counters) in state.network {
            view.set(.sentBytes, labels, counters.sent.total)
            view.set(.receivedBytes, labels, counters.received.total)
        }
    }
}

/// Bytes sent or received, for one destination and network.
final class ByteCounter: Sendable {
    private let sum = Atomic<Int64>(0)

    var total: Int64 { sum.load(ordering: .relaxed) }
    func add(_ bytes: Int64) { sum.wrappingAdd(bytes, ordering: .relaxed) }
}

extension Counters {
    /// Counts a failed attempt.
    func add(_ failure: Failure, at destination: String) {
        add(.failures, [destination, failure.kind.rawValue])
        if failure.isOfVerification { add(.verifyFailures, [destination]) }
    }
}
