internal import API
internal import Config
internal import Core
internal import Linux
internal import Store

/// Corrects the usage of a quota with a condition, where a person knows better: the provider counts differently, or
/// other devices share the contract.
struct UsageCommands: Sendable {
    let context: Context
    let lifecycle: DaemonPhase
    let scheduler: Scheduler
    let ledger: Ledger

    func set(_ request: UsageChangeRequest, by who: String) async throws -> UsageChangeView {
        try lifecycle.requireReady()
        let (recount, line) = try quota(request)
        let counts: String
        let used: Int64
        switch (request.bytes, request.files) {
        case (let bytes?, nil) where line.quota.bytes != nil: (counts, used) = ("bytes", bytes)
        case (nil, let files?) where line.quota.files != nil: (counts, used) = ("files", files)
        case (_?, nil): throw Refusal(.badRequest, "the quota `\(request.name)` counts no bytes; give `files`")
        case (nil, _?): throw Refusal(.badRequest, "the quota `\(request.name)` counts no files; give `bytes`")
        default: throw Refusal(.badRequest, "give `bytes` or `files`")
        }
        guard used >= 0 else { throw Refusal(.badRequest, "a usage is not negative") }
        let before = try await ledger.set(recount, of: line, counts: counts, to: used, by: who)
        let view = UsageChangeView(
            place: line.place.words, name: request.name, counts: counts, before: before, used: used,
            from: recount.since.description, by: who)
        context.log.notice(
            "usage set",
            [
                "place": view.place, "name": view.name, "counts": counts, "from": "\(before)", "to": "\(used)",
                "by": who,
            ])
        scheduler.signals.wake(for: FactChanges.scheduling)
        return view
    }

    private func quota(_ request: UsageChangeRequest) throws -> (QuotaState.Recount, QuotaState.Line) {
        var quotas = context.settings.quotas(after: nil)
        let all = Array(zip(quotas.advance(to: context.clocks.wall(), in: .local), quotas.lines)).filter {
            $0.0.name != nil
        }
        let named = all.filter { $0.1.quota.name == request.name }
        let found = named.filter { request.place ?? $0.1.place.words == $0.1.place.words }
        if found.count == 1 { return found[0] }
        // Without a place the one of all uploads is meant.
        if request.place == nil, let own = found.first(where: { $0.1.place == .policy }) { return own }
        if found.count > 1 {
            let places = found.map { "`\($0.1.place.words)`" }.joined(separator: ", ")
            throw Refusal(
                .badRequest, "several quotas are called `\(printable(request.name))`; name the place: \(places)")
        }
        let near = closest(to: request.name, among: all.compactMap(\.1.quota.name))
        throw Refusal(
            .notFound,
            "no quota with a condition is called `\(printable(request.name))`"
                + (request.place.map { " in \(printable($0))" } ?? "")
                + (near.map { "; did you mean `\($0)`?" } ?? ""))
    }
}
