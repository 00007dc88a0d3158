internal import Synchronization

/// The open event streams of all addresses: limits their number, and ends all of them.
final class Subscribers: Sendable {
    let limit: Int
    private let feeds = Mutex<[WeakFeed]>([])

    private struct WeakFeed: Sendable { weak var feed: EventSubscriber? }

    init(limit: Int) { self.limit = limit }

    /// - Returns: `false` when the limit is reached.
    func enter(_ feed: EventSubscriber) -> Bool {
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
