internal import CCurl
internal import Core
internal import Linux
internal import Synchronization

/// The result of a transfer for its caller.
typealias Outcome = Result<Response, TransportError>

/// The thread that carries all transfers.
///
/// `@unchecked Sendable`: `multi`, `running`, `connections`, `pools` and `turns` are accessed by that thread alone
/// (curl's callbacks run on it too); the rest is the inbox, protected by its lock. `curl_multi_wakeup`, the only call
/// that libcurl allows from other threads, is made with that lock held and never after `isOver`, which is set before
/// the handle is freed.
final class CurlLoop: @unchecked Sendable {
    private struct Inbox {
        var commands: [Command] = []
        /// The thread starts with the first transfer: before that there is nothing to do.
        var hasThread = false
        var isStopping = false
        var isOver = false
        var stopped: [CheckedContinuation<Void, Never>] = []
    }

    private enum Command {
        case start(CurlTransfer, CheckedContinuation<Outcome, Never>)
        case cancel(CurlTransfer)
        case close(interface: String, CheckedContinuation<Void, Never>)
        case charge(CheckedContinuation<Void, Never>)
        case lose(Set<IPAddress>)
    }

    private let inbox = Mutex(Inbox())
    private let multi: UnsafeMutableRawPointer
    /// By easy handle. Keeps each transfer alive while libcurl has its address.
    private var running: [UnsafeMutableRawPointer: CurlTransfer] = [:]
    /// Used by curl's callbacks too.
    var connections: SocketRegistry
    /// Kept connections of requests with an interface or with settings. Those of other requests belong to the multi
    /// handle.
    private var pools = ConnectionPools()
    /// Transfers that wait for their throttles, by easy handle.
    private var turns = ThrottleQueue<UnsafeMutableRawPointer>()
    private let clocks: any Clocks = SystemClocks()

    /// Called once in a process, before the first handle (curl_global_init(3)).
    private static let isReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    init(counts: @escaping @Sendable (CInt) -> SocketCounts?) {
        connections = SocketRegistry(counts: counts)
        guard Self.isReady, let multi = curl_multi_init() else { fatalError("libcurl: out of memory") }
        self.multi = multi
        // Further connections are closed instead of kept: an idle one costs both ends a socket.
        sluice_multi_set_long(multi, CURLMOPT_MAXCONNECTS, 16)
        // With HTTP/2 too each transfer has a connection of its own.
        sluice_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_NOTHING))
    }

    // Called from any thread.

    func start(_ transfer: CurlTransfer, _ waiting: CheckedContinuation<Outcome, Never>) {
        let refusal = inbox.withLock { inbox -> TransportError? in
            if inbox.isStopping { return transfer.cancelled }
            if !inbox.hasThread {
                do throws(SystemError) { try startThread("transport") { self.run() } } catch {
                    return transfer.unable(error)
                }
                inbox.hasThread = true
            }
            inbox.commands.append(.start(transfer, waiting))
            curl_multi_wakeup(multi)
            return nil
        }
        if let refusal { waiting.resume(returning: .failure(refusal)) }
    }

    func cancel(_ transfer: CurlTransfer) {
        transfer.isCancelled.store(true, ordering: .releasing)
        inbox.withLock { inbox in
            if inbox.isOver { return }
            inbox.commands.append(.cancel(transfer))
            curl_multi_wakeup(multi)
        }
    }

    func close(interface: String, _ waiting: CheckedContinuation<Void, Never>) {
        send(.close(interface: interface, waiting), for: waiting)
    }

    func charge(_ waiting: CheckedContinuation<Void, Never>) { send(.charge(waiting), for: waiting) }

    /// - Parameter waiting: Resumed by the loop when the command is done.
    private func send(_ command: Command, for waiting: CheckedContinuation<Void, Never>) {
        let isDone = inbox.withLock { inbox in
            if inbox.isOver || !inbox.hasThread { return true }
            // All connections will be closed.
            if inbox.isStopping {
                inbox.stopped.append(waiting)
            } else {
                inbox.commands.append(command)
                curl_multi_wakeup(multi)
            }
            return false
        }
        if isDone { waiting.resume() }
    }

    func lose(_ addresses: Set<IPAddress>) {
        inbox.withLock { inbox in
            if inbox.isOver || !inbox.hasThread { return }
            inbox.commands.append(.lose(addresses))
            curl_multi_wakeup(multi)
        }
    }

    func stop(_ waiting: CheckedContinuation<Void, Never>?) {
        let isOver = inbox.withLock { inbox in
            if inbox.isOver { return true }
            inbox.isStopping = true
            if !inbox.hasThread {
                inbox.isOver = true
                curl_multi_cleanup(multi)
                return true
            }
            if let waiting { inbox.stopped.append(waiting) }
            curl_multi_wakeup(multi)
            return false
        }
        if isOver { waiting?.resume() }
    }

    /// Checks again the transfers that are held back.
    func wake() {
        inbox.withLock { inbox in
            if inbox.hasThread, !inbox.isOver { curl_multi_wakeup(multi) }
        }
    }

    // Everything from here on runs on the loop's thread.

    private func run() {
        while true {
            let (commands, isStopping) = inbox.withLock { inbox in
                defer { inbox.commands = [] }
                return (inbox.commands, inbox.isStopping)
            }
            for command in commands { perform(command) }
            if isStopping { break }
            var count: CInt = 0
            curl_multi_perform(multi, &count)
            collect()
            // Both may end or resume transfers, which libcurl then handles without waiting.
            let wait = min(enforceLimits(), callNext())
            poll(atMost: wait)
        }
        for transfer in Array(running.values) { end(transfer, abruptly: true) { .failure(transfer.cancelled) } }
        let waiting = inbox.withLock { inbox in
            inbox.isOver = true
            return inbox.stopped
        }
        pools.closeAll()
        curl_multi_cleanup(multi)
        for continuation in waiting { continuation.resume() }
    }

    private func perform(_ command: Command) {
        switch command {
        case .start(let transfer, let waiting):
            transfer.waiting = waiting
            // The cancellation may have come before the start.
            if transfer.isCancelled.load(ordering: .acquiring) {
                transfer.finish(.failure(transfer.cancelled))
                return
            }
            do {
                let easy = try transfer.prepare(on: self)
                running[easy] = transfer
                for throttle in transfer.request.throttles { throttle.listen(self) { [weak self] in self?.wake() } }
                curl_multi_add_handle(multi, easy)
            } catch {
                transfer.finish(.failure(error))
            }
        case .cancel(let transfer):
            // Not running: over already, or not started yet.
            if let easy = transfer.easy, running[easy] != nil {
                end(transfer, abruptly: true) { .failure(transfer.cancelled) }
            }
        case .close(let interface, let waiting):
            connections.reset(interface: interface)
            for transfer in Array(running.values) where transfer.request.interface == interface {
                end(transfer, abruptly: true) {
                    .failure(transfer.error(.interface, 0, "the interface `\(interface)` may not be used any more"))
                }
            }
            // No transfer uses it any more: its kept connections are closed with it.
            pools.close(interface: interface)
            waiting.resume()
        case .charge(let waiting):
            for transfer in running.values { connections.charge(transfer) }
            waiting.resume()
        case .lose(let addresses):
            for transfer in connections.lose(addresses) {
                if let tell = transfer.request.onAddressLost {
                    tell()
                    continue
                }
                end(transfer, abruptly: true) {
                    .failure(transfer.error(.reset, 0, "its source address is no longer an address of this machine"))
                }
            }
        }
    }

    private func collect() {
        var left: CInt = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
                let transfer = running[easy]
            else { continue }
            // Read before the handle is removed, which frees the message.
            let code = sluice_message_result(message)
            end(transfer, abruptly: false) { transfer.outcome(code) }
        }
    }

    /// Ends transfers without progress for too long.
    ///
    /// - Returns: Milliseconds until the next check is due.
    private func enforceLimits() -> CInt {
        guard !running.isEmpty else { return CInt.max }
        let now = ContinuousClock.now
        var next = Duration.seconds(60)
        for transfer in Array(running.values) {
            let (left, error) = transfer.timeLeft(at: now)
            if left <= .zero {
                // Its socket closes before the error is made.
                transfer.stage.hasPeer = connections.hasPeer(transfer)
                end(transfer, abruptly: true) { transfer.outcome(of: error()) }
            } else {
                next = min(next, left)
            }
        }
        return CInt(clamping: next.inMilliseconds + 1)
    }

    /// Waits for sockets, for commands, and for the streams of bodies.
    private func poll(atMost milliseconds: CInt) {
        let waiting = running.values.filter { $0.awaited != nil }
        var streams = waiting.compactMap(\.awaited).map {
            curl_waitfd(fd: $0.number, events: Int16(CURL_WAIT_POLLIN), revents: 0)
        }
        curl_multi_poll(multi, &streams, UInt32(streams.count), milliseconds, nil)
        // libcurl does not end a paused transfer, as below.
        for transfer in waiting where transfer.isAnsweredInLine || transfer.awaited?.isReady == true {
            transfer.resume(with: 0)
        }
    }

    /// Resumes the transfers whose turn it is.
    ///
    /// - Returns: Milliseconds until the next one's turn may come.
    private func callNext() -> CInt {
        if turns.isEmpty { return CInt.max }
        let now = clocks.monotonic()
        // libcurl does not end a paused transfer, even after an answer: it has to call again, and then notices that no
        // more bytes are needed.
        for (easy, transfer) in running where transfer.isAnsweredInLine {
            turns.leave(easy)
            transfer.resume(with: 0)
        }
        let (ready, again) = turns.dequeue(at: now)
        for (easy, count) in ready { running[easy]?.resume(with: count) }
        // Rounded up: a check that comes too early is useless.
        return again.map { CInt(clamping: ($0.since(now) + .microseconds(999)).inMilliseconds) } ?? CInt.max
    }

    /// - Parameters:
    ///   - abruptly: Waiting bytes in the socket are discarded.
    ///   - outcome: Called when all sent bytes of the transfer are counted.
    private func end(_ transfer: CurlTransfer, abruptly: Bool, _ outcome: () -> Outcome) {
        guard let easy = transfer.easy else { return }
        transfer.readFinalCount()
        if abruptly { connections.reset(transfer) }
        // libcurl may close the sockets of unfinished attempts without a report.
        connections.chargeAttempts(of: transfer)
        // Closes the connection, or keeps it for reuse.
        curl_multi_remove_handle(multi, easy)
        connections.release(transfer)
        running[easy] = nil
        turns.leave(easy)
        transfer.returnGranted()
        for throttle in transfer.request.throttles { throttle.forget(self) }
        transfer.finish(outcome())
        MemoryTrimmer.scheduleTrim()
    }

    /// Has a transfer use its own pool of kept connections.
    ///
    /// - Returns: `false` without memory.
    func setPool(of request: Request, _ easy: UnsafeMutableRawPointer) -> Bool {
        pools.set(for: request, easy, inUse: running.values.map(\.request))
    }

    // Called by libcurl.

    /// - Returns: How many bytes of its body may be sent now; 0: it continues when its turn comes.
    func acquire(upTo wanted: Int, for transfer: CurlTransfer) -> Int {
        guard let easy = transfer.easy else { return wanted }
        return turns.acquire(easy, upTo: wanted, from: transfer.request.throttles, at: clocks.monotonic())
    }
}
