internal import Config
internal import Core
internal import Names
internal import Synchronization
internal import Transport

/// The permission of one transfer, as granted by policy: interface, limits, account. Every request in its task uses it.
struct TransferPermit: Sendable {
    /// Limits that apply together: each byte of a body is drawn from all of them.
    var throttles: [Throttle]
    /// The only interface to use; `nil` where any may be used.
    var interface: String?
    /// The permitted DNS servers at the moment; `nil` if any is permitted.
    var nameServers: (@Sendable () -> NameServers?)?
    /// The account that its bytes are charged to; one of ``accounts`` for uploads.
    var account: QuotaAccount?
    /// By the ids of uploads.
    var accounts: [String: QuotaAccount] = [:]
    /// Stops the transfer, which then starts again: its local address is gone.
    var onAddressLost: (@Sendable () -> Void)?

    /// For requests of a person who has seen their possible cost.
    static let byHand = TransferPermit(throttles: [], isByHand: true)
    private(set) var isByHand = false
    /// Counts the bytes of requests of commands, and their answers.
    var meter: TrafficCounter?

    @TaskLocal static var current: TransferPermit?

    /// Charges the requests of one of several uploads to its own account.
    static func paying<R>(for id: String, _ body: () async throws -> R) async rethrows -> R {
        guard var permit = current, let account = permit.accounts[id] else { return try await body() }
        permit.account = account
        return try await $current.withValue(permit) { try await body() }
    }
}

/// Sends every request of every destination with the permission of the task that makes it.
struct PermittedTransport: Transporting {
    let transport: any Transporting

    func send(_ request: Request) async throws(TransportError) -> Response {
        // A request without permission is a mistake in this program.
        guard let permit = TransferPermit.current else {
            throw TransportError(
                kind: .interface, detail: "no transfer permit was given for this request, so it was not sent",
                url: request.url)
        }
        var request = request
        // Requests within this machine are not bound to an interface: a helper of the destination may run here.
        request.interface = WebAddress(request.url).isLoopback ? nil : permit.interface
        if !WebAddress(request.url).isLoopback { request.nameServers = permit.nameServers?() }
        request.throttles += permit.throttles
        request.onAddressLost = permit.onAddressLost
        guard let account = permit.account else {
            guard permit.isByHand else {
                throw TransportError(
                    kind: .interface, detail: "no transfer permit covers the bytes of this request, so it was not sent",
                    url: request.url)
            }
            permit.meter?.count(&request)
            return try await transport.send(request)
        }
        do { try await account.prepare(for: request.body.count ?? 0) } catch {
            throw TransportError(kind: .cancelled, detail: "a quota is used up", url: request.url)
        }
        defer { account.ended() }
        request.throttles.append(account.gate)
        let tell = request.onWire
        request.onWire = { bytes in
            account.spend(bytes)
            tell?(bytes)
        }
        request.onArrived = account.receive
        return try await transport.send(request)
    }

    var rate: Int64? { TransferPermit.current?.throttles.compactMap(\.rate).min() }

    func allowance(for count: Int64) -> Int64 { TransferPermit.current?.account?.allowance(for: count) ?? count }
    func reserve(for count: Int64) -> Shortage? { TransferPermit.current?.account?.reserve(for: count) }
    func returnReservation(for count: Int64, sent: Int64) {
        TransferPermit.current?.account?.returnReservation(for: count, sent: sent)
    }
}

/// The limits in bytes a second: one for all transfers, one for each destination and each folder.
final class BandwidthLimiter: Sendable {
    private struct Limits {
        var destinations: [String: Throttle] = [:]
        var folders: [String: Throttle] = [:]
        /// Limits over metered networks, by their places in the configuration.
        var metered: [String: Throttle] = [:]
    }

    private let nameServers = Mutex<[String: NameServers]>([:])
    private let everything: Throttle
    private let limits = Mutex(Limits())
    private let clocks: any Clocks

    init(clocks: any Clocks) {
        self.clocks = clocks
        everything = Throttle(clocks: clocks)
    }

    /// - Parameter servers: The permitted DNS servers of each destination at the moment.
    func set(nameServers servers: [String: NameServers]) { nameServers.withLock { $0 = servers } }

    /// A permission without any rate limit.
    func unthrottledPermit(to destination: String, _ route: Admission.Route) -> TransferPermit {
        var permit = TransferPermit(throttles: [], interface: route.interface)
        permit.nameServers = { [weak self] in self?.nameServers.withLock { $0[destination] } }
        return permit
    }

    /// - Parameter folder: `nil` for requests that belong to no file.
    func permit(to destination: String, from folder: String?, _ route: Admission.Route) -> TransferPermit {
        limits.withLock { limits in
            var throttles = [everything, throttle(destination, &limits.destinations)]
            if let folder { throttles.append(throttle(folder, &limits.folders)) }
            if route.countsAsMetered {
                let places = ["policy", "destinations.\(destination)"] + (folder.map { ["folder \($0)"] } ?? [])
                throttles += places.map { throttle($0, &limits.metered) }
            }
            var permit = unthrottledPermit(to: destination, route)
            permit.throttles = throttles
            return permit
        }
    }

    private func throttle(_ name: String, _ all: inout [String: Throttle]) -> Throttle {
        if let known = all[name] { return known }
        let made = Throttle(clocks: clocks)
        all[name] = made
        return made
    }

    /// Sets the present limits of the policy, in bytes a second; they apply at once to running transfers.
    func set(
        everything: Int64?, destinations: [String: Int64?], folders: [String: Int64?], metered: [String: Int64?]
    ) {
        Self.set(self.everything, everything)
        limits.withLock { limits in
            for (name, rate) in metered { Self.set(throttle(name, &limits.metered), rate) }
            for (name, rate) in destinations { Self.set(throttle(name, &limits.destinations), rate) }
            for (name, rate) in folders { Self.set(throttle(name, &limits.folders), rate) }
        }
    }

    /// Sets the present limits of the policy.
    func apply(_ snapshot: PolicySnapshot) {
        let (settings, inputs) = (snapshot.settings, snapshot.inputs)
        func limits(_ all: [(name: String, rules: PolicyRules)]) -> [String: Int64?] {
            Dictionary(all.map { ($0.name, $0.rules.limit(in: inputs)) }, uniquingKeysWith: { $1 })
        }
        let personal = snapshot.overrides.rateLimit(at: inputs.now)
        set(
            everything: [settings.policy.rules.limit(in: inputs), personal].compactMap { $0 }.min(),
            destinations: limits(settings.destinations.map { ($0.name, $0.policy.rules) }),
            folders: limits(settings.folders.map { ($0.watch.name, $0.policy.rules) }),
            metered: settings.meteredLimits)
    }

    /// In bytes a second; `nil` for no limit.
    var rate: Int64? { everything.rate }
    func rate(ofDestination name: String) -> Int64? { limits.withLock { $0.destinations[name]?.rate } }
    func rate(ofFolder name: String) -> Int64? { limits.withLock { $0.folders[name]?.rate } }

    /// Setting the same rate again would wake all transfers that wait for it.
    private static func set(_ throttle: Throttle, _ rate: Int64?) { if throttle.rate != rate { throttle.rate = rate } }
}
