internal import Config
internal import Core
internal import Linux
internal import Store

// Rules that a person waives for a while, and the consequences.

extension Scheduler {
    /// The exceptions in force. An exception does not last longer because the clock was set back to before its
    /// creation: until that time is reached again, it does not count.
    var overrides: [OverrideRecord] {
        let now = house.clocks.wall()
        return exceptions.filter { $0.since <= now && $0.until > now }
    }

    func exemptions(_ scope: OverrideRecord.Scope, _ name: String) -> Set<Exemption> {
        Set(
            overrides.compactMap { exception in
                guard exception.scope == scope, exception.name == name, case .exemption(let exemption) = exception.kind
                else { return nil }
                return exemption
            })
    }

    /// Uploads with excuses of their own, by their ids.
    var excusedUploads: [(id: String, exemptions: Set<Exemption>)] {
        Set(exceptions.filter { $0.scope == .upload }.map(\.name)).sorted().map { ($0, exemptions(.upload, $0)) }
    }

    /// The folder of an upload, with the excuses that a person gave the upload.
    func origin(_ folder: String, of upload: String) -> Admission.FolderState {
        var origin = origin(folder)
        origin.exempt.formUnion(exemptions(.upload, upload))
        return origin
    }

    /// The folders of a transfer's files, each once.
    func origins(of transfer: Transfer) -> [Admission.FolderState] {
        Array(Set(transfer.folders.map { origin($0.value, of: $0.key) }))
    }

    /// The limit in bytes a second that a person set for all transfers; `nil` for none.
    var personalLimit: Int64? {
        overrides.compactMap { exception -> Int64? in
            if case .rate(let rate) = exception.kind { rate } else { nil }
        }.min()
    }

    /// The pause of all uploads that a person set for a while.
    var globalStop: Admission.Pause? {
        let stops = overrides.filter { $0.kind == .rate(0) }
        guard let since = stops.map(\.since).min(), let until = stops.map(\.until).max() else { return nil }
        return Admission.Pause(since: since, until: until)
    }

    /// Removes exceptions that are over, and reports it.
    func expireExceptions() async throws {
        let now = house.clocks.wall()
        let over = exceptions.filter { $0.until <= now }
        if !over.isEmpty {
            try await house.store.clearExceptions(over)
            for exception in over {
                house.log.notice(
                    "an exception is over",
                    ["scope": exception.scope.rawValue, "name": exception.name, "by": exception.who])
            }
        }
        exceptions = try await house.store.exceptions()
    }

    /// Reads the exceptions again after a person has changed them.
    func reloadExceptions() async throws {
        exceptions = try await house.store.exceptions()
        setLimits()
        stopForbidden()
        house.schedulingSignal.signal()
    }
}
