internal import Core

/// The purpose of a request besides transfers: it decides which rules apply, and whether a loop waits to send it.
enum RequestPurpose: Hashable, Sendable {
    /// Removes the leftovers of a cancelled upload.
    case removal
    /// Delivers a notice of a hook.
    case notice(WebHook.Network)
    /// Asks for the free space for uploads of these files. It may be sent if one of them may be.
    case space(files: Set<FileClass>)
    /// A person asks: a check, a list, a test notice.
    case command(WebHook.Network)

    /// `policy`: every rule applies. `any`: neither quotas, pauses nor costs hold it.
    var network: WebHook.Network {
        switch self {
        case .notice(let network), .command(let network): network
        case .removal, .space: .policy
        }
    }

    /// Whether a loop waits to send it, and has to be woken when it may be sent.
    var isAwaited: Bool {
        switch self {
        case .removal, .notice: network == .policy
        case .space, .command: false
        }
    }
}

/// Requests besides transfers that are running. Also the places that nothing may be sent to although something waits
/// there.
struct BackgroundRequests: Sendable, RecordsChanges {
    struct BackgroundRequest: Sendable {
        /// The destination or hook that pays for it.
        let account: String
        let purpose: RequestPurpose
        /// The route that it uses.
        let route: Admission.Route
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
    mutating func begin(_ request: BackgroundRequest) -> Int {
        lastNumber += 1
        running[lastNumber] = request
        if request.purpose.isAwaited { closed.remove(request.account) }
        return lastNumber
    }

    /// Records the end of a request. One that was stopped waits to be sent again, if a loop waits for it.
    ///
    /// - Returns: The reason why it was stopped, if it was.
    mutating func end(_ number: Int) -> Hold? {
        guard let request = running.removeValue(forKey: number), let hold = request.hold else { return nil }
        if request.purpose.isAwaited {
            closed.insert(request.account)
            // It may be allowed again by now.
            changes.insert(.scheduling)
        }
        return hold
    }

    /// Marks the requests that policy no longer allows.
    ///
    /// - Returns: These requests, each with its hold; the caller stops them.
    mutating func forbid(_ hold: (BackgroundRequest) -> Hold?) -> [BackgroundRequest] {
        var stopped: [BackgroundRequest] = []
        for (number, request) in running where request.hold == nil {
            guard let hold = hold(request) else { continue }
            var request = request
            request.hold = hold
            running[number] = request
            stopped.append(request)
        }
        return stopped
    }

    /// Records that something waits at a place that nothing may be sent to.
    ///
    /// - Returns: Whether nothing waited there before.
    mutating func close(_ account: String) -> Bool { closed.insert(account).inserted }

    /// Forgets the places that are open again: what waits there may be sent.
    mutating func open(where isOpen: (_ account: String) -> Bool) {
        let free = closed.filter(isOpen)
        if free.isEmpty { return }
        closed.subtract(free)
        changes.formUnion([.removals, .notices])
    }
}
