internal import Config
internal import Core
internal import Egress
internal import Linux
internal import Names
internal import Store
internal import Transport

/// The permission of one transfer, or of one query, to send requests: interface, limits, account.
///
/// Only the decisions in this file make one. A permit is passed as a parameter from the decision to the request.
struct TransferPermit: RequestPermit {
    /// Where the permission comes from.
    fileprivate enum Origin {
        /// The scheduler's policy, as it was in this generation.
        case policy(PolicyGeneration)
        /// A person who has seen what it may cost, and asks without a daemon. No ledger counts the bytes.
        case person(TrafficCounter?)
    }

    fileprivate let origin: Origin
    /// The only interface to use; `nil` where any may be used.
    let interface: String?
    /// Limits that apply together: each byte of a body is drawn from all of them.
    private let throttles: [Throttle]
    /// The limits of the rules that apply to it now. These may be others while it runs.
    let ruleLimit: Throttle
    /// The DNS servers that may be asked, as known at the moment; `nil` where any may be asked.
    private let nameServers: (@Sendable () -> NameServers?)?
    /// What holds for each of its requests; `nil` where nothing does.
    private let requestRules: RequestRules?
    /// The account that its bytes are charged to; one of ``accounts`` for uploads.
    private(set) var account: QuotaAccount?
    /// By the ids of uploads.
    let accounts: [String: QuotaAccount]
    /// Stops the transfer, which then starts again: its local address is gone.
    private let onAddressLost: (@Sendable () -> Void)?

    fileprivate init(
        _ origin: Origin, interface: String?, throttles: [Throttle], ruleLimit: Throttle = Throttle(members: []),
        requestRules: RequestRules? = nil, nameServers: (@Sendable () -> NameServers?)?, account: QuotaAccount?,
        accounts: [String: QuotaAccount], onAddressLost: (@Sendable () -> Void)?
    ) {
        self.origin = origin
        self.interface = interface
        self.throttles = throttles + [ruleLimit]
        self.ruleLimit = ruleLimit
        self.requestRules = requestRules
        self.nameServers = nameServers
        self.account = account
        self.accounts = accounts
        self.onAddressLost = onAddressLost
    }

    /// A permit of a person: no limit, no ledger.
    ///
    /// - Parameters:
    ///   - interface: The only interface to use; `nil` where any may be used.
    ///   - nameServers: The servers that may be asked for addresses; `nil` where the system may ask any.
    fileprivate init(
        byPerson counter: TrafficCounter?, interface: String?, nameServers: NameServers?, _ rules: RequestRules?
    ) {
        var allowed: (@Sendable () -> NameServers?)?
        if let nameServers { allowed = { nameServers } }
        self.init(
            .person(counter), interface: interface, throttles: [], requestRules: rules, nameServers: allowed,
            account: nil, accounts: [:], onAddressLost: nil)
    }

    /// Whether it was granted by the policy of this generation. If not, policy has to decide again before a transfer
    /// starts with it.
    func isCurrent(in generation: PolicyGeneration) -> Bool {
        if case .policy(generation) = origin { true } else { false }
    }

    /// Calls `end` when the quotas of an upload are used up, or with the error where their usage cannot be recorded.
    func whenOver(_ end: @escaping @Sendable ((any Error)?) -> Void) {
        for account in accounts.values { account.setEndHandler(end) }
    }

    // MARK: Requests

    func charging(upload id: String) -> any RequestPermit {
        guard let own = accounts[id] else { return self }
        var permit = self
        permit.account = own
        return permit
    }

    func send(_ request: Request, over transport: any Transporting) async throws(TransportError) -> Response {
        // The work was stopped before this request: nothing of it is sent, not even a question for its address.
        if Task.isCancelled {
            throw TransportError(
                kind: .cancelled, detail: "the request was stopped before it was sent", url: request.url)
        }
        var request = request
        try await requestRules?.prepare(&request)
        // Requests within this machine are not bound to an interface: a helper of the destination may run here.
        let staysHere = WebAddress(request.url).isLoopback && request.proxy?.isHere ?? true
        request.interface = staysHere ? nil : interface
        if !staysHere { request.nameServers = nameServers?() }
        request.throttles += throttles
        request.onAddressLost = onAddressLost
        guard let account else {
            guard case .person(let counter) = origin else {
                throw TransportError(
                    kind: .interface, detail: "no transfer permit covers the bytes of this request, so it was not sent",
                    url: request.url)
            }
            counter?.count(&request)
            return try await transport.send(request)
        }
        do { try await account.prepare(for: request.body.count ?? 0) } catch {
            throw TransportError(kind: .cancelled, detail: "a quota is used up", url: request.url)
        }
        defer { account.ended() }
        request.throttles.append(account.throttle)
        let tell = request.onWire
        request.onWire = { bytes in
            account.spend(bytes)
            tell?(bytes)
        }
        request.onArrived = account.receive
        return try await transport.send(request)
    }

    /// Carries a connection of a program. The limits apply to both of its directions.
    ///
    /// - Parameter spent: The traffic of the look-up of its name.
    func carry(_ connection: EgressConnection, to addresses: [IPAddress], owing spent: Spending) async -> EgressEnd {
        guard let account else { return .stopped }
        account.spend(spent.bytes)
        account.receive(spent.received)
        do { try await account.prepare(for: QuotaAccount.unknownLength) } catch {
            connection.refuse(.held("a quota is used up"))
            return .stopped
        }
        defer { account.ended() }
        account.setEndHandler { _ in connection.stop() }
        return await connection.relay(
            EgressRoute(
                addresses: addresses, interface: interface, throttles: throttles + [account.throttle],
                onWire: account.spend, onArrived: account.receive))
    }

    var rate: Int64? { throttles.compactMap(\.rate).min() }

    func allowance(for count: Int64) -> Int64 { account?.allowance(for: count) ?? count }
    func reserve(for count: Int64) async -> Shortage? { await account?.reserve(for: count) }
    func returnReservation(for count: Int64, sent: Int64) { account?.returnReservation(for: count, sent: sent) }
}

// MARK: Decisions of a daemon

extension PolicySnapshot {
    /// The claims that may not start now. Claiming waits for the disk, and meanwhile a window may have closed, or a
    /// person may have stopped transfers.
    ///
    /// - Parameter batch: The routes and reservations that they were claimed with.
    func refused(_ claims: [Claim], _ batch: ReservationBatch) -> [Claim] {
        // A stop may have been meant for one of these uploads, which was not running yet.
        if batch.generation.stops != generation.stops { return claims }
        // Claims of one class meet the same rules: only a batch of one upload has exemptions of its own.
        var isOpen: [FileClass: Bool] = [:]
        return claims.filter { claim in
            let files = claim.upload.files
            let mayGo = isOpen[files] ?? batch.isOpen(claim.upload, in: self)
            isOpen[files] = mayGo
            return !mayGo || !batch.hasEnough(claim)
        }
    }

    /// Decides whether these claims may start now as one transfer.
    ///
    /// - Returns: The permit, with an account for each upload, and the route; `nil` where one of them may not start.
    func permit(
        for claims: [Claim], _ batch: ReservationBatch, _ bandwidth: BandwidthLimiter,
        onAddressLost: @escaping @Sendable () -> Void
    ) -> (permit: TransferPermit, route: Admission.Route)? {
        // Files that travel together come from folders without rules about networks.
        guard let first = claims.first, refused(claims, batch).isEmpty,
            let route = batch.route(for: first.upload)
        else { return nil }
        let folders = Set(claims.map(\.upload.folder))
        let accounts = batch.accounts(for: claims, route)
        let classes = Dictionary(claims.map { ($0.upload.files, $0.upload) }, uniquingKeysWith: { first, _ in first })
        let applied = classes.values.reduce(into: AppliedRules()) { $0.formUnion(batch.appliedRules($1, in: self)) }
        let permit = TransferPermit(
            .policy(generation), interface: route.interface,
            throttles: bandwidth.throttles(
                to: batch.destination, from: folders.count == 1 ? folders.first : nil),
            ruleLimit: bandwidth.throttle(of: applied),
            requestRules: bandwidth.requestRules(for: batch.destination),
            nameServers: bandwidth.nameServers(for: batch.destination),
            account: claims.count == 1 ? accounts[first.upload.id] : nil, accounts: accounts,
            onAddressLost: onAddressLost)
        return (permit, route)
    }

    /// Decides about a request besides transfers.
    ///
    /// - Parameter account: The destination or hook that pays for it.
    /// - Returns: The permit, whose account has to be closed, and the route; or the hold.
    func permit(
        for purpose: RequestPurpose, at account: String, _ bandwidth: BandwidthLimiter, _ ledger: Ledger
    ) -> Result<(permit: TransferPermit, route: Admission.Route), RequestHeldError> {
        let isExempt = purpose.network == .any
        return route(for: purpose, at: account).map { route in
            let permit = TransferPermit(
                .policy(generation), interface: route.interface,
                throttles: isExempt ? [] : bandwidth.throttles(to: account, from: purpose.folder),
                ruleLimit: bandwidth.throttle(of: isExempt ? AppliedRules() : route.applied),
                requestRules: bandwidth.requestRules(for: account),
                nameServers: bandwidth.nameServers(for: account),
                account: QuotaAccount(
                    SpendingAccount(destination: account, folder: purpose.folder, network: route.ledger),
                    QuotaState.Class(account, from: purpose.folder, route.applied.quotas), step: nil,
                    isExempt: isExempt, isFree: route.ledger == .local, isOpenEnded: purpose.isConnection, in: ledger),
                accounts: [:], onAddressLost: nil)
            return (permit, route)
        }
    }
}

// MARK: Decisions without a daemon

extension PolicySnapshot {
    /// Decides about a query of a person who has seen what it may cost.
    ///
    /// - Parameters:
    ///   - network: Whether `policy` applies to it.
    ///   - account: The destination or hook.
    ///   - counter: Counts its bytes.
    ///   - nameServers: The servers that may be asked for addresses; `nil` where the system may ask any.
    func permit(
        standalone network: HookNetwork, at account: String, _ counter: TrafficCounter,
        nameServers: NameServers? = nil
    ) -> Result<TransferPermit, RequestHeldError> {
        let rules = RequestRules(clocks: SystemClocks())
        if let destination = settings.destination(named: account) { rules.set(destination.policy) }
        return route(for: .command(network), at: account).map { route in
            TransferPermit(byPerson: counter, interface: route.interface, nameServers: nameServers, rules)
        }
    }
}

extension TransferPermit {
    /// For the questions of `sluice rebuild` to each destination, which a person starts, and which may use any interface.
    ///
    /// - Returns: Empty where the person wants no destination asked.
    static func forRebuild(
        _ options: RebuildOptions, _ destinations: [DestinationSettings], _ clocks: any Clocks
    ) -> [String: TransferPermit] {
        if options.isOffline { return [:] }
        let permits = destinations.map { destination in
            let rules = RequestRules(clocks: clocks)
            rules.set(destination.policy)
            return (destination.name, TransferPermit(byPerson: nil, interface: nil, nameServers: nil, rules))
        }
        return Dictionary(permits, uniquingKeysWith: { $1 })
    }
}
