internal import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// The open connections of one server, and which of them has to go.
///
/// libmicrohttpd counts time from the last byte, so that one byte every minute keeps a connection for ever, and it refuses
/// whoever comes when all places are taken. Here a head has a time as a whole, and who has shown nothing makes room.
final class Connections: Sendable {
    /// libmicrohttpd's connection, by its address: one value for as long as it is open.
    struct ID: Hashable, Sendable {
        private let address: Int
        init(_ connection: OpaquePointer) { address = Int(bitPattern: connection) }
    }

    private struct Open {
        let socket: CInt
        let peer: WebPeer
        /// Whose places it takes; `nil` where nobody counts them.
        let network: [UInt8]?
        /// Connections have risen in it.
        let number: UInt64
        /// A request of it was let in.
        var isAdmitted = false
        /// It was shut down, and libmicrohttpd has not noticed yet.
        var isLeaving = false
        /// When it has to have an admitted request; `nil` while one is under way.
        var deadline: MonotonicTime?
        /// Lets go of a connection whose reply is held back: libmicrohttpd would not notice its end before.
        var letGo: (@Sendable () -> Void)?
    }

    private struct State {
        var open: [ID: Open] = [:]
        var count: UInt64 = 0
        /// The requests that are under way for those whom a trusted proxy names.
        var forwarded: [Forwarded: Int] = [:]
        /// Of those that were shut down, to be called without the lock.
        var letGo: [@Sendable () -> Void] = []
        var alarm: (id: Alarms.ID, at: MonotonicTime)?
        var isOver = false
    }

    let limits: ConnectionLimits
    private let clocks = SystemClocks()
    private let state = Mutex(State())

    init(_ limits: ConnectionLimits) { self.limits = limits }

    // MARK: What libmicrohttpd tells

    /// A connection is there; of those without an admitted request the oldest one goes where there are too many now.
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
            makeRoom(for: id, network, &state)
            arm(&state)
        }
    }

    /// Called before the socket is closed: from then on its number may be another's.
    func closed(_ id: ID) { state.withLock { _ = $0.open.removeValue(forKey: id) } }

    func peer(of id: ID) -> WebPeer { state.withLock { $0.open[id]?.peer } ?? WebPeer() }

    /// A request of it may ask the service.
    func admitted(_ id: ID) {
        state.withLock { state in
            state.open[id]?.isAdmitted = true
            state.open[id]?.deadline = nil
        }
    }

    /// The reply to its request is held back; `letGo` ends that when the connection has to go.
    func held(_ id: ID, _ letGo: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            guard state.open[id]?.isLeaving == false else { return true }
            state.open[id]?.letGo = letGo
            return false
        }
        if isLate { letGo() }
    }

    /// A request of it is over, and another one may come.
    func requestOver(_ id: ID) {
        let next = clocks.monotonic().advanced(by: limits.idle + limits.headTime)
        state.withLock { state in
            state.open[id]?.letGo = nil
            guard let open = state.open[id], open.isAdmitted else { return }
            state.open[id]?.deadline = next
            arm(&state)
        }
    }

    // MARK: Those behind a proxy

    /// A place of somebody behind a trusted proxy. Those who were let in have places of their own, so that nobody who shares
    /// their address can take them.
    struct Forwarded: Hashable, Sendable {
        fileprivate let network: [UInt8]
        fileprivate let isAdmitted: Bool
    }

    /// Whom a request is from.
    func sender(of id: ID, forwardedFor: String?) -> WebPeer {
        let peer = peer(of: id)
        let own = peer.address.flatMap { IPAddress($0) }
        guard let sender = limits.sender(peer: own, forwardedFor: forwardedFor), sender != own else { return peer }
        return WebPeer(address: sender.description)
    }

    enum Taking: Hashable, Sendable {
        /// To be given back; `nil` for who is not counted.
        case taken(Forwarded?)
        /// The address has as many as it may.
        case full
    }

    /// Takes a place for a request of `sender` that came over a connection.
    func take(_ id: ID, for sender: WebPeer, isAdmitted: Bool) -> Taking {
        guard sender != peer(of: id), let address = sender.address.flatMap({ IPAddress($0) }), !address.isLoopback
        else { return .taken(nil) }
        let place = Forwarded(network: Self.network(of: address), isAdmitted: isAdmitted)
        return state.withLock { state in
            guard state.forwarded[place, default: 0] < limits.perAddress else { return .full }
            state.forwarded[place, default: 0] += 1
            return .taken(place)
        }
    }

    func giveBack(_ place: Forwarded) {
        state.withLock { state in
            let count = state.forwarded[place, default: 0]
            state.forwarded[place] = count > 1 ? count - 1 : nil
        }
    }

    // MARK: Making room

    /// Nothing is shut down any more.
    func end() {
        let alarm = state.withLock { state in
            state.isOver = true
            defer { state.alarm = nil }
            return state.alarm
        }
        if let alarm { Alarms.shared.cancel(alarm.id) }
    }

    private func makeRoom(for newest: ID, _ network: [UInt8]?, _ state: inout State) {
        if let network {
            let own = state.open.filter { $0.value.network == network && !$0.value.isLeaving }
            if own.count > limits.perAddress {
                // Whoever shares the attacker's address comes in as well, where the attacker has no token.
                leave(Self.oldest(of: own.filter { !$0.value.isAdmitted && $0.key != newest }) ?? newest, &state)
            }
        }
        let strangers = state.open.filter { !$0.value.isAdmitted && !$0.value.isLeaving }
        if strangers.count > limits.connections / 2, let oldest = Self.oldest(of: strangers) { leave(oldest, &state) }
    }

    private static func oldest(of some: [ID: Open]) -> ID? { some.min { $0.value.number < $1.value.number }?.key }

    /// libmicrohttpd finds the end of the connection, and closes it. Within the lock, so that the socket is still this one's.
    private func leave(_ id: ID, _ state: inout State) {
        guard let open = state.open[id], !open.isLeaving else { return }
        state.open[id]?.isLeaving = true
        state.open[id]?.deadline = nil
        shutdown(open.socket, CInt(SHUT_RDWR))
        if let letGo = open.letGo { state.letGo.append(letGo) }
        state.open[id]?.letGo = nil
    }

    private func changing(_ body: (inout State) -> Void) {
        let letGo = state.withLock { state in
            body(&state)
            defer { state.letGo = [] }
            return state.letGo
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
        state.alarm = (Alarms.shared.set(after: delay) { [weak self] in self?.look() }, first)
    }

    private func look() {
        let now = clocks.monotonic()
        changing { state in
            state.alarm = nil
            for (id, open) in state.open where open.deadline.map({ $0 <= now }) ?? false { leave(id, &state) }
            arm(&state)
        }
    }

    /// Who has an IPv6 address has at least 64 bits of them (RFC 6177, section 2).
    private static func network(of address: IPAddress) -> [UInt8] { Array(address.bytes.prefix(8)) }
}
