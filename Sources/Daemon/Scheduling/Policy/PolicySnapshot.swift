internal import Config
internal import Core
internal import Linux
internal import Store

/// Everything that policy depends on, as it is known at one moment. Decisions and explanations are pure functions of
/// it; a change of the state needs another snapshot.
struct PolicySnapshot: Sendable {
    /// Counts the changes that led to it.
    let generation: PolicyGeneration
    let configuration: RuntimeConfiguration
    let admission: Admission
    private(set) var inputs: Admission.PolicyInputs
    private(set) var pauses: PauseSet
    let overrides: OverrideSet
    let destinations: DestinationTracker
    let transfers: RunningTransfers
    let network: NetworkMonitor
    let quotaWaits: QuotaWaitlist
    let clock: ClockMonitor
    private let busy: BusyStates

    init(_ configuration: RuntimeConfiguration, clocks: any Clocks, quotas: QuotaState, facts: SchedulerFacts) {
        self.configuration = configuration
        (generation, pauses, overrides) = (facts.generation, facts.pauses, facts.overrides)
        (destinations, transfers, network) = (facts.destinations, facts.transfers, facts.network)
        (quotaWaits, clock, busy) = (facts.quotaWaits, facts.clock, facts.busy.states)
        let policy = configuration.settings.policy
        admission = Admission(total: policy.total, rules: policy.rules)
        let (now, monotonic) = (clocks.wall(), clocks.monotonic())
        inputs = Admission.PolicyInputs(
            now: now, monotonic: monotonic, zone: .local, clockTrouble: clock.trouble, running: transfers.count,
            everything: pauses.pause(.all, ""), network: network.metering, quotas: quotas, power: facts.power.power,
            temperature: facts.temperature.temperature,
            busy: busy.answers(at: monotonic))
        inputs.globalStop = overrides.globalStop(at: now)
    }

    var settings: Settings { configuration.settings }

    // MARK: Other readings of the same moment

    /// For views: a source of `busy` that no upload waits for was not checked, and blocks no upload.
    var shown: PolicySnapshot { leavingOpen { busy.isAwaited($0) } }

    /// For a plan: a source of `busy` that has not answered yet is no reason to wait for ever.
    var planned: PolicySnapshot { leavingOpen { _ in false } }

    /// For running transfers: without the pauses that cut none of them.
    var cutting: PolicySnapshot {
        var snapshot = self
        snapshot.pauses = pauses.cutting
        snapshot.inputs.everything = snapshot.pauses.pause(.all, "")
        return snapshot
    }

    /// With further answers of sources of `busy`; those that are known count.
    func answering(_ answers: [BusySource: BusyAnswer]) -> PolicySnapshot {
        var snapshot = self
        snapshot.inputs.busy.merge(answers) { known, _ in known }
        return snapshot
    }

    private func leavingOpen(_ isOpen: (BusySource) -> Bool) -> PolicySnapshot {
        var snapshot = self
        for (_, rule) in settings.busyRules where inputs.busy[rule.source] == nil && !isOpen(rule.source) {
            snapshot.inputs.busy[rule.source] = BusyAnswer(.free, since: inputs.now)
        }
        return snapshot
    }

    /// As if every source of `busy` had answered that the machine is free.
    var assumingFree: PolicySnapshot {
        var snapshot = self
        snapshot.inputs.busy = Dictionary(
            settings.busyRules.map { ($0.rule.source, BusyAnswer(.free, since: inputs.now)) },
            uniquingKeysWith: { $1 })
        return snapshot
    }

    // MARK: States

    func destination(_ name: String) -> Admission.DestinationState {
        let policy = settings.destination(named: name)?.policy
        let reached = network.routes[name]
        return Admission.DestinationState(
            name: name, slots: policy?.concurrency ?? settings.policy.perDestination,
            running: transfers.count(to: name), pause: pauses.pause(.destination, name),
            health: destinations.health(of: name), rules: policy?.rules ?? PolicyRules(),
            reachability: reached?.reachability ?? .unseen(Admission.notExamined),
            reachabilitySince: reached?.since ?? configuration.since)
    }

    /// - Parameter file: The file, where it matters.
    func folder(_ name: String, _ file: FileAnswers = .noFile) -> Admission.FolderState {
        let folder = settings.folder(name)
        return Admission.FolderState(
            name: name, pattern: folder?.card?.pattern, file: file, pause: pauses.pause(.folder, name),
            rules: folder?.policy.rules ?? PolicyRules(),
            exempt: overrides.exemptions(.folder, name, at: inputs.now))
    }

    func folder(_ files: FileClass, exempting exemptions: Set<Exemption> = []) -> Admission.FolderState {
        var folder = folder(files.folder, configuration.questions.answers(in: files.mask))
        folder.exempt.formUnion(exemptions)
        return folder
    }

    /// The folder of an upload, with the exemptions of the upload itself.
    func folder(of upload: UploadRecord) -> Admission.FolderState {
        folder(upload.files, exempting: exemptions(of: upload.id))
    }

    /// The rules that are waived for a single upload.
    func exemptions(of upload: String) -> Set<Exemption> { overrides.exemptions(.upload, upload, at: inputs.now) }

    /// The folder of a running upload.
    private func folder(of upload: String, in transfer: RunningTransfers.Transfer) -> Admission.FolderState? {
        guard let name = transfer.folders[upload] else { return nil }
        var folder = folder(name, transfer.files[upload].map { .file($0) } ?? .known([:]))
        folder.exempt.formUnion(exemptions(of: upload))
        return folder
    }

    /// The folders of a transfer's files, each once, or once for each file that conditions tell apart.
    func folders(of transfer: RunningTransfers.Transfer) -> [Admission.FolderState] {
        let folders = transfer.folders.keys.compactMap { folder(of: $0, in: transfer) }
        if !configuration.questions.list.isEmpty { return Array(Set(folders)) }
        return Array(Set(folders.map { $0.ofAnyFile }))
    }

    /// The uploads with exemptions of their own.
    var exemptUploads: [(id: String, exemptions: Set<Exemption>)] { overrides.exemptUploads(at: inputs.now) }

    /// The folders that send as many files as they may.
    var fullFolders: Set<String> {
        let limits = settings.folders.compactMap { folder in
            folder.policy.concurrency.map { (folder.watch.name, $0) }
        }
        return transfers.full(Dictionary(limits, uniquingKeysWith: { $1 }))
    }

    // MARK: Decisions

    /// Whether a single upload may begin: no rule holds it, and each limit of how many run at once has room.
    func mayBegin(_ upload: UploadRecord, exempting exemptions: Set<Exemption>) -> Bool {
        guard case .go = verdict(for: upload.destination, from: folder(upload.files, exempting: exemptions)) else {
            return false
        }
        let slots = ConditionalSlots(to: upload.destination, from: [upload.files], exempting: exemptions, self)
        return slots.full.isEmpty
    }

    /// The files that may be sent now, by destination, and the hold of each class. Policy is evaluated once for
    /// each class, however many uploads the class has.
    func openFiles(
        _ classes: [UploadClass]
    ) -> (open: [String: UnblockedFiles], holds: [UploadClass: Hold?]) {
        var states: [String: Admission.DestinationState] = [:]
        var open: [String: UnblockedFiles] = [:]
        var holds: [UploadClass: Hold?] = [:]
        for one in classes where configuration.destinations[one.destination] != nil {
            let state = states[one.destination] ?? destination(one.destination)
            states[one.destination] = state
            let blockers = hardBlockers(on: state, from: folder(one.files), isUnderWay: false)
            if blockers.allSatisfy(\.holdsOnlyNewUploads) {
                open[one.destination, default: UnblockedFiles()].all.insert(one.files)
                if !blockers.isEmpty { open[one.destination]?.begunOnly.insert(one.files) }
            }
            // An untrusted clock is reported once for all of them.
            holds[one] = .some(blockers.filter { $0.kind != .clock }.lastEnding)
        }
        return (open, holds)
    }

    /// Whether an upload of one of these classes may be sent to a destination: neither a pause nor policy holds its
    /// folder.
    func isOpen(_ name: String, forAnyOf classes: [UploadClass]) -> Bool {
        let state = destination(name)
        return classes.contains { one in
            one.destination == name
                && hardBlockers(on: state, from: folder(one.files), isUnderWay: false).isEmpty
        }
    }

    /// Whether an upload may be sent without its own exemption, and so in its turn.
    func goesInTurn(_ upload: UploadRecord, without exemptions: Set<Exemption>) -> Bool {
        if exemptions.contains(.quota), lacksQuota(upload) { return false }
        if case .go = verdict(for: upload.destination, from: folder(upload.files)) { return true }
        return false
    }

    /// The holds that forbid every byte to a destination or hook.
    func blockers(at name: String) -> [Hold] { hardBlockers(on: destination(name), from: nil, isUnderWay: false) }

    /// The holds that forbid every byte of a running transfer.
    func blockers(on transfer: RunningTransfers.Transfer) -> [Hold] {
        let destination = destination(transfer.destination)
        return folders(of: transfer).flatMap { hardBlockers(on: destination, from: $0, isUnderWay: true) }
    }

    /// The uploads that may be claimed together for a destination. A probe of a destination is one file.
    func batchLimits(to name: String, slots: Int, _ bundling: Bundling?) -> BatchLimits {
        let isAsked =
            settings.policy.beforeUpload != nil || settings.destination(named: name)?.policy.beforeUpload != nil
        let rules = [settings.policy.rules, settings.destination(named: name)?.policy.rules].compactMap { $0 }
        let tellsApart = rules.contains(where: \.judgesRoutesByFile)
        let goesTogether = destinations.trouble(of: name) == nil && !isAsked
        return BatchLimits(
            slots: slots, bundling: goesTogether ? bundling : nil,
            counted: Set(settings.folders.filter { tellsApart || $0.policy.goesAlone }.map(\.watch.name)))
    }

    /// The route for files of a folder, or for requests that belong to no folder.
    func route(to destination: String, from folder: Admission.FolderState?) -> Admission.RouteDecision {
        routeDecision(to: self.destination(destination), from: folder)
    }

    /// Whether bytes of an upload would count as metered, or cannot be sent at all.
    ///
    /// - Parameter upload: Perhaps read before the questions about files changed.
    func isMetered(_ upload: UploadRecord) -> Bool {
        var folder = folder(of: upload)
        if !configuration.questions.areAnswered(by: upload.mask) {
            folder.file = .file(
                FileFacts(size: upload.size, kind: FileKind(mediaType: upload.mediaType), duration: nil))
        }
        switch route(to: upload.destination, from: folder) {
        case .open(let route): return route.countsAsMetered
        case .closed: return true
        }
    }

    /// The accounts of a transfer that still reserve without quotas, although these are not waived any more.
    func accountsWithoutExemption(_ transfer: RunningTransfers.Transfer) -> [QuotaAccount] {
        transfer.accounts.compactMap { id, account in
            guard account.isExempt, !account.isFree,
                folder(of: id, in: transfer)?.exempt.contains(.quota) == false
            else { return nil }
            return account
        }
    }

    /// Whether the quotas of an account are used up, with what it has reserved itself.
    func isUsedUp(_ account: QuotaAccount) -> Bool { inputs.quotas.remaining(for: account.kind).bytes == 0 }

    /// Whether a running transfer may continue on its route, and no other route avoids its cost.
    func mayContinue(_ transfer: RunningTransfers.Transfer) -> Bool {
        let destination = destination(transfer.destination)
        let folders = Set(transfer.folders.values)
        let folder = folders.count == 1 ? self.folders(of: transfer).first : nil
        guard let same = reached(destination, over: transfer.route),
            case .open(let route) = routeDecision(to: same, from: folder),
            route.isSame(as: transfer.route)
        else { return false }
        if !route.countsAsMetered { return true }
        guard case .open(let best) = routeDecision(to: destination, from: folder) else { return true }
        return best.countsAsMetered
    }

    /// The rules that apply to the uploads of a running transfer on its route, by upload.
    func appliedRules(to transfer: RunningTransfers.Transfer) -> [String: AppliedRules] {
        guard let destination = reached(destination(transfer.destination), over: transfer.route) else { return [:] }
        var known: [Admission.FolderState: AppliedRules] = [:]
        return transfer.folders.reduce(into: [:]) { applied, upload in
            guard let folder = folder(of: upload.key, in: transfer) else { return }
            if known[folder] == nil, case .open(let route) = routeDecision(to: destination, from: folder) {
                known[folder] = route.applied
            }
            applied[upload.key] = known[folder]
        }
    }

    /// A destination as it is reached over the interface of a route alone; `nil` where that no longer leads to it.
    func reached(
        _ destination: Admission.DestinationState, over route: Admission.Route
    ) -> Admission.DestinationState? {
        guard let interface = route.interface, case .over(let paths) = destination.reachability else {
            return destination
        }
        let own = paths.filter { network.metering?.links[$0.link]?.name == interface }
        if own.isEmpty { return nil }
        var same = destination
        same.reachability = .over(own)
        return same
    }

    /// Whether DNS queries for a destination are permitted over one of these routes.
    @Sendable func allowsNameQueries(_ name: String, _ metering: Metering, _ paths: [NetworkPath]) -> Bool {
        var (snapshot, state) = (self, destination(name))
        snapshot.inputs.network = metering
        state.reachability = .over(paths)
        func isOpen(from folder: Admission.FolderState?) -> Bool {
            if case .open = snapshot.routeDecision(to: state, from: folder) { true } else { false }
        }
        // A rule may except some files: without the name they could not be sent.
        return isOpen(from: nil)
            || settings.presentFolders.contains { folder in
                folder.uploadTo.contains(name) && isOpen(from: self.folder(folder.watch.name, .anyFile))
            }
    }

    /// The decision about the route to a destination or hook that is reached like this. Its hold begins at no time, so
    /// that two decisions can be compared.
    func routeDecision(to name: String, reached reachability: Reachability) -> Admission.RouteDecision {
        var state = destination(name)
        (state.reachability, state.reachabilitySince) = (reachability, WallTime(milliseconds: 0))
        return routeDecision(to: state, from: nil)
    }

    /// Busy sources that are the only thing blocking at least one upload.
    ///
    /// - Parameters:
    ///   - ready: The classes of uploads that wait for nothing of their own.
    ///   - waiting: Destinations and hooks where a removal or a notice waits.
    func wantedSources(_ ready: [UploadClass], _ waiting: Set<String>) -> Set<BusySource> {
        let free = assumingFree
        let exempt = exemptUploads.reduce(into: Set<Exemption>()) { $0.formUnion($1.exemptions) }
        let running = transfers.classes(configuration.questions)
        var wanted: Set<BusySource> = []
        for upload in Set(ready).union(running) {
            guard let destination = settings.destination(named: upload.destination) else { continue }
            let folder = folder(upload.files, exempting: exempt)
            if !running.contains(upload), case .wait = free.verdict(for: upload.destination, from: folder) { continue }
            let rules = [settings.policy.rules, destination.policy.rules, folder.rules]
            wanted.formUnion(rules.compactMap { $0.busy?.source })
        }
        for name in waiting where free.blockers(at: name).isEmpty {
            // A hook has no rules of its own.
            wanted.formUnion([settings.policy.rules, destination(name).rules].compactMap { $0.busy?.source })
        }
        return wanted
    }
}

// MARK: Questions to Admission

/// These functions are the only ones that ask it.
extension PolicySnapshot {
    /// The holds that forbid every byte.
    ///
    /// - Parameter isUnderWay: For work that has begun and has reserved its bytes.
    func hardBlockers(
        on destination: Admission.DestinationState, from folder: Admission.FolderState?, isUnderWay: Bool
    ) -> [Hold] {
        admission.hardBlockers(on: destination, from: folder, in: inputs, isUnderWay: isUnderWay)
    }

    /// The holds on all uploads from a folder.
    func hardBlockers(on folder: Admission.FolderState) -> [Hold] { admission.hardBlockers(on: folder, in: inputs) }

    /// The holds on all uploads to a destination, also those by its health.
    func holds(for destination: Admission.DestinationState, from folder: Admission.FolderState?) -> [Hold] {
        admission.holds(for: destination, from: folder, in: inputs)
    }

    func verdict(for destination: String, from folder: Admission.FolderState? = nil) -> Admission.Verdict {
        admission.verdict(for: self.destination(destination), from: folder, in: inputs)
    }

    /// How many more uploads may go to a destination, by its slots and its health alone.
    func slots(at destination: String) -> Admission.Verdict {
        admission.slots(at: self.destination(destination), in: inputs)
    }

    func routeDecision(
        to destination: Admission.DestinationState, from folder: Admission.FolderState?
    ) -> Admission.RouteDecision {
        admission.routeDecision(to: destination, from: folder, in: inputs)
    }

    /// The route, with the reason for it; `nil` where nothing leaves this machine, or where the networks could not be
    /// inspected.
    func choice(
        to destination: Admission.DestinationState, from folder: Admission.FolderState?
    ) -> Admission.RouteChoice? {
        admission.choice(to: destination, from: folder, in: inputs)
    }

    /// When a rule of the configuration changes its decision next, by the time alone.
    ///
    /// - Parameter began: A change since then counts too.
    func nextChange(since began: WallTime?) -> WallTime? {
        var then = self
        if let began { then.inputs.now = min(inputs.now, began) }
        return admission.nextChange(
            settings.destinations.map { then.destination($0.name) },
            settings.folders.map { then.folder($0.watch.name) }, in: then.inputs)
    }
}

extension Admission.Route {
    /// Whether the two make no difference for a running transfer.
    func isSame(as other: Self) -> Bool {
        interface == other.interface && countsAsMetered == other.countsAsMetered && cost == other.cost
    }
}
