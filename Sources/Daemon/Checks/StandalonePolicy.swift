internal import Config
internal import Core
internal import Linux
internal import Staging

extension PolicySnapshot {
    /// The state of policy for a command without a daemon: the configuration, and what the command has found out. No
    /// upload runs, and no quota is counted.
    ///
    /// - Parameters:
    ///   - reaches: The routes to destinations and hooks, as they were inspected.
    ///   - metering: The cost of the networks; `nil` where it is unknown, or where no rule depends on it.
    ///   - facts: Further facts.
    init(
        standalone settings: Settings, _ reaches: [String: Reachability], _ metering: Metering?,
        _ facts: SchedulerFacts = SchedulerFacts(), clocks: any Clocks
    ) {
        var facts = facts
        facts.network.set(metering)
        facts.network.set(reaches, at: clocks.wall())
        self.init(
            RuntimeConfiguration(
                settings: settings, staging: StagingArea(settings.staging), destinations: [:], since: clocks.wall()),
            clocks: clocks, quotas: QuotaState(policy: PolicyRules()), facts: facts)
    }
}
