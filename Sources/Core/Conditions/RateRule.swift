/// An item of `bandwidth`: a limit of the speed, always or while its condition holds.
package struct RateRule: Hashable, Sendable {
    /// `nil`: it has none.
    package var name: String?
    /// Bytes a second; 0: nothing is sent. `nil`: no limit.
    package var limit: Int64?
    /// `nil`: always.
    package var when: Condition?
    /// Where the configuration has it: `sluice.yaml:12`.
    package var place: String

    package init(name: String? = nil, limit: Int64?, when: Condition? = nil, place: String = "") {
        self.name = name
        self.limit = limit
        self.when = when
        self.place = place
    }

    /// Regardless of its place: a line more before it changes nothing.
    package static func == (one: RateRule, other: RateRule) -> Bool {
        one.name == other.name && one.limit == other.limit && one.when == other.when
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(limit)
        hasher.combine(when)
    }

    /// Whether it applies to all uploads of its place, or to none: only the time and the power supply decide.
    package var isForAll: Bool { when.map { !$0.tellsUploadsApart } ?? true }

    /// The rule that holds uploads where the limit is 0; `nil` for any other limit.
    var pause: PauseRule? {
        guard limit == 0 else { return nil }
        return PauseRule(.bandwidth, name: name ?? "bandwidth", when: when ?? .all([]), override: .never, place: place)
    }

    /// `, rule lte (sluice.yaml:12), while the network is lte`.
    package var condition: String {
        let named = name.map { ", rule `\($0)`" } ?? ""
        return named + (place.isEmpty ? "" : " (\(place))") + (when.map { ", while \($0.words)" } ?? "")
    }

    /// `2.0 MB/s while the network is lte`.
    package var words: String {
        let rate = limit.map { "\(shownBytes($0))/s" } ?? "no limit"
        return when.map { "\(rate) while \($0.words)" } ?? rate
    }
}

extension Condition {
    /// Whether it can hold for one upload and not for another at the same moment.
    package var tellsUploadsApart: Bool {
        predicates.contains { predicate in
            switch predicate {
            case .between, .onBattery, .batteryBelow, .hotterThan: false
            case .network, .metered, .interface, .ssid, .gateway, .roaming, .lan, .folder, .destination, .file: true
            }
        }
    }
}
