package import Core
package import Linux
internal import Synchronization

/// A proxy on 127.0.0.1 for programs that open sockets of their own: HTTP `CONNECT`, requests with an absolute address, and
/// SOCKS version 5 with names. Policy decides about each connection, and every byte is counted at the outer socket.
///
/// It listens, on a port that the kernel chooses, only while a lease exists. TLS passes through it and is never opened.
package final class EgressProxy: Sendable {
    private struct State {
        var loop: EgressLoop?
        var isStopped = false
    }

    private let log: Log
    private let clocks: any Clocks
    private let state = Mutex(State())

    package init(clocks: any Clocks, log: Log) {
        self.clocks = clocks
        self.log = log
    }

    deinit { state.withLock { $0.loop }?.stop(nil) }

    /// Gives a program the right to use the proxy.
    ///
    /// - Parameter gate: Decides about each connection.
    /// - Throws: `SystemError` when the proxy cannot listen; `ECANCELED` once it was stopped.
    package func open(
        _ permission: EgressPermission, through gate: any EgressGate
    ) throws(SystemError) -> EgressLease {
        let loop = try state.withLock { state throws(SystemError) in
            if state.isStopped { throw SystemError(call: "listen", subject: "127.0.0.1", code: 125 /* ECANCELED */) }
            if let loop = state.loop, loop.beginUse() { return loop }
            let loop = try EgressLoop(clocks: clocks, log: log)
            state.loop = loop
            return loop
        }
        return EgressLease(permission, through: gate, in: loop)
    }

    /// Whether it listens.
    package var isListening: Bool { state.withLock { $0.loop?.isOver == false } }

    /// Charges running connections with all bytes that have left by now.
    package func charge() async {
        guard let loop = state.withLock({ $0.loop }) else { return }
        await withCheckedContinuation { loop.send(.charge($0)) }
    }

    /// Ends the connections over `interface` abortively. When this returns, nothing is sent over it any more.
    package func close(interface: String) async {
        guard let loop = state.withLock({ $0.loop }) else { return }
        await withCheckedContinuation { loop.send(.close(interface: interface, $0)) }
    }

    /// Ends the connections from addresses that this machine has lost: nothing answers there any more.
    package func removeAddresses(_ addresses: Set<IPAddress>) { state.withLock { $0.loop }?.send(.lose(addresses)) }

    /// Ends all connections abortively. Later leases are refused.
    package func stop() async {
        let loop = state.withLock { state in
            state.isStopped = true
            return state.loop
        }
        await withCheckedContinuation { continuation in
            if let loop { loop.stop(continuation) } else { continuation.resume() }
        }
    }
}
