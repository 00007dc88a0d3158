internal import API
internal import Config
internal import Core
internal import Destinations
internal import Linux
internal import Store

/// Computes the plan from the backlog in the database, the rules of the scheduler, and the known rates.
struct PlanQueries: Sendable {
    let context: Context
    let scheduler: Scheduler
    let live: LiveUploads

    func plan(_ query: PlanQuery) async throws -> PlanView {
        let now = context.clocks.wall()
        let furthest = now.advanced(by: Plan.furthest)
        if let from = query.from, from < now || from > furthest {
            throw Refusal(.badRequest, "`from` is in the past, or more than a year away")
        }
        if let until = query.until {
            guard until > query.from ?? now else {
                throw Refusal(.badRequest, "`until` is in the past, or not after the start of the plan")
            }
            guard until <= furthest else {
                throw Refusal(.badRequest, "`until` is more than a year away: a plan covers at most one year")
            }
        }
        let backlog = try await context.store.read { try $0.backlog.classes() }
        let rates = try await rates(query, Set(backlog.map(\.destination)))
        try await scheduler.sendingLimits.ledger.refresh()
        let basis = PlanBasis(await scheduler.snapshot, backlog) { [live] in live[$0]?.sent }
        var question = basis.input
        question.rates = Plan.Rates(
            everything: query.rate,
            destinations: query.rate == nil
                ? Dictionary(
                    rates.compactMap { rate in rate.destination.flatMap { name in rate.rate.map { (name, $0) } } }
                ) { $1 }
                : [:])
        question.until = query.until
        let network = try network(query)
        if let network { question.assume(network) }
        if let from = query.from { question.inputs.now = max(from, question.inputs.now) }
        let asked = question
        // It may take a second, in which other tasks should run.
        let plan = try await blocking { Plan(asked) }
        return PlanView(
            plan, rates: rates,
            backlog: backlog.map { ($0.unstaged.files, $0.paused.files, $0.standby.uploads.files) }
                + Array(repeating: (0, 0, 0), count: basis.exemptCount),
            notes: notes(asked, rates, network, leftOut: basis.leftOut) + takeOverNotes(plan, asked.inputs.now, backlog)
        )
    }

    /// The network that a request describes.
    private func network(_ query: PlanQuery) throws(Refusal) -> DescribedNetwork? {
        if query.on == nil, query.facts == nil, query.isLAN == nil { return nil }
        let networks = context.configuration.settings.policy.rules.networks
        let network = DescribedNetwork(
            named: query.on, in: networks, stating: query.facts ?? NetworkRule(), isLAN: query.isLAN)
        if let network { return network }
        let (problem, remedy) = DescribedNetwork.missing(query.on ?? "", in: networks)
        throw Refusal(.notFound, "\(problem). \(remedy)")
    }

    private func rates(_ query: PlanQuery, _ destinations: Set<String>) async throws -> [PlanRateView] {
        if let rate = query.rate { return [PlanRateView(rate: rate, source: "given")] }
        let since = context.clocks.wall().advanced(by: .seconds(-7 * 86_400))
        let best = RateEstimate.bestHours(try await context.store.read { try $0.ledger.usage(since: since) })
        var views: [PlanRateView] = []
        for name in destinations.sorted() {
            var measured = live.speed(to: name)
            if measured == nil { measured = try await context.store.read { try $0.settings.speed(to: name) } }
            views.append(RateEstimate(measured: measured, used: best[name]).view(of: name))
        }
        return views
    }

    /// Sentences about files that may go to a further destination, because the plan has not sent all files of their
    /// folder to the one before it by then.
    private func takeOverNotes(_ plan: Plan, _ now: WallTime, _ backlog: [ClassBacklog]) -> [String] {
        let notes = backlog.compactMap { waiting -> String? in
            guard waiting.standby.uploads.files > 0,
                let route = context.configuration.folder(waiting.folder)?.routes.first(where: {
                    $0.after != nil && $0.destinations.contains(waiting.destination)
                })
            else { return nil }
            let due = now.advanced(by: waiting.standby.wait)
            let earlier = route.destinations.prefix { $0 != waiting.destination }
            let late = plan.outcomes.filter { outcome in
                outcome.folder == waiting.folder && earlier.contains(outcome.destination) && outcome.files > 0
                    && outcome.ends.map { $0 > due } ?? true
            }
            if late.isEmpty { return nil }
            return
                "files of \(waiting.folder) may go to \(waiting.destination) from \(due) on, which is not part of this plan: "
                + "by then not all of them are sent to \(Set(late.map(\.destination)).sorted().joined(separator: ", "))"
        }
        // Files that conditions tell apart have one queue each.
        return Set(notes).sorted()
    }

    private func notes(
        _ question: Plan.Input, _ rates: [PlanRateView], _ network: DescribedNetwork?, leftOut: Set<String>
    ) -> [String] {
        var notes: [String] = []
        let unknown = rates.filter { $0.rate == nil }.compactMap(\.destination)
        if !unknown.isEmpty {
            notes.append(
                "the upload rate of \(unknown.joined(separator: ", ")) is unknown, because few bytes or none were sent there for a week: give one, like "
                    + "`sluice plan --rate '2 MB/s'`")
        }
        if let network {
            notes.append(
                "every destination outside this machine is assumed to be reached over this network: \(network.factWords)"
            )
        }
        notes.append(
            (network == nil ? "the present networks and routes, " : "")
                + "destinations, power, temperature, `busy` sources and pauses without an end are assumed to stay as they are now, and no "
                + "new files are assumed")
        let limited = context.settings.destinations.filter { $0.policy.requests != nil }
        if !limited.isEmpty {
            notes.append(
                "`requests` of \(limited.map(\.name).sorted().joined(separator: ", ")) is not part of this plan: many small files take longer"
            )
        }
        if !leftOut.isEmpty {
            notes.append(
                "`sluice allow` for \(leftOut.sorted().joined(separator: ", ")) is not part of this plan: the upload is paused, has ended "
                    + "or is far behind in its queue")
        }
        if let trouble = question.inputs.clockTrouble {
            notes.append("the clock is not trusted now, so uploads that depend on it wait: \(trouble.text)")
        }
        return notes
    }
}

extension PolicySnapshot {
    /// The rules that a person waived for folders and uploads, and until when.
    var grants: (folders: [String: [Plan.OverrideGrant]], uploads: [String: [Plan.OverrideGrant]]) {
        var folders: [String: [Plan.OverrideGrant]] = [:]
        var uploads: [String: [Plan.OverrideGrant]] = [:]
        for exception in overrides.active(at: inputs.now) {
            guard case .exemption(let exemption) = exception.kind else { continue }
            let grant = Plan.OverrideGrant(exemption, until: exception.until)
            switch exception.scope {
            case .folder: folders[exception.name, default: []].append(grant)
            case .upload: uploads[exception.name, default: []].append(grant)
            default: break
            }
        }
        return (folders, uploads)
    }

    /// The inputs of a plan, without the backlog and the rates.
    var question: Plan.Input {
        // Paused folders may have been removed from the configuration while uploads of them still wait.
        let names = settings.folders.map(\.watch.name)
        let gone = pauses.records.filter { $0.scope == .folder && !names.contains($0.name) }.map(\.name)
        let slots = settings.folders.compactMap { folder in folder.policy.concurrency.map { (folder.watch.name, $0) } }
        var question = Plan.Input(
            admission: admission, inputs: planned.inputs,
            remotes: settings.destinations.map { destination($0.name) },
            origins: (names + gone).map { folder($0) },
            folderSlots: Dictionary(slots, uniquingKeysWith: { $1 }),
            queues: [], rates: Plan.Rates())
        // The result of the check in a minute is unknown; a clock that was set is trusted by then.
        if !clock.isWatching { question.inputs.clockTrouble?.until = nil }
        question.limits = overrides.active(at: inputs.now).compactMap { exception in
            if case .rate(let rate) = exception.kind { Plan.Limit(rate: rate, until: exception.until) } else { nil }
        }
        return question
    }
}

extension Plan.Input {
    /// Every destination is reached over this network, except those on this machine or in a mounted folder.
    fileprivate mutating func assume(_ network: DescribedNetwork) {
        for index in remotes.indices {
            switch remotes[index].reachability {
            case .local, .mount: continue
            case .over(let paths) where !paths.isEmpty && paths.allSatisfy { isInside($0) }: continue
            case .over, .any, .described, .offline, .unseen: remotes[index].reachability = .described(network)
            }
        }
    }

    private func isInside(_ path: NetworkPath) -> Bool { inputs.network?.links[path.link]?.medium == .loopback }
}
