internal import Core
internal import Egress
internal import Synchronization

/// Decides about the connections of one run of a program, and carries them.
final class ProgramGate: EgressGate {
    private struct State {
        var running = 0
        var cost = Spending.none
        var hold: Hold?
        var waiting: CheckedContinuation<Void, Never>?
    }

    let payer: ProgramPayer
    private let connections: ProgramConnections
    private let state = Mutex(State())

    init(payer: ProgramPayer, connections: ProgramConnections) {
        self.payer = payer
        self.connections = connections
    }

    func carry(_ connection: EgressConnection) async {
        state.withLock { $0.running += 1 }
        let end = await connections.carry(connection, for: payer)
        let waiting = state.withLock { state in
            state.cost += end.cost
            state.hold = end.hold ?? state.hold
            state.running -= 1
            if state.running > 0 { return CheckedContinuation<Void, Never>?.none }
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume()
    }

    /// Returns when all connections have ended and are recorded, with what they cost, and the hold that refused or stopped
    /// one of them.
    func finished() async -> (cost: Spending, hold: Hold?) {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.running > 0 { state.waiting = continuation }
                return state.running == 0
            }
            if isOver { continuation.resume() }
        }
        return state.withLock { ($0.cost, $0.hold) }
    }
}
