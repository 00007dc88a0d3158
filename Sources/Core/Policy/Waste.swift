/// Wasted bytes of a file: they were sent, and the remote has none of them.
package struct Waste: Hashable, Sendable {
    /// Since the upload was recorded.
    package var total: Int64
    /// Within the last day.
    package var today: Int64
    /// When the first bytes of ``today`` were recorded.
    package var since: WallTime?
    /// Bytes of the last attempt, unless the remote turns out to have them.
    package var unsettled: Int64
    /// The remote has no bytes of it: the next attempt begins at the first.
    package var startsOver: Bool

    package init(
        total: Int64 = 0, today: Int64 = 0, since: WallTime? = nil, unsettled: Int64 = 0, startsOver: Bool = false
    ) {
        self.total = total
        self.today = today
        self.since = since
        self.unsettled = unsettled
        self.startsOver = startsOver
    }

    /// Up to this amount a wait is not worth it: a connection and its questions cost as much.
    private static let little: Int64 = 64_000

    /// Whether two complete transfers of a file of `size` bytes were wasted within a day; for a large file, more than
    /// its size.
    package func exceedsLimit(forSize size: Int64) -> Bool {
        let wasted = today + unsettled
        return size > 1_000_000 ? wasted > size : wasted >= max(2 * size, Self.little)
    }
}
