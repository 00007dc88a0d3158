internal import Core
internal import Store
internal import Synchronization
internal import Transport

/// What one piece of work may still send, and has sent: its page of the ledger.
///
/// Bytes leave only while they are reserved on disk. When little is left, the next step is asked for beside the transfer; when
/// nothing is left, bodies wait, and when there is nothing more to be had the work is told to stop.
final class Account: Sendable {
    private struct State {
        /// Durable, and counted as sent until it is settled.
        var step: ReservedStep?
        /// Since that step was opened.
        var sent: Int64 = 0
        var total: Int64 = 0
        var next: Task<Void, Never>?
        /// No more is to be had.
        var isLast = false
        var onEnd: (@Sendable ((any Error)?) -> Void)?

        /// What may still be sent of what is reserved.
        var left: Int64 { (step?.spending.bytes ?? 0) - sent }
    }

    let key: SpendingAccount
    let kind: QuotaBook.Class
    /// Nobody reserves for it: what it sends stays on this machine.
    let isFree: Bool
    /// A person lets it off its quotas: it counts all the same.
    let isExcused: Bool
    /// Nothing of it goes through a socket of ours: the destination tells what it has sent.
    let countsNotes: Bool
    /// Bodies draw from it: it is open while enough is reserved.
    let gate: Throttle
    /// What it will send, as far as one can tell.
    private let expected: Int64
    private let ledger: Ledger
    private let counted: SentBytes
    private let state: Mutex<State>

    /// What may be on its way when bodies are told to wait: the socket's unsent 128 KiB, the library's buffer, and what was not
    /// charged yet.
    static let margin: Int64 = 256 << 10
    /// Without a body: header lines, the handshake, and what the server's answer costs.
    static let request: Int64 = 16 << 10

    /// - Parameter size: Of what is to be sent; 0 for mere questions.
    init(
        _ key: SpendingAccount, _ kind: QuotaBook.Class, size: Int64 = 0, step: ReservedStep?, isExcused: Bool = false,
        isFree: Bool, countsNotes: Bool = false, in ledger: Ledger
    ) {
        self.key = key
        self.kind = kind
        expected = Self.expected(size)
        self.isFree = isFree
        self.isExcused = isExcused
        self.countsNotes = countsNotes
        self.ledger = ledger
        counted = ledger.counters.sent(key)
        gate = Throttle(clocks: ledger.clocks)
        state = Mutex(State(step: step))
    }

    /// What a file of this size takes, with all that carries it.
    static func expected(_ size: Int64) -> Int64 { size + size / 16 + 4 * request }

    /// Bytes that it has sent in all.
    var total: Int64 { state.withLock { $0.total } }

    /// What ends the work when nothing more may be sent, or nothing more could be reserved.
    func whenOver(_ end: @escaping @Sendable ((any Error)?) -> Void) { state.withLock { $0.onEnd = end } }

    /// Takes note of bytes that have left. From any thread; cheap.
    func spend(_ bytes: Int64) {
        counted.add(bytes)
        let isOver = state.withLock { state -> Bool in
            state.sent += bytes
            state.total += bytes
            if isFree { return false }
            let isLow = state.left < Self.margin
            if isLow { gate.rate = 0 }
            // The whole of a small file is reserved at first.
            if isLow || state.left < min(Ledger.step / 4, expected - state.total) { askForMore(&state) }
            return isLow && state.isLast
        }
        if isOver { end(nil) }
    }

    /// Returns when there is enough for a request.
    ///
    /// - Throws: `CancellationError` when there is nothing more to be had, after the work was told to stop.
    func prepare(for body: Int64) async throws {
        if isFree { return }
        let wanted = Self.request + (body > 0 ? Self.margin : 0)
        while true {
            let (isEnough, isLast, next) = state.withLock { state in
                let isEnough = state.left >= wanted
                if !isEnough { askForMore(&state) }
                return (isEnough, state.isLast, state.next)
            }
            if isEnough { return }
            if isLast {
                end(nil)
                throw CancellationError()
            }
            await next?.value
        }
    }

    private func end(_ error: (any Error)?) { state.withLock { $0.onEnd }?(error) }

    private func askForMore(_ state: inout State) {
        guard state.next == nil, !state.isLast else { return }
        state.next = Task { await self.takeMore() }
    }

    private func takeMore() async {
        let (step, sent, left) = state.withLock { ($0.step, $0.sent, $0.left) }
        // No more than it is going to need.
        let wanted = min(Ledger.step, max(expected - total, 0) + Self.margin) - max(0, left)
        var failure: (any Error)?
        var more: ReservedStep?
        do { more = try await ledger.more(for: self, after: step, sent, max(wanted, Self.margin)) } catch {
            failure = error
        }
        let isOver = state.withLock { state -> Bool in
            state.next = nil
            if let more {
                state.step = more
                state.sent -= sent
                if state.left >= Self.margin { gate.rate = nil } else { askForMore(&state) }
                return false
            }
            state.isLast = true
            return failure != nil || state.left < Self.margin
        }
        if isOver { end(failure) }
    }

    /// What is to be entered when the work is over. To be called once, when nothing is sent any more.
    ///
    /// - Parameter files: That have arrived.
    func closing(files: Int64) async -> Payment? {
        await state.withLock { $0.next }?.value
        let (step, sent) = state.withLock { state in
            defer { state.step = nil }
            return (state.step, state.sent)
        }
        if let step { return Payment(settling: step, Spending(bytes: sent, files: files)) }
        return sent > 0 || files > 0 ? Payment(key, Spending(bytes: sent, files: files)) : nil
    }
}
