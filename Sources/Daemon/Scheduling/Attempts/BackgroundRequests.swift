internal import Core

/// The purpose of a request besides transfers: it decides which rules apply, and whether a loop waits to send it.
enum RequestPurpose: Hashable, Sendable {
    /// Removes the leftovers of a cancelled upload.
    case removal
    /// Delivers a notice of a hook.
    case notice(HookNetwork)
    /// Asks for the free space for uploads of these files. It may be sent if one of them may be.
    case space(files: Set<FileClass>)
    /// A person asks: a check, a list, a test notice.
    case command(HookNetwork)
    /// A program is to start, which may connect to any server.
    ///
    /// - Parameter folder: The folder whose rules apply to it.
    case program(folder: String?)
    /// A program is connected to a server, by the name of the place.
    ///
    /// - Parameter folder: The folder whose rules apply to it.
    case connection(place: String, folder: String?)

    /// `policy`: every rule applies. `any`: neither quotas, pauses nor costs hold it.
    var network: HookNetwork {
        switch self {
        case .notice(let network), .command(let network): network
        case .removal, .space, .program, .connection: .policy
        }
    }

    /// The folder whose files it is for; `nil` for none, or for many.
    var folder: String? {
        switch self {
        case .program(let folder): folder
        case .connection(_, let folder): folder
        case .removal, .notice, .space, .command: nil
        }
    }

    /// Whether its bytes are those of a program.
    var isOfProgram: Bool {
        switch self {
        case .program, .connection: true
        case .removal, .notice, .space, .command: false
        }
    }

    var isConnection: Bool { if case .connection = self { true } else { false } }

    /// Whether a loop waits to send it, and has to be woken when it may be sent.
    var isAwaited: Bool {
        switch self {
        case .removal, .notice, .program: network == .policy
        case .space, .command, .connection: false
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
        /// The server of a connection, whose routes are inspected while it runs.
        var site: DestinationSite?
        /// Its permission, whose limits may become others while it runs.
        var permit: TransferPermit?
        let stop: @Sendable () -> Void
        /// Returns when it has ended.
        var ended: @Sendable () async -> Void = {}
        /// The reason why it was stopped.
        var hold: Hold?
    }

    var changes: FactChanges = []
    private var running: [Int: BackgroundRequest] = [:]
    private var lastNumber = 0
    /// Destinations, hooks and exports that no byte may be sent to, and where a removal, a notice or a file waits.
    var closed: Set<String> { Set(waiting.keys) }
    /// What waits there.
    private var waiting: [String: RequestPurpose] = [:]

    /// - Returns: A number for ``end(_:)``.
    mutating func begin(_ request: BackgroundRequest) -> Int {
        lastNumber += 1
        running[lastNumber] = request
        if request.purpose.isAwaited { waiting[request.account] = nil }
        return lastNumber
    }

    /// The servers of running connections, by the name of the place.
    var sites: [String: DestinationSite] {
        var sites: [String: DestinationSite] = [:]
        for request in running.values {
            if case .connection(let place, _) = request.purpose, let site = request.site { sites[place] = site }
        }
        return sites
    }

    /// Records the end of a request. One that was stopped waits to be sent again, if a loop waits for it.
    ///
    /// - Returns: The reason why it was stopped, if it was.
    mutating func end(_ number: Int) -> Hold? {
        guard let request = running.removeValue(forKey: number), let hold = request.hold else { return nil }
        if request.purpose.isAwaited {
            waiting[request.account] = request.purpose
            // It may be allowed again by now.
            changes.insert(.scheduling)
        }
        return hold
    }

    /// Marks the requests that policy no longer allows.
    ///
    /// - Parameters:
    ///   - rules: The rules that apply to a request now; or the hold on it.
    ///   - apply: Applies them.
    /// - Returns: The forbidden requests, each with its hold; the caller stops them.
    mutating func forbid(
        _ rules: (BackgroundRequest) -> Result<AppliedRules, RequestHeldError>,
        _ apply: (AppliedRules, BackgroundRequest) -> Void = { _, _ in }
    ) -> [BackgroundRequest] {
        var stopped: [BackgroundRequest] = []
        for (number, request) in running where request.hold == nil {
            switch rules(request) {
            case .success(let rules): apply(rules, request)
            case .failure(let held):
                var request = request
                request.hold = held.hold
                running[number] = request
                stopped.append(request)
            }
        }
        return stopped
    }

    /// Returns when the connections of programs that were stopped until now are closed.
    func connectionsStopped() async {
        for request in running.values where request.hold != nil && request.purpose.isConnection {
            await request.ended()
        }
    }

    /// Records that something waits at a place that nothing may be sent to.
    ///
    /// - Returns: Whether nothing waited there before.
    mutating func close(_ account: String, for purpose: RequestPurpose = .removal) -> Bool {
        waiting.updateValue(purpose, forKey: account) == nil
    }

    /// Forgets the places that are open again: what waits there may be sent.
    mutating func open(where isOpen: (_ account: String, _ purpose: RequestPurpose) -> Bool) {
        let free = waiting.filter { isOpen($0.key, $0.value) }
        if free.isEmpty { return }
        for account in free.keys { waiting[account] = nil }
        changes.formUnion([.removals, .notices])
        if free.values.contains(where: { $0.isOfProgram && $0.folder != nil }) { changes.insert(.exports) }
    }
}
