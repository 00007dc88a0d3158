internal import Config
internal import Core
internal import Store

/// What rules of `concurrency` leave to uploads to one destination: the limits of folders, and those with conditions.
struct ConditionalSlots {
    /// The files of which no upload may begin, because as many run as may.
    private(set) var full: Set<FileClass>
    /// The rules with conditions that are the reason.
    private(set) var rules: [FileClass: AppliedRules.Slots] = [:]
    /// How many uploads of the other files may begin.
    private(set) var room = Int.max

    init(
        to name: String, from files: Set<FileClass>, exempting exemptions: Set<Exemption> = [],
        _ snapshot: PolicySnapshot
    ) {
        let folders = snapshot.fullFolders
        full = files.filter { folders.contains($0.folder) }
        guard snapshot.settings.allRules.contains(where: { !$0.concurrency.isEmpty }) else { return }
        let (used, state) = (Self.used(snapshot), snapshot.destination(name))
        for one in files {
            let folder = snapshot.folder(one, exempting: exemptions)
            guard case .open(let route) = snapshot.routeDecision(to: state, from: folder) else { continue }
            if let slots = route.applied.full(used) {
                rules[one] = slots
                full.insert(one)
            } else if let own = route.applied.room(used) {
                room = min(room, own)
            }
        }
    }

    /// The number of running transfers that use the slots of each rule.
    private static func used(_ snapshot: PolicySnapshot) -> [AppliedRules.Slots: Int] {
        var used: [AppliedRules.Slots: Int] = [:]
        for transfer in snapshot.transfers.all {
            let applied = snapshot.appliedRules(to: transfer).values.reduce(into: AppliedRules()) { $0.formUnion($1) }
            for slots in applied.slots { used[slots, default: 0] += 1 }
        }
        return used
    }
}
