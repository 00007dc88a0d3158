/// The rules of one place of the configuration: `policy`, a destination, or a folder. All three have to allow an
/// upload.
package struct PolicyRules: Hashable, Sendable {
    /// `windows`: nothing is sent outside them.
    package var windowRule: PauseRule?
    /// A transfer draws from the limits of all that apply to it; each is shared by all transfers of this place that it
    /// applies to.
    package var bandwidth: [RateRule]
    /// Limits of how many uploads run at once, with conditions.
    package var concurrency: [ConcurrencyRule]
    /// Nothing is sent that any of them describes.
    package var pauses: [PauseRule]
    /// `metered: pause`.
    package var meteredRule: PauseRule?
    /// `nil` has no opinion; where no place has one, an unknown network counts as metered.
    package var meteredUnknown: UnknownNetwork?
    /// The first rule with an opinion about a network counts, and of the three places the strictest.
    package var networks: [NetworkRule]
    /// No upload is sent that would count in an exhausted one; ``QuotaState`` counts.
    package var quotas: [Quota]
    /// Files that were found longer ago are not sent any more; the shortest of the three places counts (``Expiry``).
    package var expiresAfter: Duration?
    /// No upload is sent while this source says that the machine is busy. `nil` has no opinion.
    package var busy: BusyRule?

    package init(
        windows: [Window] = [], bandwidth: [RateRule] = [], concurrency: [ConcurrencyRule] = [],
        pauses: [PauseRule] = [], metered: MeteredRule? = nil,
        meteredUnknown: UnknownNetwork? = nil, networks: [NetworkRule] = [], quotas: [Quota] = [],
        expiresAfter: Duration? = nil, busy: BusyRule? = nil
    ) {
        windowRule = windows.isEmpty ? nil : .windows(windows)
        self.bandwidth = bandwidth
        self.concurrency = concurrency
        self.pauses = pauses
        meteredRule = metered == .pause ? .metered() : nil
        self.meteredUnknown = meteredUnknown
        self.networks = networks
        self.quotas = quotas
        self.expiresAfter = expiresAfter
        self.busy = busy
    }

    /// Bytes may be sent while any of them is open; always, where there is none.
    package var windows: [Window] { windowRule?.windows ?? [] }

    /// Every condition of its rules.
    package var conditions: [Condition] {
        placedConditions.map(\.condition)
    }

    /// The same with the place of each rule in the configuration: `sluice.yaml:12`.
    package var placedConditions: [(condition: Condition, place: String)] {
        var found = namedRules.map { ($0.when, $0.place) }
        found += bandwidth.compactMap { rule in rule.when.map { ($0, rule.place) } }
        found += quotas.compactMap { quota in quota.when.map { ($0, quota.place) } }
        return found + concurrency.map { ($0.when, $0.place) }
    }

    /// Whether a rule besides those that hold uploads can apply to one upload and not to another.
    var hasLimitsByUpload: Bool {
        bandwidth.contains { !$0.isForAll } || quotas.contains { $0.when != nil } || !concurrency.isEmpty
    }

    /// Whether no rule depends on the wall clock.
    package var isTimeless: Bool {
        quotas.isEmpty && expiresAfter == nil && conditions.allSatisfy { !$0.dependsOnTime }
    }

    /// The limit of all uploads of this place together, in bytes a second; `nil` for no limit. Limits whose conditions
    /// tell uploads apart are among ``AppliedRules``.
    package func limit(in inputs: Admission.PolicyInputs) -> Int64? {
        let always = bandwidth.filter { $0.when == nil }.compactMap(\.limit)
        let timed = bandwidth.filter { $0.when != nil && $0.isForAll }
        if timed.isEmpty { return always.min() }
        let facts = inputs.commonFacts
        return (always + timed.compactMap { $0.when?.truth(facts).mayHold == true ? $0.limit : nil }).min()
    }

    /// - Parameter place: The place of the rules, for people: `policy`, `destinations.nas`, `folder door`.
    func holds(_ place: String, in inputs: Admission.PolicyInputs, excusing exempt: Set<Exemption> = []) -> [Hold] {
        (exempt.contains(.quota) ? [] : [clockHold(inputs)].compactMap { $0 })
            + busyHolds(place, in: inputs)
    }

    /// It is unknown in which period of the calendar bytes would count.
    private func clockHold(_ inputs: Admission.PolicyInputs) -> Hold? { quotas.isEmpty ? nil : inputs.clockTrouble }

    /// When a rule begins or ends to forbid, or another limit applies.
    func nextChange(in inputs: Admission.PolicyInputs) -> WallTime? {
        if isTimeless || inputs.clockTrouble != nil { return nil }
        let facts = inputs.commonFacts
        let (timed, mixed) = (conditions.filter(\.dependsOnTimeOnly), conditions.filter { !$0.dependsOnTimeOnly })
        // With other facts, a mixed one may change at any of its times.
        let others = Timetable(mixed.flatMap(\.windows)) { $0 }.nextChange(after: inputs.now, in: inputs.zone)
        return (timed.map { $0.nextChange(facts) } + [others]).compactMap { $0 }.min()
    }
}

extension Admission.PolicyInputs {
    /// The hold of the clock is reported once, regardless of how many rules depend on it.
    func withoutDuplicates(_ holds: [Hold]) -> [Hold] {
        var seen: Set<Hold> = []
        return holds.filter { seen.insert($0).inserted }
    }
}
