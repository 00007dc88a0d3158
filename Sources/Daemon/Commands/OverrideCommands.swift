internal import API
internal import Config
internal import Core
internal import Linux
internal import Store

/// Commands that make exceptions from the policy for a while, and take them back.
struct OverrideCommands: Sendable {
    let context: Context
    let lifecycle: DaemonPhase
    let finder: UploadFinder
    let scheduler: Scheduler

    /// A year: a longer exception belongs in the configuration.
    private static let longest: Int64 = 366 * 86_400

    func allow(_ request: AllowRequest, by who: String) async throws -> OverridesReply {
        try lifecycle.requireReady()
        let words = Exemption.kinds.map(\.rawValue).sorted().joined(separator: ", ")
        var kinds = try request.kinds.map { word in
            guard let kind = Exemption.kinds.first(where: { $0.rawValue == word }) else {
                throw Refusal(.badRequest, "`\(printable(word))` cannot be allowed; allowed are: \(words)")
            }
            return kind
        }
        for name in request.rules ?? [] {
            if request.duration > 0 { try context.configuration.settings.requireOverridableRule(name) }
            kinds.append(.ruleNamed(name))
        }
        if kinds.isEmpty { throw Refusal(.badRequest, "name the kinds to allow (\(words)), or rules by their names") }
        guard (0...Self.longest).contains(request.duration) else {
            throw Refusal(.badRequest, "an exception lasts at most one year")
        }
        guard request.ids.isEmpty != (request.folder == nil) else {
            throw Refusal(.badRequest, "give ids or a folder")
        }
        try context.configuration.names.require(folder: request.folder, destination: nil)
        var things: [(OverrideRecord.Scope, String)] = request.folder.map { [(.folder, $0)] } ?? []
        var uploads: [UploadRecord] = []
        for row in try await finder.rows(Selection(ids: request.ids)) where !request.ids.isEmpty {
            if row.upload.state.isTerminal {
                throw Refusal(
                    .conflict, "\(row.upload.id) is \(row.upload.state.rawValue): an exception needs a waiting upload",
                    id: row.upload.id)
            }
            things.append((.upload, row.upload.id))
            uploads.append(row.upload)
        }
        let now = context.clocks.wall()
        let records = things.flatMap { scope, name in
            kinds.map {
                OverrideRecord(
                    scope: scope, name: name, kind: .exemption($0), since: now,
                    until: now.advanced(by: .seconds(request.duration)), who: who)
            }
        }
        var reply = try await put(records, isOver: request.duration == 0)
        if request.duration > 0 {
            let now = await scheduler.shown()
            let holds =
                if let folder = request.folder { self.holds(ofFolder: folder, now) } else {
                    uploads.flatMap { now.holds(on: $0.uploadClass, upload: $0.id) }
                }
            var remaining: [HoldView] = []
            for hold in holds.filter({ $0.rule?.isFixed == true }).map({ HoldView($0) })
            where !remaining.contains(hold) { remaining.append(hold) }
            if !remaining.isEmpty { reply.remaining = remaining }
        }
        return reply
    }

    private func holds(ofFolder name: String, _ now: PolicySnapshot) -> [Hold] {
        (context.configuration.folder(name)?.uploadTo ?? []).flatMap { now.holds(folder: name, destination: $0) }
    }

    func limit(_ request: LimitRequest, by who: String) async throws -> OverridesReply {
        try lifecycle.requireReady()
        let now = context.clocks.wall()
        guard let rate = request.rate else {
            if request.duration != nil {
                throw Refusal(
                    .badRequest, "removing a limit takes no `duration`: give `duration` with a `rate`, or neither")
            }
            return try await put(
                [OverrideRecord(scope: .all, name: "", kind: .rate(0), since: now, until: now, who: who)], isOver: true
            )
        }
        guard rate >= 0, let duration = request.duration, (1...Self.longest).contains(duration) else {
            throw Refusal(.badRequest, "a limit takes a rate and a duration of at most one year")
        }
        return try await put(
            [
                OverrideRecord(
                    scope: .all, name: "", kind: .rate(rate), since: now, until: now.advanced(by: .seconds(duration)),
                    who: who)
            ], isOver: false)
    }

    private func put(_ records: [OverrideRecord], isOver: Bool) async throws -> OverridesReply {
        var ended: [OverrideRecord]?
        if isOver {
            let now = context.clocks.wall()
            ended = try await context.store.read { try $0.overrides.all() }.filter { one in
                one.until > now && records.contains { $0.isAbout(one) }
            }
            try await context.store.write { try $0.overrides.clear(records) }
        } else {
            try await context.store.write { try $0.overrides.set(records) }
        }
        for record in records {
            context.log.notice(
                isOver ? "exception withdrawn" : "exception made",
                [
                    "scope": record.scope.rawValue, "name": record.name, "kind": OverrideView(record).kind,
                    "rule": OverrideView(record).rule,
                    "until": isOver ? nil : record.until.description, "by": record.author,
                ])
        }
        try await scheduler.reloadOverrides()
        return OverridesReply(
            exceptions: try await context.store.read { try $0.overrides.all() }.map { OverrideView($0) },
            ended: ended.map { $0.map { OverrideView($0) } })
    }
}

extension OverrideView {
    init(_ record: OverrideRecord) {
        let (kind, rule, rate): (String, String?, Int64?) =
            switch record.kind {
            case .exemption(.ruleNamed(let name)): (Exemption.rule.rawValue, name, nil)
            case .exemption(let exemption): (exemption.rawValue, nil, nil)
            case .rate(let bytes): ("rate", nil, bytes)
            case .unknown(let word): (word, nil, nil)
            }
        self.init(
            scope: record.scope.rawValue, name: record.scope == .all ? nil : record.name, kind: kind, rule: rule,
            rate: rate,
            since: record.since.description, until: record.until.description, by: record.author)
    }
}

extension Settings {
    /// - Throws: ``Refusal`` for a name that no rule has, and for a rule that says `override: never`.
    fileprivate func requireOverridableRule(_ name: String) throws(Refusal) {
        let rules = allRules.flatMap(\.namedRules)
        let named = rules.filter { $0.name == name }
        guard let first = named.first else {
            let names = Set(rules.map(\.name)).sorted()
            let near = closest(to: name, among: names).map { "did you mean `\(printable($0))`?" }
            throw Refusal(
                .notFound,
                "no rule is called `\(printable(name))`: "
                    + (near
                        ?? (names.isEmpty
                            ? "there is none"
                            : "there are: \(names.map { printable($0) }.joined(separator: ", "))"))
            )
        }
        guard named.contains(where: { $0.override == .allow }) else {
            throw Refusal(
                .conflict,
                "the rule `\(printable(name))` (\(first.place)) says `override: never`: change the configuration for an "
                    + "exception")
        }
    }
}
