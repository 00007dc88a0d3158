internal import Core
internal import Glibc
internal import Linux
internal import Transport

/// One direction of a connection, by which it waits for its throttles.
struct EgressLane: Hashable {
    let client: Int
    let isOutgoing: Bool
}

/// The bytes of one connection between a program and a server. Used on the loop's thread.
final class EgressRelay {
    enum Progress {
        case open
        case ended(EgressEnd)
        /// No address could be reached; contains the reason.
        case unreachable(String)
    }

    /// The bytes of one direction that were read and not written yet.
    private struct Direction {
        var bytes: [UInt8] = []
        /// Bytes that the throttles have granted.
        var granted = 0
        /// Whether it waits in line for them.
        var isWaiting = false
        /// Whether nothing more can be read.
        var isEnded = false
        /// Whether the other side knows that nothing more comes.
        var isFinished = false

        static let capacity = 64 << 10
    }

    let request: ClientHandshake.Request
    let waiting: CheckedContinuation<EgressEnd, Never>
    let lanes: [EgressLane]
    let server: ServerConnection
    private let inner: StreamSocket
    private var outgoing = Direction()
    private var incoming = Direction()
    private var body: RequestBody
    /// Whether a part of the answer came, and whether the program has closed its side since then.
    private var (hasAnswer, hasLeft) = (false, false)
    /// When a program has to have closed its side.
    private var closing: ContinuousClock.Instant?

    /// How long a program may keep its side open after the server has closed.
    private static let closingLimit: Duration = .seconds(10)

    init(
        number: Int, request: ClientHandshake.Request, route: EgressRoute, inner: StreamSocket,
        waiting: CheckedContinuation<EgressEnd, Never>
    ) {
        (self.request, self.inner, self.waiting) = (request, inner, waiting)
        server = ServerConnection(to: request.target, over: route)
        lanes = [EgressLane(client: number, isOutgoing: true), EgressLane(client: number, isOutgoing: false)]
        outgoing.bytes = request.forwarded
        body = request.body
    }

    /// The events to wait for.
    var interests: [(socket: StreamSocket, events: Int32, isOuter: Bool)] {
        guard let outer = server.socket else { return [] }
        guard server.isConnected else { return [(outer, POLLOUT, true), (inner, 0, false)] }
        var (program, server): (Int32, Int32) = (0, 0)
        if outgoing.bytes.isEmpty, !outgoing.isEnded || awaitsLeave { program |= POLLIN }
        if incoming.granted > 0, !incoming.bytes.isEmpty { program |= POLLOUT }
        if incoming.bytes.isEmpty, !incoming.isEnded { server |= POLLIN }
        if outgoing.granted > 0, !outgoing.bytes.isEmpty { server |= POLLOUT }
        // Without an interest an end that was seen would be reported again and again.
        return [(inner, program, false), (outer, server, true)].filter { $0.1 != 0 }
    }

    /// Whether the whole request was sent, and the program may close before the server does: a server that keeps its
    /// connection open is not waited for.
    private var awaitsLeave: Bool { request.dialect == .forward && body.isOver && hasAnswer && !hasLeft }

    // MARK: Progress

    /// Goes on as far as possible without waiting.
    func advance(_ turns: inout ThrottleQueue<EgressLane>, at now: MonotonicTime) -> Progress {
        if body.isBroken { return .ended(.broken) }
        if !server.isConnected {
            if let failure = server.connect() { return .unreachable(failure) }
            if !server.isConnected { return .open }
            incoming.bytes = request.dialect.success
            // The proxy's own words cost nothing outside.
            incoming.granted = incoming.bytes.count
            if body.isOver { outgoing.isEnded = true }
        }
        defer { server.charge() }
        // Each round carries one buffer; other connections want their turn too.
        for _ in 0..<4 {
            let before = (outgoing.bytes.count, incoming.bytes.count)
            guard carryOutgoing(&turns, now), carryIncoming(&turns, now) else { return .ended(.broken) }
            if outgoing.isFinished, incoming.isFinished { return .ended(.closed) }
            if before == (outgoing.bytes.count, incoming.bytes.count) { break }
        }
        if hasLeft, incoming.bytes.isEmpty { return .ended(.closed) }
        if incoming.isFinished, closing == nil {
            // The answer of a single request is over; a tunnel may still have bytes for the server.
            if request.dialect == .forward { return .ended(.closed) }
            closing = .now + Self.closingLimit
        }
        return .open
    }

    /// When ``expire()`` has to be called.
    var deadline: ContinuousClock.Instant? { server.isConnected ? closing : server.deadline }

    /// The deadline has passed.
    func expire() {
        if !server.isConnected { return server.expire() }
        closing = nil
        (outgoing.isFinished, incoming.isFinished) = (true, true)
    }

    /// Uses granted bytes when it continues.
    func grant(_ count: Int, _ lane: EgressLane) {
        if lane.isOutgoing {
            (outgoing.granted, outgoing.isWaiting) = (outgoing.granted + count, false)
        } else {
            (incoming.granted, incoming.isWaiting) = (incoming.granted + count, false)
        }
    }

    // MARK: Carrying

    /// - Returns: `false` when a side is broken.
    private func carryOutgoing(_ turns: inout ThrottleQueue<EgressLane>, _ now: MonotonicTime) -> Bool {
        guard let outer = server.socket else { return false }
        if outgoing.bytes.isEmpty, !outgoing.isEnded {
            switch inner.read(Direction.capacity, into: &outgoing.bytes) {
            case .notNow: break
            case .end: outgoing.isEnded = true
            case .failed: return false
            case .bytes(let count):
                // Bytes after the end of the one request are not for this server.
                guard let own = body.take(outgoing.bytes[...]) else { return false }
                outgoing.bytes.removeLast(count - own)
            }
            if body.isOver { outgoing.isEnded = true }
        } else if awaitsLeave {
            // Either the end of the program's side, or another request, which this connection does not carry.
            var more: [UInt8] = []
            switch inner.read(Direction.capacity, into: &more) {
            case .notNow: break
            // Some programs send an empty line after a body.
            case .bytes: hasLeft = more.contains { $0 != 0x0D && $0 != 0x0A }
            case .end, .failed: hasLeft = true
            }
        }
        return write(&outgoing, to: outer, lanes[0], &turns, now)
    }

    private func carryIncoming(_ turns: inout ThrottleQueue<EgressLane>, _ now: MonotonicTime) -> Bool {
        guard let outer = server.socket else { return false }
        if incoming.bytes.isEmpty, !incoming.isEnded {
            switch outer.read(Direction.capacity, into: &incoming.bytes) {
            case .notNow: break
            case .end: incoming.isEnded = true
            case .failed: return false
            case .bytes(let count):
                server.carried(received: count)
                hasAnswer = true
            }
        }
        return write(&incoming, to: inner, lanes[1], &turns, now)
    }

    private func write(
        _ direction: inout Direction, to socket: StreamSocket, _ lane: EgressLane,
        _ turns: inout ThrottleQueue<EgressLane>, _ now: MonotonicTime
    ) -> Bool {
        while !direction.bytes.isEmpty {
            if direction.granted == 0 {
                if direction.isWaiting { return true }
                direction.granted = turns.acquire(
                    lane, upTo: direction.bytes.count, from: server.route.throttles, at: now)
                direction.isWaiting = direction.granted == 0
                if direction.isWaiting { return true }
            }
            switch socket.write(direction.bytes.prefix(direction.granted)) {
            case .notNow: return true
            case .end, .failed: return false
            case .bytes(let count):
                direction.bytes.removeFirst(count)
                direction.granted -= count
                if lane.isOutgoing { server.carried(sent: count) }
            }
        }
        if direction.isEnded, !direction.isFinished {
            // A server may take the end of the sending side for the end of the request: it closes after its answer.
            if !(lane.isOutgoing && request.dialect == .forward) { socket.finishWriting() }
            direction.isFinished = true
        }
        return true
    }

    /// Closes the connection to the server, after its bytes were charged.
    func close(abruptly: Bool) {
        let unused = outgoing.granted + incoming.granted
        if unused > 0, server.isConnected { server.route.throttles.returnBytes(unused) }
        server.close(abruptly: abruptly)
    }
}
