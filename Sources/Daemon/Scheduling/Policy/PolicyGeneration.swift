/// Counts the changes of what policy depends on, as far as the scheduler is told of them. Snapshots of the same generation
/// differ at most in their times, in the work that runs, and in the bytes that were spent.
struct PolicyGeneration: Hashable, Sendable {
    /// Changes of rules and facts: the configuration, pauses, exceptions, networks, power, the clock, busy sources.
    private(set) var changes = 0
    /// Orders to stop transfers. A claim is given back if one came while it was made: the order may have been meant for
    /// its upload, which was not running yet.
    private(set) var stops = 0

    mutating func noteChange() { changes += 1 }
    mutating func noteStop() { stops += 1 }
}
