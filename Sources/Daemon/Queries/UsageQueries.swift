internal import API
internal import Config
internal import Core
internal import Linux
internal import Store

/// Reports bytes that were sent and received, and the rest of each quota.
struct UsageQueries: Sendable {
    let context: Context
    let scheduler: Scheduler
    let ledger: Ledger

    /// The space and quotas that are left for a destination, or for each.
    ///
    /// Uses known values only: no destination is queried.
    func allowances(of destination: String?) async throws -> [AllowanceView] {
        try context.configuration.names.require(folder: nil, destination: destination)
        let snapshot = await scheduler.snapshot
        let now = context.clocks.wall()
        var views: [AllowanceView] = []
        for name in snapshot.settings.destinations.map(\.name) where destination ?? name == name {
            var query = UsageQuery()
            query.destination = name
            views.append(
                AllowanceView(
                    destination: name, space: snapshot.space(at: name),
                    // No quota counts copies within this machine.
                    quotas: snapshot.isFolderHere(name) ? [] : try await quotas(query, now)))
        }
        return views
    }

    func usage(_ query: UsageQuery) async throws -> UsageView {
        guard (0...UsageQuery.maxDays).contains(query.days) else {
            throw Refusal(.badRequest, "days is `\(query.days)`; it must be from 0 to \(UsageQuery.maxDays)")
        }
        guard (0...UsageQuery.maxMonths).contains(query.months) else {
            throw Refusal(.badRequest, "months is `\(query.months)`; it must be from 0 to \(UsageQuery.maxMonths)")
        }
        guard (0...UsageQuery.maxMinutes).contains(query.minutes) else {
            throw Refusal(.badRequest, "minutes is `\(query.minutes)`; it must be from 0 to \(UsageQuery.maxMinutes)")
        }
        let grouping = try query.by.map { word in
            guard let grouping = UsageGrouping(rawValue: word) else {
                let words = UsageGrouping.allCases.map(\.rawValue).joined(separator: ", ")
                throw Refusal(.badRequest, "cannot group by `\(word)`; there are: \(words)")
            }
            return grouping
        }
        let moment = context.clocks.readBoth()
        let now = moment.wall
        let days = UsageSum.stretches(of: .day, query.days, upTo: now, in: .local)
        let months = UsageSum.stretches(of: .month(startsOn: 1), query.months, upTo: now, in: .local)
        let since = [days.first, months.first].compactMap { $0?.lowerBound }.min() ?? now
        let entered = try await context.store.read { try $0.ledger.usage(since: since) }
        let rows =
            entered + ledger.open.unentered.map { UsageRow(at: now, account: $0.key, spending: $0.spending) }
        try check("destination", query.destination, context.settings.destinations.map(\.name), rows) { $0.destination }
        try check("folder", query.folder, context.configuration.folderNames, rows) { $0.folder }
        func isMeant(_ row: UsageRow) -> Bool {
            (query.destination == nil || row.account.destination == query.destination)
                && (query.folder == nil || row.account.folder == query.folder)
        }
        func views(
            _ rows: [UsageRow], _ stretches: [Range<WallTime>], _ name: (WallTime) -> String
        ) -> [UsagePeriodView] {
            UsageSum.sums(of: rows, in: stretches, by: grouping).map { sum in
                UsagePeriodView(
                    name: name(sum.stretch.lowerBound),
                    from: sum.stretch.lowerBound.description, until: sum.stretch.upperBound.description,
                    bytes: sum.total.bytes, received: sum.total.received, files: sum.total.files,
                    parts: grouping == nil
                        ? nil
                        : sum.parts.map {
                            UsagePartView(
                                name: $0.name, bytes: $0.spending.bytes, received: $0.spending.received,
                                files: $0.spending.files)
                        })
            }
        }
        let meant = rows.filter(isMeant)
        func day(_ time: WallTime) -> String { Zone.local.localTime(at: time).day.description }
        return UsageView(
            days: views(meant, days, day), months: views(meant, months) { String(day($0).dropLast(3)) },
            minutes: query.minutes == 0
                ? nil
                : views(
                    ledger.recent.rows(at: moment).filter(isMeant),
                    ledger.recent.stretches(query.minutes, at: moment)
                ) {
                    // After a correction of the clock a minute may begin some seconds before one of the wall clock.
                    String(LocalTime($0.advanced(by: .seconds(30))).clock.prefix(5))
                },
            by: grouping?.rawValue, quotas: try await quotas(query, now))
    }

    /// Without this check, a misspelt name would look like one without traffic.
    private func check(
        _ what: String, _ name: String?, _ known: [String], _ rows: [UsageRow], _ of: (SpendingAccount) -> String?
    ) throws {
        guard let name, !known.contains(name), !rows.contains(where: { of($0.account) == name }) else { return }
        if what == "folder" { try context.configuration.names.requireNoPattern(name) }
        let near = closest(to: name, among: known)
        throw Refusal(
            .notFound, "no \(what) is called `\(printable(name))`" + (near.map { "; did you mean `\($0)`?" } ?? ""))
    }

    /// The quotas that apply to the request.
    private func quotas(_ query: UsageQuery, _ now: WallTime) async throws -> [QuotaView] {
        let settings = context.settings
        var quotas = QuotaState(
            policy: settings.policy.rules,
            destinations: settings.destinations.filter { query.destination ?? $0.name == $0.name }.map {
                ($0.name, $0.policy.rules)
            },
            folders: settings.folders.filter { query.folder ?? $0.watch.name == $0.watch.name }.map {
                ($0.watch.name, $0.policy.rules)
            })
        var views: [QuotaView] = []
        for (recount, line) in zip(quotas.advance(to: now, in: .local), quotas.lines) {
            let (spent, reserved) = try await context.store.read {
                (try $0.ledger.spent(for: recount), try $0.ledger.reserved(for: recount))
            }
            views += line.views(spent, reserved)
        }
        return views
    }
}

extension QuotaState.Line {
    /// One view for each of its limits.
    fileprivate func views(_ spent: Spending, _ reserved: Spending) -> [QuotaView] {
        guard let stretch else { return [] }
        let direction = quota.direction
        let limits = [
            (
                "bytes", direction, quota.byteWords, quota.bytes, direction.bytes(of: spent),
                direction.bytes(of: reserved)
            ),
            ("files", .sent, quota.fileWords, quota.files, spent.files, reserved.files),
        ]
        return limits.compactMap { counts, direction, words, limit, used, reserved in
            guard let words, let limit else { return nil }
            return QuotaView(
                place: place.words, text: words, counts: counts, name: quota.name, when: quota.when?.words,
                direction: direction.rawValue, limit: limit,
                used: used, reserved: reserved, left: max(0, limit - min(limit, used) - reserved),
                from: stretch.lowerBound.description, until: stretch.upperBound.description)
        }
    }
}
