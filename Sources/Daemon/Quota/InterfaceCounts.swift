internal import Config
internal import Core
internal import Linux
internal import Store

/// Counts, again and again, what other programs send and receive over the interfaces of quotas with `count: interface`.
struct InterfaceCounts: Sendable {
    let context: Context
    let stateHealth: StateHealth
    let ledger: Ledger
    let scheduler: Scheduler
    let signals: WakeUps
    /// Between two readings of the counters: while something is sent that such a quota counts, and otherwise. What
    /// others send meanwhile may exceed the quota.
    private static let (pauseInUse, pause): (Duration, Duration) = (.seconds(1), .seconds(10))

    func run() async throws {
        var last: MonotonicTime?
        // Only in memory: after a restart the first reading is compared with the stored one.
        var comparison: InterfaceComparison?
        while !Task.isCancelled {
            let now = context.clocks.monotonic()
            let pause = ledger.countsInterfacesNow ? Self.pauseInUse : Self.pause
            let isDue = last.map { now.since($0) >= pause } ?? true
            if context.settings.countsInterfaces, isDue {
                do { if try await count(&comparison) { last = now } } catch let error as StoreError {
                    stateHealth.failed(error)
                }
            }
            await signals.counting.wait(atMost: context.settings.countsInterfaces ? pause : nil)
        }
    }

    /// Reads the counters of the interfaces, and enters what others have sent and received since the last time. Until
    /// that succeeds for the first time, quotas of all programs count as used up.
    ///
    /// - Parameter comparison: The last one. A reading that changes nothing writes nothing.
    /// - Returns: Whether it was done; `false` while the networks are unknown.
    private func count(_ comparison: inout InterfaceComparison?) async throws -> Bool {
        guard let links = links(await scheduler.shown()) else { return false }
        let clocks = context.clocks
        let counters: LinkBytes? = try await blocking { LinkBytes(at: clocks.monotonic()) }
        guard let counters else {
            context.log.warning(
                "cannot read the counters of the interfaces (/proc/net/dev), so nothing is sent that a quota with "
                    + "`count: interface` counts")
            return true
        }
        if comparison?.takes(counters, links) == true { return true }
        let isFirst = !ledger.knowsInterfaces
        comparison = try await ledger.enterTraffic(of: counters, links, since: comparison?.counters)
        if isFirst { signals.scheduling.signal() }
        return true
    }

    /// By quota of all programs, the numbers of the interfaces that it counts now; `nil` while the networks are unknown.
    private func links(_ snapshot: PolicySnapshot) -> [QuotaName: Set<Int32>]? {
        guard let metering = snapshot.network.metering else { return nil }
        var gateways: [Int32: HardwareAddress] = [:]
        for case .over(let paths) in snapshot.network.routes.values.map(\.reachability) {
            for path in paths { gateways[path.link] = path.gateway ?? gateways[path.link] }
        }
        let rules = snapshot.settings.policy.rules
        var known = snapshot.inputs.commonFacts
        known.networks = rules.networks.filter { $0.name != nil }
        var links: [QuotaName: Set<Int32>] = [:]
        for quota in rules.quotas where quota.count == .interface {
            guard let name = quota.name, let when = quota.when else { continue }
            links[QuotaName(.policy, name)] = metering.links(described: when, known, gateways: gateways)
        }
        return links
    }
}

extension QuotaState {
    /// Whether a quota of all programs counts the bytes of a class.
    func countsInterfaces(_ kind: Class) -> Bool {
        lines.contains { line in
            line.quota.count == .interface && line.name.map { kind.quotas.contains($0) } ?? false
        }
    }

    /// Those of the quotas of all programs of which more was used and reserved than they allow: others have used what was
    /// reserved.
    var exceededByOthers: Set<QuotaName> {
        let exceeded = lines.filter { line in
            guard line.quota.count == .interface, let limit = line.quota.bytes, let spent = line.spent else {
                return false
            }
            return line.quota.direction.bytes(of: spent + line.reserved) > limit
        }
        return Set(exceeded.compactMap(\.name))
    }
}
