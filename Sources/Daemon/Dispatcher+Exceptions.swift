internal import Config
internal import Core
internal import Linux
internal import Store

// What a person lets something off for a while, and what follows.

extension Dispatcher {
    /// A clock that was set back behind the word does not make it last longer: until then it does not count.
    func excuses(_ scope: ExceptionRecord.Scope, _ name: String) -> Set<Excuse> {
        let now = house.clocks.wall()
        return Set(
            exceptions.compactMap { exception in
                guard exception.scope == scope, exception.name == name, exception.since <= now,
                    case .excuse(let excuse) = exception.kind
                else {
                    return nil
                }
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
        exceptions.compactMap { exception -> Int64? in
            if case .rate(let rate) = exception.kind { rate } else { nil }
        }.min()
    }

    /// Folders whose files may go to a destination though the others wait; `nil` for none.
    ///
    /// - Returns: How many may start, and all folders but those.
    func excusedFolders(for destination: String) async throws -> (free: Int, others: [String])? {
        let excused = Set(exceptions.filter { $0.scope == .folder }.map(\.name))
        if excused.isEmpty { return nil }
        let (admission, world, remote) = (admission, world, remote(destination))
        var free = 0
        var going: Set<String> = []
        for name in excused {
            guard case .go(let slots) = admission.verdict(for: remote, from: origin(name), in: world) else { continue }
            free = max(free, slots)
            going.insert(name)
        }
        if going.isEmpty { return nil }
        // Folders that are no longer configured have uploads as well.
        let all = Set(
            house.settings.folders.map(\.watch.name) + (try await house.store.folders(waitingFor: destination)))
        return (free, Array(all.subtracting(going)))
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
