internal import Core
internal import Transport

/// How much of a file may be at the remote, computed from the bytes that left this machine, independently of the
/// remote's answers.
///
/// There are two bounds, as in ``DeliveryBounds`` for one request. They are kept in the checkpoint. **Before** its first byte
/// leaves, a request is entered with its end; once it has ended, it is entered with the exact figures. So a process
/// that is killed inside a request leaves the end of that request in the checkpoint, and every other process the true
/// count.
struct SentBounds: Sendable {
    /// The size of the file.
    private let size: Int64
    private(set) var reach: Int64
    private(set) var mayBeWhole: Bool
    private(set) var isDelivered: Bool
    /// The bounds before the request that is entered now.
    private var before: (reach: Int64, mayBeWhole: Bool)?

    /// - Parameter checkpoint: If it names an upload and has no `reach`, it was made by a version that kept none: any
    ///   byte may have left.
    init(_ checkpoint: OffsetCheckpoint, size: Int64) {
        self.size = size
        let stored = checkpoint.reach.map { min(max($0, 0), size) }
        reach = stored ?? (checkpoint.url == nil ? 0 : size)
        mayBeWhole = checkpoint.mayBeWhole
        isDelivered = checkpoint.isDelivered
    }

    /// `reach` without the request that is entered now.
    var reachBefore: Int64 { before?.reach ?? reach }

    func store(in checkpoint: inout OffsetCheckpoint) {
        checkpoint.reach = reach
        checkpoint.mayBeWhole = mayBeWhole
        checkpoint.isDelivered = isDelivered
    }

    /// Enters a request that will carry bytes up to `end`.
    ///
    /// - Returns: Whether that has to be durable first.
    mutating func enter(to end: Int64) -> Bool {
        let old = (reach, mayBeWhole)
        if before == nil { before = (reach, mayBeWhole) }
        reach = max(reach, end)
        if end == size { mayBeWhole = true }
        return (reach, mayBeWhole) != old
    }

    /// Withdraws the request that was entered and not sent.
    ///
    /// - Returns: Whether that changes the stored bounds.
    mutating func withdraw() -> Bool {
        guard let before else { return false }
        let old = (reach, mayBeWhole)
        (reach, mayBeWhole) = before
        self.before = nil
        return (reach, mayBeWhole) != old
    }

    /// Records the end of the request that was entered, successful or not.
    mutating func ended(from offset: Int64, _ delivery: DeliveryBounds) {
        _ = withdraw()
        let most = min(size, offset + max(0, delivery.atMost))
        reach = max(reach, most)
        if most == size { mayBeWhole = true }
        if offset + delivery.atLeast >= size { isDelivered = true }
    }

    /// Records that the remote has these bytes from elsewhere, as it said when the upload was created. No offset is too
    /// large then.
    mutating func recordComplete() { reach = size }

    /// Records that the remote says that it lacks bytes.
    mutating func recordMissing() {
        mayBeWhole = false
        isDelivered = false
    }
}
