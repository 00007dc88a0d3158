// The views of `routes`.

/// The ways to all destinations.
package struct RoutesView: Codable, Sendable, Hashable {
    /// In the order of the configuration.
    package var destinations: [DestinationRoutesView]

    package init(destinations: [DestinationRoutesView]) { self.destinations = destinations }
}

/// The ways to one destination, for files of all folders.
package struct DestinationRoutesView: Codable, Sendable, Hashable {
    package var destination: String
    /// The way that uploads use or would use; absent where nothing leaves this machine, and where no way may be used.
    package var way: RouteView?
    /// The ways that are not used, each with the reason; absent where there is no other.
    package var otherWays: [RouteView]?

    package init(destination: String, way: RouteView?, otherWays: [RouteView]?) {
        self.destination = destination
        self.way = way
        self.otherWays = otherWays
    }
}
