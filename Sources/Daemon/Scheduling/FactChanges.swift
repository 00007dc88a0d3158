/// The work that changed facts in memory have made possible, as ``ChangeSet`` has it for a commit. The owner of a fact
/// records the change, and who waits for it wakes: no other code has to know whom a fact concerns.
struct FactChanges: OptionSet, Hashable, Sendable {
    let rawValue: Int

    /// The scheduler may decide otherwise than before: uploads may be sent, or transfers have to stop.
    static let scheduling = FactChanges(rawValue: 1 << 0)
    /// Remote leftovers may be removed that could not be removed before.
    static let removals = FactChanges(rawValue: 1 << 1)
    /// Notices may be sent that could not be sent before.
    static let notices = FactChanges(rawValue: 1 << 2)
    /// The state cannot be written.
    static let stateFailing = FactChanges(rawValue: 1 << 3)
    /// The state can be written again.
    static let stateWritable = FactChanges(rawValue: 1 << 4)
    /// Other settings are in force.
    static let configuration = FactChanges(rawValue: 1 << 5)
    /// Folders have another state.
    static let folders = FactChanges(rawValue: 1 << 6)
    /// Rules or facts that policy depends on are others: an earlier decision has to be made again. ``SchedulerFacts``
    /// counts it; it wakes no loop.
    static let policy = FactChanges(rawValue: 1 << 7)
    /// Commands that make files to upload may run that could not run before.
    static let exports = FactChanges(rawValue: 1 << 8)
}

/// A value that records what its changes have made possible, until its owner takes that.
protocol RecordsChanges {
    var changes: FactChanges { get set }
}

extension RecordsChanges {
    mutating func takeChanges() -> FactChanges {
        defer { if !changes.isEmpty { changes = [] } }
        return changes
    }
}
