/// The rules of one place of the configuration: `policy`, a destination, or a folder. All three have to allow an
/// upload.
package struct PolicyRules: Hashable, Sendable {
    /// Bytes may be sent while any of them is open; always, where there is none.
    package var windows: [Window]
    /// The strictest of the rules that apply now counts.
    package var bandwidth: [RateRule]
    /// Nothing is sent that any of them describes.
    package var pauses: [PauseRule]
    /// `nil` has no opinion.
    package var metered: MeteredRule?
    /// `nil` has no opinion; where no place has one, an unknown network counts as metered.
    package var meteredUnknown: UnknownNetwork?
    /// The first rule with an opinion about a network counts, and of the three places the strictest.
    package var networks: [NetworkRule]
    /// No upload is sent that would count in an exhausted one; ``QuotaState`` counts.
    package var quotas: [Quota]
    /// Files that were found longer ago are not sent any more; the shortest of the three places counts (``Expiry``).
    package var expiresAfter: Duration?
    /// `nil` has no opinion.
    package var onBattery: BatteryUse?
    /// Per cent: no upload is sent while the battery has less, also while it is charged.
    package var minBattery: Int?
    /// No upload is sent while this source says that the machine is busy. `nil` has no opinion.
    package var busy: BusyRule?

    package init(
        windows: [Window] = [], bandwidth: [RateRule] = [], pauses: [PauseRule] = [], metered: MeteredRule? = nil,
        meteredUnknown: UnknownNetwork? = nil, networks: [NetworkRule] = [], quotas: [Quota] = [],
        expiresAfter: Duration? = nil, onBattery: BatteryUse? = nil, minBattery: Int? = nil,
        busy: BusyRule? = nil
    ) {
        self.windows = windows
        self.bandwidth = bandwidth
        self.pauses = pauses
        self.metered = metered
        self.meteredUnknown = meteredUnknown
        self.networks = networks
        self.quotas = quotas
        self.expiresAfter = expiresAfter
        self.onBattery = onBattery
        self.minBattery = minBattery
        self.busy = busy
    }

    /// A limit of the speed, always or while a window is open.
    package struct RateRule: Hashable, Sendable {
        /// `nil`: always.
        package var window: Window?
        /// Bytes a second; 0: nothing is sent. `nil`: no limit.
        package var limit: Int64?

        package init(window: Window? = nil, limit: Int64?) {
            self.window = window
            self.limit = limit
        }
    }

    /// The conditions of all its rules.
    package var conditions: [Condition] { pauses.map(\.when) }

    /// Whether no rule depends on the wall clock.
    package var isTimeless: Bool {
        windows.isEmpty && bandwidth.allSatisfy { $0.window == nil } && quotas.isEmpty && expiresAfter == nil
            && pauses.allSatisfy { !$0.when.dependsOnTime }
    }

    private var opening: Timetable<Bool> { Timetable(anyOf: windows) }

    private var rate: Timetable<Int64?> {
        let always = bandwidth.filter { $0.window == nil }.compactMap(\.limit)
        let timed = bandwidth.filter { $0.window != nil }
        return Timetable(timed.compactMap(\.window)) { isOpen in
            (always + zip(timed, isOpen).compactMap { $1 ? $0.limit : nil }).min()
        }
    }

    /// Bytes a second; `nil` for no limit. While the clock is not trusted, any of the windows may be open.
    package func limit(in inputs: Admission.PolicyInputs) -> Int64? {
        if inputs.clockTrouble != nil { return bandwidth.compactMap(\.limit).min() }
        return rate.value(at: inputs.now, in: inputs.zone)
    }

    /// - Parameter place: The place of the rules, for people: `policy`, `destinations.nas`, `folder door`.
    func holds(_ place: String, in inputs: Admission.PolicyInputs, excusing exempt: Set<Exemption> = []) -> [Hold] {
        let byTime = [
            exempt.contains(.window) ? nil : windowHold(place, inputs), bandwidthHold(place, inputs),
            exempt.contains(.quota) ? nil : clockHold(inputs),
        ]
        return byTime.compactMap { $0 } + powerHolds(place, in: inputs) + busyHolds(place, in: inputs)
    }

    /// It is unknown in which period of the calendar bytes would count.
    private func clockHold(_ inputs: Admission.PolicyInputs) -> Hold? { quotas.isEmpty ? nil : inputs.clockTrouble }

    private func windowHold(_ place: String, _ inputs: Admission.PolicyInputs) -> Hold? {
        if windows.isEmpty { return nil }
        if let trouble = inputs.clockTrouble { return trouble }
        let opening = opening
        if opening.value(at: inputs.now, in: inputs.zone) { return nil }
        return Hold(
            .schedule, since: opening.lastChange(upTo: inputs.now, in: inputs.zone) ?? inputs.now,
            until: opening.nextChange(after: inputs.now, in: inputs.zone),
            text: "outside the windows of \(place): `windows: \(Window.yaml(windows))`")
    }

    private func bandwidthHold(_ place: String, _ inputs: Admission.PolicyInputs) -> Hold? {
        guard !bandwidth.isEmpty, limit(in: inputs) == 0 else { return nil }
        let isKnown = inputs.clockTrouble == nil
        return Hold(
            .schedule, since: isKnown ? rate.lastChange(upTo: inputs.now, in: inputs.zone) ?? inputs.now : inputs.now,
            until: isKnown ? rate.nextChange(after: inputs.now, in: inputs.zone) : nil,
            text: "the bandwidth of \(place) is 0 now: `\(zeroBandwidthRule(in: inputs))`")
    }

    /// The `bandwidth` rule that is 0, in the words of the configuration.
    private func zeroBandwidthRule(in inputs: Admission.PolicyInputs) -> String {
        let still = bandwidth.first { rule in
            guard rule.limit == 0, let window = rule.window, inputs.clockTrouble == nil else { return rule.limit == 0 }
            return Timetable(anyOf: [window]).value(at: inputs.now, in: inputs.zone)
        }
        guard let window = still?.window else { return "bandwidth: 0" }
        return "bandwidth: {between: \"\(window.words)\", limit: 0}"
    }

    /// When a rule begins or ends to forbid, or another limit applies.
    func nextChange(in inputs: Admission.PolicyInputs) -> WallTime? {
        if isTimeless || inputs.clockTrouble != nil { return nil }
        let pausing = Timetable(pauses.flatMap(\.when.windows)) { $0 }
        return [
            opening.nextChange(after: inputs.now, in: inputs.zone), rate.nextChange(after: inputs.now, in: inputs.zone),
            pausing.nextChange(after: inputs.now, in: inputs.zone),
        ].compactMap { $0 }.min()
    }
}

extension Admission.PolicyInputs {
    /// The hold of the clock is reported once, regardless of how many rules depend on it.
    func withoutDuplicates(_ holds: [Hold]) -> [Hold] {
        var seen: Set<Hold> = []
        return holds.filter { seen.insert($0).inserted }
    }
}
