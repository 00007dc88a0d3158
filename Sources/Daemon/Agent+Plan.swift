internal import Config
internal import Core
internal import Linux
internal import Store

// What goes when: the backlog as the store has it, the rules as the dispatcher has them, and what is known of the speed.

extension Agent {
    package func plan(_ query: PlanQuery) async throws -> PlanView {
        let now = house.clocks.wall()
        if let until = query.until {
            guard until > now else { throw Refusal(.badRequest, "`until` is past: a plan is about what is to come") }
            guard until <= now.advanced(by: Plan.furthest) else {
                throw Refusal(.badRequest, "`until` is more than a year away: nobody can plan that far")
            }
        }
        let backlog = try await house.store.backlog()
        let rates = try await rates(query, Set(backlog.map(\.destination)))
        var question = try await dispatcher.question()
        let live = house.live
        question.queues = backlog.map { waiting in
            Plan.Queue(
                folder: waiting.folder, destination: waiting.destination,
                uploads: waiting.first.map { upload in
                    let acked = max(upload.acked, live[upload.id]?.acked ?? 0)
                    return Plan.Upload(
                        left: max(0, upload.size - acked), priority: upload.priority, isUnderWay: upload.isRunning)
                }, rest: waiting.rest + waiting.unstaged)
        }
        question.rates = Plan.Rates(
            everything: query.rate,
            destinations: query.rate == nil
                ? Dictionary(
                    rates.compactMap { rate in rate.destination.flatMap { name in rate.rate.map { (name, $0) } } }
                ) { $1 }
                : [:])
        question.until = query.until
        let asked = question
        // It may take a second, in which others have something to do.
        let plan = try await blocking { Plan(asked) }
        return PlanView(
            plan, rates: rates, backlog: backlog.map { ($0.unstaged.files, $0.paused.files) },
            notes: await notes(asked, rates))
    }

    private func rates(_ query: PlanQuery, _ destinations: Set<String>) async throws -> [PlanRateView] {
        if let rate = query.rate { return [PlanRateView(rate: rate, source: "given")] }
        let best = try await bestHours()
        return destinations.sorted().map { name in
            let (measured, used) = (house.live.speed(to: name), best[name])
            // What was measured a moment ago may have been under a limit that ends; what was reached once can be reached.
            if let measured, measured >= used ?? 0 {
                return PlanRateView(destination: name, rate: measured, source: "measured")
            }
            return PlanRateView(destination: name, rate: used, source: used == nil ? "unknown" : "usage")
        }
    }

    /// Bytes of files a second in the hour of the last week in which most went to a destination. Too little, where nothing
    /// went for a part of that hour.
    private func bestHours() async throws -> [String: Int64] {
        let since = house.clocks.wall().advanced(by: .seconds(-7 * 86_400))
        var hours: [String: [WallTime: Int64]] = [:]
        for row in try await house.store.usage(since: since) {
            hours[row.account.destination, default: [:]][row.at, default: 0] += row.spending.bytes
        }
        return hours.compactMapValues { hours in
            let most = (hours.values.max() ?? 0) / (100 + Plan.overhead) * 100 / 3600
            return most > 0 ? most : nil
        }
    }

    private func notes(_ question: Plan.Question, _ rates: [PlanRateView]) async -> [String] {
        var notes: [String] = []
        let unknown = rates.filter { $0.rate == nil }.compactMap(\.destination)
        if !unknown.isEmpty {
            notes.append(
                "no rate is known of \(unknown.joined(separator: ", ")), to which nothing was sent for a week: give one, like "
                    + "`sluice plan --rate '2 MB/s'`")
        }
        notes.append(
            "networks, destinations and pauses without an end are taken as they are now, and nothing new arrives")
        if await dispatcher.hasExceptions {
            notes.append("what `sluice allow` and `sluice limit` say for a while is left out")
        }
        if question.world.clockTrouble != nil {
            notes.append("the clock is not believed now, so what depends on it waits")
        }
        return notes
    }
}

extension Dispatcher {
    fileprivate var hasExceptions: Bool { !exceptions.isEmpty }

    /// All that a plan asks, but for the backlog and the rates.
    fileprivate func question() async throws -> Plan.Question {
        try await house.ledger.look()
        let settings = house.settings
        // Paused folders may have been taken out of the configuration, as far as anything of them still waits.
        let names = settings.folders.map(\.watch.name)
        let gone = pauses.filter { $0.scope == .folder && !names.contains($0.name) }.map(\.name)
        let slots = settings.folders.compactMap { folder in folder.policy.concurrency.map { (folder.watch.name, $0) } }
        return Plan.Question(
            admission: admission, world: world, remotes: settings.destinations.map { remote($0.name) },
            // What a person lets off for a while ends, and a plan must not count on it.
            origins: (names + gone).map { name in
                var origin = origin(name)
                origin.excused = []
                return origin
            },
            folderSlots: Dictionary(slots, uniquingKeysWith: { $1 }), queues: [], rates: Plan.Rates())
    }
}
