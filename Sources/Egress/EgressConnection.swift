package import Core
package import Transport

/// The way of one connection, and who pays for it.
package struct EgressRoute: Sendable {
    /// In the order in which they are tried; none of them belongs to this machine.
    package var addresses: [IPAddress]
    /// The only interface to use; `nil` where any may be used.
    package var interface: String?
    /// The bytes of both directions draw from all of these.
    package var throttles: [Throttle]
    /// Called with the further bytes that were sent on the wire. Runs on the proxy's thread: must be cheap.
    package var onWire: @Sendable (Int64) -> Void
    /// The same for received bytes.
    package var onArrived: @Sendable (Int64) -> Void

    package init(
        addresses: [IPAddress], interface: String?, throttles: [Throttle], onWire: @escaping @Sendable (Int64) -> Void,
        onArrived: @escaping @Sendable (Int64) -> Void
    ) {
        self.addresses = addresses
        self.interface = interface
        self.throttles = throttles
        self.onWire = onWire
        self.onArrived = onArrived
    }
}

/// How a connection has ended.
package enum EgressEnd: Hashable, Sendable {
    /// Both ends closed it.
    case closed
    /// It was broken by one of them.
    case broken
    /// No server could be reached; contains the reason.
    case unreachable(String)
    /// It was stopped, or its lease has ended.
    case stopped
}

/// The request of a program to connect to a server. It was authenticated, and its lease includes the server.
package final class EgressConnection: Sendable {
    package let target: EgressTarget
    private let number: Int
    private let loop: EgressLoop

    init(_ target: EgressTarget, number: Int, in loop: EgressLoop) {
        self.target = target
        self.number = number
        self.loop = loop
    }

    /// Tells the program why, and closes the connection.
    package func refuse(_ refusal: EgressRefusal) { loop.send(.refuse(number, refusal)) }

    /// Connects to the server, and carries bytes until either side has closed. When the task is cancelled, both sides are
    /// closed abortively at once, and nothing is sent any more when this returns.
    package func relay(_ route: EgressRoute) async -> EgressEnd {
        await withTaskCancellationHandler {
            await withCheckedContinuation { loop.send(.relay(number, route, $0)) }
        } onCancel: {
            stop()
        }
    }

    /// Closes both sides abortively.
    package func stop() { loop.send(.stop(number)) }
}
