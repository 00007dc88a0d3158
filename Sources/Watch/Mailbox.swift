internal import Core
internal import Linux
internal import Media
internal import Synchronization

/// Messages between the watching thread and the other tasks.
final class Mailbox: Sendable {
    /// A message to the thread.
    enum Order: Sendable {
        /// Names of folders; `nil` for all.
        case rescan(Set<String>?)
        /// Replaces the folders. Contains names of those whose first scan is to be reported as skipped, and paths of
        /// those that this thread watches.
        case change([WatchRule], skipExisting: Set<String>, ours: Set<FilePath>)
        case reconsider(folder: String, relative: FilePath)
        /// Answers which of the identities are known.
        case known([Bool])
        /// Whether a container is complete, by the number of the check; `nil` when it cannot be read.
        case checked(Int, Container.Verdict?)
        /// The last delivery was taken.
        case delivered
        case stop
    }

    /// A message from the thread, one at a time.
    enum Delivery: Sendable {
        case settled([SettledFile])
        case skipped([SettledFile])
        case scanned(folders: [String])
    }

    struct Board: Sendable {
        var states: [WatchState] = []
        var waiting: [WaitingFile] = []
        var overflows = 0
    }

    private struct Content {
        var orders: [Order] = []
        var signal: EventFD?
        var board = Board()
        var isAtRest = false
    }

    private let content: Mutex<Content>
    /// For a thread whose file system may not answer.
    let watchdog: Watchdog?
    let turns = TurnProbe()

    init(states: [WatchState], watchdog: Watchdog? = nil) {
        content = Mutex(Content(board: Board(states: states)))
        self.watchdog = watchdog
    }

    /// Makes orders wake the thread from now on.
    func connect(_ signal: EventFD) { content.withLock { $0.signal = signal } }

    func post(_ order: Order) {
        let signal = content.withLock { content in
            content.orders.append(order)
            content.isAtRest = false
            return content.signal
        }
        signal?.signal()
    }

    /// Wakes the thread without an order.
    func wake() { content.withLock { $0.signal }?.signal() }

    func removeOrders() -> [Order] {
        content.withLock { content in
            defer { content.orders = [] }
            return content.orders
        }
    }

    /// Whether no delivery is under way, and no order is waiting.
    var isAtRest: Bool { content.withLock { $0.isAtRest } }
    func setAtRest(_ isAtRest: Bool) { content.withLock { $0.isAtRest = isAtRest && $0.orders.isEmpty } }

    var board: Board { content.withLock { $0.board } }
    func publish(_ board: Board) { content.withLock { $0.board = board } }
}
