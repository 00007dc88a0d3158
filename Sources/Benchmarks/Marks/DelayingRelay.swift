internal import Core
internal import Glibc
internal import Linux
internal import Synchronization

/// A TCP relay to a port on loopback that holds every byte for a time in each direction, as a long path does.
///
/// The loopback interface confirms each byte at once, so a sender would never wait for the path. Therefore the relay takes
/// at most ``window`` bytes that have not arrived yet, as the peer's kernel would. The handshake of TCP has no delay.
final class DelayingRelay: Sendable {
    /// The most bytes on their way in one direction of a connection: the default limit of a socket's send buffer
    /// (tcp(7), `tcp_wmem`).
    static let window = 4 << 20

    let port: Int
    private let changed: EventFD
    private let isStopped = Mutex(false)

    /// - Parameters:
    ///   - target: The server's port.
    ///   - delay: How long a byte takes in one direction.
    init(to target: Int, delay: Duration) throws {
        let (listener, port) = try StreamSocket.listening()
        let changed = try EventFD()
        guard let loopback = IPAddress("127.0.0.1") else { throw WrongResult("127.0.0.1 is not an address") }
        (self.port, self.changed) = (Int(port), changed)
        try startThread("relay") { [weak self] in
            var directions: [Direction] = []
            while self?.isStopped.withLock({ $0 }) == false {
                while let near = listener.accept() {
                    // A refused connection reads as broken below, and the client sees a reset.
                    guard
                        let far = try? StreamSocket.connecting(
                            to: loopback, port: UInt16(target), over: nil, timeout: .seconds(60))
                    else { continue }
                    directions.append(Direction(from: near, to: far, delay))
                    directions.append(Direction(from: far, to: near, delay))
                }
                let now = ContinuousClock.now
                for direction in directions { direction.move(now) }
                directions.removeAll { $0.isOver }
                let next = directions.compactMap(\.due).min()
                let watched = [listener.polled(for: POLLIN)] + directions.flatMap { $0.polled(now) }
                // It keeps the sockets of `directions` until it returns.
                _ = changed.wait(or: watched, longest: next.map { max(.zero, ContinuousClock.now.duration(to: $0)) })
            }
        }
    }

    deinit { stop() }

    /// Closes all connections.
    func stop() {
        isStopped.withLock { $0 = true }
        changed.signal()
    }
}

/// The bytes of one direction of a connection that are on their way.
private final class Direction {
    private let source: StreamSocket
    private let target: StreamSocket
    private let delay: Duration
    private var pieces: ArraySlice<(due: ContinuousClock.Instant, bytes: ArraySlice<UInt8>)> = []
    private var held = 0
    /// When the end of the source's bytes arrives.
    private var end: ContinuousClock.Instant?
    private var isBlocked = false
    private(set) var isOver = false

    init(from source: StreamSocket, to target: StreamSocket, _ delay: Duration) {
        (self.source, self.target, self.delay) = (source, target, delay)
    }

    /// When the next byte, or the end, arrives; `nil` if there is none, or the target takes no more now.
    var due: ContinuousClock.Instant? { isBlocked ? nil : pieces.first?.due ?? end }

    private var mayRead: Bool { end == nil && held < DelayingRelay.window }

    func polled(_ now: ContinuousClock.Instant) -> [pollfd] {
        (mayRead ? [source.polled(for: POLLIN)] : []) + (isBlocked ? [target.polled(for: POLLOUT)] : [])
    }

    /// Takes what the source has, and delivers what is due.
    func move(_ now: ContinuousClock.Instant) {
        var piece: [UInt8] = []
        while mayRead {
            piece = []
            switch source.read(256 << 10, into: &piece) {
            case .bytes(let count):
                held += count
                pieces.append((now + delay, piece[...]))
                continue
            case .notNow: break
            case .end, .failed: end = now + delay
            }
            break
        }
        isBlocked = false
        while let next = pieces.first, next.due <= now {
            switch target.write(next.bytes) {
            case .bytes(let count):
                held -= count
                let rest = next.bytes.dropFirst(count)
                if rest.isEmpty { pieces.removeFirst() } else { pieces[pieces.startIndex].bytes = rest }
                continue
            case .notNow: isBlocked = true
            case .end, .failed: isOver = true
            }
            return
        }
        if pieces.isEmpty, let end, end <= now {
            target.finishWriting()
            isOver = true
        }
    }
}
