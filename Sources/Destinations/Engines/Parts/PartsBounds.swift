internal import Core
internal import Transport

/// Which parts of a file may be at the remote, computed from the bytes that left this machine, independently of the
/// remote's answers: ``SentBounds`` for a file that is sent in parts.
struct PartsBounds: Sendable {
    private let tracksReach: Bool
    private(set) var mayBeWhole: Bool
    private(set) var isDelivered: Bool
    /// Parts that may have left as a whole.
    private var mayBeThere: Set<Int>
    /// Parts in ``mayBeThere`` that the other end of the connection has acknowledged as a whole.
    private var delivered: Set<Int> = []
    /// Parts that are entered now and were not among ``mayBeThere`` before.
    private var entered: Set<Int> = []

    /// - Parameters:
    ///   - count: Number of parts of the file.
    ///   - tracksReach: A list of the remote is compared with the parts that may have left.
    init(_ checkpoint: PartsCheckpoint, count: Int, tracksReach: Bool) {
        self.tracksReach = tracksReach
        mayBeWhole = checkpoint.mayBeWhole
        isDelivered = checkpoint.isDelivered
        let stored = checkpoint.reach ?? (checkpoint.isBegun ? count : 0)
        mayBeThere = mayBeWhole ? Set(0..<count) : tracksReach ? Set(0..<min(max(stored, 0), count)) : []
    }

    var reach: Int { (mayBeThere.max() ?? -1) + 1 }

    func store(in checkpoint: inout PartsCheckpoint) {
        checkpoint.mayBeWhole = mayBeWhole
        checkpoint.isDelivered = isDelivered
        checkpoint.reach = tracksReach ? reach : nil
    }

    /// Whether the remote can have the part, by the bytes that left here.
    func mayHaveLeft(_ index: Int) -> Bool { !tracksReach || mayBeThere.contains(index) }

    /// Enters a part that is about to leave.
    ///
    /// - Parameter isLast: Nothing is missing when it and the parts in flight have arrived.
    /// - Returns: Whether that has to be durable first.
    mutating func enter(_ index: Int, isLast: Bool) -> Bool {
        let old = (reach, mayBeWhole)
        if mayBeThere.insert(index).inserted { entered.insert(index) }
        if isLast { mayBeWhole = true }
        return mayBeWhole != old.1 || tracksReach && reach != old.0
    }

    /// Records that a part in flight has ended without being accepted.
    ///
    /// - Parameters:
    ///   - isRefused: The remote has said that it did not accept it, so there may be no complete file. Some remotes
    ///     keep parts that they refuse, so the part may be there nevertheless.
    ///   - missing: Number of parts that the remote has not acknowledged, including this one.
    /// - Returns: Whether that changes the stored bounds.
    mutating func ended(_ part: PartPlan.Part, _ delivery: DeliveryBounds, isRefused: Bool, missing: [Int]) -> Bool {
        let old = (reach, mayBeWhole, isDelivered)
        let wasNew = entered.remove(part.index) != nil
        if delivery.atMost < part.length {
            if wasNew { mayBeThere.remove(part.index) }
        } else if delivery.atLeast >= part.length, !isRefused {
            delivered.insert(part.index)
        }
        if isRefused || !missing.allSatisfy(mayBeThere.contains) { mayBeWhole = false }
        isDelivered = mayBeWhole && missing.allSatisfy(delivered.contains)
        return (reach, mayBeWhole, isDelivered) != old
    }

    /// Records that the remote has accepted the part.
    mutating func accepted(_ index: Int) {
        mayBeThere.insert(index)
        entered.remove(index)
    }

    /// Records that the remote says that parts are missing.
    mutating func recordMissing() {
        mayBeWhole = false
        isDelivered = false
    }
}
