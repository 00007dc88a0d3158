internal import Synchronization

/// The open event streams of all doors: how many there may be, and the end of them all.
final class Subscribers: Sendable {
    let limit: Int
    private let feeds = Mutex<[WeakFeed]>([])

    private struct WeakFeed: Sendable { weak let feed: EventFeed? }

    init(limit: Int) { self.limit = limit }

    /// - Returns: `false` when as many as may are there.
    func enter(_ feed: EventFeed) -> Bool {
        feeds.withLock { feeds in
            if feeds.count >= limit { feeds.removeAll { $0.feed == nil } }
            guard feeds.count < limit else { return false }
            feeds.append(WeakFeed(feed: feed))
            return true
        }
    }

    /// Ends every event stream: a server with open answers cannot stop.
    func end() {
        for entry in feeds.withLock({ $0 }) { entry.feed?.end() }
    }
}
