internal import API
internal import Core
internal import Synchronization

/// Keeps the requests of destinations while people follow them. Each of several who follow one destination gets every
/// entry. A trace ends when its time is over, or when its entries are not fetched any more.
final class RequestTraces: Sendable {
    private struct Trace {
        let number: Int
        var entries: [TraceEntry] = []
        /// The number of the first of them.
        var first = 0
        var dropped = 0
        let until: MonotonicTime
        var fetchedAt: MonotonicTime

        mutating func add(_ entry: TraceEntry) {
            entries.append(entry)
            guard entries.count > RequestTraces.most else { return }
            entries.removeFirst()
            first += 1
            dropped += 1
        }

        func isFollowed(_ now: MonotonicTime) -> Bool { now < until && now.since(fetchedAt) < RequestTraces.patience }
    }

    private struct State {
        var traces: [String: [Trace]] = [:]
        /// The last requests of each destination that failed, the oldest first.
        var failures: [String: [TraceEntry]] = [:]
        /// The number of the next trace.
        var next = 0
    }

    /// Failed requests of one destination that are kept.
    private static let mostFailures = 10
    /// Entries that wait to be fetched.
    private static let most = 1000
    /// Traces of one destination at the same time.
    private static let mostTraces = 8
    /// A trace whose entries are not fetched for this time ends.
    private static let patience: Duration = .seconds(60)
    static let longest: Int64 = 86_400
    /// ``TraceReply/next`` has the number of the trace, multiplied by this, and that of the next entry. All of it is less
    /// than 2^53, which every reader of JSON keeps.
    private static let entriesOfTrace = 1 << 32

    private let clocks: any Clocks
    private let state = Mutex(State())

    init(clocks: any Clocks) { self.clocks = clocks }

    func isFollowed(_ destination: String) -> Bool {
        let now = clocks.monotonic()
        return state.withLock { $0.traces[destination]?.contains { $0.isFollowed(now) } ?? false }
    }

    func recordFailure(_ entry: TraceEntry, of destination: String) {
        state.withLock { state in
            var failures = state.failures.removeValue(forKey: destination) ?? []
            if failures.count == Self.mostFailures { failures.removeFirst() }
            failures.append(entry)
            state.failures[destination] = failures
        }
    }

    /// The last failed requests of these destinations, in their order; of destinations without one nothing.
    func failures(of destinations: [String]) -> [DestinationFailuresView] {
        state.withLock { state in
            destinations.compactMap { name in
                state.failures[name].map { DestinationFailuresView(destination: name, requests: $0) }
            }
        }
    }

    func record(_ entry: TraceEntry, of destination: String) {
        let now = clocks.monotonic()
        state.withLock { state in
            guard var traces = state.traces.removeValue(forKey: destination) else { return }
            for index in traces.indices where traces[index].isFollowed(now) { traces[index].add(entry) }
            state.traces[destination] = traces
        }
    }

    /// Begins a trace, or returns what was recorded since the reply before.
    func follow(_ destination: String, _ request: TraceRequest) throws(Refusal) -> TraceReply {
        guard let after = request.after else { return try begin(destination, seconds: request.seconds ?? 600) }
        let now = clocks.monotonic()
        let (number, position) = after.quotientAndRemainder(dividingBy: Self.entriesOfTrace)
        let reply = state.withLock { state -> TraceReply? in
            var traces = state.traces[destination] ?? []
            guard let index = traces.firstIndex(where: { $0.number == number }) else { return nil }
            var trace = traces[index]
            let known = max(0, min(position - trace.first, trace.entries.count))
            trace.entries.removeFirst(known)
            trace.first += known
            trace.fetchedAt = now
            let isOver = now >= trace.until
            let reply = TraceReply(
                entries: trace.entries, next: number * Self.entriesOfTrace + trace.first + trace.entries.count,
                ended: isOver, dropped: trace.dropped)
            if isOver { traces.remove(at: index) } else { traces[index] = trace }
            state.traces[destination] = traces.isEmpty ? nil : traces
            return reply
        }
        guard let reply else { throw Refusal(.notFound, "nothing is recorded for `\(printable(destination))`") }
        return reply
    }

    private func begin(_ destination: String, seconds: Int64) throws(Refusal) -> TraceReply {
        guard (1...Self.longest).contains(seconds) else {
            throw Refusal(.badRequest, "`seconds` is \(seconds); it must be from 1 to \(Self.longest)")
        }
        let now = clocks.monotonic()
        let number = state.withLock { state -> Int? in
            // The reader of one that has ended is gone, or gets the answer that nothing is recorded.
            var traces = (state.traces[destination] ?? []).filter { now.since($0.fetchedAt) < Self.patience }
            guard traces.count < Self.mostTraces else { return nil }
            let number = state.next
            state.next += 1
            traces.append(Trace(number: number, until: now.advanced(by: .seconds(seconds)), fetchedAt: now))
            state.traces[destination] = traces
            return number
        }
        guard let number else {
            throw Refusal(
                .conflict,
                "`\(printable(destination))` is traced \(Self.mostTraces) times already: end one of these, and try again "
                    + "a minute later")
        }
        return TraceReply(entries: [], next: number * Self.entriesOfTrace, ended: false, dropped: 0)
    }
}
