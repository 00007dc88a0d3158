internal import Config
internal import Core
internal import Linux

/// Finds rules of the configuration that have no effect, which a person may rely on.
struct IneffectiveRules: Sendable {
    let context: Context
    let scheduler: Scheduler
    /// The location of each destination.
    let sites: @Sendable () -> [String: DestinationSite]

    /// Rules without an effect, which a person may rely on.
    func all() async -> [(destination: String, words: String)] {
        var all: [(destination: String, words: String)] = []
        let sites = sites()
        for destination in context.settings.destinations {
            guard let site = sites[destination.name],
                let reachability = await scheduler.facts.network.routes[destination.name]?.reachability
            else { continue }
            all += destination.policy.rules.withoutEffect(at: site, reachability).map { (destination.name, $0) }
        }
        return all
    }
}
