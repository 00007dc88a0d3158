/// What the rules say about one class of uploads at a moment that a person names, over a network that a person
/// describes. Whatever is not part of the configuration (a pause, a full quota, a destination's failure) holds nothing;
/// a quota of 0 is full whatever was sent.
package struct PolicyQuestion: Sendable {
    private let admission: Admission
    private let inputs: Admission.PolicyInputs
    private let remote: Admission.DestinationState
    private let folder: Admission.FolderState

    /// - Parameter power: `nil`: unknown. `.some(nil)`: without a battery.
    package init(
        _ rules: PolicyRules, to destination: (name: String, rules: PolicyRules),
        from folder: (name: String, rules: PolicyRules), of file: FileAnswers, over way: Reachability, at now: WallTime,
        in zone: Zone, power: Power??, temperature: Temperature
    ) {
        admission = Admission(total: 1, rules: rules)
        var inputs = Admission.PolicyInputs(
            now: now, monotonic: MonotonicTime(nanoseconds: 0), zone: zone, running: 0, everything: nil)
        inputs.power = power ?? nil
        inputs.knowsPower = power != nil
        inputs.temperature = temperature
        // Every source of `busy` says that the machine is free.
        for rule in [rules, destination.rules, folder.rules] {
            if let source = rule.busy?.source { inputs.busy[source] = BusyAnswer(.free, since: now) }
        }
        inputs.quotas = QuotaState(
            policy: Self.emptyQuotas(rules), destinations: [(destination.name, Self.emptyQuotas(destination.rules))],
            folders: [(folder.name, Self.emptyQuotas(folder.rules))])
        for recount in inputs.quotas.advance(to: now, in: zone) {
            inputs.quotas.recount(recount, spent: .none, at: now)
        }
        self.inputs = inputs
        remote = Admission.DestinationState(
            name: destination.name, slots: 1, running: 0, pause: nil, health: DestinationHealth(),
            rules: destination.rules, reachability: way, reachabilitySince: now)
        self.folder = Admission.FolderState(name: folder.name, file: file, rules: folder.rules)
    }

    package struct Answer: Hashable, Sendable {
        /// Empty: it goes.
        package var holds: [Hold]
        /// When it begins or ceases to go, by time alone; `nil` where that is not within ``furthest``.
        package var changes: WallTime?
        /// What holds it from then on.
        package var later: [Hold]
        /// The lowest limit in bytes a second, and the place that has it; `nil` for no limit, and where it does not go.
        package var limit: Limit?
    }

    package struct Limit: Hashable, Sendable {
        package var rate: Int64
        /// `policy`, `destinations.nas`, `folder door`.
        package var place: String
        /// `bandwidth`.
        package var key: String
    }

    /// How far ahead a change is searched.
    package static let furthest = Duration.seconds(8 * 86_400)

    package var answer: Answer {
        let holds = holds(at: inputs)
        var later = inputs
        let end = inputs.now.advanced(by: Self.furthest)
        while let next = admission.nextChange([remote], [folder], in: later), next > later.now, next <= end {
            later.now = next
            let then = self.holds(at: later)
            if then.isEmpty != holds.isEmpty {
                return Answer(holds: holds, changes: next, later: then, limit: holds.isEmpty ? limit : nil)
            }
        }
        return Answer(holds: holds, changes: nil, later: [], limit: holds.isEmpty ? limit : nil)
    }

    /// The same rules with those quotas alone that allow nothing.
    private static func emptyQuotas(_ rules: PolicyRules) -> PolicyRules {
        var rules = rules
        rules.quotas.removeAll { !$0.allowsNothing }
        return rules
    }

    private func holds(at inputs: Admission.PolicyInputs) -> [Hold] {
        admission.hardBlockers(on: remote, from: folder, in: inputs)
    }

    private var limit: Limit? {
        var limits: [Limit] = []
        if case .open(let route) = admission.routeDecision(to: remote, from: folder, in: inputs) {
            limits += route.applied.rates.compactMap { rate in
                rate.rule.limit.map { Limit(rate: $0, place: rate.place.words, key: "bandwidth") }
            }
        }
        for place in admission.places(remote, folder) {
            if let rate = place.rules.limit(in: inputs) {
                limits.append(Limit(rate: rate, place: place.name, key: "bandwidth"))
            }
        }
        return limits.min { $0.rate < $1.rate }
    }
}
