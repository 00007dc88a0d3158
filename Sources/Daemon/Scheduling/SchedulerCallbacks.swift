internal import Core
internal import Linux

/// Calls of the scheduler to other parts of the daemon.
struct SchedulerCallbacks: Sendable {
    /// Ends all transfers over an interface, and returns when nothing is sent there any more.
    var closeInterface: @Sendable (String) async -> Void = { _ in }
    /// Ends all connections from addresses that the machine has lost.
    var loseAddresses: @Sendable (Set<IPAddress>) -> Void = { _ in }
    /// Requests from `Watch` that a file settles again.
    var reconsiderSource: @Sendable (_ folder: String, _ relative: FilePath) -> Void = { _, _ in }
    /// Lets the next request to a destination read its secret again.
    var renewSecret: @Sendable (_ destination: String) -> Void = { _ in }
}
