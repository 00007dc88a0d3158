package import Core
internal import Synchronization

/// Listens to what NetworkManager and ModemManager say of the network, over the system's D-Bus.
///
/// One thread and one connection, only while ``run(_:)`` is under way. It sleeps in the kernel until a signal comes that
/// matters, and where there is no bus until there is one. Nothing is started by being asked (`NO_AUTO_START`).
package final class ManagerNews: Sendable {
    /// Where the bus is when nobody says: `$DBUS_SYSTEM_BUS_ADDRESS`, else `/run/dbus/system_bus_socket`.
    package static var systemBus: String { BusAddress.ofSystem }

    private let address: String
    private let backoff: Backoff
    private let patience: Duration
    private let hearsWiFi: Bool
    private let orders = Mutex(Orders())
    private let bell: Bell

    struct Orders {
        var mustStop = false
        var looksAgain = false
    }

    /// - Parameters:
    ///   - address: As D-Bus writes it: `unix:path=…`.
    ///   - backoff: Between attempts at a bus that refuses, goes or talks nonsense, and at a service that does not answer. Where
    ///     there is no socket, there are no attempts until there is one.
    ///   - patience: How long an answer may take.
    ///   - hearsWiFi: Asks also for the names of all Wi-Fis within reach.
    package init(
        address: String = ManagerNews.systemBus,
        backoff: Backoff = Backoff(first: .milliseconds(250), ceiling: .seconds(600)),
        patience: Duration = .seconds(10),
        hearsWiFi: Bool = false
    ) throws(SystemError) {
        self.address = address
        self.backoff = backoff
        self.patience = patience
        self.hearsWiFi = hearsWiFi
        bell = try Bell()
    }

    /// Listens until ``stop()`` or until the task is cancelled; thread, connection and subscriptions are gone then. To be
    /// called once.
    ///
    /// - Parameter changed: Called with each report that differs from the last; first with what there is when both services
    ///   have answered, or with nothing known when they or the bus are not there. On the listening thread: it must not wait.
    /// - Throws: ``SystemError`` when there is no thread to be had.
    package func run(_ changed: @escaping @Sendable (NetworkReport) -> Void) async throws {
        try await withTaskCancellationHandler {
            try await onLongThread(named: "sluice-bus") { [self] in
                NetworkListener(
                    addresses: BusAddress.parse(address), named: address, backoff: backoff, patience: patience,
                    hearsWiFi: hearsWiFi, changed: changed
                ).listen(bell) { [self] in
                    orders.withLock { orders in
                        defer { orders.looksAgain = false }
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

    /// Asks both services for everything again. For news that come another way: that a link has come up.
    package func lookAgain() { order { $0.looksAgain = true } }

    private func order(_ change: (inout Orders) -> Void) {
        orders.withLock { change(&$0) }
        bell.ring()
    }
}
