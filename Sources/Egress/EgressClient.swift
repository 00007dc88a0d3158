internal import Glibc
internal import Linux

/// A program that is connected to the proxy. Used on the loop's thread.
final class EgressClient {
    enum State {
        /// It sends its request.
        case asking
        /// The gate decides.
        case deciding(ClientHandshake.Request)
        case relaying
        /// It was refused, and reads why.
        case leaving
    }

    let number: Int
    let socket: StreamSocket
    var state = State.asking
    var handshake = ClientHandshake()
    /// The number of its lease; `nil` while it has shown none.
    var tenant: Int?
    /// The work that its lease is for.
    var name: String?
    var deadline: ContinuousClock.Instant?
    var relay: EgressRelay?
    /// The gate's work for it.
    var decision: Task<Void, Never>?

    init(_ number: Int, _ socket: StreamSocket, deadline: ContinuousClock.Instant) {
        self.number = number
        self.socket = socket
        self.deadline = deadline
    }

    var isAsking: Bool { if case .asking = state { true } else { false } }

    /// The events to wait for. Errors are always reported.
    var interests: [(socket: StreamSocket, events: Int32, isOuter: Bool)] {
        switch state {
        case .asking, .leaving: [(socket, POLLIN, false)]
        case .deciding: [(socket, 0, false)]
        case .relaying: relay?.interests ?? []
        }
    }
}
