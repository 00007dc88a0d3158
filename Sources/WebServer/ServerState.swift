internal import CMicroHTTPD
internal import Linux
internal import Synchronization

/// The state that all requests of one server share: the service, the running exchanges, and whether the server is
/// closing.
final class ServerState: Sendable {
    let service: any WebService
    /// Kept for libmicrohttpd's threads, which may read its memory.
    private let identity: KeptIdentity?
    /// Bytes that bypass libmicrohttpd would not be encrypted.
    var isEnciphered: Bool { identity != nil }
    let connections: Connections

    private struct State {
        var isClosing = false
        var exchanges: [ObjectIdentifier: Exchange] = [:]
        var tasks: [Int: Task<Void, Never>] = [:]
        var nextTask = 0
        var nextRequest: UInt64 = 1
    }
    private let state = Mutex(State())

    init(service: any WebService, identity: KeptIdentity?, limits: ConnectionLimits) {
        connections = Connections(limits)
        self.service = service
        self.identity = identity
    }

    var isClosing: Bool { state.withLock { $0.isClosing } }

    func enter(_ exchange: Exchange) { state.withLock { $0.exchanges[ObjectIdentifier(exchange)] = exchange } }

    func nextRequestNumber() -> UInt64 {
        state.withLock { state in
            defer { state.nextRequest += 1 }
            return state.nextRequest
        }
    }

    func leave(_ exchange: Exchange) {
        state.withLock { _ = $0.exchanges.removeValue(forKey: ObjectIdentifier(exchange)) }
        MemoryTrimmer.scheduleTrim()
    }

    /// Starts work whose end ``close()`` can wait for. While the server is closing, the work starts cancelled.
    func start(_ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        let (task, isLate) = state.withLock { state in
            let number = state.nextTask
            state.nextTask += 1
            // The removal waits for this lock, so it cannot come before the entry.
            let task = Task {
                await work()
                self.state.withLock { _ = $0.tasks.removeValue(forKey: number) }
            }
            state.tasks[number] = task
            return (task, state.isClosing)
        }
        if isLate { task.cancel() }
        return task
    }

    /// The service's reply, after its delay.
    func reply(to request: WebRequest, body: ReceivedBody) async -> WebReply {
        let reply = await service.reply(to: request, body: body)
        // Ends early when the server stops.
        if reply.delay > .zero { try? await Alarms.shared.sleep(for: reply.delay) }
        return reply
    }

    /// Passes no more requests to the service. No connection is suspended when this returns: stopping libmicrohttpd
    /// with a suspended connection ends the process.
    func close() {
        let (exchanges, tasks) = state.withLock { state in
            state.isClosing = true
            return (Array(state.exchanges.values), Array(state.tasks.values))
        }
        connections.end()
        for task in tasks { task.cancel() }
        for exchange in exchanges { exchange.release() }
    }

    /// Waits until all work has ended.
    func finish() async {
        while let task = state.withLock({ $0.tasks.values.first }) { await task.value }
    }
}
