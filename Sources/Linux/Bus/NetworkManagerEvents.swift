package import Core
internal import Synchronization

/// Listens to NetworkManager and ModemManager over the system's D-Bus.
///
/// Uses one thread and one connection, only while ``run(_:)`` runs. It sleeps in the kernel until a relevant signal
/// comes, or, without a bus, until there is one. Its questions start no service (`NO_AUTO_START`).
package final class NetworkManagerEvents: Sendable {
    /// The default address of the bus: `$DBUS_SYSTEM_BUS_ADDRESS`, or `/run/dbus/system_bus_socket`.
    package static var systemBus: String { BusAddress.ofSystem }

    private let address: String
    private let backoff: Backoff
    private let timeout: Duration
    private let listsWiFi: Bool
    private let orders = Mutex(Orders())
    private let signal: EventFD

    struct Orders {
        var mustStop = false
        var mustRecheck = false
    }

    /// - Parameters:
    ///   - address: In D-Bus's form: `unix:path=…`.
    ///   - backoff: Waits between attempts when a bus refuses, disconnects or sends invalid data, or when a service
    ///     does not answer. Without a socket, there are no attempts until there is one.
    ///   - timeout: Time limit of an answer.
    ///   - listsWiFi: Also asks for the names of all Wi-Fis within reach.
    package init(
        address: String = NetworkManagerEvents.systemBus,
        backoff: Backoff = Backoff(first: .milliseconds(250), ceiling: .seconds(600)),
        timeout: Duration = .seconds(10),
        listsWiFi: Bool = false
    ) throws(SystemError) {
        self.address = address
        self.backoff = backoff
        self.timeout = timeout
        self.listsWiFi = listsWiFi
        signal = try EventFD()
    }

    /// Listens until ``stop()`` or until the task is cancelled; thread, connection and subscriptions are gone then.
    /// Must be called only once.
    ///
    /// - Parameter changed: Called with each report that differs from the last. The first report comes when both
    ///   services have answered, or is empty when they or the bus do not exist. Runs on the listening thread, and must
    ///   not wait.
    /// - Throws: ``SystemError`` when no thread can be started.
    package func run(_ changed: @escaping @Sendable (NetworkReport) -> Void) async throws {
        try await withTaskCancellationHandler {
            try await onLongThread(named: "sluice-bus") { [self] in
                NetworkListener(
                    addresses: BusAddress.parse(address), named: address, backoff: backoff, timeout: timeout,
                    listsWiFi: listsWiFi, changed: changed
                ).listen(signal) { [self] in
                    orders.withLock { orders in
                        defer { orders.mustRecheck = false }
                        return orders
                    }
                }
            }
        } onCancel: {
            stop()
        }
    }

    /// Ends ``run(_:)``, which returns soon after.
    package func stop() { order { $0.mustStop = true } }

    /// Queries both services again completely. Called for events from another source: for example when a link has come
    /// up.
    package func checkAgain() { order { $0.mustRecheck = true } }

    private func order(_ change: (inout Orders) -> Void) {
        orders.withLock { change(&$0) }
        signal.signal()
    }
}
