internal import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// The open connections of one server, and the choice of those to close.
///
/// libmicrohttpd counts time from the last byte, so that one byte every minute keeps a connection for ever, and it
/// refuses new clients when all places are taken. Here the whole head has a time limit, and connections without a
/// request of a known client are closed to make space.
final class Connections: Sendable {
    /// libmicrohttpd's connection, by its address, which is constant while it is open.
    struct ID: Hashable, Sendable {
        private let address: Int
        init(_ connection: OpaquePointer) { address = Int(bitPattern: connection) }
    }

    private struct Open {
        let socket: CInt
        let peer: WebPeer
        /// The network whose limit it counts for; `nil` where none applies.
        let network: [UInt8]?
        /// Increases with each connection.
        let number: UInt64
        /// One of its requests was accepted, and proved who sends it.
        var isAdmitted = false
        /// One of its requests was accepted.
        var isServed = false
        /// It was shut down, and libmicrohttpd has not noticed yet.
        var isLeaving = false
        /// The time by which it must have an accepted request; `nil` while one of a known client is running.
        var deadline: MonotonicTime?
        /// Ends a held-back reply of the connection: otherwise libmicrohttpd would not notice its end.
        var cancelHold: (@Sendable () -> Void)?
    }

    private struct State {
        var open: [ID: Open] = [:]
        var count: UInt64 = 0
        /// Running requests of clients behind a trusted proxy.
        var forwarded: [Forwarded: Int] = [:]
        /// Callbacks of connections that were shut down; called without the lock.
        var cancelledHolds: [@Sendable () -> Void] = []
        var alarm: (id: Alarms.ID, at: MonotonicTime)?
        var isOver = false
    }

    let limits: ConnectionLimits
    private let clocks = SystemClocks()
    private let state = Mutex(State())

    init(_ limits: ConnectionLimits) { self.limits = limits }

    // MARK: Events of libmicrohttpd

    /// Adds a connection; if there are too many without a request of a known client, the oldest of those is closed.
    func opened(_ id: ID, socket: CInt, peer: WebPeer) {
        let now = clocks.monotonic()
        changing { state in
            state.count += 1
            let network = peer.address.flatMap { IPAddress($0) }.flatMap { address in
                address.isLoopback || limits.isTrusted(address) ? nil : Self.network(of: address)
            }
            state.open[id] = Open(
                socket: socket, peer: peer, network: network, number: state.count,
                deadline: now.advanced(by: limits.headTime))
            closeOldest(for: id, network, &state)
            arm(&state)
        }
    }

    /// Called before the socket is closed: after that its number may belong to another.
    func closed(_ id: ID) { state.withLock { _ = $0.open.removeValue(forKey: id) } }

    func peer(of id: ID) -> WebPeer { state.withLock { $0.open[id]?.peer } ?? WebPeer() }

    /// Records that one of its requests was accepted. A client that is not known has a limit for each of them: its body
    /// could come in pieces for ever.
    func recordAccepted(_ id: ID, isKnown: Bool = true) {
        let limit = clocks.monotonic().advanced(by: limits.headTime)
        state.withLock { state in
            state.open[id]?.isServed = true
            if isKnown { state.open[id]?.isAdmitted = true }
            state.open[id]?.deadline = isKnown ? nil : limit
            if !isKnown { arm(&state) }
        }
    }

    /// Records that the reply to its request is awaited or held back; `letGo` ends that when the connection has to be
    /// closed.
    func recordHeld(_ id: ID, _ letGo: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            guard state.open[id]?.isLeaving == false else { return true }
            state.open[id]?.cancelHold = letGo
            return false
        }
        if isLate { letGo() }
    }

    /// Records that one of its requests is over, and another may come.
    func requestEnded(_ id: ID) {
        let now = clocks.monotonic()
        state.withLock { state in
            state.open[id]?.cancelHold = nil
            guard let open = state.open[id], open.isServed else { return }
            state.open[id]?.deadline = now.advanced(by: (open.isAdmitted ? limits.idle : .zero) + limits.headTime)
            arm(&state)
        }
    }

    // MARK: Clients behind a proxy

    /// A place for a request of a client behind a trusted proxy. Accepted clients have places of their own, so that
    /// others with the same address cannot take them.
    struct Forwarded: Hashable, Sendable {
        fileprivate let network: [UInt8]
        fileprivate let isAdmitted: Bool
    }

    /// The sender of a request.
    func sender(of id: ID, forwardedFor: String?) -> WebPeer {
        let peer = peer(of: id)
        let own = peer.address.flatMap { IPAddress($0) }
        guard let sender = limits.sender(peer: own, forwardedFor: forwardedFor), sender != own else { return peer }
        return WebPeer(address: sender.description)
    }

    enum PlaceResult: Hashable, Sendable {
        /// Must be returned; `nil` for a client that is not counted.
        case reserved(Forwarded?)
        /// The address has reached its limit.
        case full
    }

    /// Takes a place for a request of `sender` over a connection.
    func reservePlace(_ id: ID, for sender: WebPeer, isAdmitted: Bool) -> PlaceResult {
        guard sender != peer(of: id), let address = sender.address.flatMap({ IPAddress($0) }), !address.isLoopback
        else { return .reserved(nil) }
        let place = Forwarded(network: Self.network(of: address), isAdmitted: isAdmitted)
        return state.withLock { state in
            guard state.forwarded[place, default: 0] < limits.perAddress else { return .full }
            state.forwarded[place, default: 0] += 1
            return .reserved(place)
        }
    }

    func releasePlace(_ place: Forwarded) {
        state.withLock { state in
            let count = state.forwarded[place, default: 0]
            state.forwarded[place] = count > 1 ? count - 1 : nil
        }
    }

    // MARK: Closing connections

    /// No connection is shut down any more.
    func end() {
        let alarm = state.withLock { state in
            state.isOver = true
            defer { state.alarm = nil }
            return state.alarm
        }
        if let alarm { Alarms.shared.cancel(alarm.id) }
    }

    private func closeOldest(for newest: ID, _ network: [UInt8]?, _ state: inout State) {
        if let network {
            let own = state.open.filter { $0.value.network == network && !$0.value.isLeaving }
            if own.count > limits.perAddress {
                // A client with the attacker's address gets in as well, if the attacker has no token.
                leave(Self.oldest(of: own.filter { !$0.value.isAdmitted && $0.key != newest }) ?? newest, &state)
            }
        }
        let strangers = state.open.filter { !$0.value.isAdmitted && !$0.value.isLeaving }
        if strangers.count > limits.connections / 2, let oldest = Self.oldest(of: strangers) { leave(oldest, &state) }
    }

    private static func oldest(of some: [ID: Open]) -> ID? { some.min { $0.value.number < $1.value.number }?.key }

    /// libmicrohttpd notices the end of the connection, and closes it. Called with the lock held, so that the socket is
    /// still this connection's.
    private func leave(_ id: ID, _ state: inout State) {
        guard let open = state.open[id], !open.isLeaving else { return }
        state.open[id]?.isLeaving = true
        state.open[id]?.deadline = nil
        shutdown(open.socket, CInt(SHUT_RDWR))
        if let letGo = open.cancelHold { state.cancelledHolds.append(letGo) }
        state.open[id]?.cancelHold = nil
    }

    private func changing(_ body: (inout State) -> Void) {
        let letGo = state.withLock { state in
            body(&state)
            defer { state.cancelledHolds = [] }
            return state.cancelledHolds
        }
        for letGo in letGo { letGo() }
    }

    /// Sets the alarm to the first deadline.
    private func arm(_ state: inout State) {
        guard !state.isOver, let first = state.open.values.compactMap(\.deadline).min() else { return }
        if let alarm = state.alarm {
            if alarm.at <= first { return }
            Alarms.shared.cancel(alarm.id)
        }
        let delay = max(.zero, first.since(clocks.monotonic()))
        state.alarm = (Alarms.shared.set(after: delay) { [weak self] in self?.check() }, first)
    }

    private func check() {
        let now = clocks.monotonic()
        changing { state in
            state.alarm = nil
            for (id, open) in state.open where open.deadline.map({ $0 <= now }) ?? false { leave(id, &state) }
            arm(&state)
        }
    }

    /// The owner of an IPv6 address has at least a /64 network (RFC 6177, section 2).
    private static func network(of address: IPAddress) -> [UInt8] { Array(address.bytes.prefix(8)) }
}
