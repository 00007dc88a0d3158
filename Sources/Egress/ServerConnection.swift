internal import Core
internal import Linux
internal import Transport

/// The connection of one relay to its server: the addresses are tried one after the other, and each byte is charged by the
/// kernel's counters. Used on the loop's thread.
final class ServerConnection {
    let target: EgressTarget
    let route: EgressRoute
    private(set) var socket: StreamSocket?
    private(set) var isConnected = false
    /// When the present attempt ends; `nil` once it is connected.
    private(set) var deadline: ContinuousClock.Instant?
    private(set) var countedAt = ContinuousClock.now
    private var addresses: ArraySlice<IPAddress>
    private var lastError = "it has no address"
    private var meter: ConnectionCharge?
    /// Payload that was carried since the last charge, for kernels that do not count.
    private var carried: Spending = .none

    private static let connectLimit: Duration = .seconds(30)
    /// How long sent bytes may stay unacknowledged.
    private static let stallLimit: Duration = .seconds(60)

    init(to target: EgressTarget, over route: EgressRoute) {
        (self.target, self.route) = (target, route)
        addresses = route.addresses[...]
    }

    /// Continues to connect.
    ///
    /// - Returns: The reason when no address is left; `nil` while one is tried, or when it is connected.
    func connect() -> String? {
        if isConnected { return nil }
        if let socket {
            let code = socket.connectError
            if code == 0 {
                isConnected = socket.isConnected
                if isConnected { deadline = nil }
                return nil
            }
            abandon(SystemError(call: "connect", subject: "", code: code).reason)
        }
        while let address = addresses.popFirst() {
            do throws(SystemError) {
                if let interface = route.interface,
                    try !RouteCandidates.leads(interface, to: address, port: target.port)
                {
                    lastError = "the route to \(address) does not use \(interface), and no other one may be used"
                    continue
                }
                meter = ConnectionCharge(to: address, port: target.port, over: route.interface)
                socket = try StreamSocket.connecting(
                    to: address, port: target.port, over: route.interface, timeout: Self.stallLimit)
                deadline = .now + Self.connectLimit
                return nil
            } catch { lastError = "\(address): \(error.reason)" }
        }
        return "cannot connect to \(target): \(lastError)"
    }

    /// The present attempt has taken too long: the next address is tried.
    func expire() { abandon("there was no answer within \(Self.connectLimit.inSeconds) s") }

    private func abandon(_ reason: String) {
        lastError = reason
        socket?.resetOnClose()
        charge(at: .reset)
        (socket, meter, deadline) = (nil, nil, nil)
    }

    /// Records payload, for kernels that do not count.
    func carried(sent: Int = 0, received: Int = 0) {
        carried.bytes += Int64(sent)
        carried.received += Int64(received)
    }

    /// Charges the bytes that have left and arrived since the last call.
    func charge(at end: SocketCounts.End? = nil) {
        countedAt = .now
        guard let socket, meter != nil else { return }
        var spending = carried
        if let counts = socket.counts {
            spending = meter?.charge(counts, at: end) ?? .none
        } else {
            // Kernels before 4.19 do not count: a sixteenth for headers, as for requests.
            let headers = (spending.bytes + spending.received) / 16
            spending.bytes += headers
            spending.received += headers
        }
        carried = .none
        if spending.bytes > 0 { route.onWire(spending.bytes) }
        if spending.received > 0 { route.onArrived(spending.received) }
    }

    /// Closes it, after its bytes were charged.
    func close(abruptly: Bool) {
        if abruptly { socket?.resetOnClose() }
        charge(at: abruptly ? .reset : .orderly)
        socket = nil
    }
}
