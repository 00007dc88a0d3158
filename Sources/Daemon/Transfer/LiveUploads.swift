internal import Core
internal import Synchronization

/// The volatile state of running uploads: phase, bytes in flight, speed. Never stored.
final class LiveUploads: Sendable {
    struct Run: Sendable {
        var phase: UploadPhase = .opening
        /// Offset in the file up to which bytes were handed to the socket.
        var sent: Int64
        var acked: Int64
        let size: Int64
        fileprivate var speed: SmoothedRate
        /// Bytes a second at the moment when this was read.
        var rate: Int64 = 0
        /// Called when the remote has answered to the opening.
        var onOpened: (@Sendable () -> Void)?
        let destination: String
    }

    private let runs = Mutex<[String: Run]>([:])
    /// The position of attempts that have ended and are not recorded yet.
    private let endPositions = Mutex<[String: Int64]>([:])
    /// By destination; stays when nothing runs any more.
    private let speeds = Mutex<[String: TransferRate]>([:])
    private let clocks: any Clocks

    init(clocks: any Clocks) { self.clocks = clocks }

    func begin(_ id: String, to destination: String, acked: Int64, size: Int64) {
        let now = clocks.monotonic()
        runs.withLock {
            $0[id] = Run(
                sent: acked, acked: acked, size: size, speed: SmoothedRate(at: now, position: acked),
                destination: destination)
        }
    }

    func end(_ id: String) {
        let run = runs.withLock { $0.removeValue(forKey: id) }
        if let run { endPositions.withLock { $0[id] = run.sent } }
    }

    /// The position of the attempt that has just ended; removes it. 0 if unknown.
    func removeEndPosition(_ id: String) -> Int64 { endPositions.withLock { $0.removeValue(forKey: id) ?? 0 } }

    func enter(_ id: String, _ phase: UploadPhase) {
        let body = runs.withLock { runs in
            runs[id]?.phase = phase
            return phase == .opening ? nil : runs[id]?.onOpened
        }
        body?()
    }

    /// Calls `body` as soon as the upload is not being opened, which may be at once.
    func onOpened(_ id: String, _ body: @escaping @Sendable () -> Void) {
        let isOpening = runs.withLock { runs in
            guard runs[id]?.phase == .opening else { return false }
            runs[id]?.onOpened = body
            return true
        }
        if !isOpening { body() }
    }

    func sent(_ id: String, _ offset: Int64) {
        let now = clocks.monotonic()
        let progress = runs.withLock { runs -> (destination: String, bytes: Int64)? in
            guard var run = runs[id] else { return nil }
            let progress = (run.destination, offset - run.sent)
            run.sent = offset
            run.speed.move(to: offset, at: now)
            runs[id] = run
            return progress
        }
        if let progress {
            speeds.withLock { $0[progress.destination, default: TransferRate()].sent(progress.bytes, at: now) }
        }
    }

    /// Bytes a second to a destination, over the last minutes with traffic; `nil` while that is unknown.
    func speed(to destination: String) -> Int64? { speeds.withLock { $0[destination]?.rate } }

    func acked(_ id: String, _ offset: Int64) {
        runs.withLock { runs in
            guard var run = runs[id] else { return }
            run.acked = offset
            if run.sent < offset {
                // The remote had these bytes before: they were not sent now, and do not count for the rate.
                run.speed.skip(offset - run.sent)
                run.sent = offset
            }
            runs[id] = run
        }
    }

    /// Subtracts bytes that are sent again.
    func withdraw(_ id: String, _ bytes: Int64) {
        runs.withLock { runs in
            guard var run = runs[id] else { return }
            let left = max(run.acked, run.sent - bytes)
            run.speed.skip(left - run.sent)
            run.sent = left
            runs[id] = run
        }
    }

    /// Resets the figures of an upload that is sent again from its first byte.
    func beginAgain(_ id: String) {
        let now = clocks.monotonic()
        runs.withLock { runs in
            guard var run = runs[id] else { return }
            (run.sent, run.acked) = (0, 0)
            run.speed.restart(from: 0, at: now)
            runs[id] = run
        }
    }

    subscript(id: String) -> Run? {
        let now = clocks.monotonic()
        return runs.withLock { runs in
            guard var run = runs[id] else { return nil }
            run.rate = run.speed.shown(at: run.sent, now)
            return run
        }
    }

    var ids: [String] { runs.withLock { Array($0.keys) } }
    var isEmpty: Bool { runs.withLock { $0.isEmpty } }
}
