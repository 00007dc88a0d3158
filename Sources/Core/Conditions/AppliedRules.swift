/// A place of the configuration that has rules.
package enum RulePlace: Hashable, Sendable {
    case policy
    case destination(String)
    case folder(String)

    /// The name in holds: `destinations.nas`.
    package var words: String {
        switch self {
        case .policy: "policy"
        case .destination(let name): "destinations.\(name)"
        case .folder(let name): "folder \(name)"
        }
    }
}

/// The rules with conditions that apply to bytes of one class on one route, besides those that hold them.
///
/// A rule applies when its condition holds, and when that is unknown.
package struct AppliedRules: Hashable, Sendable {
    /// A limit of the speed that all bytes share to which it applies.
    package struct Rate: Hashable, Sendable {
        package var place: RulePlace
        package var rule: RateRule

        package init(place: RulePlace, rule: RateRule) {
            self.place = place
            self.rule = rule
        }
    }

    package var rates: Set<Rate> = []
    /// The quotas with conditions.
    package var quotas: Set<QuotaName> = []
    /// The limits of how many run at once, with conditions.
    package var slots: Set<Slots> = []

    package init() {}

    package var isEmpty: Bool { self == AppliedRules() }

    /// The lowest of the limits, in bytes a second.
    package var lowestRate: Int64? { rates.compactMap(\.rule.limit).min() }

    /// Joins the rules of several uploads that travel together.
    package mutating func formUnion(_ other: AppliedRules) {
        rates.formUnion(other.rates)
        quotas.formUnion(other.quotas)
        slots.formUnion(other.slots)
    }
}

extension Admission {
    /// The rules that apply on a route.
    func appliedRules(
        _ remote: DestinationState, _ folder: FolderState?, over way: ConditionFacts.Way, in inputs: PolicyInputs
    ) -> AppliedRules {
        var applied = AppliedRules()
        let places = places(remote, folder)
        guard places.contains(where: { $0.rules.hasLimitsByUpload }) else { return applied }
        let facts = facts(remote, folder, over: way, in: inputs)
        for place in places {
            for rule in place.rules.bandwidth where rule.limit != nil && !rule.isForAll {
                guard let when = rule.when, when.truth(facts).mayHold else { continue }
                applied.rates.insert(AppliedRules.Rate(place: place.place, rule: rule))
            }
            for rule in place.rules.concurrency where rule.when.truth(facts).mayHold {
                applied.slots.insert(AppliedRules.Slots(place: place.place, rule: rule))
            }
            for quota in place.rules.quotas {
                guard let name = quota.name, let when = quota.when, when.truth(facts).mayHold else { continue }
                applied.quotas.insert(QuotaName(place.place, name))
            }
        }
        return applied
    }

    /// The facts by which conditions are judged.
    func facts(
        _ remote: DestinationState, _ folder: FolderState?, over way: ConditionFacts.Way, in inputs: PolicyInputs
    ) -> ConditionFacts {
        ConditionFacts(
            now: inputs.now, zone: inputs.zone, knowsTime: inputs.clockTrouble == nil, power: inputs.power,
            knowsPower: inputs.knowsPower, temperature: inputs.temperature,
            folders: [folder?.name, folder?.pattern].compactMap { $0 },
            destination: remote.name,
            file: folder?.file ?? .noFile, way: way, networks: rules.networks.filter { $0.name != nil })
    }
}

extension Admission.PolicyInputs {
    /// The facts for conditions that do not tell uploads apart.
    package var commonFacts: ConditionFacts {
        ConditionFacts(
            now: now, zone: zone, knowsTime: clockTrouble == nil, power: power, knowsPower: knowsPower,
            temperature: temperature, folders: [], destination: "",
            file: .noFile, way: .unseen(Admission.notExamined), networks: [])
    }
}
