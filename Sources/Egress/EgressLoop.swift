internal import Core
internal import Glibc
internal import Linux
internal import Synchronization
internal import Transport

/// The thread that listens and carries all connections, from the first lease until the last one ends.
///
/// `@unchecked Sendable`: `listener`, `clients`, `turns`, `refusals`, `acceptsAgain` and `lastNumber` are accessed by that thread alone; the rest is
/// constant, or protected by the lock of the inbox.
final class EgressLoop: @unchecked Sendable {
    /// One lease, as the loop knows it.
    struct Tenant: Sendable {
        let login: ProxyLogin
        let permission: EgressPermission
        let gate: any EgressGate
    }

    enum Command {
        case refuse(Int, EgressRefusal)
        case relay(Int, EgressRoute, CheckedContinuation<EgressEnd, Never>)
        case stop(Int)
        case charge(CheckedContinuation<Void, Never>)
        case close(interface: String, CheckedContinuation<Void, Never>)
        case lose(Set<IPAddress>)
    }

    private struct Inbox {
        var commands: [Command] = []
        var tenants: [Int: Tenant] = [:]
        var lastTenant = 0
        /// Leases that are about to be added.
        var users = 1
        var isStopping = false
        var isOver = false
        var stopped: [CheckedContinuation<Void, Never>] = []

        var hasNoUser: Bool { tenants.isEmpty && users == 0 }
    }

    let port: UInt16
    let clocks: any Clocks
    /// `nil` once it is over: the port is closed, also while leases hold this object.
    private var listener: StreamSocket?
    private let signal: EventFD
    private let inbox = Mutex(Inbox())
    private let log: Log
    private var clients: [Int: EgressClient] = [:]
    private var lastNumber = 0
    private var turns = ThrottleQueue<EgressLane>()
    private var refusals = RefusalLog()
    /// When the kernel is asked again for a connection that it could not give; `nil` while it can.
    private var acceptsAgain: ContinuousClock.Instant?

    /// Connections at once; further ones wait in the kernel's queue.
    private static let maxClients = 64
    /// Connections that have not shown credentials: the oldest is closed for a new one.
    private static let maxStrangers = 16
    /// Time until the kernel is asked again where it had no descriptor left.
    private static let acceptPause: Duration = .milliseconds(100)
    /// How long a program may take for its request.
    private static let patience: Duration = .seconds(10)
    /// How long a refused program may take to read why.
    private static let farewell: Duration = .seconds(1)
    /// Time between two counts of connections that carry nothing: the kernel may send segments again.
    private static let countInterval: Duration = .seconds(1)

    /// - Throws: `SystemError` when it cannot listen, or no thread can be started.
    init(clocks: any Clocks, log: Log) throws(SystemError) {
        self.clocks = clocks
        self.log = log
        (listener, port) = try StreamSocket.listening()
        signal = try EventFD()
        try startThread("egress") { self.run() }
    }

    // MARK: Called from any thread

    /// - Returns: `false` where it is ending, so that a new one has to be made.
    func beginUse() -> Bool {
        inbox.withLock { inbox in
            if inbox.isStopping || inbox.hasNoUser { return false }
            inbox.users += 1
            return true
        }
    }

    /// Adds a lease, for a use that has begun.
    func add(_ tenant: Tenant) -> Int {
        inbox.withLock { inbox in
            inbox.users -= 1
            inbox.lastTenant += 1
            inbox.tenants[inbox.lastTenant] = tenant
            return inbox.lastTenant
        }
    }

    func remove(_ tenant: Int) {
        inbox.withLock { _ = $0.tenants.removeValue(forKey: tenant) }
        signal.signal()
    }

    var isOver: Bool { inbox.withLock { $0.isOver } }

    func send(_ command: Command) {
        let isLate = inbox.withLock { inbox in
            if inbox.isOver { return true }
            inbox.commands.append(command)
            return false
        }
        if isLate { Self.drop(command) } else { signal.signal() }
    }

    func stop(_ waiting: CheckedContinuation<Void, Never>?) {
        let isOver = inbox.withLock { inbox in
            if inbox.isOver { return true }
            inbox.isStopping = true
            if let waiting { inbox.stopped.append(waiting) }
            return false
        }
        if isOver { waiting?.resume() } else { signal.signal() }
    }

    func wake() { signal.signal() }

    /// Answers a command that came too late.
    private static func drop(_ command: Command) {
        switch command {
        case .relay(_, _, let waiting): waiting.resume(returning: .stopped)
        case .charge(let waiting), .close(_, let waiting): waiting.resume()
        case .refuse, .stop, .lose: break
        }
    }

    // MARK: On the loop's thread

    private func run() {
        while true {
            let (commands, tenants, isEnding) = inbox.withLock { inbox in
                defer { inbox.commands = [] }
                return (inbox.commands, Set(inbox.tenants.keys), inbox.isStopping || inbox.hasNoUser)
            }
            for command in commands { perform(command) }
            for client in clients.values where client.tenant.map({ !tenants.contains($0) }) ?? false { abort(client) }
            if isEnding { break }
            wait(atMost: [callNext(), enforceDeadlines()].compactMap { $0 }.min())
        }
        for client in clients.values { abort(client) }
        listener = nil
        let (commands, stopped) = inbox.withLock { inbox in
            inbox.isOver = true
            return (inbox.commands, inbox.stopped)
        }
        for command in commands { Self.drop(command) }
        for waiting in stopped { waiting.resume() }
    }

    private func perform(_ command: Command) {
        switch command {
        case .refuse(let number, let refusal):
            guard let client = clients[number], case .deciding(let request) = client.state else { return }
            refuse(client, refusal, request.dialect.answer(to: refusal))
        case .relay(let number, let route, let waiting):
            guard let client = clients[number], case .deciding(let request) = client.state else {
                return waiting.resume(returning: .stopped)
            }
            for throttle in route.throttles { throttle.listen(self) { [weak self] in self?.wake() } }
            client.state = .relaying
            client.relay = EgressRelay(
                number: number, request: request, route: route, inner: client.socket, waiting: waiting)
            advance(client)
        case .stop(let number): if let client = clients[number] { abort(client) }
        case .charge(let waiting):
            for client in clients.values { client.relay?.server.charge() }
            waiting.resume()
        case .close(let interface, let waiting):
            for client in clients.values where client.relay?.server.route.interface == interface { abort(client) }
            waiting.resume()
        case .lose(let addresses):
            for client in clients.values
            where client.relay?.server.socket?.localAddress.map(addresses.contains) ?? false {
                abort(client, .broken)
            }
        }
    }

    /// Waits for sockets and commands, and handles what is ready.
    private func wait(atMost limit: Duration?) {
        var watched: [pollfd] = []
        var owners: [(client: EgressClient, isOuter: Bool)] = []
        for client in clients.values {
            for (socket, events, isOuter) in client.interests {
                watched.append(socket.polled(for: events))
                owners.append((client, isOuter))
            }
        }
        if let again = acceptsAgain, again <= .now { acceptsAgain = nil }
        let accepts = clients.count < Self.maxClients && acceptsAgain == nil
        if accepts, let listener { watched.append(listener.polled(for: POLLIN)) }
        let ready = signal.wait(or: watched, longest: limit)
        for (index, owner) in owners.enumerated() where ready[index].revents != 0 {
            // An earlier event may have ended it.
            guard clients[owner.client.number] === owner.client else { continue }
            handle(Int32(ready[index].revents), of: owner.client, isOuter: owner.isOuter)
        }
        if accepts, let last = ready.last, last.revents != 0 { accept() }
    }

    private func accept() {
        acceptsAgain = .now + Self.acceptPause
        while clients.count < Self.maxClients, let socket = listener?.accept() {
            acceptsAgain = nil
            let strangers = clients.values.filter { $0.tenant == nil && $0.isAsking }
            if strangers.count >= Self.maxStrangers, let oldest = strangers.min(by: { $0.number < $1.number }) {
                abort(oldest)
            }
            lastNumber += 1
            clients[lastNumber] = EgressClient(lastNumber, socket, deadline: .now + Self.patience)
        }
    }

    private func handle(_ events: Int32, of client: EgressClient, isOuter: Bool) {
        switch client.state {
        case .asking: ask(client)
        // The program has gone.
        case .deciding: abort(client)
        case .relaying:
            // Without interest in its bytes, only an error is reported.
            if !isOuter, events & POLLERR != 0 { return abort(client, .broken) }
            advance(client)
        case .leaving:
            var discarded: [UInt8] = []
            switch client.socket.read(HTTPProxyHead.limit, into: &discarded) {
            case .bytes, .notNow: break
            case .end, .failed: forget(client)
            }
        }
    }

    /// Reads more of a request.
    private func ask(_ client: EgressClient) {
        var bytes: [UInt8] = []
        switch client.socket.read(HTTPProxyHead.limit, into: &bytes) {
        case .notNow: return
        case .end, .failed: return forget(client)
        case .bytes: break
        }
        for step in client.handshake.receive(bytes[...], authenticate: authenticate) {
            switch step {
            case .reply(let bytes): _ = client.socket.write(bytes[...])
            case .refuse(let refusal, let answer): refuse(client, refusal, answer)
            case .request(let request): decide(client, request)
            }
        }
    }

    /// Compares with every lease, so that the time says nothing about any.
    private func authenticate(_ login: ProxyLogin) -> Int? {
        inbox.withLock { inbox in
            inbox.tenants.reduce(Int?.none) { found, one in login.matches(one.value.login) ? one.key : found }
        }
    }

    private func decide(_ client: EgressClient, _ request: ClientHandshake.Request) {
        guard let tenant = inbox.withLock({ $0.tenants[request.lease] }) else {
            return refuse(client, .unauthorized, request.dialect.answer(to: .unauthorized))
        }
        client.tenant = request.lease
        client.name = tenant.permission.name
        client.state = .deciding(request)
        client.deadline = nil
        if let refusal = tenant.permission.objection(to: request.target) {
            return refuse(client, refusal, request.dialect.answer(to: refusal))
        }
        let connection = EgressConnection(request.target, number: client.number, in: self)
        client.decision = Task {
            await tenant.gate.carry(connection)
            // It has ended by now, unless the gate has forgotten it.
            connection.stop()
        }
    }

    /// - Parameter answer: The bytes that tell the program.
    private func refuse(_ client: EgressClient, _ refusal: EgressRefusal, _ answer: [UInt8]) {
        var target: EgressTarget?
        if case .deciding(let request) = client.state { target = request.target }
        if let count = refusals.note(at: .now) {
            log.warning(
                "a connection through the proxy for programs was refused",
                [
                    "for": client.name, "target": target?.description, "reason": refusal.text,
                    "others": count > 0 ? "\(count)" : nil,
                ])
        }
        _ = client.socket.write(answer[...])
        client.socket.finishWriting()
        client.state = .leaving
        client.deadline = .now + Self.farewell
    }

    /// Carries bytes of a connection as far as possible now.
    private func advance(_ client: EgressClient) {
        guard let relay = client.relay else { return }
        switch relay.advance(&turns, at: clocks.monotonic()) {
        case .open: client.deadline = relay.deadline
        case .ended(let end): finish(client, relay, end)
        case .unreachable(let reason):
            let dialect = relay.request.dialect
            finish(client, relay, .unreachable(reason), keepsClient: true)
            client.state = .deciding(relay.request)
            let refusal = EgressRefusal.unreachable(reason)
            refuse(client, refusal, dialect.answer(to: refusal))
        }
    }

    private func finish(_ client: EgressClient, _ relay: EgressRelay, _ end: EgressEnd, keepsClient: Bool = false) {
        for lane in relay.lanes { turns.leave(lane) }
        relay.close(abruptly: end != .closed)
        for throttle in relay.server.route.throttles { throttle.forget(self) }
        client.relay = nil
        if !keepsClient { forget(client) }
        relay.waiting.resume(returning: end)
    }

    /// Closes both sides abortively.
    private func abort(_ client: EgressClient, _ end: EgressEnd = .stopped) {
        client.socket.resetOnClose()
        if let relay = client.relay { finish(client, relay, end) } else { forget(client) }
    }

    private func forget(_ client: EgressClient) {
        clients[client.number] = nil
        // The answer about a name is not needed any more.
        if case .deciding = client.state { client.decision?.cancel() }
    }

    /// Continues the connections whose turn it is.
    ///
    /// - Returns: The time until the next one's turn may come.
    private func callNext() -> Duration? {
        while !turns.isEmpty {
            let now = clocks.monotonic()
            let (ready, again) = turns.dequeue(at: now)
            // Each of these may wait in line again, for its next bytes.
            if ready.isEmpty { return again?.since(now) }
            for (lane, count) in ready {
                guard let client = clients[lane.client], let relay = client.relay else { continue }
                relay.grant(count, lane)
                advance(client)
            }
        }
        return nil
    }

    /// Ends what takes too long, and counts the bytes of idle connections.
    private func enforceDeadlines() -> Duration? {
        let now = ContinuousClock.now
        var next = acceptsAgain.map { max(.zero, now.duration(to: $0)) }
        for client in clients.values {
            if let deadline = client.deadline {
                let left = now.duration(to: deadline)
                if left <= .zero { late(client) } else { next = min(next ?? left, left) }
            }
            if let relay = client.relay {
                if relay.server.countedAt.duration(to: now) >= Self.countInterval { relay.server.charge() }
                next = min(next ?? Self.countInterval, Self.countInterval)
            }
        }
        return next
    }

    private func late(_ client: EgressClient) {
        switch client.state {
        case .asking: refuse(client, .late, [])
        case .deciding, .leaving: forget(client)
        case .relaying:
            client.relay?.expire()
            advance(client)
        }
    }
}

/// Limits how often refusals are logged: any program of this machine can cause them.
struct RefusalLog {
    private var next: ContinuousClock.Instant?
    private var skipped = 0

    /// - Returns: The number of refusals that were not logged before this one; `nil` where it is not logged either.
    mutating func note(at now: ContinuousClock.Instant) -> Int? {
        if let next, now < next {
            skipped += 1
            return nil
        }
        defer { skipped = 0 }
        next = now + .milliseconds(500)
        return skipped
    }
}
