internal import Core
internal import Transport

/// How much of a file may be at the remote by what left this machine, whatever the remote says.
///
/// Two bounds, as ``Delivery`` has them for one request. Kept in the checkpoint, where a request is entered **before** its first byte
/// leaves, by its end; once its end was seen, by what is known exactly. So a process that is killed inside a request leaves the end
/// of that request behind, and every other one the true count.
///
/// | field | means |
/// |---|---|
/// | `reach` | no byte of the file from here on has left, by any request |
/// | `may_be_whole` | the last byte may have left, and the remote has not said since that bytes are missing |
/// | `delivered_whole` | what is at the other end of the connection has acknowledged every byte |
struct SentBounds: Sendable {
    /// The size of the file.
    private let size: Int64
    private(set) var reach: Int64
    private(set) var mayBeWhole: Bool
    private(set) var isDelivered: Bool
    /// As it was before the request that is entered now.
    private var before: (reach: Int64, mayBeWhole: Bool)?

    /// - Parameter checkpoint: One that names an upload and has no `reach` was made by something that kept none: anything may have left.
    init(_ checkpoint: Checkpoint, size: Int64) {
        self.size = size
        let stored = checkpoint["reach"].flatMap { Int64($0) }.map { min(max($0, 0), size) }
        reach = stored ?? (checkpoint["url"] == nil ? 0 : size)
        mayBeWhole = checkpoint["may_be_whole"] != nil
        isDelivered = checkpoint["delivered_whole"] != nil
    }

    /// As `reach`, without the request that is entered now.
    var reachBefore: Int64 { before?.reach ?? reach }

    func store(in checkpoint: inout Checkpoint) {
        checkpoint["reach"] = "\(reach)"
        checkpoint["may_be_whole"] = mayBeWhole ? "1" : nil
        checkpoint["delivered_whole"] = isDelivered ? "1" : nil
    }

    /// A request is about to carry bytes up to `end`.
    ///
    /// - Returns: Whether that has to be durable first.
    mutating func enter(to end: Int64) -> Bool {
        let old = (reach, mayBeWhole)
        if before == nil { before = (reach, mayBeWhole) }
        reach = max(reach, end)
        if end == size { mayBeWhole = true }
        return (reach, mayBeWhole) != old
    }

    /// The request that was entered was not made.
    ///
    /// - Returns: Whether that changes what is stored.
    mutating func withdraw() -> Bool {
        guard let before else { return false }
        let old = (reach, mayBeWhole)
        (reach, mayBeWhole) = before
        self.before = nil
        return (reach, mayBeWhole) != old
    }

    /// The request that was entered has ended, however it did.
    mutating func ended(from offset: Int64, _ delivery: Delivery) {
        _ = withdraw()
        let most = min(size, offset + max(0, delivery.atMost))
        reach = max(reach, most)
        if most == size { mayBeWhole = true }
        if offset + delivery.atLeast >= size { isDelivered = true }
    }

    /// The remote has these bytes from elsewhere, as it said when the upload was created: nothing can be too much.
    mutating func isKnownThere() { reach = size }

    /// The remote says that it lacks bytes.
    mutating func lacks() {
        mayBeWhole = false
        isDelivered = false
    }
}
