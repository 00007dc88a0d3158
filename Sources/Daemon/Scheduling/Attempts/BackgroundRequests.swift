internal import Core

/// Requests besides transfers that policy applies to: questions and notices. Also the places that nothing may be sent
/// to although something waits there.
struct BackgroundRequests: Sendable, RecordsChanges {
    struct BackgroundRequest: Sendable {
        /// The destination or hook that pays for it.
        let account: String
        let stop: @Sendable () -> Void
        /// The reason why it was stopped.
        var hold: Hold?
    }

    var changes: FactChanges = []
    private var running: [Int: BackgroundRequest] = [:]
    private var lastNumber = 0
    /// Destinations and hooks that no byte may be sent to, and where a removal or a notice waits.
    private(set) var closed: Set<String> = []

    /// - Returns: A number for ``end(_:)``.
    mutating func begin(_ account: String, stop: @escaping @Sendable () -> Void) -> Int {
        lastNumber += 1
        running[lastNumber] = BackgroundRequest(account: account, stop: stop)
        return lastNumber
    }

    /// - Returns: The reason why it was stopped, if it was.
    mutating func end(_ number: Int) -> Hold? { running.removeValue(forKey: number)?.hold }

    /// Marks the requests that policy no longer allows.
    ///
    /// - Returns: These requests, each with its hold; the caller stops them.
    mutating func forbid(_ hold: (_ account: String) -> Hold?) -> [BackgroundRequest] {
        var stopped: [BackgroundRequest] = []
        for (number, request) in running where request.hold == nil {
            guard let hold = hold(request.account) else { continue }
            running[number]?.hold = hold
            stopped.append(BackgroundRequest(account: request.account, stop: request.stop, hold: hold))
        }
        return stopped
    }

    /// Records that something waits at a place that nothing may be sent to.
    ///
    /// - Returns: Whether nothing waited there before.
    mutating func close(_ account: String) -> Bool { closed.insert(account).inserted }

    mutating func open(_ account: String) { closed.remove(account) }

    /// Forgets the places that are open again: what waits there may be sent.
    mutating func open(where isOpen: (_ account: String) -> Bool) {
        let free = closed.filter(isOpen)
        if free.isEmpty { return }
        closed.subtract(free)
        changes.formUnion([.removals, .notices])
    }
}
