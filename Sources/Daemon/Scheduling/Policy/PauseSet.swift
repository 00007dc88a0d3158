internal import Core
internal import Store

/// The subject of a pause that is not about a single upload.
struct PauseScope: Hashable, Sendable {
    var scope: PauseRecord.Scope
    /// Empty for all uploads.
    var name: String
}

/// The pauses that people have set, and which of them let the parts that are being sent arrive.
struct PauseSet: Sendable, RecordsChanges {
    private(set) var records: [PauseRecord] = []
    var changes: FactChanges = []
    /// The pauses that cut no running transfer.
    private var draining: Set<PauseScope> = []
    /// Whether pauses that cut no running transfer count here.
    private var countsDraining = true

    /// The pauses as they are stored now.
    mutating func replace(_ records: [PauseRecord]) {
        if records != self.records { changes.formUnion([.policy, .scheduling, .removals, .notices]) }
        self.records = records
    }

    /// Marks the pauses of these places, which are about to be set: they cut no running transfer.
    mutating func drain(_ places: [PauseScope]) { setDraining(draining.union(places)) }

    /// Unmarks the pauses of these places: they cut running transfers, or are over.
    mutating func stopDraining(_ places: [PauseScope]) { setDraining(draining.subtracting(places)) }

    private mutating func setDraining(_ places: Set<PauseScope>) {
        if places != draining { changes.insert(.policy) }
        draining = places
    }

    /// The same pauses, without those that cut no running transfer.
    var cutting: PauseSet {
        var cutting = self
        cutting.countsDraining = false
        return cutting
    }

    /// The pause of exactly this place; `nil` for none.
    func pause(_ scope: PauseRecord.Scope, _ name: String) -> Admission.Pause? {
        if !countsDraining, draining.contains(PauseScope(scope: scope, name: name)) { return nil }
        return records.first { $0.holds(scope, name) }.map { Admission.Pause(since: $0.since, until: $0.until) }
    }

    /// Whether a pause holds the uploads from a folder to a destination.
    func holds(folder: String, destination: String) -> Bool {
        pause(.all, "") != nil || pause(.folder, folder) != nil || pause(.destination, destination) != nil
    }

    func expired(at now: WallTime) -> [PauseRecord] { records.filter { $0.until.map { $0 <= now } ?? false } }

    /// When pauses end by themselves.
    var ends: [WallTime] { records.compactMap(\.until) }
}
