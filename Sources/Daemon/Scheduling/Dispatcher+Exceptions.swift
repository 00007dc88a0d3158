internal import Config
internal import Core
internal import Linux
internal import Store

// What a person lets something off for a while, and what follows.

extension Dispatcher {
    /// Those that count now. A clock that was set back behind a person's word does not make it last longer: until then it does
    /// not count.
    var standing: [ExceptionRecord] {
        let now = house.clocks.wall()
        return exceptions.filter { $0.since <= now && $0.until > now }
    }

    func excuses(_ scope: ExceptionRecord.Scope, _ name: String) -> Set<Excuse> {
        Set(
            standing.compactMap { exception in
                guard exception.scope == scope, exception.name == name, case .excuse(let excuse) = exception.kind
                else { return nil }
                return excuse
            })
    }

    /// Uploads with excuses of their own, by their ids.
    var excusedUploads: [(id: String, excuses: Set<Excuse>)] {
        Set(exceptions.filter { $0.scope == .upload }.map(\.name)).sorted().map { ($0, excuses(.upload, $0)) }
    }

    /// What a person lets an upload off, and its folder.
    func origin(_ folder: String, of upload: String) -> Admission.Origin {
        var origin = origin(folder)
        origin.excused.formUnion(excuses(.upload, upload))
        return origin
    }

    /// Where the files of a transfer come from, each once.
    func origins(of transfer: Transfer) -> [Admission.Origin] {
        Array(Set(transfer.folders.map { origin($0.value, of: $0.key) }))
    }

    /// Bytes a second that a person lets all transfers have; `nil` for no word.
    var personalLimit: Int64? {
        standing.compactMap { exception -> Int64? in
            if case .rate(let rate) = exception.kind { rate } else { nil }
        }.min()
    }

    /// A person lets nothing go for a while.
    var standstill: Admission.Pause? {
        let stops = standing.filter { $0.kind == .rate(0) }
        guard let since = stops.map(\.since).min(), let until = stops.map(\.until).max() else { return nil }
        return Admission.Pause(since: since, until: until)
    }

    /// Those that are over are forgotten, and that is said.
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

    /// Reads the exceptions again: a person changed them.
    func reloadExceptions() async throws {
        exceptions = try await house.store.exceptions()
        setLimits()
        stopForbidden()
        house.dispatchBell.ring()
    }
}
