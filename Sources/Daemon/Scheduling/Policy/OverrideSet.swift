internal import Core
internal import Store

/// The exceptions that people have made for a while: rules that do not apply to a folder or an upload, and limits of
/// the total rate.
struct OverrideSet: Sendable, RecordsChanges {
    private(set) var records: [OverrideRecord] = []
    var changes: FactChanges = []

    /// The exceptions as they are stored now.
    mutating func replace(_ records: [OverrideRecord]) {
        if records != self.records { changes.formUnion([.policy, .scheduling]) }
        self.records = records
    }

    /// The exceptions of uploads that have ended are over.
    mutating func end(ofUploads ids: Set<String>) {
        replace(records.filter { $0.scope != .upload || !ids.contains($0.name) })
    }

    /// The exceptions in force. An exception does not last longer because the clock was set back to before its
    /// creation: until that time is reached again, it does not count.
    func active(at now: WallTime) -> [OverrideRecord] { records.filter { $0.since <= now && $0.until > now } }

    func exemptions(_ scope: OverrideRecord.Scope, _ name: String, at now: WallTime) -> Set<Exemption> {
        Set(
            active(at: now).compactMap { record in
                guard record.scope == scope, record.name == name, case .exemption(let exemption) = record.kind
                else { return nil }
                return exemption
            })
    }

    /// The uploads with exemptions of their own, by id.
    func exemptUploads(at now: WallTime) -> [(id: String, exemptions: Set<Exemption>)] {
        Set(records.filter { $0.scope == .upload }.map(\.name)).sorted().map { ($0, exemptions(.upload, $0, at: now)) }
    }

    /// The limit in bytes a second for all transfers together; `nil` for none.
    func rateLimit(at now: WallTime) -> Int64? {
        active(at: now).compactMap { record -> Int64? in
            if case .rate(let rate) = record.kind { rate } else { nil }
        }.min()
    }

    /// The pause of all uploads by a limit of zero.
    func globalStop(at now: WallTime) -> Admission.Pause? {
        let stops = active(at: now).filter { $0.kind == .rate(0) }
        guard let since = stops.map(\.since).min(), let until = stops.map(\.until).max() else { return nil }
        return Admission.Pause(since: since, until: until)
    }

    func expired(at now: WallTime) -> [OverrideRecord] { records.filter { $0.until <= now } }

    /// When exceptions end by themselves.
    var ends: [WallTime] { records.map(\.until) }
}
