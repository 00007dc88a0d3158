internal import Core
internal import Glibc

/// The listening thread of ``NetworkManagerEvents``: keeps a connection to the bus, and mirrors two services over it.
///
/// A final class, not `Sendable`: that thread owns it.
final class NetworkListener {
    private let addresses: [BusAddress]
    private let named: String
    private let backoff: Backoff
    private let timeout: Duration
    private let changed: (NetworkReport) -> Void
    private let clocks = SystemClocks()

    private var connection: BusConnection?
    /// While there is no connection: reports when there may be a bus.
    private let sockets = PathListener()
    /// Some events may not be reported, so a try is due.
    private var mustTry = false
    /// When to try the bus again; `nil` for not before an event.
    private var retry: MonotonicTime?
    private var failures = 0
    private var connected: MonotonicTime?

    private enum Purpose {
        /// The calls that must succeed before any signal arrives.
        case greeting
        case owner(Int)
        case question(Int, BusQuestion)
    }
    private var pending: [UInt32: (purpose: Purpose, due: MonotonicTime)] = [:]

    private var mirrors: [ServiceMirror]
    /// A running service without a valid answer: its owner, when to ask again, and the number of failures.
    private struct Outage {
        var owner: String?
        var retryAt: MonotonicTime?
        var failures = 0
    }
    private var outages = [Outage(), Outage()]
    /// Services that have answered, or were found missing.
    private var knownServices: Set<Int> = []
    private var report = NetworkReport()
    private var delivered: NetworkReport?

    init(
        addresses: [BusAddress], named: String, backoff: Backoff, timeout: Duration, listsWiFi: Bool,
        changed: @escaping (NetworkReport) -> Void
    ) {
        self.addresses = addresses
        self.named = named
        self.backoff = backoff
        self.timeout = timeout
        self.changed = changed
        mirrors = [ServiceMirror(.networkManager(listsWiFi: listsWiFi)), ServiceMirror(.modemManager)]
    }

    /// Returns when it must stop.
    func listen(_ signal: EventFD, orders: () -> NetworkManagerEvents.Orders) {
        if addresses.isEmpty {
            lose(BusError("$DBUS_SYSTEM_BUS_ADDRESS names no Unix socket: \(printable(named))"))
            retry = nil
        } else {
            connect()
        }
        while true {
            let order = orders()
            if order.mustStop { return }
            if order.mustRecheck {
                for index in mirrors.indices {
                    mirrors[index].invalidateAll()
                    retryService(index)
                }
            }
            sendQuestions()
            deliverReport()
            wait(signal)
            expireCalls()
        }
    }

    // MARK: The bus

    private func connect() {
        retry = nil
        do throws(BusError) {
            do throws(BusError) { connection = try open() } catch {
                // Watches first, and then tries once more, or an event in between would be missed.
                watch()
                connection = try open()
            }
        } catch {
            lose(error)
            return
        }
        stopWatching()
        connected = clocks.monotonic()
        send("Hello", [], for: .greeting)
        for (index, mirror) in mirrors.enumerated() {
            let name = mirror.service.name
            let owner = "sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged'"
            for rule in ["\(owner),arg0='\(name)'"] + mirror.service.matchRules.map({ "sender='\(name)',\($0)" }) {
                send("AddMatch", ["type='signal',\(rule)"], for: .greeting)
            }
            send("GetNameOwner", [name], for: .owner(index))
        }
    }

    /// The first of the addresses that works.
    private func open() throws(BusError) -> BusConnection {
        var failure: BusError?
        for address in addresses {
            do throws(BusError) { return try BusConnection(to: address) } catch {
                if failure == nil || !error.isMissing { failure = error }
            }
        }
        throw failure ?? BusError("no address")
    }

    private func watch() {
        sockets.paths = Set(addresses.compactMap(\.path))
        mustTry = !sockets.watch().isEmpty || addresses.contains { $0.path?.isAbsolute != true }
    }

    private func stopWatching() {
        sockets.paths = []
        _ = sockets.watch()
    }

    /// Handles a missing or closed bus.
    private func lose(_ error: BusError) {
        if let connected, clocks.monotonic().since(connected) > backoff.ceiling { failures = 0 }
        (connection, connected, pending) = (nil, nil, [:])
        for index in mirrors.indices {
            mirrors[index].forget()
            outages[index] = Outage()
            markGone(index)
        }
        report.trouble = "D-Bus: \(error)"
        failures += 1
        if sockets.paths.isEmpty { watch() }
        if !error.isMissing || mustTry {
            retry = clocks.monotonic().advanced(by: backoff.wait(afterFailures: failures, jitter: Random.jitter()))
        }
    }

    private func send(_ member: String, _ arguments: [String], for purpose: Purpose) {
        let bus = "org.freedesktop.DBus"
        send(
            .init(
                destination: bus, path: "/org/freedesktop/DBus", interface: bus, member: member, arguments: arguments),
            for: purpose)
    }

    private func send(_ call: BusMessage.Call, for purpose: Purpose) {
        guard let connection else { return }
        pending[connection.send(call)] = (purpose, clocks.monotonic().advanced(by: timeout))
    }

    // MARK: Waiting

    private func wait(_ signal: EventFD) {
        let bus = connection?.pollDescriptor ?? pollfd(fd: -1, events: 0, revents: 0)
        let due = [retry, pending.values.map(\.due).min()] + outages.map(\.retryAt)
        let longest = due.compactMap { $0 }.min().map { max(.zero, $0.since(clocks.monotonic())) }
        let ready = signal.wait(or: [bus] + sockets.pollDescriptors, longest: longest)
        sockets.handle(ready[1...2])
        if let connection {
            if ready[0].revents != 0 { receive(from: connection) }
        } else if sockets.hasEvents || sockets.mountsChanged || isOver(retry) {
            connect()
        }
    }

    private func isOver(_ time: MonotonicTime?) -> Bool { time.map { $0 <= clocks.monotonic() } ?? false }

    /// Ends calls that have taken too long.
    private func expireCalls() {
        for (serial, waiting) in pending where isOver(waiting.due) {
            pending[serial] = nil
            guard case .question(let index, _) = waiting.purpose else { return lose(BusError("it does not answer")) }
            suspendService(index, because: "it does not answer")
        }
        for index in mirrors.indices where isOver(outages[index].retryAt) { retryService(index) }
    }

    // MARK: Messages

    private func receive(from connection: BusConnection) {
        do throws(BusError) {
            for message in try connection.work() { try receive(message) }
        } catch { lose(error) }
    }

    private func receive(_ message: BusMessage) throws(BusError) {
        switch message.kind {
        case .reply, .failure:
            guard let serial = message.replyTo, let waiting = pending[serial] else { return }
            try handle(message, for: waiting.purpose, serial: serial)
        case .signal:
            if message.sender == "org.freedesktop.DBus" {
                if message.member == "NameOwnerChanged" { changeOwner(message) }
                return
            }
            guard let path = message.path else { return }
            for index in mirrors.indices where mirrors[index].owner == message.sender {
                mirrors[index].invalidate(about: path)
            }
        case .call: break  // no object here can be called
        }
    }

    private func handle(_ message: BusMessage, for purpose: Purpose, serial: UInt32) throws(BusError) {
        switch purpose {
        case .greeting, .owner:
            guard message.sender == "org.freedesktop.DBus" else { return }
        case .question(let index, _):
            guard message.sender == mirrors[index].owner || message.sender == "org.freedesktop.DBus" else { return }
        }
        pending[serial] = nil
        // A name has at most 255 bytes, if the bus is valid.
        let name = (message.failure ?? "an error without a name").prefix(255)
        let failure = message.kind == .failure ? printable(String(name)) : nil
        switch purpose {
        case .greeting:
            if let failure { throw BusError("it refuses to send its signals: \(failure)") }
        case .owner(let index):
            // The call has succeeded, so the earlier trouble is over.
            report.trouble = nil
            // An error says that the name has no owner.
            change(index, owner: failure == nil ? message.values?.first?.string : nil)
        case .question(let index, let question):
            if let failure {
                mirrors[index].apply(.refused("it answers \(failure)"), to: question)
            } else if let value = message.values?.first, value.byName != nil || value.byObject != nil {
                mirrors[index].apply(.value(value), to: question)
            } else {
                mirrors[index].apply(.refused("its answer is of the wrong type"), to: question)
            }
        }
    }

    private func changeOwner(_ message: BusMessage) {
        guard let values = message.values, values.count == 3, let name = values[0].string, let new = values[2].string
        else { return }
        for index in mirrors.indices where mirrors[index].service.name == name {
            change(index, owner: new.isEmpty ? nil : new)
        }
    }

    // MARK: The services

    private func change(_ index: Int, owner: String?) {
        guard owner == nil || owner != mirrors[index].owner else { return }
        mirrors[index].change(owner: owner)
        outages[index] = Outage()
        dropQuestions(index)
        if owner == nil { markGone(index) }
    }

    private func dropQuestions(_ index: Int) {
        pending = pending.filter { _, waiting in
            if case .question(index, _) = waiting.purpose { false } else { true }
        }
    }

    /// The last values of a service are kept, and marked as such.
    private func markGone(_ index: Int, trouble: String? = nil) {
        knownServices.insert(index)
        if index == 0 { report.networkManager.markGone(trouble) } else { report.modemManager.markGone(trouble) }
    }

    /// The service runs, and cannot be used for now.
    private func suspendService(_ index: Int, because trouble: String) {
        outages[index].owner = mirrors[index].owner ?? outages[index].owner
        outages[index].failures += 1
        let wait = backoff.wait(afterFailures: outages[index].failures, jitter: Random.jitter())
        outages[index].retryAt = clocks.monotonic().advanced(by: wait)
        mirrors[index].forget()
        dropQuestions(index)
        markGone(index, trouble: trouble)
    }

    private func retryService(_ index: Int) {
        guard outages[index].retryAt != nil, let owner = outages[index].owner else { return }
        outages[index].retryAt = nil
        mirrors[index].change(owner: owner)
    }

    private func sendQuestions() {
        for index in mirrors.indices {
            for question in mirrors[index].nextQuestions() {
                guard let owner = mirrors[index].owner else { break }
                send(question.call(to: owner), for: .question(index, question))
            }
            let mirror = mirrors[index]
            if mirror.isKnown { knownServices.insert(index) }
            guard mirror.isKnown, mirror.owner != nil else { continue }
            if let trouble = mirror.trouble {
                suspendService(index, because: trouble)
                continue
            }
            outages[index] = Outage()
            if index == 0 {
                report.networkManager = BusService.readNetworkManager(mirror).completed(by: report.networkManager)
            } else {
                report.modemManager = BusService.readModemManager(mirror).completed(
                    by: report.modemManager, found: BusService.foundByModemManager(mirror))
            }
        }
    }

    private func deliverReport() {
        guard knownServices.count == mirrors.count, delivered != report else { return }
        delivered = report
        changed(report)
    }
}
