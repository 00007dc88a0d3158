internal import Config
internal import Core
internal import Names
internal import Synchronization
internal import Transport

/// The limits in bytes a second: one for all transfers, one for each destination and each folder, and one for each rule
/// whose condition tells uploads apart.
final class BandwidthLimiter: Sendable {
    private struct Limits {
        var destinations: [String: Throttle] = [:]
        var folders: [String: Throttle] = [:]
        var rules: [AppliedRules.Rate: Throttle] = [:]
        var requests: [String: RequestRules] = [:]
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

    /// The DNS servers that may be asked on behalf of a destination, as known whenever it is called.
    func nameServers(for destination: String) -> @Sendable () -> NameServers? {
        { [weak self] in self?.nameServers.withLock { $0[destination] } }
    }

    /// What holds for each request to a destination.
    func requestRules(for destination: String) -> RequestRules {
        limits.withLock { requestRules(destination, &$0) }
    }

    private func requestRules(_ destination: String, _ limits: inout Limits) -> RequestRules {
        if let known = limits.requests[destination] { return known }
        let made = RequestRules(clocks: clocks)
        limits.requests[destination] = made
        return made
    }

    /// The limits that apply together to a transfer.
    ///
    /// - Parameter folder: `nil` for requests that belong to no file.
    func throttles(to destination: String, from folder: String?) -> [Throttle] {
        limits.withLock { limits in
            [everything, throttle(destination, &limits.destinations)]
                + (folder.map { [throttle($0, &limits.folders)] } ?? [])
        }
    }

    /// The limits of the rules that apply to a transfer, as one; see ``update(_:to:)``.
    func throttle(of applied: AppliedRules) -> Throttle { Throttle(members: members(of: applied), clocks: clocks) }

    /// Other rules apply to a running transfer from now on.
    ///
    /// - Parameter throttle: That of the rules which applied until now.
    func update(_ throttle: Throttle, to applied: AppliedRules) { throttle.replaceMembers(members(of: applied)) }

    private func members(of applied: AppliedRules) -> [Throttle] {
        if applied.rates.isEmpty { return [] }
        return limits.withLock { limits in
            applied.rates.sorted { $0.order < $1.order }.map { rate in
                let throttle = self.throttle(rate, &limits.rules)
                Self.set(throttle, rate.rule.limit)
                return throttle
            }
        }
    }

    private func throttle<Key>(_ name: Key, _ all: inout [Key: Throttle]) -> Throttle {
        if let known = all[name] { return known }
        let made = Throttle(clocks: clocks)
        all[name] = made
        return made
    }

    /// Sets the present limits of the policy, in bytes a second; they apply at once to running transfers.
    func set(everything: Int64?, destinations: [String: Int64?], folders: [String: Int64?]) {
        Self.set(self.everything, everything)
        limits.withLock { limits in
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
            folders: limits(settings.folders.map { ($0.watch.name, $0.policy.rules) }))
        let rates = settings.conditionalRates
        for destination in settings.destinations { requestRules(for: destination.name).set(destination.policy) }
        self.limits.withLock { $0.rules = $0.rules.filter { rates.contains($0.key) } }
    }

    /// In bytes a second; `nil` for no limit.
    var rate: Int64? { everything.rate }
    func rate(ofDestination name: String) -> Int64? { limits.withLock { $0.destinations[name]?.rate } }
    func rate(ofFolder name: String) -> Int64? { limits.withLock { $0.folders[name]?.rate } }

    /// Of the limits of rules that apply to some uploads.
    func rate(of rate: AppliedRules.Rate) -> Int64? { limits.withLock { $0.rules[rate]?.rate } }

    /// Setting the same rate again would wake all transfers that wait for it.
    private static func set(_ throttle: Throttle, _ rate: Int64?) { if throttle.rate != rate { throttle.rate = rate } }
}

extension AppliedRules.Rate {
    /// A fixed order of the members of a set.
    fileprivate var order: String { "\(place.words) \(rule.place) \(rule.words)" }
}
