internal import Synchronization

/// The open event streams of all addresses: limits their number, and ends all of them.
final class Subscribers: Sendable {
    let limit: Int
    private let feeds = Mutex<[WeakFeed]>([])

    private struct WeakFeed: Sendable {
        weak var feed: EventSubscriber?
        let client: String
    }

    init(limit: Int) { self.limit = limit }

    /// - Parameter most: The most streams of one client.
    /// - Returns: `nil`, or the limit that is reached.
    func enter(_ feed: EventSubscriber, of client: String, most: Int) -> Int? {
        feeds.withLock { feeds in
            feeds.removeAll { $0.feed == nil }
            guard feeds.count < limit else { return limit }
            guard feeds.count(where: { $0.client == client }) < most else { return most }
            feeds.append(WeakFeed(feed: feed, client: client))
            return nil
        }
    }

    /// Ends every event stream: a server with open answers cannot stop.
    func end() {
        for entry in feeds.withLock({ $0 }) { entry.feed?.end() }
    }
}
