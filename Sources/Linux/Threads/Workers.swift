/// Threads that take pieces of work in the order of arrival: as many threads as there is work for, up to a limit.
///
/// It does not use libdispatch's threads, because its pool wakes once a second for as long as the process lives, and an
/// idle machine should sleep.
package final class Workers<Piece>: Sendable {
    private struct State {
        var waiting = FIFO<Piece>()
        /// Threads that wait for a piece.
        var idle = 0
        var threads = 0
        var isClosed = false
    }

    private let state: ConditionLock<State>
    private let name: String
    private let most: Int
    private let linger: Duration?
    private let run: @Sendable (Piece) -> Void
    private let startThread: StartThread

    /// Starts a thread; tests replace it with a kernel that has none.
    typealias StartThread =
        @Sendable (_ name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) -> Void

    /// - Parameters:
    ///   - name: The name of each thread, at most 15 bytes.
    ///   - linger: How long a thread without work stays; `nil` for as long as the process lives.
    package convenience init(
        _ name: String, most: Int, linger: Duration? = nil, run: @escaping @Sendable (Piece) -> Void
    ) {
        self.init(name, most: most, linger: linger, startThread: Linux.startThread, run: run)
    }

    init(
        _ name: String, most: Int, linger: Duration?, startThread: @escaping StartThread,
        run: @escaping @Sendable (Piece) -> Void
    ) {
        self.name = name
        self.startThread = startThread
        self.most = most
        self.linger = linger
        self.run = run
        state = ConditionLock(State())
    }

    /// Starts a thread before there is work, so that there is always one. For pools whose threads stay.
    package func begin() throws(SystemError) {
        state.withLock { $0.threads += 1 }
        do { try startThread(name) { self.work() } } catch {
            state.withLock { $0.threads -= 1 }
            throw error
        }
    }

    /// Never waits. When the kernel gives no thread at all, the caller's thread does the work until the queue is empty:
    /// even then, with `most` 1, no two pieces run at once.
    package func add(_ piece: sending Piece) {
        let needsThread = state.change { state in
            state.waiting.append(piece)
            // Each waiting thread takes one of the queued pieces.
            guard state.waiting.count > state.idle, state.threads < most else { return false }
            state.threads += 1
            return true
        }
        guard needsThread else { return }
        do { try startThread(name) { self.work() } } catch {
            while let orphan = dequeueForMissingThread() { run(orphan) }
        }
    }

    /// A piece for a caller that replaces a missing thread; `nil` when other threads will do the rest.
    private func dequeueForMissingThread() -> Piece? {
        state.withLock { state in
            let orphan = state.threads == 1 ? state.waiting.popFirst() : nil
            if orphan == nil { state.threads -= 1 }
            return orphan
        }
    }

    /// Lets the threads end when the queue is empty. No piece may be added afterwards.
    package func close() { state.changeForAll { $0.isClosed = true } }

    private func work() {
        while case .piece(let piece) = next() { run(piece) }
    }

    private enum Next {
        case piece(Piece)
        case leave
    }

    private func next() -> Next {
        var isIdle = false
        let condition: (inout State) -> Next? = { state in
            let piece = state.waiting.popFirst()
            let waits = piece == nil && !state.isClosed
            if waits != isIdle {
                isIdle = waits
                state.idle += waits ? 1 : -1
            }
            if let piece { return .piece(piece) }
            guard state.isClosed else { return nil }
            state.threads -= 1
            return .leave
        }
        guard let linger else { return state.wait(condition) }
        if let answer = state.wait(atMost: linger, condition) { return answer }
        // A piece may have come between the last check and this one.
        return state.withLock { state in
            if let answer = condition(&state) { return answer }
            state.idle -= 1
            state.threads -= 1
            return .leave
        }
    }
}
