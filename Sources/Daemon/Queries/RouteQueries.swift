internal import API
internal import Core

/// Answers by which ways uploads reach their destinations.
struct RouteQueries: Sendable {
    let context: Context
    let scheduler: Scheduler

    /// Sends nothing: a page that is open asks again and again.
    func routes() async -> RoutesView {
        let choices = await scheduler.snapshot.explainedRoutes(context.configuration.sites, looksUpNames: false)
        return RoutesView(
            destinations: choices.map { name, choice in
                DestinationRoutesView(
                    destination: name, way: RouteView(choice), otherWays: RouteView.others(choice))
            })
    }
}
